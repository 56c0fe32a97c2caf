// SchemaChanges: tables and tablets come, change and go, one after the other.
//
// What must never lie (S1, S6):
//   - A change is in the manifest, and noted in the log directory, before it returns; memory
//   follows
//     the manifest. Where data goes, nobody finds it from the first step on.
//   - A table is there if the first shard has it: that one is the last to get it and the first to
//     lose it, and a start makes the others follow.
//   - The dots of what goes with a table stay in the clocks: they were minted, and are not minted
//     again. Those that a peer may lack are remembered as covered.
//   - The records of a tablet leave the log before the manifest forgets it: a start that does not
//     know the tablet could not replay them. What it had is remembered as a range until no file has
//     it any more (compactor.h).
//
// Owns: whose turn it is to change the schema. Borrows: the state, ManifestChanges, MutationKeeper,
// Flusher. Core affinity: the engine's.
#pragma once

#include <vector>

#include "base/result.h"
#include "causality/clock.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/flusher.h"
#include "storage/engine/manifest_changes.h"
#include "storage/engine/mutation_keeper.h"
#include "storage/engine/tablet.h"

namespace helenus::storage {

class SchemaChanges {
 public:
  SchemaChanges(EngineState& state, ManifestChanges& manifests, MutationKeeper& mutations,
                Flusher& flusher);

  // As Engine's.
  runtime::Task<base::Result<void>> create_table(TableId table, TableOptions options);
  runtime::Task<base::Result<void>> alter_table(TableId table, TableOptions options);
  runtime::Task<base::Result<void>> drop_table(TableId table);
  runtime::Task<base::Result<void>> create_tablet(TabletId tablet, KeyRange range,
                                                  causality::ActorId actor);
  runtime::Task<base::Result<void>> create_tablets(std::vector<TabletInfo> tablets);
  runtime::Task<base::Result<void>> drop_tablets(std::vector<TabletId> tablets);
  std::vector<TabletInfo> tablets() const;
  runtime::Task<base::Result<void>> reincarnate(std::vector<TabletName> names);
  runtime::Task<base::Result<void>> cover(TabletId tablet, causality::Clock dots);

 private:
  base::Result<Shard*> check_new(const TabletInfo& tablet) const;
  runtime::Task<base::Result<void>> flush_all_of(const std::vector<TabletId>& tablets);
  // The tablets are gone when it returns; their data is not.
  runtime::Task<base::Result<std::vector<TabletInfo>>> take_away(std::vector<TabletId> tablets);
  // A doubt is over when no tablet has it any more. Where others share the folder, they see to it.
  runtime::Task<base::Result<void>> clear_tail_doubt();

  EngineState& state_;
  ManifestChanges& manifests_;
  MutationKeeper& mutations_;
  Flusher& flusher_;
  runtime::Semaphore turn_;
};

}  // namespace helenus::storage
