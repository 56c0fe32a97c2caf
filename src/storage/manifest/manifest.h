// Manifest: which files make up the tables of one shard, and what must be remembered with them.
//
// One small file, replaced whole at every change (docs/formats/manifest.md): written beside the
// old one, synced, renamed, the folder synced. So after any crash it is the old manifest or the
// new one, a change is atomic whatever it touches, and there is no tail that could be torn: bytes
// that do not check are damage, never the end. It takes about a hundred bytes a file, which is
// nothing beside the flush or the compaction that changes it.
//
// Invariants.
// A change is written only after the log is synced up to everything it depends on, what was known
// at the freeze above all (S1). Recovery joins the clocks it finds here with the dots of the
// records it replays. Every dot of a clock here is of a mutation that is in the files named here,
// or whose table was dropped. So a manifest and its files are true by themselves, the logs apart
// (directory_set.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong.h"
#include "base/uuid.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/time.h"
#include "storage/ids/key_range.h"
#include "storage/ids/log_position.h"
#include "storage/ids/table_id.h"
#include "storage/sstable/block_codec.h"
#include "storage/sstable/filter_options.h"

namespace helenus::storage {

// Given once in the life of a data folder.
using FileNumber = base::Strong<struct FileNumberTag, std::uint64_t>;
// Which freeze of a memtable: a later one has a larger number.
using FreezeNumber = base::Strong<struct FreezeNumberTag, std::uint64_t>;

// One sstable.
struct SstableRecord {
  FileNumber number;
  std::uint32_t directory = 0;  // which of the data directories
  std::uint64_t bytes = 0;
  std::uint64_t keys = 0;
  // The memtables whose fragments it holds were frozen from the first to the last of these.
  FreezeNumber freeze_first;
  FreezeNumber freeze_last;
  // Where leveled compaction has it; files of a level above 0 do not overlap.
  std::uint32_t level = 0;
  base::Bytes key_first = {};
  base::Bytes key_last = {};
  friend bool operator==(const SstableRecord&, const SstableRecord&) = default;
};

// By what rule files are merged (storage/compaction/compaction_strategy.h).
enum class CompactionRule : std::uint8_t { size_tiered = 0, leveled = 1, time_window = 2 };

struct CompactionStrategy {
  CompactionRule rule = CompactionRule::size_tiered;
  // Otherwise files are merged when somebody asks for it, and not by themselves.
  bool enabled = true;
  // How many files of about the same size are merged at once; 0: as the node's settings say.
  std::uint32_t files_min = 0;
  std::uint32_t files_max = 0;
  // Smaller ones count as equally small; none: the same.
  std::optional<std::uint64_t> small_bytes = std::nullopt;
  // Of leveled: how large a file is, how many times as large a level is as the one before, and how
  // many files of level 0 are merged, and at most.
  std::uint64_t file_bytes = std::uint64_t{160} << 20;
  std::uint32_t fanout = 10;
  std::uint32_t level_zero_files = 4;
  std::uint32_t level_zero_files_max = 32;
  // Of time-window.
  runtime::Duration window = std::chrono::hours(24);
  friend bool operator==(const CompactionStrategy&, const CompactionStrategy&) = default;
};
// Errors: invalid_argument, naming what it cannot have.
base::Result<void> validate(const CompactionStrategy& strategy);

// An index: a table of storage's own, whose entries follow from what is written to another one
// (storage/entry/derived_entry.h).
struct IndexOf {
  TableId table;
  // What is indexed, and how; whoever derives the entries can read it.
  base::Bytes definition;
  friend bool operator==(const IndexOf&, const IndexOf&) = default;
};

struct TableOptions {
  // Fixed when a table is made.
  causality::Policy policy = causality::Policy::lww;
  // Of files that are written from now on.
  Compression compression = Compression::lz4;
  std::optional<TableFilter> filter = std::nullopt;  // none: as the node's settings say
  // Of an index; of which table never changes.
  std::optional<IndexOf> index = std::nullopt;
  CompactionStrategy compaction = {};
  friend bool operator==(const TableOptions&, const TableOptions&) = default;
};

// How much of the commit logs a table has in its files. Records before that are not replayed: what
// was dropped since as stable would come back with them.
class FlushedLog {
 public:
  bool contains(std::uint32_t core, LogPosition position) const;
  // Everything of earlier incarnations than this one.
  void add_before(std::uint32_t incarnation);
  // Everything of that core's log before that position.
  void add(std::uint32_t core, LogPosition position);

  std::uint32_t incarnation() const { return incarnation_; }
  const absl::btree_map<std::uint32_t, LogPosition>& positions() const { return positions_; }
  friend bool operator==(const FlushedLog&, const FlushedLog&) = default;

 private:
  std::uint32_t incarnation_ = 0;
  absl::btree_map<std::uint32_t, LogPosition> positions_;  // by core, of later incarnations
};

struct TableRecord {
  TableOptions options = {};
  FlushedLog flushed = {};
  // Ascending by number.
  std::vector<SstableRecord> sstables;
  // Of an index: it has an entry for everything that its table has.
  bool index_is_built = false;
  friend bool operator==(const TableRecord&, const TableRecord&) = default;
};

// A tablet replica: its part of the key space, under whose name it mints, and what it has seen that
// is in files. Of what it has seen that only the log has, the dots are in the log, too.
struct TabletRecord {
  KeyRange range;
  causality::ActorId actor;
  causality::Clock clock;
  // Dots whose mutations were cut off from the mutation log (mutation_log.h), and the largest
  // timestamp among them.
  causality::Clock shed = {};
  causality::Timestamp shed_largest = causality::kTimestampMin;
  // Dots of mutations of tables that were dropped: they count as seen, and nothing is left of them.
  causality::Clock covered = {};
  friend bool operator==(const TabletRecord&, const TabletRecord&) = default;
};

struct LogReached {
  std::uint32_t core = 0;
  LogPosition position;
  friend bool operator==(const LogReached&, const LogReached&) = default;
};

struct ManifestState {
  FileNumber next_file{1};
  FreezeNumber next_freeze{1};
  absl::btree_map<TableId, TableRecord> tables;
  absl::btree_map<TabletId, TabletRecord> tablets;
  // Ascending by number: mutation_file.h.
  std::vector<SstableRecord> mutation_files;
  // Of tablets that were dropped and whose data is still in files. Nobody may have one of their
  // keys until it is gone. Ascending, disjoint.
  std::vector<KeyRange> dropped_ranges;
  // Files of tables that were found damaged and are set aside (table_store.h), and of each the
  // ranges of tablets that were made since: what the file has there is not theirs. The ranges
  // ascend and are disjoint.
  absl::btree_map<FileNumber, std::vector<KeyRange>> set_aside;
  // For the comparison with the logs (directory_set.h): how many changes there have been, and how
  // far the log of the core that made the last one was synced.
  std::uint64_t generation = 0;
  std::optional<LogReached> log_reached = {};
  std::optional<base::Uuid> node = {};  // whose; unknown before version 2
  // Ids of operations up to that time were forgotten (operation_hold.h), in milliseconds since
  // 1970; 0 if none were.
  std::uint64_t operation_floor = 0;
  friend bool operator==(const ManifestState&, const ManifestState&) = default;
};

// No manifest of ours comes near it; a longer file is damage.
inline constexpr std::size_t kManifestSizeMax = std::size_t{1} << 30;

// Always of the newest version.
base::Bytes encode(const ManifestState& state);
// Errors: corrupt; unsupported (another version).
base::Result<ManifestState> decode_manifest(const base::Bytes& bytes);

// Errors: not_found if there is none; those of decoding and of the file system, naming the file.
runtime::Task<base::Result<ManifestState>> read_manifest(runtime::Runtime& runtime,
                                                         std::string path);
// Returns when the new state is durable. After an error the old one may still be there, or the new
// one: the owner stops, or reads it again. Requires: one at a time.
runtime::Task<base::Result<void>> write_manifest(runtime::Runtime& runtime, std::string path,
                                                 const ManifestState& state);

}  // namespace helenus::storage
