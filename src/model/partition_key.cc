#include "model/partition_key.h"

#include <cstdint>

#include "base/assert.h"
#include "base/codec.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

std::uint64_t ordered(Token token) {
  return static_cast<std::uint64_t>(token.value()) ^ kSignBit;
}

std::size_t routing_key_size(std::span<const ByteView> values) {
  std::size_t size = 0;
  for (const ByteView value : values) size += value.size() + (values.size() == 1 ? 0 : 3);
  return size;
}

Bytes head_of(KeyspaceNumber keyspace, std::uint64_t ordered_token) {
  Buffer out(sizeof(std::uint32_t) + sizeof ordered_token);
  base::Encoder encoder(out);
  encoder.u32_be(keyspace.value());
  encoder.u64_be(ordered_token);
  return std::move(out).freeze();
}

}  // namespace

Result<void> check_routing_key(std::span<const ByteView> values) {
  ASSERT(!values.empty());
  const std::size_t size = routing_key_size(values);
  if (size > kRoutingKeySizeMax) {
    return Error(Errc::invalid_argument, "Key length of {} is longer than maximum of {}", size,
                 kRoutingKeySizeMax);
  }
  if (size == 0) return Error(Errc::invalid_argument, "Key may not be empty");
  return {};
}

Result<Bytes> make_routing_key(std::span<const ByteView> values) {
  TRY_VOID(check_routing_key(values));
  if (values.size() == 1) return Bytes::copy_of(values[0]);
  Buffer out(routing_key_size(values));
  base::Encoder encoder(out);
  for (const ByteView value : values) {
    encoder.u16_be(static_cast<std::uint16_t>(value.size()));
    encoder.raw(value);
    encoder.u8(0);
  }
  return std::move(out).freeze();
}

Result<std::vector<ByteView>> split_routing_key(std::size_t column_count, ByteView routing_key) {
  if (column_count == 1) return std::vector{routing_key};
  base::Decoder in(routing_key);
  std::vector<ByteView> values;
  for (std::size_t column = 0; column < column_count && in.ok(); ++column) {
    const std::size_t size = in.u16_be();
    values.push_back(in.raw(size));
    if (in.u8() != 0) in.fail("a column of a routing key that does not end in 0");
  }
  TRY_VOID(in.finish());
  return values;
}

Bytes make_partition(KeyspaceNumber keyspace, Token token, ByteView routing_key) {
  ASSERT(routing_key.size() <= kRoutingKeySizeMax);
  Buffer out(kPartitionHeadSize + routing_key.size());
  base::Encoder encoder(out);
  encoder.u32_be(keyspace.value());
  encoder.u64_be(ordered(token));
  encoder.u16_be(static_cast<std::uint16_t>(routing_key.size()));
  encoder.raw(routing_key);
  return std::move(out).freeze();
}

Result<RowKeyParts> split_row_key(ByteView row_key) {
  base::Decoder in(row_key);
  const KeyspaceNumber keyspace(in.u32_be());
  const Token token(static_cast<std::int64_t>(in.u64_be() ^ kSignBit));
  const std::size_t size = in.u16_be();
  const ByteView routing_key = in.raw(size);
  TRY_VOID(in.status());
  return RowKeyParts{.keyspace = keyspace,
                     .token = token,
                     .routing_key = routing_key,
                     .partition = row_key.first(in.offset()),
                     .clustering = row_key.subspan(in.offset())};
}

Result<Bytes> make_row_key(ByteView partition, ByteView clustering) {
  const std::size_t size = partition.size() + clustering.size();
  if (size > kRowKeySizeMax) {
    return Error(Errc::invalid_argument, "Key length of {} is longer than maximum of {}", size,
                 kRowKeySizeMax);
  }
  Buffer out(size);
  out.append(partition);
  out.append(clustering);
  return std::move(out).freeze();
}

Bytes first_key_of(KeyspaceNumber keyspace, Token token) {
  return head_of(keyspace, ordered(token));
}

Bytes first_key_after(KeyspaceNumber keyspace, Token token) {
  if (token != kTokenMax) return head_of(keyspace, ordered(token) + 1);
  return first_key_of(KeyspaceNumber(keyspace.value() + 1));
}

Bytes first_key_of(KeyspaceNumber keyspace) {
  Buffer out(sizeof(std::uint32_t));
  base::Encoder(out).u32_be(keyspace.value());
  return std::move(out).freeze();
}

}  // namespace helenus::model
