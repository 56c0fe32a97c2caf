// MutationRecord: what one record of the commit log says (theory S1): one mutation of one partition
// with its dot, its context and its operation id, encoded once. docs/formats/mutation-record.md.
//
// The log knows records by a stream: one table in one shard, which is what is flushed at once and
// so what needs the log from some position on.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "storage/ids/table_id.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {

using ShardNumber = base::Strong<struct ShardNumberTag, std::uint32_t>;
inline constexpr std::uint32_t kShardsMax = 4096;
inline constexpr std::uint64_t kTableIdMax = UINT64_MAX / kShardsMax - 1;

// The log's name for a table's records in a shard. Requires: both within their limits.
inline TableId stream_of(TableId table, ShardNumber shard) {
  return TableId{table.value() * kShardsMax + shard.value()};
}
inline TableId table_of_stream(TableId stream) {
  return TableId{stream.value() / kShardsMax};
}
inline ShardNumber shard_of_stream(TableId stream) {
  return ShardNumber{static_cast<std::uint32_t>(stream.value() % kShardsMax)};
}

// Whether the tablet had peers when the mutation was staged. Without any it is stable at once, for
// ever: whoever joins later starts from a copy that has it (S8). So nobody will ever ask for it.
enum class Replication : std::uint8_t { peers = 0, none = 1 };

struct MutationRecord {
  TabletId tablet;
  Replication replication = Replication::peers;
  base::ByteView partition;  // borrows from the record
  base::Bytes delta;         // shares the record's memory
};

// Appends the record; returns where in `out` the delta's encoding begins.
std::size_t encode_mutation(TabletId tablet, Replication replication, base::ByteView partition,
                            const causality::Delta& delta, base::Buffer& out);
// Errors: corrupt; unsupported (another version). The delta is not decoded.
base::Result<MutationRecord> decode_mutation(const base::Bytes& record);

}  // namespace helenus::storage
