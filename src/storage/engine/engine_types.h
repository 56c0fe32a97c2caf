// What an engine is asked with and answers with (engine.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/bytes.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/resolve.h"
#include "runtime/file_system.h"
#include "storage/engine/tablet_snapshot.h"
#include "storage/ids/key_range.h"
#include "storage/ids/log_position.h"
#include "storage/ids/table_id.h"
#include "storage/log/log_directory.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {

// What opening found.
struct EngineOpenReport {
  LogOpenReport log;
  ReplaySummary replayed;
  std::uint64_t records_applied = 0;  // those that were not in files already
  std::size_t sstables = 0;
  bool created = false;
  bool lost_log_accepted = false;  // EngineOptions::accept_lost_log_of_start
};

// What a write does to the room that there is on a disk (disk_reserve.h).
enum class WriteKind : std::uint8_t {
  data,     // it takes some
  deletes,  // nothing but deletes: in the end it gives some back
};
WriteKind write_kind_of(std::span<const causality::CellChange> cells);

// A mutation that has its place in the log.
struct Staged {
  causality::Delta delta;
  // Waiting for it waits for the mutation. None: it has been durable since before this start.
  std::optional<LogPosition> position;
  // A delta that had been applied before changes nothing.
  causality::Applied applied = causality::Applied::now;
};

// Whether a mutation's timestamp may be raised (theory §2).
enum class Timestamps : std::uint8_t {
  raised,    // above what it covers: rule (b)
  as_given,  // an explicit one: rule (d). Cells for which it does not apply were left out
};

// A mutation from the log, for a peer.
struct LoggedMutation {
  causality::Dot dot;
  TableId table;
  base::Bytes partition;
  base::Bytes delta;  // encoded: causality::decode_delta
};

// What a peer lacks, as far as one answer goes.
struct MissingMutations {
  // Ascending by dot, each once. Whole mutations: a dot here may be claimed with its data (S5).
  std::vector<LoggedMutation> mutations;
  // False: there is more. Ask again with these dots, and those covered, added to the peer's clock.
  bool complete = true;
  // What the peer lacks, this replica has seen and cannot give: the mutation log was cut off, or
  // the peer has lost what it had. Never empty in silence: the peer needs a copy of the tablet
  // (tablet_transfer.h).
  causality::Clock withheld;
  // What the peer lacks of tables that were dropped: there is nothing to give, and the dots count
  // as seen (Engine::cover).
  causality::Clock covered;
  // Marks of closed actors that the peer lacks: no data, and not for it to take from here (S9).
  std::vector<causality::ClosedActors> closed;
};

// The mutation that an operation id has made.
struct KnownOperation {
  TableId table;
  base::Bytes partition;
  causality::Delta delta;
  // Waiting for it waits for the mutation, as with Staged.
  std::optional<LogPosition> position;
};

// ---- Snapshots (table_snapshots.h) ----

// Where a data directory has what is kept under the name.
std::string snapshot_folder(const std::string& data_directory, const std::string& name);

// What was linked.
struct SnapshotSize {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  void add(const SnapshotSize& other) {
    files += other.files;
    bytes += other.bytes;
  }
};

struct RestoreOrder {
  TabletId tablet;
  // The tablet is to have nothing else, and mints under this name. None: what the snapshot has is
  // united with what is here, by the two clocks.
  std::optional<causality::ActorId> anew_as = std::nullopt;
  // Under which ids the tables were then, and are now.
  absl::btree_map<TableId, TableId> tables = {};
  // When the snapshot was made: what had expired by then may be missing in it.
  causality::WallTime dropped_before = {};
};

struct RestoreReport {
  bool was_in_snapshot = false;
  IngestReport taken = {};
};

// A core's part of a folder: which shards are its own, and where its log begins.
struct CoreShare {
  LogShare log;
  std::uint32_t core = 0;
  std::uint32_t cores = 1;
  std::uint32_t shards = 0;  // of the folder
  EngineOpenReport report;
};

// A folder whose logs have been replayed, ready for the engines of all cores (engines.h). Kept by
// the core that opened it until they have stopped; then the logs are closed.
struct OpenedFolder {
  std::vector<std::unique_ptr<runtime::FileLock>> locks;
  std::unique_ptr<LogDirectory> logs;
  std::vector<CoreShare> shares;
  EngineOpenReport report;
  std::uint32_t shards = 0;
};

}  // namespace helenus::storage
