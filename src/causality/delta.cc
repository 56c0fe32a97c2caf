#include "causality/delta.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "causality/limits.h"

namespace helenus::causality {

namespace {

auto place_of(const CellChange& change) {
  return std::tie(change.row, change.column);
}

// How many rows they lie in; unless they are few, for then it does not matter. Requires: ascending.
std::size_t rows_of(const std::vector<CellChange>& cells) {
  if (cells.size() <= kRowsPerMutationMax) return 1;
  std::size_t rows = 1;
  for (std::size_t i = 1; i < cells.size(); ++i) rows += cells[i].row != cells[i - 1].row ? 1 : 0;
  return rows;
}

// What two ranges of one delete have in common is deleted once: all of a mutation's ranges are one
// version with one context. Apart from each other few of them lie in one place when they are
// stored, however many there are. Those that only touch stay two, for the range of a row is a
// row's. Requires: ascending.
void join_overlapping(std::vector<RowRange>& deleted_ranges) {
  if (deleted_ranges.empty()) return;
  std::size_t last = 0;
  for (std::size_t i = 1; i < deleted_ranges.size(); ++i) {
    RowRange& before = deleted_ranges[last];
    RowRange& row_range = deleted_ranges[i];
    if (!before.overlaps(row_range)) {
      if (++last != i) deleted_ranges[last] = std::move(row_range);
    } else if (before.to && (!row_range.to || *before.to < *row_range.to)) {
      before.to = std::move(row_range.to);
    }
  }
  deleted_ranges.resize(last + 1);
}

// Sorts what a mutation changes and refuses what no delta may hold.
base::Result<void> tidy(Mutation& mutation, Policy policy) {
  using base::Errc;
  using base::Error;
  if (mutation.cells.empty() && mutation.deleted_ranges.empty()) {
    return Error(Errc::invalid_argument, "the mutation changes nothing");
  }
  if (mutation.cells.size() > kCellsPerMutationMax ||
      mutation.deleted_ranges.size() > kRangesPerMutationMax) {
    return Error(Errc::invalid_argument,
                 "the mutation has {} cells and {} ranges, of at most {}, {}",
                 mutation.cells.size(), mutation.deleted_ranges.size(), kCellsPerMutationMax,
                 kRangesPerMutationMax);
  }
  for (CellChange& change : mutation.cells) {
    if (change.expires && change.kind == VersionKind::increment) {
      return Error(Errc::invalid_argument, "column {} expires without a value", change.column);
    }
    // A kind has its own content and no other: what is not encoded must not be compared either.
    if (change.kind != VersionKind::value) change.value = {};
    if (change.kind != VersionKind::increment) change.amount = 0;
  }
  if (mutation.deleted_ranges.empty()) mutation.remembered_until.reset();
  for (const RowRange& row_range : mutation.deleted_ranges) {
    if (row_range.from && row_range.to && !(*row_range.from < *row_range.to)) {
      return Error(Errc::invalid_argument, "a deleted range has no rows");
    }
  }
  std::ranges::sort(mutation.cells, {}, place_of);
  std::ranges::sort(mutation.deleted_ranges);
  const auto twice = std::ranges::adjacent_find(mutation.cells, {}, place_of);
  if (twice != mutation.cells.end()) {
    return Error(Errc::invalid_argument, "column {} of a row is changed twice", twice->column);
  }
  if (const std::size_t rows = rows_of(mutation.cells); rows > kRowsPerMutationMax) {
    return Error(Errc::invalid_argument, "the mutation has cells of {} rows, of at most {}", rows,
                 kRowsPerMutationMax);
  }
  join_overlapping(mutation.deleted_ranges);
  const auto increments =
      std::ranges::count(mutation.cells, VersionKind::increment, &CellChange::kind);
  const bool only_increments =
      std::cmp_equal(increments, mutation.cells.size()) && mutation.deleted_ranges.empty();
  if (increments > 0 && (policy != Policy::counter || !only_increments)) {
    return Error(Errc::invalid_argument, "increments are mixed with other changes");
  }
  return {};
}

Version reset_of(const Delta& delta) {
  return {.dot = delta.dot,
          .timestamp = delta.timestamp,
          .kind = VersionKind::reset,
          .expires = std::nullopt,
          .amount = 0,
          .value = {}};
}

CellStore cell_of(const Delta& delta, CellChange change, Policy policy) {
  Versions versions;
  if (change.kind == VersionKind::increment && delta.operation) {
    change.value = base::Bytes::copy_of(*delta.operation);
  }
  if (change.kind == VersionKind::deletion && policy == Policy::counter) {
    versions.push_back(reset_of(delta));
  } else if (change.kind != VersionKind::deletion || policy == Policy::lww) {
    versions.push_back({.dot = delta.dot,
                        .timestamp = delta.timestamp,
                        .kind = change.kind,
                        .expires = change.expires,
                        .amount = change.amount,
                        .value = std::move(change.value)});
  }
  return CellStore(std::move(versions), delta.context.dots);
}

Version empty_version_of(const Delta& delta) {
  return {.dot = delta.dot,
          .timestamp = timestamp_of_range_deletes(delta),
          .kind = VersionKind::deletion,
          .expires = delta.remembered_until,
          .amount = 0,
          .value = {}};
}

// Whether a cell lies where a range deletes. Requires: ascending cells.
bool cells_override(const std::vector<CellChange>& cells,
                    const std::vector<RowRange>& deleted_ranges) {
  return std::ranges::any_of(deleted_ranges, [&](const RowRange& row_range) {
    const auto first = row_range.from
                           ? std::ranges::lower_bound(cells, *row_range.from, {}, &CellChange::row)
                           : cells.begin();
    return first != cells.end() && row_range.contains(first->row);
  });
}

// The oldest timestamp that something in the mutation has.
Timestamp oldest_of(const Mutation& mutation) {
  return cells_override(mutation.cells, mutation.deleted_ranges)
             ? Timestamp{mutation.timestamp.value() - 1}
             : mutation.timestamp;
}

// Rule (d). `from_elsewhere` is the floor of a context that covers what is not here.
base::Result<Timestamp> explicit_timestamp(const Mutation& mutation, Timestamp floor,
                                           Timestamp from_elsewhere) {
  if (mutation.timestamp == kTimestampMin) {
    return base::Error(base::Errc::invalid_argument, "{} is no timestamp", kTimestampMin);
  }
  if (oldest_of(mutation) < floor) {
    return base::Error(base::Errc::invalid_argument,
                       "the explicit timestamp {} is older than {}, which is known here",
                       mutation.timestamp, floor);
  }
  if (from_elsewhere != kTimestampMin && oldest_of(mutation) <= from_elsewhere) {
    return base::Error(base::Errc::unavailable,
                       "the explicit timestamp {} is not above {}, which the context covers and "
                       "which is not here yet",
                       mutation.timestamp, from_elsewhere);
  }
  return mutation.timestamp;
}

// Rule (b). Ranges that cells override are older by one, and must be above the floor.
base::Result<Timestamp> raised_timestamp(const Mutation& mutation, Timestamp floor) {
  const std::int64_t above = cells_override(mutation.cells, mutation.deleted_ranges) ? 2 : 1;
  if (floor.value() > kTimestampMax.value() - above) {
    return base::Error(base::Errc::invalid_argument, "no timestamp is left above {}", floor);
  }
  return std::max(mutation.timestamp, Timestamp{floor.value() + above});
}

}  // namespace

base::Result<Delta> mint(Clock& clock, ActorId actor, Epoch epoch, Policy policy, Mutation mutation,
                         Timestamp floor) {
  TRY_VOID(tidy(mutation, policy));
  const bool increments =
      !mutation.cells.empty() && mutation.cells.front().kind == VersionKind::increment;
  Context context{.epoch = epoch, .floor = kTimestampMin, .dots = {}};
  const bool blind = !mutation.context;
  if (!blind) {
    TRY_VOID(check_claims(*mutation.context, actor, clock));
    context = *std::move(mutation.context);
    ASSERT(context.epoch <= epoch, "epoch {} of the context was not adopted", context.epoch);
    context.epoch = epoch;
  }
  if (policy == Policy::lww) {
    if (mutation.timestamp_is_explicit) {
      const Timestamp from_elsewhere = clock.covers(context.dots) ? kTimestampMin : context.floor;
      TRY(mutation.timestamp, explicit_timestamp(mutation, floor, from_elsewhere));
    } else {
      TRY(mutation.timestamp, raised_timestamp(mutation, std::max(context.floor, floor)));
    }
    context.floor = std::max(context.floor, floor);
  }
  const bool takes_clock = !increments && (policy != Policy::siblings || blind);
  if (takes_clock) context.dots = join(context.dots, clock);
  if (increments) context.dots = {};
  return Delta{.dot = event(clock, actor),
               .context = std::move(context),
               .timestamp = mutation.timestamp,
               .operation = mutation.operation,
               .cells = std::move(mutation.cells),
               .deleted_ranges = std::move(mutation.deleted_ranges),
               .remembered_until = mutation.remembered_until};
}

Timestamp timestamp_of_range_deletes(const Delta& delta) {
  if (delta.timestamp == kTimestampMin || !cells_override(delta.cells, delta.deleted_ranges)) {
    return delta.timestamp;
  }
  return Timestamp{delta.timestamp.value() - 1};
}

Timestamp timestamp_of_range_deletes(const Mutation& mutation) {
  return mutation.timestamp == kTimestampMin ? kTimestampMin : oldest_of(mutation);
}

PartitionStore fragment_of(const Delta& delta, Policy policy) {
  PartitionStore fragment;
  for (const CellChange& change : delta.cells) {
    fragment.absorb(change.row, change.column, cell_of(delta, change, policy));
  }
  for (const RowRange& row_range : delta.deleted_ranges) {
    Versions versions;
    if (policy == Policy::lww) versions.push_back(empty_version_of(delta));
    if (policy == Policy::counter) versions.push_back(reset_of(delta));
    fragment.absorb(RangeDelete{row_range, CellStore(std::move(versions), delta.context.dots)});
  }
  return fragment;
}

RowStore row_fragment_of(Delta delta, Policy policy) {
  ASSERT(delta.deleted_ranges.empty());
  ASSERT_SLOW(delta.cells.empty() || delta.cells.front().row == delta.cells.back().row);
  RowStore row;
  row.reserve(delta.cells.size());
  for (CellChange& change : delta.cells) {
    const ColumnId column = change.column;
    row.absorb(column, cell_of(delta, std::move(change), policy));
  }
  return row;
}

Applied apply(Clock& clock, PartitionStore& memtable, const Delta& delta, Policy policy) {
  if (clock.contains(delta.dot)) return Applied::before;
  memtable.absorb(fragment_of(delta, policy));
  clock.add(delta.dot);
  return Applied::now;
}

MergeInstant merge_instant(std::span<const FragmentSpan> inputs,
                           std::span<const FragmentSpan> others) {
  ASSERT(!inputs.empty());
  const std::uint64_t newest = std::ranges::max(inputs, {}, &FragmentSpan::last_freeze).last_freeze;
  MergeInstant instant = MergeInstant::now;
  for (const FragmentSpan& other : others) {
    if (!other.may_hold_key) continue;
    if (other.first_freeze <= newest) return MergeInstant::none;
    instant = MergeInstant::newest_freeze;
  }
  return instant;
}

}  // namespace helenus::causality

fmt::format_context::iterator fmt::formatter<helenus::causality::Delta>::format(
    const helenus::causality::Delta& delta, fmt::format_context& ctx) const {
  return fmt::format_to(ctx.out(), "{} at {} after {}: {} cells, {} ranges", delta.dot,
                        delta.timestamp, delta.context, delta.cells.size(),
                        delta.deleted_ranges.size());
}
