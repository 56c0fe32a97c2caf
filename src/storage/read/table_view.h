// TableView: a table of a shard as it is at one moment: its memtables and its sstables.
//
// Taking one is a step without a suspension; so is copying the tablet's clock beside it, and that
// is what S4 asks for: the data is as new as the clock it is shown with, or newer, never older.
//
// The active memtable goes on taking writes while a view of it is read; the rest, what is *older*,
// does not change. Whoever reads several keys of it that belong together, a row and the deletes of
// ranges that hold it, reads what is older first, as that may wait, and then what the active
// memtable has of all of them in one step: so it sees them as they were at one moment. A delete and
// a later write of the row are otherwise seen by halves.
//
// Everything that may have the key is merged, always: the newest need not have the latest version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/entry/entry.h"
#include "storage/manifest/knowledge.h"
#include "storage/manifest/manifest.h"
#include "storage/memtable/memtable.h"
#include "storage/read/merged_entries.h"
#include "storage/read/superseded_files.h"
#include "storage/sstable/sstable_reader.h"

namespace helenus::storage {

// An open file of a table.
struct Sstable {
  SstableRecord record;
  SstableMetadata metadata;
  std::shared_ptr<SstableReader> reader;
  // Why there is no reader: the file could not even be opened. Then it may have anything between
  // its first and its last key, and reading it is this error.
  std::optional<base::Error> damage = {};

  bool in_range(base::ByteView key) const {
    return base::compare(key, record.key_first) >= 0 && base::compare(key, record.key_last) <= 0;
  }
  // False if the file surely has nothing under the key. Both require: hash == key_hash of the first
  // argument.
  bool may_hold(base::ByteView key, std::uint64_t hash) const {
    return in_range(key) && (damage || reader->may_hold_row(key, hash));
  }
  // False if the file surely has no key of the partition.
  bool may_hold_partition(base::ByteView partition, std::uint64_t hash) const;
};

using SstableList = std::vector<std::shared_ptr<const Sstable>>;

// What a read cost, and where it found something.
struct ReadTrace {
  std::uint32_t memtables_with_key = 0;
  std::uint32_t sstables_with_key = 0;
  std::uint32_t sstables_in_range = 0;
  std::uint32_t sstables_filtered = 0;
  std::uint32_t sstables_superseded = 0;  // that their filters let through (superseded_files.h)
  std::uint32_t blocks_read = 0;
  std::uint32_t range_paths_read = 0;  // where deletes of ranges may lie (range_delete_key.h)
  // The newest write seen that may not be durable yet.
  std::uint64_t sequence = 0;
};

class TableView {
 public:
  TableView(std::shared_ptr<const Memtable> active,
            std::vector<std::shared_ptr<const Memtable>> frozen,
            std::shared_ptr<const SstableList> sstables)
      : active_(std::move(active)), frozen_(std::move(frozen)), sstables_(std::move(sstables)) {}

  // The merge of what frozen memtables and files have under the key; empty when there is nothing.
  // The key must outlive the wait. Errors: corrupt, unsupported, io_error, timeout, cancelled.
  runtime::Task<base::Result<Entry>> find_older(base::ByteView key, runtime::Until until,
                                                ReadTrace& trace) const;
  // A search under a row's key, as far as it has come.
  struct OlderRow {
    Superseded superseded;
    Entry entry = {};
    bool has_begun = false;
    absl::InlinedVector<const Sstable*, 8> files = {};  // the newest first, when it has begun
    std::size_t next = 0;                               // of the files
    bool must_read = false;                             // the next one is not in memory
    absl::InlinedVector<const Sstable*, 4> left_out = {};
  };
  // The same of a row's key, without the files that what is merged before them supersedes: first
  // what is in `search` says it, then also what frozen memtables and newer files have. `needed`
  // becomes the files that it does not cover, of whatever keys.
  runtime::Task<base::Result<Entry>> find_older_row(base::ByteView key, OlderRow search,
                                                    std::shared_ptr<const SstableList>& needed,
                                                    runtime::Until until, ReadTrace& trace) const;
  // The same up to the first file that must be read: whether that was all, and the entry is merged.
  // find_older_row() goes on from there.
  base::Result<bool> look_in_memory(base::ByteView key, OlderRow& search, ReadTrace& trace) const;
  // The same memtables with other files.
  TableView with_files(std::shared_ptr<const SstableList> files) const {
    return {active_, frozen_, std::move(files)};
  }
  bool has_files() const { return !sstables_->empty(); }
  bool frozen_have_ranges() const;
  // False if no partition has range deletes in them.
  bool older_may_have_ranges() const;

  const Memtable& active() const { return *active_; }
  // Merges what the active memtable has under the key, now, into `entry`.
  void absorb_active(base::ByteView key, Entry& entry, ReadTrace& trace) const;

  // All of it as one sorted run, the active memtable being its first source. It keeps what it needs
  // alive.
  std::unique_ptr<MergedEntries> entries(const SstableCursorOptions& options) const;

 private:
  void begin(base::ByteView key, OlderRow& search, ReadTrace& trace) const;

  std::shared_ptr<const Memtable> active_;
  std::vector<std::shared_ptr<const Memtable>> frozen_;
  std::shared_ptr<const SstableList> sstables_;
};

}  // namespace helenus::storage
