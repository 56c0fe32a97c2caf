#include "replication/explicit_timestamps/covered_mutations.h"

#include <algorithm>
#include <utility>

#include "causality/codec.h"
#include "runtime/sleep.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using causality::CellStore;
using causality::RowRange;
using causality::Timestamp;
using causality::Version;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kPageBytes = std::size_t{256} << 10;
constexpr runtime::Duration kLookAgain = std::chrono::milliseconds(1);

// Of no actor: no context names it.
Version newer_than(Timestamp timestamp) {
  Version version;
  version.kind = causality::VersionKind::deletion;
  version.timestamp = Timestamp{timestamp.value() + 1};
  return version;
}

// Peers, and this, are told of durable mutations alone.
Task<Result<void>> wait_for_what_is_staged(storage::Engine& engine, storage::TabletId tablet,
                                           Until until) {
  CO_TRY(const causality::Clock staged, engine.staged_clock(tablet));
  for (;;) {
    CO_TRY(const causality::Clock durable, engine.durable_clock(tablet));
    if (durable.covers(staged)) co_return {};
    if (engine.runtime().clock.now() >= until.deadline) co_return Error(Errc::timeout);
    CO_TRY_VOID(co_await runtime::sleep_for(engine.runtime(), kLookAgain, until.stop));
  }
}

}  // namespace

Task<Result<CoveredMutations>> CoveredMutations::read(storage::Engine& engine,
                                                      storage::TabletId tablet,
                                                      storage::TableId table, base::Bytes partition,
                                                      Timestamp at_least, Until until) {
  CoveredMutations covered;
  CO_TRY(const Timestamp newest, engine.partition_floor(table, tablet, partition.view()));
  if (newest < at_least) co_return covered;
  if (engine.has_shed_mutations(tablet)) {
    co_return Error(Errc::unavailable, "the mutation log of tablet {} was cut off", tablet);
  }
  CO_TRY_VOID(co_await wait_for_what_is_staged(engine, tablet, until));
  causality::Clock seen;
  for (;;) {
    CO_TRY(const auto page, co_await engine.missing_mutations(tablet, seen, kPageBytes, until));
    for (const storage::LoggedMutation& mutation : page.mutations) {
      seen.add(mutation.dot);
      if (mutation.table != table || mutation.partition != partition) continue;
      CO_TRY(const causality::Delta delta, causality::decode_delta(mutation.delta));
      if (delta.timestamp >= at_least) covered.take(delta);
    }
    if (page.complete) co_return covered;
    seen = causality::join(seen, causality::join(page.covered, page.withheld));
  }
}

void CoveredMutations::take(const causality::Delta& delta) {
  for (const causality::CellChange& cell : delta.cells) {
    cells_[cell.row].push_back(
        {.column = cell.column, .dot = delta.dot, .timestamp = delta.timestamp});
  }
  for (const RowRange& range : delta.deleted_ranges) {
    ranges_.push_back({.range = range, .timestamp = delta.timestamp});
  }
}

void CoveredMutations::add_to(causality::PartitionStore& stored, const causality::RowKey& row,
                              Timestamp timestamp) const {
  std::vector<causality::ColumnId> columns;
  if (const auto found = cells_.find(row); found != cells_.end()) {
    for (const OfCell& of_cell : found->second) {
      const CellStore there = stored.cell(row, of_cell.column);
      const bool is_alive = std::ranges::any_of(
          there.versions(), [&](const Version& version) { return version.dot == of_cell.dot; });
      const bool is_newer = of_cell.timestamp > timestamp;
      if (is_newer || (of_cell.timestamp == timestamp && !is_alive)) {
        columns.push_back(of_cell.column);
      }
    }
  }
  for (const causality::ColumnId column : columns) {
    stored.absorb(row, column, CellStore({newer_than(timestamp)}, {}));
  }
  for (const OfRange& of_range : ranges_) {
    if (of_range.timestamp < timestamp || !of_range.range.contains(row)) continue;
    stored.absorb(causality::RangeDelete{.range = of_range.range,
                                         .store = CellStore({newer_than(timestamp)}, {})});
  }
}

std::vector<causality::RangeDelete> CoveredMutations::beside(
    std::span<const causality::RangeDelete> ranges, Timestamp timestamp) const {
  std::map<RowRange, CellStore> all;
  for (const causality::RangeDelete& each : ranges) all[each.range].absorb(each.store);
  for (const OfRange& of_range : ranges_) {
    if (of_range.timestamp < timestamp) continue;
    all[of_range.range].absorb(CellStore({newer_than(timestamp)}, {}));
  }
  std::vector<causality::RangeDelete> sorted;
  for (auto& [range, store] : all) sorted.push_back({.range = range, .store = std::move(store)});
  return sorted;
}

std::vector<causality::RowKey> CoveredMutations::rows_in(const RowRange& range) const {
  std::vector<causality::RowKey> rows;
  for (const auto& [row, of_row] : cells_) {
    if (range.contains(row)) rows.push_back(row);
  }
  return rows;
}

}  // namespace helenus::replication
