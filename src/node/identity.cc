#include "node/identity.h"

#include <algorithm>

#include "base/codec.h"
#include "base/crc32c.h"
#include "runtime/clock.h"
#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/random.h"

namespace helenus::node {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::string_view kMagic = "HLNSNODE";
constexpr std::uint8_t kVersionUnprepared = 1;
constexpr std::uint8_t kVersion = 2;
constexpr std::size_t kIdentitySize = kMagic.size() + 1 + base::Uuid::kSize + 8 + 4;
// Room for what later versions may add, so that they are told apart from garbage.
constexpr std::size_t kFileSizeMax = 4096;

}  // namespace

base::Bytes encode(const Identity& identity) {
  base::Buffer buffer(kIdentitySize);
  base::Encoder out(buffer);
  out.raw(base::as_bytes(kMagic));
  out.u8(identity.is_prepared ? kVersion : kVersionUnprepared);
  out.raw(identity.node.value().bytes());
  out.u64_le(static_cast<std::uint64_t>(identity.created.since_origin().count()));
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<Identity> decode_identity(base::ByteView bytes) {
  base::Decoder in(bytes);
  const auto magic = in.raw(kMagic.size());
  const std::uint8_t version = in.u8();
  if (in.ok() && !base::equal(magic, base::as_bytes(kMagic))) {
    return Error(Errc::corrupt, "does not begin with {}", kMagic);
  }
  if (in.ok() && version != kVersion && version != kVersionUnprepared) {
    return Error(Errc::unsupported, "version {}, this program reads versions {} and {}", version,
                 kVersionUnprepared, kVersion);
  }
  base::Uuid::Octets octets{};
  std::ranges::copy(in.raw(base::Uuid::kSize), octets.begin());
  const runtime::WallTime created(runtime::Duration(static_cast<std::int64_t>(in.u64_le())));
  const std::size_t covered = in.offset();
  const std::uint32_t checksum = in.u32_le();
  TRY_VOID(in.finish());
  if (checksum != base::crc32c(bytes.first(covered))) {
    return Error(Errc::corrupt, "checksum does not match");
  }
  return Identity{.node = model::NodeId(base::Uuid(octets)),
                  .created = created,
                  .is_prepared = version == kVersion};
}

runtime::Task<Result<Identity>> load_or_create_identity(runtime::Runtime& runtime,
                                                        std::string data_directory,
                                                        Prepare prepare) {
  const std::string path = data_directory + "/identity";
  auto content = co_await runtime::read_file(runtime, path, kFileSizeMax);
  if (content) {
    auto identity = decode_identity(*content);
    if (!identity) co_return std::move(identity).error().within(path);
    if (!identity->is_prepared) {
      CO_TRY_VOID(co_await prepare(identity->node));
      identity->is_prepared = true;
      CO_TRY_VOID(co_await runtime::replace_file(runtime, path, encode(*identity)));
      co_return std::move(identity);
    }
    // Whoever made it may have been killed before its name was durable; telling it would be early.
    CO_TRY_VOID(co_await runtime.files.sync_directory(data_directory));
    co_return std::move(identity);
  }
  if (!content.failed_with(Errc::not_found)) co_return std::move(content).error();

  base::Uuid::Octets random;
  runtime.random.fill_secret(random);
  const Identity identity{.node = model::NodeId(base::Uuid::from_random(random)),
                          .created = runtime.clock.wall_now()};
  CO_TRY_VOID(co_await prepare(identity.node));
  CO_TRY_VOID(co_await runtime::replace_file(runtime, path, encode(identity)));
  co_return identity;
}

}  // namespace helenus::node
