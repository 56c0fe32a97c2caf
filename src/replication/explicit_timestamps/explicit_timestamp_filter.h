// ExplicitTimestampFilter: what the writes of a request to one partition come to when some of them
// have timestamps of their own.
//
// Rule (d) asks that a mutation with an explicit timestamp leave out what it would not defeat,
// judged by everything its context will cover. The context is fixed when it is minted, and reading
// may suspend before that: so the partition stands still from before the first look until the
// writes are staged (partition_latches.h), and all that is read here is of one moment. Of what is
// not alive any more the mutation log has what another replica may lack (Engine::covered_floor).
//
// The writes will be minted one after the other, each upon those before it: so they are judged, too
// (BatchOverlay). Minting is tried on a copy of the clock, for the timestamps that it will give.
//
// What is left out because something newer is there may be acknowledged when judge() returns: it
// has waited until everything it saw is durable.
//
// Cost: the tablet's mutation log for a delete of ranges below which the partition has something in
// it; a read of each row that is named, of each that is there in a range that is deleted, and of
// all deletes of ranges of the partition, once, if there is such a range. Others run in between,
// and deadline and stop are looked at, after every kEffortPerTurn; what is done in one go is
// bounded by kChangesJudgedMax.
//
// Core affinity: the core of the engine.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "causality/range_index.h"
#include "replication/explicit_timestamps/batch_overlay.h"
#include "replication/explicit_timestamps/covered_mutations.h"
#include "replication/explicit_timestamps/explicit_range_delete_filter.h"
#include "replication/request/partition_write.h"
#include "replication/request/planted_bugs.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/engine/engine.h"

namespace helenus::replication {

class ExplicitTimestampFilter {
 public:
  // How many cells and deletes of ranges the deletes of ranges of one mutation may meet.
  static constexpr std::size_t kChangesJudgedMax = 100'000;

  // Requires: engine and tablet outlive it; the tablet has the partition.
  ExplicitTimestampFilter(storage::Engine& engine, const storage::TabletInfo& tablet,
                          runtime::Until until, PlantedBugs bugs = {})
      : engine_(engine), tablet_(tablet), until_(std::move(until)), bugs_(bugs) {}

  // All writes of a request to the partition, in their order: those with explicit timestamps lose
  // what they do not win, up to all of it. Called once. Requires: the partition's latch is held.
  // Errors: those of reading; timeout, cancelled; invalid_argument for a delete that meets or names
  // too much.
  runtime::Task<base::Result<void>> judge(std::span<PartitionWrite* const> writes);

 private:
  // About so many cells are looked at before others get their turn.
  static constexpr std::size_t kEffortPerTurn = 2048;
  // What reading a row takes beside its cells.
  static constexpr std::size_t kEffortPerRow = 8;

  // The deletes of ranges that overlap those of the writes.
  runtime::Task<base::Result<void>> read_ranges(std::span<PartitionWrite* const> writes);
  runtime::Task<base::Result<void>> read_covered(std::span<PartitionWrite* const> writes);
  // What is stored in the row, and what a delete at that time loses to beside it.
  causality::PartitionStore beside_covered(causality::PartitionStore stored,
                                           const causality::RowKey& row,
                                           causality::Timestamp timestamp) const;
  // One write, after those before it.
  runtime::Task<base::Result<causality::Mutation>> judge(const PartitionWrite& write);
  runtime::Task<base::Result<void>> judge_cells(const PartitionWrite& write,
                                                causality::Mutation& judged);
  // Of what is in the mutation log of the cell, and so may still meet it.
  runtime::Task<base::Result<causality::Timestamp>> covered_floor(
      const PartitionWrite& write, const causality::CellChange& cell);
  runtime::Task<base::Result<void>> judge_range(const PartitionWrite& write,
                                                const causality::RowRange& row_range,
                                                causality::Mutation& judged);
  // Shows the judgement all that is in a range of several rows.
  runtime::Task<base::Result<void>> look_across(const PartitionWrite& write,
                                                const causality::RowRange& row_range,
                                                ExplicitRangeDeleteFilter& judgement);
  bool turn_is_over(std::size_t effort) { return (effort_ += effort) >= kEffortPerTurn; }
  runtime::Task<base::Result<void>> take_turn();

  storage::Engine& engine_;
  const storage::TabletInfo& tablet_;
  const runtime::Until until_;
  const PlantedBugs bugs_;
  BatchOverlay before_;
  CoveredMutations covered_;  // no older than deletes of ranges
  std::vector<causality::RangeDelete> ranges_;
  causality::RangeIndex index_;     // of these
  std::size_t changes_judged_ = 0;  // of the write
  // The timestamp of the write's ranges: they are older than cells of its own that lie in them.
  causality::Timestamp deletes_at_ = causality::kTimestampMin;
  std::size_t effort_ = 0;  // of the turn
};

}  // namespace helenus::replication
