#include "cql/catalog/context_token.h"

#include <algorithm>
#include <utility>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "base/codec.h"
#include "causality/codec.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeadSize = 1 + sizeof(std::uint64_t) + sizeof(PlacedContext::PartitionHash);
using Tag = std::array<std::byte, 16>;

// The first bytes of HMAC-SHA-256.
template <class Hash>
Hash keyed_hash(ByteView bytes, const ContextSecret& secret) {
  std::array<unsigned char, 32> all{};
  unsigned int size = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), secret.reveal().data(), static_cast<int>(secret.reveal().size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), all.data(), &size);
  ASSERT(made != nullptr && size == all.size(), "libcrypto makes no HMAC");
  Hash hash;
  std::ranges::transform(std::span(all).first(hash.size()), hash.begin(),
                         [](unsigned char octet) { return std::byte{octet}; });
  return hash;
}

}  // namespace

Bytes seal(const causality::Context& context, storage::TableId table, ByteView partition,
           const ContextSecret& secret) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(kVersion);
  out.u64_le(table.value());
  out.raw(keyed_hash<PlacedContext::PartitionHash>(partition, secret));
  out.raw(causality::encoded(context).view());
  out.raw(keyed_hash<Tag>(buffer.view(), secret));
  return std::move(buffer).freeze();
}

QueryResult<PlacedContext> unseal(ByteView bytes, const ContextSecret& secret) {
  const auto refused = [](std::string_view why) {
    return invalid("{} is no context of this cluster: {}", kContextKey, why);
  };
  if (bytes.size() < kHeadSize + sizeof(Tag)) return refused("it is too short");
  const ByteView content = bytes.first(bytes.size() - sizeof(Tag));
  const Tag tag = keyed_hash<Tag>(content, secret);
  if (CRYPTO_memcmp(tag.data(), bytes.last(sizeof(Tag)).data(), sizeof(Tag)) != 0) {
    return refused("it was not given out here, or was changed since");
  }
  base::Decoder in(content.first(kHeadSize));
  if (in.u8() != kVersion) return refused("its version is not known");
  PlacedContext placed;
  placed.table = storage::TableId{in.u64_le()};
  std::ranges::copy(in.raw(sizeof(PlacedContext::PartitionHash)), placed.partition.begin());
  auto context = causality::decode_context(Bytes::copy_of(content.subspan(kHeadSize)));
  if (!context) return refused(context.error().to_string());
  placed.context = *std::move(context);
  return placed;
}

QueryResult<void> check_place(const PlacedContext& context,
                              std::span<const replication::PartitionWrite> writes,
                              const ContextSecret& secret) {
  for (const replication::PartitionWrite& write : writes) {
    if (write.table != context.table) {
      return invalid("{} is of another table, or of before this one was truncated", kContextKey);
    }
    if (keyed_hash<PlacedContext::PartitionHash>(write.partition.view(), secret) !=
        context.partition) {
      return invalid(
          "{} is of another partition: a request under a context writes the one it was read with",
          kContextKey);
    }
  }
  return {};
}

}  // namespace helenus::cql
