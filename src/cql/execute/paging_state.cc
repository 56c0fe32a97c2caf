#include "cql/execute/paging_state.h"

#include <utility>

#include "base/codec.h"
#include "base/hash.h"
#include "model/partition_key.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumSize = 8;

QueryError refused() {
  return {protocol::ErrorCode::protocol_error, "Invalid value for the paging state"};
}

// A client may make up a state, checksum and all: where it points to must at least be a place.
bool is_place(const RowPosition& position) {
  constexpr std::size_t kAdded = 2;  // by storage, and by what begins just behind
  if (position.partition.size() + position.clustering.size() + kAdded > model::kRowKeySizeMax) {
    return false;
  }
  const auto parts = model::split_row_key(position.partition);
  return parts && parts->clustering.empty();
}

}  // namespace

Bytes encode(const PagingState& state) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(kVersion);
  out.u64_le(state.statement);
  out.varint(state.rows_left ? *state.rows_left + 1 : 0);
  out.varint(state.after.rows_in_partition);
  out.prefixed(state.after.partition.view());
  out.prefixed(state.after.clustering.view());
  out.u64_le(base::hash64(buffer.view()));
  return std::move(buffer).freeze();
}

QueryResult<PagingState> decode_paging_state(ByteView bytes, std::uint64_t statement) {
  if (bytes.size() < kChecksumSize + 1) return refused();
  const ByteView content = bytes.first(bytes.size() - kChecksumSize);
  base::Decoder checksum(bytes.last(kChecksumSize));
  if (checksum.u64_le() != base::hash64(content)) return refused();
  base::Decoder in(content);
  PagingState state;
  if (in.u8() != kVersion) return refused();
  state.statement = in.u64_le();
  const std::uint64_t rows_left = in.varint();
  if (rows_left > 0) state.rows_left = rows_left - 1;
  state.after.rows_in_partition = in.varint();
  state.after.partition = Bytes::copy_of(in.prefixed());
  state.after.clustering = Bytes::copy_of(in.prefixed());
  if (!in.finish() || !is_place(state.after)) return refused();
  if (state.statement != statement) {
    return invalid("The paging state is of another statement, or of other values");
  }
  return state;
}

}  // namespace helenus::cql
