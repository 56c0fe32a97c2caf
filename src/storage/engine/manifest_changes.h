// ManifestChanges: changes the manifests of the engine's shards, and tells the log directory which
// ones there are.
//
//   co_await changes.install_until_done(shard, edit);   the manifest has it
//   co_await changes.note_generations();                the log directory knows: build on it
//
// What must never lie (S1, S6):
//   - Every manifest says how far the log was synced when it was written, so that a start notices a
//     log that is older (directory_set.h).
//   - Nothing is let go by the log, and no change of tables or tablets is told to anybody, before
//     the generation of the manifest that has it is noted.
//   - After a failure that leaves in doubt what the next start will find, writing ends.
//
// Owns: what was noted, and whose turn it is to note. Borrows: the state.
// Core affinity: the engine's.
#pragma once

#include "base/result.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/engine/directory_set.h"
#include "storage/engine/disk_reserve.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/shard.h"

namespace helenus::storage {

class ManifestChanges {
 public:
  ManifestChanges(EngineState& state, DiskReserve& reserve);

  // Changes the manifest. Where there is no space it has what is kept for that (disk_reserve.h);
  // while there is none of it left it waits and tries again: nothing is lost, and
  // neither the old nor the new files are touched; the edit is applied anew to what the manifest is
  // by then. Any other failure leaves in doubt what the next start will find, and ends writing.
  runtime::Task<base::Result<void>> install_until_done(Shard& shard, Shard::Edit edit);
  // Tells the log directory which manifests there are (directory_set.h): before the log lets go
  // what they have, and before anybody builds on a change of tables or tablets. Where there is no
  // space, the same; any other failure ends writing.
  runtime::Task<base::Result<void>> note_generations();
  // As they are now.
  Generations generations() const;

 private:
  void wait_for_space_with(const base::Error& error);
  void space_was_found();

  EngineState& state_;
  DiskReserve& reserve_;
  runtime::Semaphore turn_;
  Generations noted_;
};

}  // namespace helenus::storage
