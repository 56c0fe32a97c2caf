// Where the deletes of ranges of a partition lie, so that a read finds those that hold its row
// without loading the others.
//
//   partition ‖ 0             a few of them; and the depths at which there are more
//   partition ‖ 0 ‖ path      those whose bounds begin alike, by so much of them as is alike
//
// A path is a number of digits, its depth; a digit is half a byte of a clustering key. A range lies
// under the longest common beginning of its two bounds. Whatever sorts between two byte strings
// begins with what both begin with, so a row lies in the range only if its key begins with the
// path: whoever reads the row looks under the beginnings of its own key, at the depths that are in
// use, and has seen every range that may hold it. A range that begins far before the row is found
// no less than one that begins at it, for nothing is sought by where it begins. Any shorter
// beginning would serve as well; so a range without one of its bounds, or all of them if they are
// few, lie under the partition's own key, and so do those of files that know of no paths.
//
// Invariant: a fragment, memtable or file, that has an entry under a path of a partition has one
// under the partition's own key, and that names the depth. (It may name others.) So one lookup says
// whether a fragment has deletes of ranges at all.
//
// Cost: of a row one lookup, and one for each depth in use whose digits the row before did not
// have. A hundred thousand ranges that are disjoint and evenly spread have five depths or so; d
// depths take bounds of d²/4 bytes to make. An entry is as large as its ranges overlap: each of
// them holds one of the sixteen keys that are the path and one digit more, or ends there, so no
// more than sixteen are disjoint, and all others hold rows in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "causality/dot_store.h"

namespace helenus::storage {

// What lies together under the partition's own key, about, before ranges have paths; and how many
// of one mutation. Little: it is loaded by every read.
inline constexpr std::size_t kRangesTogetherBytesMax = 512;
inline constexpr std::size_t kRangesTogetherMax = 8;

// Zero: under the partition's own key.
using RangeDepth = std::uint32_t;

// Where a range of a partition with so long a key lies.
RangeDepth depth_of(const causality::RowRange& row_range, std::size_t partition_size);

// Whether the clustering key has so many digits.
inline bool has_digits(base::ByteView key, RangeDepth depth) {
  return key.size() * 2 >= depth;
}
// Whether both begin with the same digits. Requires: both have so many.
bool same_digits(base::ByteView a, base::ByteView b, RangeDepth depth);

// The part of the entry's key behind partition ‖ 0. Requires: has_digits.
std::string range_path(base::ByteView key, RangeDepth depth);

}  // namespace helenus::storage
