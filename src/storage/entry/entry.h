// Entry: what the engine keeps under one key. A table is a sorted run of entries:
//
//   partition ‖ 0 [‖ path]             the partition's deletes of ranges of rows, if it has any:
//                                      a few, and many more in parts (range_delete_key.h)
//   partition ‖ 1 ‖ clustering key     its rows, a static row under the empty clustering key
//
// so that everything of a partition is adjacent, and what holds for many of its rows comes first.
// The partition's part is prefix-free (no partition's bytes begin another's), or two partitions
// could interleave.
//
// A delete of exactly one row lies under the row's own key, with its cells: a partition in which a
// million rows were deleted has a million small entries, not one that every read must load.
// Nothing below asks how many rows a range holds: one among the ranges counts all the same.
//
// Invariant. Before a reader may say that a cell lives, it must have merged every fragment under
// the row's key, its cells and the deletes of the row, and every fragment of the ranges that hold
// the row: those under the partition's own key, and, at every depth that these name, those under
// the path that the row's key begins with. A delete that is missing shows what it deleted. What a
// merge must have seen before it strips or drops: merge_writer.h.
//
// An Entry is at once a whole replica's knowledge of that key, one fragment of it, or what one
// write adds: they meet by absorb, in any order (causality/dot_store.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "causality/ranges_around.h"
#include "causality/resolve.h"
#include "storage/entry/range_delete_key.h"

namespace helenus::storage {

enum class EntryKind : std::uint8_t { deleted_ranges = 0, row = 1 };

// An entry's key, taken apart.
struct EntryKey {
  base::ByteView partition;
  EntryKind kind = EntryKind::row;
  base::ByteView clustering;  // of ranges: their path
};

std::string encode_key(const EntryKey& key);

// The same for a look or two: a key of common size takes no memory of its own.
class EncodedKey {
 public:
  explicit EncodedKey(const EntryKey& key);
  base::ByteView view() const { return bytes_; }

 private:
  static constexpr std::size_t kCommonSizeMax = 112;
  absl::InlinedVector<std::byte, kCommonSizeMax> bytes_;
};

// Requires: `bytes` was made by encode_key with a partition of that size.
EntryKey key_parts(base::ByteView bytes, std::size_t partition_size);

class Entry {
 public:
  // Forgets everything and keeps the memory for the next entry.
  void clear();
  bool empty() const { return row_.empty() && row_deletes_.empty() && !holds_ranges(); }
  // Of a row entry; empty in a ranges entry.
  const causality::RowStore& row() const { return row_; }
  // Of a row entry: what the deletes of this row say of every cell of it, there or not.
  const causality::CellStore& row_deletes() const { return row_deletes_; }
  // Of a ranges entry; empty in a row entry.
  std::span<const causality::RangeDelete> deleted_ranges() const {
    return deleted_ranges_.range_deletes();
  }
  // Of the ranges entry under the partition's own key: at which depths there may be others,
  // ascending.
  std::span<const RangeDepth> depths() const { return depths_; }
  bool holds_ranges() const { return !deleted_ranges_.empty() || !depths_.empty(); }

  // Merges another fragment of the same key. Law: commutative, associative, idempotent.
  void absorb(const Entry& other);
  // The same; takes the fragment over if there is nothing to merge it with.
  void absorb(Entry&& other);
  // Merges what a delta says. Requires: the delta is of this key alone, a row's changes or ranges.
  void absorb(causality::Delta delta, causality::Policy policy);
  // The same for a row entry and a delta that deletes exactly this row.
  void absorb_row_delete(const causality::Delta& delta, causality::Policy policy);
  void absorb(const causality::RangeDelete& range_delete) { deleted_ranges_.absorb(range_delete); }
  // Of a ranges entry: those inside others that have seen them go. Always allowed, see dot_store.h.
  void apply_range_deletes() { deleted_ranges_.apply_range_deletes(); }
  void add_depth(RangeDepth depth);
  // Merges into a cell of the row, and into what its deletes say.
  void absorb_cell(causality::ColumnId column, causality::CellStore cell) {
    row_.absorb(column, std::move(cell));
  }
  void absorb_row_deletes(const causality::CellStore& deletes) { row_deletes_.absorb(deletes); }
  // Gives the row away, without its deletes.
  causality::RowStore take_row() && { return std::move(row_); }
  // Drops what is stable in a row's entry and strips the rest, deletes of the row included, beside
  // the ranges that hold it, as these were before they were settled: their contexts, stripped by
  // themselves, no longer name all that they supersede. See merge_writer.h for when it is allowed.
  void apply_ranges_to_row(causality::RangesAround& around) { around.apply_to(row_, row_deletes_); }

  friend bool operator==(const Entry&, const Entry&) = default;
  friend void encode(base::Encoder& out, const Entry& entry);
  friend base::Result<Entry> decode_entry(const base::Bytes& bytes);
  friend base::Result<void> absorb_encoded(const base::Bytes& bytes, Entry& entry);

 private:
  causality::RowStore row_;
  causality::CellStore row_deletes_;
  causality::PartitionStore deleted_ranges_;
  std::vector<RangeDepth> depths_;
};

void encode(base::Encoder& out, const Entry& entry);
// Errors: corrupt, unsupported. Values are slices of `bytes`.
base::Result<Entry> decode_entry(const base::Bytes& bytes);
// Merges an encoded fragment of the same key into `entry`: into one that is empty it is decoded
// where it shall be. After an error what is in `entry` means nothing. Errors: as decode_entry.
base::Result<void> absorb_encoded(const base::Bytes& bytes, Entry& entry);

}  // namespace helenus::storage
