// OperationRecord: what the engine knows of operation ids: whether one may be minted under, and the
// mutation that one has made (theory C2, R15).
//
//   judge() ─▶ expired, from the future: refused
//          ─▶ surely new: minted
//          ─▶ perhaps known ─▶ find(): mutation logs, in memory and then the index of files
//                                ─▶ not there: a false positive of the filter, minted
//                                ─▶ there: a duplicate, nothing is minted
//
// What must never lie:
//   - An id above the floor whose mutation was staged here is found, whatever was flushed, merged
//     or restarted since (MutationKeeper keeps it). What cannot be read is an error, never "new".
//   - find() is exact at the moment it returns: reading files takes a while, in which mutations go
//     from memory to files and files are merged; it ends with a step in which memory does not have
//     the id and no file has come or gone since the first was asked.
//
// Owns: nothing. Borrows: the state; counts in its statistics. Core affinity: the engine's.
#pragma once

#include <optional>

#include "base/result.h"
#include "causality/delta.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/engine_types.h"

namespace helenus::storage {

class OperationRecord {
 public:
  explicit OperationRecord(EngineState& state) : state_(state) {}

  // Whether the mutation log may know the mutation's operation id. Requires: it has one.
  // Errors: invalid_argument if the id is older than the window or from the future.
  base::Result<bool> judge(const causality::Mutation& mutation);
  // The mutation of the tablet that has this id, of aliases any one. Errors: not_found; why the
  // tablet is stopped; corrupt, naming the file; io_error, timeout, cancelled, closed.
  runtime::Task<base::Result<std::optional<KnownOperation>>> find(TabletId tablet,
                                                                  causality::OperationId operation,
                                                                  runtime::Until until);
  // The same as far as memory tells, in this step: what was staged a moment ago is there.
  base::Result<std::optional<KnownOperation>> find_in_memory(
      TabletId tablet, const causality::OperationId& operation) const;

 private:
  base::Result<KnownOperation> known(const KeptMutation& kept) const;
  base::Error expired(const causality::Mutation& mutation) const;

  EngineState& state_;
};

}  // namespace helenus::storage
