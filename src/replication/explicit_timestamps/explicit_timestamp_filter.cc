#include "replication/explicit_timestamps/explicit_timestamp_filter.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "causality/limits.h"
#include "causality/resolve.h"
#include "replication/explicit_timestamps/range_cut.h"
#include "runtime/take_turn.h"

namespace helenus::replication {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using causality::CellChange;
using causality::Mutation;
using causality::RangeDelete;
using causality::RowRange;
using causality::Version;
using causality::VersionKind;
using runtime::Task;

namespace {

Version version_of(const Mutation& mutation, const CellChange& cell) {
  Version version;
  version.timestamp = mutation.timestamp;
  version.kind = cell.kind;
  version.expires = cell.expires;
  version.value = cell.value;
  return version;
}

// The row, of a range that has no other.
const Bytes* only_row_of(const RowRange& row_range) {
  if (!row_range.from || row_range != causality::range_of_row(*row_range.from)) return nullptr;
  return &*row_range.from;
}

// A cell that is written need not be deleted before.
void join_repeated(std::vector<CellChange>& cells) {
  std::ranges::sort(cells, [](const CellChange& a, const CellChange& b) {
    const bool a_deletes = a.kind == VersionKind::deletion;
    const bool b_deletes = b.kind == VersionKind::deletion;
    return std::tie(a.row, a.column, a_deletes) < std::tie(b.row, b.column, b_deletes);
  });
  const auto repeated = std::ranges::unique(cells, [](const CellChange& a, const CellChange& b) {
    return a.column == b.column && a.row == b.row;
  });
  cells.erase(repeated.begin(), repeated.end());
}

Result<void> check_changes(std::size_t judged) {
  if (judged <= ExplicitTimestampFilter::kChangesJudgedMax) return {};
  return Error(Errc::invalid_argument,
               "a delete with a timestamp of its own covers more than {} cells and deletes",
               ExplicitTimestampFilter::kChangesJudgedMax);
}

Result<void> check_named(const Mutation& judged) {
  if (judged.cells.size() <= causality::kCellsPerMutationMax &&
      judged.deleted_ranges.size() <= causality::kRangesPerMutationMax) {
    return {};
  }
  return Error(Errc::invalid_argument,
               "a delete with a timestamp of its own among newer cells comes to more than {} cells "
               "or {} ranges",
               causality::kCellsPerMutationMax, causality::kRangesPerMutationMax);
}

}  // namespace

Task<Result<void>> ExplicitTimestampFilter::take_turn() {
  effort_ = 0;
  return runtime::take_turn(engine_.runtime(), until_);
}

Task<Result<void>> ExplicitTimestampFilter::judge(std::span<PartitionWrite* const> writes) {
  CO_TRY(causality::Clock clock, engine_.staged_clock(tablet_.id));
  CO_TRY_VOID(co_await read_covered(writes));
  CO_TRY_VOID(co_await read_ranges(writes));
  for (std::size_t i = 0; i < writes.size(); ++i) {
    PartitionWrite& write = *writes[i];
    if (write.explicit_timestamp) {
      CO_TRY(write.mutation, co_await judge(write));
    }
    if (i + 1 == writes.size()) break;
    if (write.mutation.cells.empty() && write.mutation.deleted_ranges.empty()) continue;
    CO_TRY(const causality::Delta delta,
           causality::mint(clock, tablet_.actor, kEpoch, causality::Policy::lww, write.mutation,
                           causality::kTimestampMin));
    before_.lay(delta);
    if (turn_is_over(delta.cells.size() + delta.deleted_ranges.size()))
      CO_TRY_VOID(co_await take_turn());
  }
  co_return {};
}

// ---- Deletes of ranges ----

Task<Result<void>> ExplicitTimestampFilter::read_covered(std::span<PartitionWrite* const> writes) {
  std::optional<causality::Timestamp> oldest;
  for (const PartitionWrite* write : writes) {
    if (!write->explicit_timestamp || write->mutation.deleted_ranges.empty()) continue;
    oldest = std::min(oldest.value_or(write->mutation.timestamp), write->mutation.timestamp);
  }
  if (!oldest || bugs_.judges_without_log) co_return {};
  const PartitionWrite& any = *writes.front();
  CO_TRY(covered_, co_await CoveredMutations::read(engine_, tablet_.id, any.table, any.partition,
                                                   *oldest, until_));
  co_return {};
}

causality::PartitionStore ExplicitTimestampFilter::beside_covered(
    causality::PartitionStore stored, const causality::RowKey& row,
    causality::Timestamp timestamp) const {
  if (!covered_.is_empty()) covered_.add_to(stored, row, timestamp);
  return stored;
}

Task<Result<void>> ExplicitTimestampFilter::read_ranges(std::span<PartitionWrite* const> writes) {
  std::vector<RowRange> deleted_ranges;
  for (const PartitionWrite* write : writes) {
    if (!write->explicit_timestamp) continue;
    for (const RowRange& row_range : write->mutation.deleted_ranges) {
      if (only_row_of(row_range) == nullptr) deleted_ranges.push_back(row_range);
    }
  }
  if (deleted_ranges.empty()) co_return {};
  const std::vector<RowRange> wanted = joined(std::move(deleted_ranges));
  const PartitionWrite& any = *writes.front();
  CO_TRY(const auto cursor, engine_.cursor(any.table, tablet_.id, {.until = until_}));
  // Ranges that lie in different places do not come in their order.
  std::map<RowRange, causality::CellStore> across;
  CO_TRY_VOID(co_await cursor->seek_ranges(any.partition));
  while (cursor->at_ranges()) {
    CO_TRY(const storage::Entry entry, cursor->ranges());
    for (const RangeDelete& range_delete : entry.deleted_ranges()) {
      if (overlaps_any(range_delete.range, wanted))
        across[range_delete.range].absorb(range_delete.store);
    }
    CO_TRY_VOID(check_changes(across.size()));
    if (turn_is_over(1 + entry.deleted_ranges().size())) CO_TRY_VOID(co_await take_turn());
    CO_TRY_VOID(co_await cursor->next_ranges());
  }
  ranges_.reserve(across.size());
  for (auto& [range, store] : across) ranges_.push_back({range, std::move(store)});
  index_ = causality::RangeIndex(ranges_);
  co_return co_await engine_.wait_durable(cursor->trace(), until_);
}

// ---- One write ----

Task<Result<Mutation>> ExplicitTimestampFilter::judge(const PartitionWrite& write) {
  Mutation judged = write.mutation;
  judged.timestamp_is_explicit = true;
  judged.cells.clear();
  judged.deleted_ranges.clear();
  changes_judged_ = 0;
  deletes_at_ = causality::timestamp_of_range_deletes(write.mutation);
  CO_TRY_VOID(co_await judge_cells(write, judged));
  // Nothing is left that its ranges would have to be older than.
  if (judged.cells.empty()) judged.timestamp = deletes_at_;
  for (const RowRange& row_range : write.mutation.deleted_ranges) {
    CO_TRY_VOID(co_await judge_range(write, row_range, judged));
    CO_TRY_VOID(check_named(judged));
  }
  if (!write.mutation.deleted_ranges.empty()) join_repeated(judged.cells);
  co_return judged;
}

Task<Result<causality::Timestamp>> ExplicitTimestampFilter::covered_floor(
    const PartitionWrite& write, const CellChange& cell) {
  if (bugs_.judges_without_log) co_return causality::kTimestampMin;
  co_return co_await engine_.covered_floor(write.table, tablet_.id, write.partition, cell.row,
                                           cell.column, until_);
}

Task<Result<void>> ExplicitTimestampFilter::judge_cells(const PartitionWrite& write,
                                                        Mutation& judged) {
  std::optional<storage::RowRead> read;
  const Bytes* row = nullptr;
  for (const CellChange& cell : write.mutation.cells) {
    const Version version = version_of(write.mutation, cell);
    CO_TRY(const causality::Timestamp floor, co_await covered_floor(write, cell));
    if (const Version* const there = before_.find(cell.row, cell.column)) {
      if (wins(version, causality::CellStore({*there}, {}), floor)) judged.cells.push_back(cell);
      if (turn_is_over(1)) CO_TRY_VOID(co_await take_turn());
      continue;
    }
    if (row == nullptr || *row != cell.row) {
      row = &cell.row;
      CO_TRY(read,
             co_await engine_.read_row(write.table, tablet_.id, write.partition, *row, until_));
      effort_ += kEffortPerRow;
    }
    if (wins(version, read->partition.cell(cell.row, cell.column), floor)) {
      judged.cells.push_back(cell);
    }
    if (turn_is_over(1)) CO_TRY_VOID(co_await take_turn());
  }
  co_return {};
}

Task<Result<void>> ExplicitTimestampFilter::judge_range(const PartitionWrite& write,
                                                        const RowRange& row_range,
                                                        Mutation& judged) {
  CellChange change;
  change.kind = VersionKind::deletion;
  change.expires = write.mutation.remembered_until;
  Version deletion = version_of(write.mutation, change);
  deletion.timestamp = deletes_at_;
  // They outlive the judgement.
  std::vector<RangeDelete> ranges;
  causality::RangeIndex with_covered;
  ExplicitRangeDeleteFilter judgement(row_range, deletion, write.columns, before_);
  if (const Bytes* const row = only_row_of(row_range)) {
    CO_TRY(const auto read,
           co_await engine_.read_row(write.table, tablet_.id, write.partition, *row, until_));
    static const causality::RangeIndex kNone;  // They hold the row, and are read with it.
    judgement.take_ranges(kNone);
    while (judgement.take_newer_range()) {
    }
    const std::size_t effort =
        judgement.take_row(*row, beside_covered(read.partition, *row, write.mutation.timestamp));
    if (turn_is_over(kEffortPerRow + effort)) CO_TRY_VOID(co_await take_turn());
  } else {
    if (!covered_.is_empty()) {
      ranges = covered_.beside(ranges_, write.mutation.timestamp);
      with_covered = causality::RangeIndex(ranges);
    }
    judgement.take_ranges(covered_.is_empty() ? index_ : with_covered);
    CO_TRY_VOID(co_await look_across(write, row_range, judgement));
    changes_judged_ += judgement.size();
  }
  FilteredRangeDelete left = std::move(judgement).finish(
      std::min(ExplicitRangeDeleteFilter::kPiecesMax,
               causality::kRangesPerMutationMax - judged.deleted_ranges.size()),
      causality::kCellsPerMutationMax -
          std::min(causality::kCellsPerMutationMax, judged.cells.size()));
  std::ranges::move(left.deleted_ranges, std::back_inserter(judged.deleted_ranges));
  std::ranges::move(left.cells, std::back_inserter(judged.cells));
  co_return {};
}

Task<Result<void>> ExplicitTimestampFilter::look_across(const PartitionWrite& write,
                                                        const RowRange& row_range,
                                                        ExplicitRangeDeleteFilter& judgement) {
  CO_TRY_VOID(check_changes(changes_judged_ + judgement.size()));
  if (turn_is_over(kEffortPerRow + judgement.size())) CO_TRY_VOID(co_await take_turn());
  while (const auto effort = judgement.take_newer_range()) {
    if (turn_is_over(*effort)) CO_TRY_VOID(co_await take_turn());
  }
  CO_TRY(const auto cursor, engine_.cursor(write.table, tablet_.id, {.until = until_}));
  CO_TRY_VOID(co_await cursor->seek(write.partition, row_range.from.value_or(Bytes())));
  std::set<causality::RowKey> taken;
  while (cursor->valid() && base::equal(cursor->partition(), write.partition.view())) {
    const Bytes row = Bytes::copy_of(cursor->row_key());
    if (!row_range.contains(row)) break;
    CO_TRY(const auto read, cursor->read());
    const std::size_t effort =
        judgement.take_row(row, beside_covered(read, row, write.mutation.timestamp));
    taken.insert(row);
    CO_TRY_VOID(check_changes(changes_judged_ + judgement.size()));
    if (turn_is_over(kEffortPerRow + effort)) CO_TRY_VOID(co_await take_turn());
    CO_TRY_VOID(co_await cursor->next());
  }
  // Rows of which nothing is stored any more.
  for (const causality::RowKey& row : covered_.rows_in(row_range)) {
    if (taken.contains(row)) continue;
    causality::PartitionStore around;
    index_.each_overlapping(causality::range_of_row(row),
                            [&](const RangeDelete& range) { around.absorb(range); });
    judgement.take_row(row, beside_covered(std::move(around), row, write.mutation.timestamp));
  }
  while (const auto effort = judgement.take_row_of_overlay()) {
    CO_TRY_VOID(check_changes(changes_judged_ + judgement.size()));
    if (turn_is_over(*effort)) CO_TRY_VOID(co_await take_turn());
  }
  co_return co_await engine_.wait_durable(cursor->trace(), until_);
}

}  // namespace helenus::replication
