// How a ring of tokens is cut into tablets of equal width. Partitions begin with their token as
// eight bytes in the order of tokens (model/partition_key.h) behind their keyspace's number, so a
// tablet is a range of byte strings that begins with one of 2^64 prefixes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "storage/engine/tablet_info.h"

namespace helenus::replication {

// The range of tablet `index` of `count`, of the keyspace with number 0: the first begins below
// all, the last ends where the next keyspace begins. Requires: index < count.
storage::KeyRange cut(std::uint32_t index, std::uint32_t count);

// Which of the tablets holds the partition. Requires: they are ascending and cover the ring.
std::size_t index_of(std::span<const storage::TabletInfo> tablets, base::ByteView partition);

}  // namespace helenus::replication
