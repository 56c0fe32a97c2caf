// WritePath: admits a write, mints its dot, logs it and applies it.
//
//   admit() ─▶ stage(): mint ─▶ commit log ─▶ memtable ─▶ mutation log ─▶ clock ─▶ durable()
//
// What must never lie (S1):
//   - From the minted dot to the clock there is no suspension: nobody ever sees one without the
//     other. Only then may the memtable be frozen, since the clocks at its freeze must have every
//     dot in it.
//   - A dot whose record the log did not take has left no trace, and is minted again.
//   - A tablet in doubt mints nothing.
//   - write() returns when the record is as durable as the sync mode promises.
//
// Cost: stage() allocates what the record, the fragment and what is kept for peers take, and
// nothing besides; admit() nothing unless it has to wait.
//
// Owns: a buffer for records. Borrows: the state, MutationKeeper, Flusher,
// OperationRecord.
// Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "runtime/maybe_task.h"
#include "runtime/task.h"
#include "storage/engine/disk_reserve.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/engine_types.h"
#include "storage/engine/flusher.h"
#include "storage/engine/mutation_keeper.h"
#include "storage/engine/operation_record.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

class WritePath {
 public:
  WritePath(EngineState& state, DiskReserve& reserve, MutationKeeper& mutations, Flusher& flusher,
            OperationRecord& operations);

  // As Engine's.
  runtime::MaybeTask<base::Result<void>> admit(TableId table, TabletId tablet, std::size_t bytes,
                                               WriteKind kind, const runtime::Until& until);
  base::Result<Staged> stage(TableId table, TabletId tablet, base::ByteView partition,
                             causality::Mutation mutation, causality::Epoch epoch,
                             Timestamps timestamps);
  base::Result<Staged> stage(TableId table, TabletId tablet, base::ByteView partition,
                             causality::Delta delta);
  base::Result<void> check(TableId table, TabletId tablet, base::ByteView partition,
                           const causality::Mutation& mutation, causality::Epoch epoch);
  runtime::Task<base::Result<void>> durable(std::optional<LogPosition> position,
                                            runtime::Until until);
  runtime::Task<base::Result<causality::Delta>> write(TableId table, TabletId tablet,
                                                      base::Bytes partition,
                                                      causality::Mutation mutation,
                                                      causality::Epoch epoch, runtime::Until until);

  // Adds a fragment to the active memtable, entries to those of the table's indexes, and their
  // bytes to the account. For a replay, too.
  void apply(TableStore& table, const Tablet& tablet, base::ByteView partition,
             const causality::Delta& delta, base::ByteView encoded, std::uint64_t sequence);

 private:
  // Whether the mutation may be minted under its operation id, as far as the id's time and the room
  // that the mutation log has tell.
  base::Result<void> check_operation(const causality::Mutation& mutation);
  bool must_wait(const TableStore& table) const;
  // Counts it.
  base::Error refused(base::Error error);
  runtime::Task<base::Result<void>> wait_for_log(std::size_t bytes, WriteKind kind,
                                                 runtime::Until until);
  runtime::Task<base::Result<void>> admit_waiting(TableId table, TabletId tablet, std::size_t bytes,
                                                  WriteKind kind, runtime::Until until);
  base::Result<TableOfTablet> find_for_write(TableId table, TabletId tablet,
                                             base::ByteView partition);
  // Mints with the tablet's actor, on `clock`.
  base::Result<causality::Delta> mint(const TableOfTablet& found, TableId table,
                                      base::ByteView partition, causality::Mutation mutation,
                                      causality::Epoch epoch, causality::Clock& clock);
  // Logs and applies, in this step.
  base::Result<LogPosition> append(const TableOfTablet& found, base::ByteView partition,
                                   const causality::Delta& delta);

  EngineState& state_;
  DiskReserve& reserve_;
  MutationKeeper& mutations_;
  Flusher& flusher_;
  OperationRecord& operations_;
  base::Buffer record_;
};

}  // namespace helenus::storage
