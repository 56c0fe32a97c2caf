// TableSnapshots: what tables have at one moment, kept under a name by further names (hard links)
// of their files; and taken back from there.
//
//   make     wait for merges ─▶ freeze the tables, and note the tablets' clocks: one step
//            ─▶ flush ─▶ link the files ─▶ a manifest beside them
//   restore  drop the tablet, or keep it ─▶ take what the files have as a copy (tablet_transfer.h)
//
//   DIRECTORY/snapshots/NAME/shard-0003/0000000017.sst   in the data directory of the file
//   DIRECTORY/snapshots/NAME/shard-0003/manifest         in the first one: docs/formats/snapshot.md
//
// What must never lie:
//   - The manifest of a snapshot claims exactly what its files have (S4, R19). Its files are those
//     of the step in which the clocks were noted, and what was frozen then. A merge that ends in
//     between goes by later knowledge, and may have later fragments in it: the attempt is made
//     anew. Nor does one begin while a copy of a tablet is being taken.
//   - A file is linked before anybody may remove its first name (Shard::KeptFiles).
//   - A snapshot is durable when it returns: files, names, and the manifest last. Whoever asks says
//     so in a description of his own, which he writes after that.
//   - What is restored mints under a name that was never used: dots of the snapshot that were
//     minted here since are not minted again (S14).
//   - Meanwhile the tablet answers nobody: not with what it had, nor with a part of what comes
//     (S6). A stop in between leaves less than either: whoever asks remembers what he asked for,
//     and asks again after the next start before anything is served.
//
// Borrows: the state, Flusher, SchemaChanges, TabletTransfer. Core affinity: the engine's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/result.h"
#include "causality/dot.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/flusher.h"
#include "storage/engine/schema_changes.h"
#include "storage/engine/tablet_transfer.h"

namespace helenus::storage {

class TableSnapshots {
 public:
  TableSnapshots(EngineState& state, Flusher& flusher, SchemaChanges& schema,
                 TabletTransfer& transfer);

  // As Engine's.
  runtime::Task<base::Result<SnapshotSize>> make(std::string name, std::vector<TableId> tables,
                                                 std::vector<TabletId> tablets,
                                                 runtime::Until until);
  runtime::Task<base::Result<RestoreReport>> restore(std::string name, RestoreOrder order,
                                                     runtime::StopToken stop);

 private:
  using Tables = std::vector<std::shared_ptr<TableStore>>;

  // A shard's part, as it was when its tables were frozen.
  struct Part {
    Shard* shard = nullptr;
    Tables tables;
    ManifestState manifest = {};
    // By table: the files there were, and the freezes that wait to become files.
    absl::btree_map<TableId, FileSet> files = {};
    absl::btree_map<TableId, absl::btree_set<FreezeNumber>> freezes = {};
  };

  std::vector<Part> parts_of(const std::vector<TableId>& tables) const;
  runtime::Task<base::Result<void>> wait_for_merges(const std::vector<Part>& parts,
                                                    runtime::Until until);
  // In this step.
  base::Result<void> freeze(std::vector<Part>& parts, const std::vector<TabletId>& tablets);
  base::Result<void> freeze_table(Part& part, const std::shared_ptr<TableStore>& table);
  runtime::Task<base::Result<void>> wait_for_flushes(const std::vector<Part>& parts,
                                                     runtime::Until until);
  // Whether the files are those of the freeze; if so the manifest names them.
  static bool take_files(Part& part);
  runtime::Task<base::Result<SnapshotSize>> link(const std::string& name, const Part& part);

  runtime::Task<base::Result<ManifestState>> read_part(const std::string& name, TabletId tablet);
  runtime::Task<base::Result<std::shared_ptr<const TabletSnapshot>>> open(
      const std::string& name, const RestoreOrder& order, const ManifestState& part,
      const TabletRecord& record);
  runtime::Task<base::Result<SstableList>> open_files(const std::string& folder_of_name,
                                                      TabletId tablet, const KeyRange& range,
                                                      const TableRecord& table);
  runtime::Task<base::Result<void>> empty(const RestoreOrder& order, const KeyRange& range);
  std::string folder(std::size_t directory, const std::string& name, const Shard& shard) const;

  EngineState& state_;
  Flusher& flusher_;
  SchemaChanges& schema_;
  TabletTransfer& transfer_;
};

}  // namespace helenus::storage
