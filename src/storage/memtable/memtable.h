// Memtable: the newest fragments of a table, in memory, ordered by key.
//
// A write appends: it finds the key and hangs its encoded fragment onto it, without looking at
// what is there. Reading merges the fragments of a key (causality/dot_store.h); a key that has
// gathered many is merged in place by the write that comes next, one that is also read much
// earlier, so that a hot row stays cheap to read. Nothing is stripped here: that is for flush and
// compaction (S3). A delete of exactly one row hangs onto the row's key, one of a range onto the
// partition's or, when that has some, onto that of its path (range_delete_key.h).
//
// The tree holds sixteen bytes a key: the key's first bytes as a number, by which nearly every
// comparison is decided (they are the token), and where the rest lies. A descent touches few lines
// of memory; a key that is there is found by its hash, without one. Clients choose the keys: so the
// hash is seeded with something that they do not know, and none can choose keys that lie in one
// place. (XXH3 with a secret seed: no proof is known, nor an attack without the seed.)
//
// Ownership: keys and fragments live in an arena that goes with the memtable; what is read is
// copied out. Shared by cursors and flushes through shared_ptr: a frozen memtable lives until its
// last reader has left.
// Core affinity: one core. Cost: a write copies the fragment; a new key is one descent of a B-tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <absl/container/btree_set.h>
#include <absl/types/compare.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "causality/delta.h"
#include "storage/entry/entry.h"
#include "storage/ids/row_key.h"
#include "storage/memtable/arena.h"
#include "storage/memtable/hash_index.h"

namespace helenus::storage {

class Memtable {
 public:
  // Beyond this many, the fragments of one key are merged into one, once they are a part of it that
  // is worth the copying: so a key that only grows, as that of ranges which overlap, is copied a
  // bounded number of times.
  static constexpr std::uint32_t kFragmentsPerKeyMax = 16;
  static constexpr std::uint32_t kMergedPerWrittenMax = 8;
  // The same for a key that was read since, unless merging would mostly copy what is merged.
  static constexpr std::uint32_t kFragmentsPerReadKeyMax = 3;
  // A key with so many reads between two writes is merged by every write, with the same exception.
  static constexpr std::uint8_t kReadsOfReadMostly = 2;

  // `seed`: of the hash of keys.
  explicit Memtable(causality::Policy policy, std::uint64_t seed = 0)
      : policy_(policy), seed_(seed) {}
  Memtable(const Memtable&) = delete;
  Memtable& operator=(const Memtable&) = delete;

  // Adds what a delta says of a partition. `encoded` is the delta's encoding, which the caller has
  // at hand from the commit log. Requires: not frozen; the caller has checked the delta's dot
  // against the clock (a second apply changes nothing a reader sees, but takes memory); sequence
  // numbers only grow.
  void apply(base::ByteView partition, const causality::Delta& delta, base::ByteView encoded,
             std::uint64_t sequence);

  // The merge of all fragments of a key; empty when there are none.
  Entry find(base::ByteView key) const;
  // Merges them into `entry`; the number of the newest, nothing when there are none.
  std::optional<std::uint64_t> absorb_into(base::ByteView key, Entry& entry) const;

  // How many fragments a read of the key merges.
  std::size_t fragment_count(base::ByteView key) const;
  // How many places of the index are looked at for the key.
  std::size_t places_searched(base::ByteView key) const {
    return nodes_.slots_searched(hash_of(key));
  }
  bool contains(base::ByteView key) const { return node_at(key, hash_of(key)) != nullptr; }
  // Whether it has anything of the partition.
  bool contains_partition(base::ByteView partition) const;

  // No write comes after this.
  void freeze() { frozen_ = true; }
  bool frozen() const { return frozen_; }

  bool empty() const { return keys_.empty(); }
  std::size_t key_count() const { return keys_.size(); }
  // Whether some partition has deletes of ranges here.
  bool has_ranges() const { return range_writes_ > 0; }
  // How many writes brought some: as long as it is the same, they are.
  std::uint64_t range_writes() const { return range_writes_; }
  // What the fragments of one key take at most, before they are merged.
  std::size_t largest_key_bytes() const { return largest_key_bytes_; }
  // What it takes of memory, the tree's nodes estimated.
  std::size_t memory_bytes() const {
    return arena_.reserved_bytes() + keys_.size() * kTreeBytesPerKey + nodes_.memory_bytes();
  }

  class Cursor;

 private:
  static constexpr std::size_t kTreeBytesPerKey = 24;

  enum class Form : std::uint8_t { delta, row_delete, depths, merged };
  // One encoded fragment; the bytes lie behind it.
  struct Fragment {
    const Fragment* next;
    std::uint32_t size;
    Form form;
    base::ByteView bytes() const { return {reinterpret_cast<const std::byte*>(this + 1), size}; }
  };
  // A key and its fragments. It lies in the arena and never moves; the key's bytes lie behind it.
  struct Node {
    std::uint32_t key_size = 0;
    const Fragment* newest = nullptr;
    std::uint64_t sequence = 0;  // of the newest
    std::uint32_t length = 0;
    std::uint32_t merged_bytes = 0;    // of the fragment that is a merge of others
    std::uint32_t written_bytes = 0;   // of those since
    std::uint32_t partition_size = 0;  // of the key's partition part
    // Hints that readers leave for writers.
    mutable bool read_since_merge = false;
    mutable std::uint8_t reads_since_write = 0;  // up to kReadsOfReadMostly
    base::ByteView key() const { return {reinterpret_cast<const std::byte*>(this + 1), key_size}; }
  };
  // A key that is looked for: its first bytes as a number that sorts as they do, and all of it.
  struct Key {
    std::uint64_t head;
    base::ByteView bytes;
    explicit Key(base::ByteView bytes);
  };
  struct Position {
    std::uint64_t head;
    Node* node;
  };
  struct Order {
    using is_transparent = void;
    absl::weak_ordering operator()(const Position& a, const Position& b) const;
    absl::weak_ordering operator()(const Position& a, const Key& b) const;
    absl::weak_ordering operator()(const Key& a, const Position& b) const;
  };
  using Keys = absl::btree_set<Position, Order>;

  std::uint32_t hash_of(base::ByteView key) const {
    return static_cast<std::uint32_t>(base::hash64(key, seed_));
  }
  // Null if there is none. Requires: hash == hash_of(key).
  Node* node_at(base::ByteView key, std::uint32_t hash) const;
  Node& node_of(const EntryKey& key);
  // Requires: the delta has ranges and no cells.
  void apply_ranges(base::ByteView partition, const causality::Delta& delta, base::ByteView encoded,
                    std::uint64_t sequence);
  // Each to its path. Requires: the delta has ranges and no cells.
  void apply_ranges(base::ByteView partition, causality::Delta ranges, std::uint64_t sequence);
  // Whether so many more may lie under the partition's own key.
  bool together(base::ByteView partition, std::size_t ranges) const;
  void add(const EntryKey& key, Form form, base::ByteView encoded, std::uint64_t sequence);
  void push(Node& node, Form form, base::ByteView encoded);
  static bool should_merge(const Node& node);
  Entry merge(const Node& node) const;

  const causality::Policy policy_;
  const std::uint64_t seed_;
  bool frozen_ = false;
  std::uint64_t range_writes_ = 0;
  std::size_t largest_key_bytes_ = 0;
  Arena arena_;
  Keys keys_;
  HashIndex<Node> nodes_;
  std::uint64_t generation_ = 0;  // of the tree: a new key may move the others
};

// A place between keys or on one. Writes to the memtable do not disturb it: it goes by its key, and
// by its place in the tree as long as no key has been added.
class Memtable::Cursor {
 public:
  explicit Cursor(const Memtable& memtable) : memtable_(&memtable) {}

  bool valid() const { return node_ != nullptr; }
  // Requires of the rest: valid(). The key lives as long as the memtable.
  base::ByteView key() const { return node_->key(); }
  std::size_t partition_size() const { return node_->partition_size; }
  std::uint64_t sequence() const { return node_->sequence; }
  Entry entry() const { return memtable_->merge(*node_); }

  void seek_first() { stand_on(memtable_->keys_.begin()); }
  void seek_last();
  // To the first key at or after `key`.
  void seek(base::ByteView key);
  // To the last key before `key`.
  void seek_before(base::ByteView key);
  void next();
  void previous();

 private:
  void stand_on(Keys::const_iterator at);
  bool in_place() const { return generation_ == memtable_->generation_; }

  const Memtable* memtable_;
  const Node* node_ = nullptr;  // the one it stands on
  Keys::const_iterator at_;     // if in_place()
  std::uint64_t generation_ = 0;
};

}  // namespace helenus::storage
