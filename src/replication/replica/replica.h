// Replica: the tablets that one core has, and what requests do to them there. The coordinators of
// all cores hand it what is about its tablets (coordinator.h).
//
// Rules: a write reads nothing, save one with an explicit timestamp, which leaves out the cells in
// which it does not win. Such a one has its partitions to itself from the first look until it is
// staged, and every way to stage something here goes by their latches (partition_latches.h). What
// it left out because something newer was there is durable when it returns, as what it wrote is.
//
// Never late (R3). A write is minted only while its time lasts and somebody waits for it: that is
// looked at in the step that mints, behind every wait. A delta of another replica has its
// timestamp, and is taken whenever it comes.
//
// Operation ids (theory C2). A write with an id that is known here mints nothing: it gives the
// delta that the id has made, durable when it is given, for the caller to bring to as many replicas
// as the level asks for. Between the look and the minting others may run, and one that is the same
// operation may be staged; it is looked for once more, in memory, in the step in which the write is
// staged. Where even that misses it (it came and was flushed meanwhile) the two are aliases and
// count once (C3).
//
// Core affinity: the core of its engine.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "replication/explicit_timestamps/partition_latches.h"
#include "replication/messages/messages.h"
#include "replication/request/partition_write.h"
#include "replication/request/planted_bugs.h"
#include "replication/request/rows_request.h"
#include "replication/tablets/held_tablets.h"
#include "runtime/maybe_task.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/engine/engine.h"

namespace helenus::replication {

// What becomes of a staged write whose log failed: it may be on the disk, whatever the log then
// says, and nobody may take the error for one that says that nothing was executed (R3).
base::Result<void> may_have_happened(base::Result<void> durable);

class Replica {
 public:
  // Requires: it outlives this.
  explicit Replica(storage::Engine& engine, PlantedBugs bugs = {})
      : engine_(engine), bugs_(bugs), latches_(engine.runtime()) {}

  storage::Engine& engine() const { return engine_; }

  // The tablets that this node holds from now on. Of this core's those that nobody else holds have
  // nobody to wait for: what they see is stable at once.
  void take(HeldTabletsPtr held);
  // The tablet has lost something: it takes and mints nothing for others until it is held anew.
  void stop_serving(storage::TabletId tablet) { serving_[tablet].reset(); }

  // See Coordinator's of these names. Requires: everything is of this core's tablets.
  runtime::Task<base::Result<std::optional<causality::Delta>>> write(storage::TabletId tablet,
                                                                     PartitionWrite write,
                                                                     runtime::Until until,
                                                                     causality::Epoch epoch);
  [[gnu::noinline]] runtime::Task<base::Result<std::vector<causality::Delta>>> write(
      std::vector<PartitionWrite> writes, runtime::Until until);
  // The first half of write() of one that need not wait to be staged: it is, and may be told of
  // when the engine says that it is durable (may_have_happened). Nothing, and the write is as it
  // was, if it has an explicit timestamp or an operation id, or would have to wait.
  std::optional<base::Result<storage::Staged>> write_at_once(storage::TabletId tablet,
                                                             PartitionWrite& write,
                                                             const runtime::Until& until,
                                                             causality::Epoch epoch);
  // Whether a replica that others hold too is in that epoch, and not in doubt. What is read is of
  // that epoch if it was before and is after. Errors: kStale; refused in doubt.
  base::Result<void> check_serves(storage::TabletId tablet, causality::Epoch epoch) const;
  // Waits until there is room for each of several writes; see Engine::admit.
  runtime::Task<base::Result<void>> admit(std::span<const PartitionWrite> writes,
                                          runtime::Until until) const;
  // What no replica would take, of several writes; see Engine::check.
  base::Result<void> check(std::span<const PartitionWrite> writes) const;

  // See Coordinator's of this name.
  runtime::Task<base::Result<std::vector<storage::RowRead>>> read_rows_at_one_moment(
      storage::TableId table, storage::TabletId tablet, base::Bytes partition,
      std::vector<base::Bytes> rows, runtime::Until until);

  // A delta that was minted elsewhere; durable when it returns, and the tablet still in that epoch:
  // what is acknowledged in an epoch is here before the next one begins (S10). A dot that is known
  // is applied by then. Errors: as of write(); not_found for a table that is not here.
  runtime::Task<base::Result<void>> apply(storage::TabletId tablet, storage::TableId table,
                                          base::Bytes partition, causality::Delta delta,
                                          causality::Epoch epoch, runtime::Until until);
  // Several of them, as a pull brings them: durable when it returns. What cannot be taken is named
  // and left out, and nothing of it counts as seen. Errors: as of apply(), and corrupt; the first
  // ones may be here then. Requires: no more than PullReply::kMutationsMax.
  struct AppliedMutations {
    std::size_t applied = 0;  // those that were known are not among them
    // Of tables that are not here.
    std::vector<std::pair<storage::TableId, causality::Dot>> without_table;
    // What the engine does not take, for what it is: dots of this replica's own that it has not
    // minted (S13), keys of other tablets.
    causality::Clock refused;
    std::optional<base::Error> why_refused;  // the first of them
  };
  runtime::Task<base::Result<AppliedMutations>> apply(storage::TabletId tablet,
                                                      std::vector<PulledMutation> mutations,
                                                      runtime::Until until);
  // Rows by their names, for a coordinator elsewhere: as many of the first ones as have about
  // RowsAnswer::kBytesMax together, and at least one. Requires: there is one.
  runtime::Task<base::Result<ReadReply>> read(storage::TabletId tablet, const ReadMessage& message,
                                              runtime::Until until);
  // The same of the message's epoch (R18), and as a digest if that is wanted and can be told.
  runtime::Task<base::Result<ReadReply>> read_in_epoch(storage::TabletId tablet,
                                                       const ReadMessage& message,
                                                       runtime::Until until);
  // What has been seen here, for a delete that is minted elsewhere.
  runtime::Task<base::Result<ClockReply>> clock_of(storage::TabletId tablet, storage::TableId table,
                                                   const base::Bytes& partition);

  // What it gives may be shown. Errors: those of TableCursor; not_found.
  runtime::Task<base::Result<RowsAnswer>> read_rows(const RowsRequest& request,
                                                    runtime::Until until);
  // The same of an epoch of the request's tablet (R18).
  runtime::Task<base::Result<RowsAnswer>> read_rows_in_epoch(const RowsRequest& request,
                                                             bool wants_digest,
                                                             causality::Epoch epoch,
                                                             runtime::Until until);

 private:
  // A file may be damaged: storage looks (Engine::suspect).
  base::Error note_damage(storage::TableId table, base::Error error);
  runtime::Task<base::Result<RowsAnswer>> look_at_rows(storage::TableCursor& cursor,
                                                       const RowsRequest& request);
  // Waits until there is room for so many bytes and nobody else holds the partition: it may be
  // staged in the step in which this returns. The hold, if there is one, is let go after that.
  // `is_held`: the caller holds the partition.
  runtime::MaybeTask<base::Result<PartitionLatches::Hold>> enter(
      storage::TabletId tablet, storage::TableId table, const base::Bytes& partition,
      std::size_t bytes, storage::WriteKind kind, bool is_held, const runtime::Until& until);
  [[gnu::noinline]] runtime::Task<base::Result<PartitionLatches::Hold>> enter_waiting(
      storage::TabletId tablet, storage::TableId table, base::Bytes partition, std::size_t bytes,
      storage::WriteKind kind, bool is_held, runtime::Until until);
  bool has_table(storage::TableId table) const;
  // What the write's operation id has made here, if it has one and has been here.
  // Errors: invalid_argument for an id that is too old, from the future, or of another operation.
  [[gnu::noinline]] runtime::Task<base::Result<std::optional<storage::KnownOperation>>> find_known(
      storage::TabletId tablet, const PartitionWrite& write, runtime::Until until);
  // Stages the write, unless its operation was staged a moment ago.
  base::Result<storage::Staged> stage(storage::TabletId tablet, PartitionWrite write,
                                      causality::Epoch epoch);
  // Those of the writes whose operations are known leave, and what they have made comes into
  // `known`, durable.
  runtime::Task<base::Result<void>> take_out_known(std::vector<PartitionWrite>& writes,
                                                   std::vector<causality::Delta>& known,
                                                   runtime::Until until);
  // Errors: timeout, cancelled.
  base::Result<void> check_in_time(const runtime::Until& until) const;
  // The same for a write.
  runtime::MaybeTask<base::Result<PartitionLatches::Hold>> enter(storage::TabletId tablet,
                                                                 const PartitionWrite& write,
                                                                 bool is_held,
                                                                 const runtime::Until& until);
  // The partitions of the writes.
  runtime::Task<base::Result<std::vector<PartitionLatches::Hold>>> hold(
      std::span<const PartitionWrite> writes, runtime::Until until);
  // Leaves out of writes with explicit timestamps what they do not win. Requires: the partitions of
  // all of them are held.
  runtime::Task<base::Result<void>> judge_explicit(std::span<PartitionWrite> writes,
                                                   runtime::Until until);
  // The rows as a cursor finds them: nothing between them waits once their blocks are in memory.
  runtime::Task<base::Result<std::vector<storage::RowRead>>> look_together(
      storage::TableCursor& cursor, const base::Bytes& partition,
      const std::vector<base::Bytes>& rows);
  bool unchanged_since(storage::TabletId tablet, const causality::Clock& clock) const;

  storage::Engine& engine_;
  const PlantedBugs bugs_;
  HeldTabletsPtr held_;
  // Of this core's tablets those that others hold too; none: in doubt.
  absl::flat_hash_map<storage::TabletId, std::optional<causality::Epoch>> serving_;
  PartitionLatches latches_;
};

}  // namespace helenus::replication
