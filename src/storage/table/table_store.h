// TableStore: one table in one shard: the memtable that takes writes, those that wait to be
// flushed, and the files.
//
//   active ──freeze──▶ frozen (the oldest first) ──flush──▶ sstables ──compaction──▶ sstables
//
// Invariant: flushes are installed in the order of their freezes. So every fragment that is older
// than a frozen memtable is in a file or in a memtable frozen before it, and the log up to the
// position of the last flush is not needed.
//
// Core affinity: the core that owns the shard.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "base/assert.h"
#include "storage/entry/derived_entry.h"
#include "storage/manifest/knowledge.h"
#include "storage/manifest/manifest.h"
#include "storage/memtable/memtable.h"
#include "storage/mutations/mutation_record.h"
#include "storage/read/table_view.h"
#include "storage/table/compaction_candidate.h"

namespace helenus::storage {

using FileSet = absl::btree_set<FileNumber>;
using Clocks = absl::btree_map<TabletId, causality::Clock>;

// The manifest remembers these clocks, too; those of tablets that were dropped since, not.
void join_clocks(ManifestState& state, const Clocks& clocks);

// What of a file may be dropped by this knowledge.
Collectable collectable(const SstableMetadata& metadata, const Knowledge& knowledge);

// The dots of the mutations in a memtable, by tablet. When the memtable is in a file they enter the
// manifest, and no other dots with them: what the manifest says a tablet has seen is in files, so
// that it stays true should the logs be lost (directory_set.h).
class MemtableDots {
 public:
  void add(TabletId tablet, const causality::Dot& dot);
  const Clocks& clocks() const { return clocks_; }
  // About, and at most: a set is kept as ranges, and mutations of several tables of a tablet leave
  // gaps in one another's.
  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  Clocks clocks_;
  std::size_t memory_bytes_ = 0;
};

// What was so when a memtable was frozen.
struct FreezeState {
  FreezeNumber number;
  // Every record in the memtable lies before this position of this core's log, every later one
  // does not.
  LogPosition log_end = {};
  // The number of the last write staged before.
  std::uint64_t sequence = 0;
  Knowledge knowledge = {};
};

struct FrozenMemtable {
  std::shared_ptr<Memtable> memtable;
  Clocks dots;
  FreezeState at;
  std::size_t bytes = 0;
};

class TableStore {
 public:
  // `memtable_seed`: what clients do not know (memtable.h).
  TableStore(TableId id, ShardNumber shard, TableOptions options, std::uint64_t memtable_seed)
      : id_(id),
        shard_(shard),
        memtable_seed_(memtable_seed),
        options_(options),
        active_(std::make_shared<Memtable>(options.policy, memtable_seed)),
        sstables_(std::make_shared<SstableList>()) {}

  TableId id() const { return id_; }
  ShardNumber shard() const { return shard_; }
  TableId stream() const { return stream_of(id_, shard_); }
  const TableOptions& options() const { return options_; }
  // Requires: the same policy.
  void set_options(TableOptions options) {
    ASSERT(options.policy == options_.policy);
    options_ = options;
  }

  Memtable& active() { return *active_; }
  const Memtable& active() const { return *active_; }
  // ---- Indexes (storage/entry/derived_entry.h) ----
  // This is one.
  bool is_index() const { return options_.index.has_value(); }
  bool index_is_built() const { return index_is_built_; }
  void set_index_built() { index_is_built_ = true; }
  bool derives_entries() const { return derive_entries_ != nullptr; }
  void derive_entries_by(DeriveEntries derive) { derive_entries_ = std::move(derive); }
  // Requires: derives_entries().
  void derive_entries(base::ByteView tablet_from, base::ByteView partition,
                      std::span<const causality::CellChange> cells,
                      std::vector<DerivedEntry>& into) const {
    derive_entries_(tablet_from, partition, cells, into);
  }
  // Those of this table, in this shard.
  const std::vector<std::shared_ptr<TableStore>>& indexes() const { return indexes_; }
  void add_index(std::shared_ptr<TableStore> index) { indexes_.push_back(std::move(index)); }
  void remove_index(TableId index) {
    std::erase_if(indexes_, [index](const auto& each) { return each->id() == index; });
  }
  // What a mutation of the table that this is an index of says, or a part of it.
  struct IndexedMutation {
    causality::Dot dot;
    const causality::Context& context;
    causality::Timestamp timestamp;
    std::span<const causality::CellChange> cells;
  };
  // Adds its entries to the active memtable. `last`: the last entry that was added, which need not
  // be added again.
  void apply_entries(TabletId tablet, base::ByteView tablet_from, base::ByteView partition,
                     const IndexedMutation& mutation, std::uint64_t sequence,
                     DerivedEntry* last = nullptr);

  // A mutation was applied to the active memtable.
  void note_applied(TabletId tablet, const causality::Dot& dot) { active_dots_.add(tablet, dot); }
  // What the active memtable and its dots take of memory.
  std::size_t active_bytes() const { return active_->memory_bytes() + active_dots_.memory_bytes(); }
  // The dots of everything that is not in files.
  Clocks dots_in_memory() const;
  bool has_in_memory(TabletId tablet) const;
  const std::deque<FrozenMemtable>& frozen() const { return frozen_; }
  const SstableList& sstables() const { return *sstables_; }
  std::shared_ptr<const SstableList> share_sstables() const { return sstables_; }
  TableView view() const;
  // The same with other files.
  TableView view(std::shared_ptr<const SstableList> files) const;

  // Requires: the active memtable is not empty.
  void freeze(FreezeState at);
  // The oldest frozen memtable is in `file`, or left nothing behind.
  void replace_oldest_frozen(std::shared_ptr<const Sstable> file);
  // The inputs are no longer busy, nor there.
  void replace_sstables(const FileSet& inputs, SstableList outputs);
  void add_sstable(std::shared_ptr<const Sstable> file);

  // Files under compaction.
  void set_busy(FileNumber file) { busy_.insert(file); }
  void clear_busy(FileNumber file) { busy_.erase(file); }
  bool busy(FileNumber file) const { return busy_.contains(file); }
  // Files that a merge failed for, such as by a sector that cannot be read: none begins with them
  // before a while is over, twice as long as the last time. Those beside them are merged meanwhile.
  static constexpr runtime::Duration kRestMax = std::chrono::minutes(10);
  void rest(FileNumber file, runtime::MonotonicTime now, runtime::Duration first);
  bool rests(FileNumber file, runtime::MonotonicTime now) const;
  std::vector<CompactionCandidate> compaction_candidates(runtime::MonotonicTime now) const;
  // The files that are not set aside, with what may be dropped of them by this knowledge.
  std::vector<CollectionCandidate> collection_candidates(const Knowledge& knowledge,
                                                         runtime::MonotonicTime now) const;
  // The file was written for the sake of garbage, and so much of it is left.
  void set_garbage_left(FileNumber file, Collectable left) { garbage_left_[file] = left; }
  // When it was last merged for its garbage.
  runtime::MonotonicTime collected_at() const { return collected_at_; }
  void set_collected_at(runtime::MonotonicTime now) {
    collected_at_ = now;
    flushed_since_collection_ = false;
  }
  bool flushed_since_collection() const { return flushed_since_collection_; }

  // Files that are damaged, and why: they are read, and what cannot be read of them is an error,
  // but they are never merged again. Everything else goes on without them.
  void set_aside(FileNumber file, base::Error why) { aside_.emplace(file, std::move(why)); }
  bool aside(FileNumber file) const { return aside_.contains(file); }
  const absl::btree_map<FileNumber, base::Error>& files_aside() const { return aside_; }

  // While somebody holds one, no new compaction of some of its files begins: so whoever wants all
  // of them gets his turn.
  class WantedWhole {
   public:
    explicit WantedWhole(TableStore& table) : table_(table) { ++table_.wanted_whole_; }
    ~WantedWhole() { --table_.wanted_whole_; }
    WantedWhole(const WantedWhole&) = delete;
    WantedWhole& operator=(const WantedWhole&) = delete;

   private:
    TableStore& table_;
  };
  bool is_wanted_whole() const { return wanted_whole_ > 0; }

  // Itself, if it is a table of counters.
  const TableStore* counters() const {
    return options_.policy == causality::Policy::counter ? this : nullptr;
  }
  // While somebody holds one, no merge that looks for it begins to fold counters.
  class FoldingHeld {
   public:
    explicit FoldingHeld(std::shared_ptr<TableStore> table) : table_(std::move(table)) {
      ++table_->folding_held_;
    }
    ~FoldingHeld() { --table_->folding_held_; }
    FoldingHeld(const FoldingHeld&) = delete;
    FoldingHeld& operator=(const FoldingHeld&) = delete;

   private:
    std::shared_ptr<TableStore> table_;
  };
  bool is_folding_held() const { return folding_held_ > 0; }

  bool dropped() const { return dropped_; }
  void set_dropped() { dropped_ = true; }

 private:
  const TableId id_;
  const ShardNumber shard_;
  const std::uint64_t memtable_seed_;
  TableOptions options_;
  std::shared_ptr<Memtable> active_;
  MemtableDots active_dots_;
  std::deque<FrozenMemtable> frozen_;
  std::shared_ptr<const SstableList> sstables_;  // ascending by number; replaced, never changed
  absl::flat_hash_set<FileNumber> busy_;
  struct Rest {
    runtime::MonotonicTime until;
    runtime::Duration length;
  };
  absl::flat_hash_map<FileNumber, Rest> rests_;
  absl::flat_hash_map<FileNumber, Collectable> garbage_left_;
  runtime::MonotonicTime collected_at_;
  bool flushed_since_collection_ = true;
  absl::btree_map<FileNumber, base::Error> aside_;
  std::size_t wanted_whole_ = 0;
  std::size_t folding_held_ = 0;
  bool dropped_ = false;
  bool index_is_built_ = false;
  DeriveEntries derive_entries_;
  std::vector<std::shared_ptr<TableStore>> indexes_;
};

}  // namespace helenus::storage
