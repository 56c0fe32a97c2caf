// MutationReader: what the kept mutations answer: to a peer that lacks some, and to an explicit
// timestamp that must not lie below others.
//
// What must never lie (S1, S5, S6): a peer is given whole mutations, and durable ones alone; what
// it lacks and cannot be given is named, never left out.
//
// Owns: nothing. Borrows: the state; changes nothing in it. What is in memory and which files there
// are is read in one step; a file that goes meanwhile is read to its end all the same.
// Core affinity: the engine's.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/engine_types.h"

namespace helenus::storage {

class MutationReader {
 public:
  explicit MutationReader(EngineState& state);

  // As Engine's.
  base::Result<causality::Clock> kept_mutations(TabletId tablet) const;
  bool has_shed_mutations(TabletId tablet) const;
  runtime::Task<base::Result<MissingMutations>> missing_mutations(TabletId tablet,
                                                                  causality::Clock peer,
                                                                  std::size_t bytes_max,
                                                                  runtime::Until until);
  // Exact at the moment it returns: reading files takes a while, in which mutations come and go to
  // files, so it ends with a step in which memory has nothing unseen and no file that matters is
  // left.
  runtime::Task<base::Result<causality::Timestamp>> covered_floor(TableId table, TabletId tablet,
                                                                  base::Bytes partition,
                                                                  base::Bytes row,
                                                                  causality::ColumnId column,
                                                                  runtime::Until until);

 private:
  EngineState& state_;
};

}  // namespace helenus::storage
