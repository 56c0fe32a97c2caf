// Entry: what the engine keeps under one key. A table is a sorted run of entries:
//
//   partition ‖ 0                      the partition's range-scoped deletes, if it has any
//   partition ‖ 1 ‖ clustering key     its rows, a static row under the empty clustering key
//
// so that everything of a partition is adjacent, and what holds for all of its rows comes first.
// The partition's part is prefix-free (no partition's bytes begin another's), or two partitions
// could interleave.
//
// An Entry is at once a whole replica's knowledge of that key, one fragment of it, or what one
// write adds: they meet by absorb, in any order (causality/dot_store.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "causality/resolve.h"

namespace helenus::storage {

enum class EntryKind : std::uint8_t { scopes = 0, row = 1 };

// An entry's key, taken apart.
struct EntryKey {
  base::ByteView partition;
  EntryKind kind = EntryKind::row;
  base::ByteView clustering;
};

std::string encode_key(const EntryKey& key);
// Requires: `bytes` was made by encode_key with a partition of that size.
EntryKey key_parts(base::ByteView bytes, std::size_t partition_size);

class Entry {
 public:
  // Forgets everything and keeps the memory for the next entry.
  void clear();
  bool empty() const { return row_.empty() && scopes_.empty(); }
  // Of a row entry; empty in a scopes entry.
  const causality::RowStore& row() const { return row_; }
  // Of a scopes entry; empty in a row entry.
  std::span<const causality::ScopedStore> scopes() const { return scopes_.scoped(); }

  // Merges another fragment of the same key. Law: commutative, associative, idempotent.
  void absorb(const Entry& other);
  // The same; takes the fragment over if there is nothing to merge it with.
  void absorb(Entry&& other);
  // Merges what a delta says. Requires: the delta is of this key alone, a row's changes or scopes.
  void absorb(causality::Delta delta, causality::Policy policy);
  // Gives the row away.
  causality::RowStore take_row() && { return std::move(row_); }
  // See causality::CellStore::strip, and merge_writer.h for when it is allowed.
  void strip(const causality::Clock& known);
  // Drops the stable versions of a scopes entry. Requires: every row of the partition that they may
  // defeat is settled by the same knowledge.
  void drop_stable_scopes(causality::Policy policy, const causality::Stability& stable);
  // Drops what is stable in a row's entry and strips the rest, beside the partition's scopes as
  // they were before they were settled. See merge_writer.h for when it is allowed.
  void settle_row(causality::Policy policy, const causality::Clock& known,
                  const causality::Stability& stable, const causality::PartitionStore& scopes,
                  base::ByteView clustering);

  friend bool operator==(const Entry&, const Entry&) = default;
  friend void encode(base::Encoder& out, const Entry& entry);
  friend base::Result<Entry> decode_entry(const base::Bytes& bytes);
  friend base::Result<void> absorb_encoded(const base::Bytes& bytes, Entry& entry);

 private:
  causality::RowStore row_;
  causality::PartitionStore scopes_;
};

void encode(base::Encoder& out, const Entry& entry);
// Errors: corrupt, unsupported. Values are slices of `bytes`.
base::Result<Entry> decode_entry(const base::Bytes& bytes);
// Merges an encoded fragment of the same key into `entry`: into one that is empty it is decoded
// where it shall be. After an error what is in `entry` means nothing. Errors: as decode_entry.
base::Result<void> absorb_encoded(const base::Bytes& bytes, Entry& entry);

}  // namespace helenus::storage
