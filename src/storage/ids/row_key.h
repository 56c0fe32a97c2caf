// RowKey: what the storage engine finds an entry by, and what may be said about such keys without
// knowing any type: they are byte strings, ordered by memcmp, and begin with their partition's
// part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"

namespace helenus::storage {

// The limit of CQL, too: a length fits two bytes.
inline constexpr std::size_t kRowKeySizeMax = 65535;
// A fragment larger than this must have been split or refused above.
inline constexpr std::size_t kValueSizeMax = std::size_t{128} << 20;

// Borrows its bytes. The first `partition_size` of them are shared by exactly the rows of one
// partition, so the rows of a partition are neighbours.
struct RowKey {
  base::ByteView bytes;
  std::uint16_t partition_size = 0;

  base::ByteView partition() const { return bytes.first(partition_size); }
};

// A row whose key is its partition's key, as in a table without clustering columns.
inline RowKey whole_partition(base::ByteView bytes) {
  ASSERT(bytes.size() <= kRowKeySizeMax);
  return {.bytes = bytes, .partition_size = static_cast<std::uint16_t>(bytes.size())};
}

// What filters and block tags know a key by: of the whole key for a row, of the partition's part
// for a partition. Stored in files: it never changes.
inline std::uint64_t key_hash(base::ByteView bytes) {
  return base::hash64(bytes);
}

// How many bytes the two have in common at their beginning.
std::size_t common_prefix_size(base::ByteView a, base::ByteView b);

// Replaces `out` by a shortest-possible key s with a <= s < b; index entries are such keys.
// Requires: a < b.
void separate(base::ByteView a, base::ByteView b, base::Buffer& out);

}  // namespace helenus::storage
