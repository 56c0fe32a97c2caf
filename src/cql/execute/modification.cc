// Modifications with their values: cells and ranges, collected into one mutation a partition.
#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "cql/plan/column_change.h"
#include "cql/plan/modification_plan.h"
#include "model/element_key.h"
#include "replication/explicit_timestamps/range_cut.h"

namespace helenus::cql {

using base::Bytes;
using causality::CellChange;
using causality::RowKey;
using causality::RowRange;
using causality::VersionKind;
using model::Column;
using model::ColumnKind;
using Assignment = ModificationPlan::Assignment;
using Elements = ColumnChange::Elements;

namespace {

// Twenty years.
constexpr std::int32_t kTimeToLiveMax = 20 * 365 * 24 * 60 * 60;

// Which of two changes of a cell at one timestamp stays: as causality::defeats() says.
bool stays(const CellChange& there, const CellChange& other) {
  if (there.kind != other.kind) return there.kind == VersionKind::deletion;
  if (there.expires != other.expires) return there.expires > other.expires;
  return there.value >= other.value;
}

QueryResult<std::optional<causality::WallTime>> expiry_of(const ModificationPlan& plan,
                                                          const Evaluation& evaluation) {
  std::int32_t seconds = plan.table->options.default_time_to_live;
  if (plan.time_to_live) {
    TRY(const TermValue value, plan.time_to_live->evaluate(evaluation));
    // As in Cassandra, so that what ttl() gave can be bound again.
    if (value.is_null() || (value.has_bytes() && value.bytes.empty())) {
      seconds = 0;
    } else if (value.has_bytes()) {
      TRY(seconds, model::read_int(value.bytes));
    }
  }
  if (seconds < 0) return invalid("A TTL must be greater or equal to 0, but was {}", seconds);
  if (seconds > kTimeToLiveMax) {
    return invalid("ttl is too large. requested ({}) maximum ({})", seconds, kTimeToLiveMax);
  }
  if (seconds == 0) return std::optional<causality::WallTime>();
  return std::optional(causality::WallTime{evaluation.moment.seconds().value() + seconds});
}

// Until when the deletes of a modification are remembered; none: no longer than they must be. Only
// where the newest wins is there something to compare them with.
std::optional<causality::WallTime> memory_of(const ModificationPlan& plan,
                                             const WriteCollector::Stamp& stamp,
                                             const Evaluation& evaluation) {
  if (plan.policy != causality::Policy::lww) return std::nullopt;
  const std::int32_t seconds = std::max(plan.table->options.delete_memory_seconds,
                                        stamp.is_explicit ? kExplicitDeleteMemorySeconds : 0);
  if (seconds == 0) return std::nullopt;
  return causality::WallTime{evaluation.moment.seconds().value() + seconds};
}

// Which rows any of several ranges holds, asked by a binary search.
class RangeUnion {
 public:
  void add(const std::set<RowRange>& deleted_ranges) {
    if (deleted_ranges.empty()) return;
    deleted_ranges_.insert(deleted_ranges_.end(), deleted_ranges.begin(), deleted_ranges.end());
    deleted_ranges_ = replication::joined(std::move(deleted_ranges_));
  }
  bool contains(const RowKey& row) const { return replication::holds_any(deleted_ranges_, row); }

 private:
  std::vector<RowRange> deleted_ranges_;  // ascending and apart
};

bool has_elements(const model::Table& table) {
  return std::ranges::any_of(table.columns,
                             [](const Column& column) { return column.type.is_multi_cell(); });
}

RowRange range_of_elements(const Bytes& row, causality::ColumnId column) {
  const model::ClusteringRange suffixes = model::element_suffixes(column);
  return {.from = model::joined_key(row, suffixes.from),
          .to = model::joined_key(row, *suffixes.to)};
}

RowRange range_of_plan(const ModificationPlan& plan, const model::ClusteringRange& range) {
  if (!plan.where.restricts_clustering()) return {};
  // A row alone has its elements behind it.
  if (plan.where.names_rows() && !has_elements(*plan.table)) {
    return causality::range_of_row(range.from);
  }
  return {.from = range.from, .to = range.to};
}

// What rows of the table may have, there or not. Elements are under keys of their own, that are not
// empty.
replication::RowColumns row_columns_of(const model::Table& table) {
  replication::RowColumns columns;
  std::vector<causality::ColumnId> of_elements;
  for (const Column& column : table.columns) {
    if (column.type.is_multi_cell()) of_elements.push_back(column.id);
  }
  columns.of_rows.push_back(model::kRowMarker);
  for (const Column& column : table.regular_columns()) columns.of_rows.push_back(column.id);
  // The static row's key is empty, and so is that of the only row where nothing is clustered.
  if (table.clustering().empty()) {
    return {.of_rows = std::move(of_elements), .of_first = std::move(columns.of_rows)};
  }
  for (const Column& column : table.static_columns()) {
    columns.of_first.push_back(column.id);
    if (column.type.is_multi_cell()) columns.of_rows.push_back(column.id);
  }
  return columns;
}

void add_column(std::vector<causality::ColumnId>& columns, causality::ColumnId column) {
  if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
}

// The statement's own timestamp, if it has one. Only where the newest wins does it matter who named
// it.
QueryResult<WriteCollector::Stamp> stamp_of(const ModificationPlan& plan,
                                            const Evaluation& evaluation,
                                            WriteCollector::Stamp stamp) {
  TRY(const auto own_timestamp, timestamp_of(plan.timestamp, evaluation));
  if (own_timestamp) {
    stamp.timestamp_us = *own_timestamp;
    stamp.is_explicit = true;
  }
  stamp.is_explicit = stamp.is_explicit && plan.policy == causality::Policy::lww;
  return stamp;
}

bool is_static(const ModificationPlan& plan, const Assignment& assignment) {
  return plan.table->columns[assignment.column].kind == ColumnKind::static_column;
}

// Increments supersede nothing, whatever they have seen.
bool unites_clocks(const ModificationPlan& plan) {
  return plan.table->options.causal_writes == model::CausalWrites::quorum && !plan.is_counter();
}

bool marks_row(const ModificationPlan& plan) {
  return plan.kind == StatementKind::insert && !plan.only_static;
}

CellChange row_marker(const std::optional<causality::WallTime>& expires) {
  CellChange marker;
  marker.column = model::kRowMarker;
  marker.expires = expires;
  return marker;
}

}  // namespace

// ---- Collecting ----

WriteCollector::Changes& WriteCollector::changes_of(const ModificationPlan& plan,
                                                    const Bytes& partition, Stamp stamp,
                                                    bool increments) {
  Changes& changes = changes_[{plan.storage, partition, stamp, increments}];
  changes.unites_clocks = unites_clocks(plan);
  return changes;
}

void WriteCollector::add(const ModificationPlan& plan, const Bytes& partition, Stamp stamp,
                         CellChange cell) {
  const bool increment = cell.kind == VersionKind::increment;
  Changes& changes = changes_of(plan, partition, stamp, increment);
  ++size_;
  const auto [at, is_new] = changes.cells.try_emplace({cell.row, cell.column}, cell);
  if (is_new) return;
  CellChange& there = at->second;
  if (increment) {
    there.amount = static_cast<std::int64_t>(static_cast<std::uint64_t>(there.amount) +
                                             static_cast<std::uint64_t>(cell.amount));
  } else if (!stays(there, cell)) {
    there = std::move(cell);
  }
}

void WriteCollector::add(const ModificationPlan& plan, const Bytes& partition, Stamp stamp,
                         RowRange row_range, std::optional<causality::WallTime> remembered_until) {
  ++size_;
  Changes& changes = changes_of(plan, partition, stamp, false);
  if (!changes.deletes_rows && stamp.is_explicit) {
    changes.columns = row_columns_of(*plan.table);
  }
  changes.deletes_rows = true;
  changes.deleted_ranges.insert(std::move(row_range));
  changes.remembered_until = remembered_until;
}

void WriteCollector::add_elements(const ModificationPlan& plan, const Bytes& partition, Stamp stamp,
                                  const Bytes& row, causality::ColumnId column, bool replaces,
                                  std::optional<causality::WallTime> remembered_until) {
  ++size_;
  Changes& changes = changes_of(plan, partition, stamp, false);
  if (stamp.is_explicit) add_column(changes.columns.of_rows, column);
  (replaces ? changes.replaced_ranges : changes.deleted_ranges)
      .insert(range_of_elements(row, column));
  changes.remembered_until = remembered_until;
}

// A delete beats what its own timestamp writes into its rows. One without a timestamp of its own is
// minted after, and supersedes, what is not newer; so those cells need not be written at all, and
// at its very timestamp must not be: explicit writes are minted last. What else the mutations do to
// one another the replica finds out when it judges the explicit ones. So the partition's mutations
// are gone through from the last to the first.
QueryResult<std::vector<replication::PartitionWrite>> WriteCollector::take(base::Pace* pace) && {
  std::vector<replication::PartitionWrite> writes;
  RangeUnion plainly_deleted;  // at this timestamp or a later one
  const Key* before = nullptr;
  for (auto& [key, changes] : changes_ | std::views::reverse) {
    if (before == nullptr || before->table != key.table || before->partition != key.partition) {
      plainly_deleted = {};
    }
    before = &key;
    Key plain = key;
    plain.stamp.is_explicit = false;
    plain.increments = false;
    const auto beside = changes_.find(plain);
    if (beside != changes_.end()) plainly_deleted.add(beside->second.deleted_ranges);
    // Beside increments there are only deletes of counters, which beat them like all deletes.
    const auto cell_is_deleted = [&](const auto& place) {
      return key.increments && beside != changes_.end() && beside->second.cells.contains(place);
    };
    RangeUnion deleted;
    if (key.stamp.is_explicit) deleted.add(changes.deleted_ranges);
    replication::PartitionWrite write;
    write.table = key.table;
    write.partition = key.partition;
    write.explicit_timestamp = key.stamp.is_explicit;
    write.unites_clocks = changes.unites_clocks;
    write.mutation.timestamp = causality::Timestamp{key.stamp.timestamp_us};
    while (!changes.cells.empty()) {
      TRY_VOID(base::Pace::turn(pace));
      auto taken = changes.cells.extract(changes.cells.begin());
      const RowKey& row = taken.key().first;
      if (deleted.contains(row) || plainly_deleted.contains(row)) continue;
      if (cell_is_deleted(taken.key())) continue;
      write.mutation.cells.push_back(std::move(taken.mapped()));
    }
    write.mutation.remembered_until = changes.remembered_until;
    write.columns = std::move(changes.columns);
    // What is replaced is older than what is written; a delete beside it, which is not, is a
    // mutation of its own where the timestamp counts.
    if (key.stamp.is_explicit && !changes.deleted_ranges.empty() &&
        !changes.replaced_ranges.empty()) {
      replication::PartitionWrite deletes = write;
      deletes.mutation.cells.clear();
      deletes.mutation.deleted_ranges.assign(changes.deleted_ranges.begin(),
                                             changes.deleted_ranges.end());
      writes.push_back(std::move(deletes));
      changes.deleted_ranges.clear();
    }
    changes.deleted_ranges.merge(changes.replaced_ranges);
    write.mutation.deleted_ranges.assign(changes.deleted_ranges.begin(),
                                         changes.deleted_ranges.end());
    if (write.mutation.deleted_ranges.empty()) write.mutation.remembered_until.reset();
    if (write.mutation.cells.empty() && write.mutation.deleted_ranges.empty()) continue;
    writes.push_back(std::move(write));
  }
  std::ranges::reverse(writes);
  return writes;
}

QueryResult<std::optional<causality::OperationId>> operation_of(const std::optional<Term>& term,
                                                                const Evaluation& evaluation) {
  if (!term) return std::optional<causality::OperationId>();
  TRY(const TermValue value, term->evaluate(evaluation));
  if (value.is_unset()) return std::optional<causality::OperationId>();
  if (value.is_null()) return invalid("Invalid null value of operation");
  TRY(const auto id, causality::parse_operation_id(value.bytes));
  return std::optional(id);
}

// In the order of the writes, which follows from what the request says, so that a repetition of it
// gives each partition the same name.
void name_operations(std::vector<replication::PartitionWrite>& writes,
                     const causality::OperationId& request) {
  std::uint32_t ordinal = 0;
  for (replication::PartitionWrite& write : writes) {
    write.mutation.operation = causality::nth(request, ordinal++);
  }
}

QueryResult<std::optional<std::int64_t>> timestamp_of(const std::optional<Term>& term,
                                                      const Evaluation& evaluation) {
  if (!term) return std::optional<std::int64_t>();
  TRY(const TermValue value, term->evaluate(evaluation));
  if (value.is_unset()) return std::optional<std::int64_t>();
  if (value.is_null()) return invalid("Invalid null value of timestamp");
  TRY(const std::int64_t timestamp, model::read_bigint(value.bytes));
  if (timestamp == std::numeric_limits<std::int64_t>::min()) {
    return invalid("Out of bound timestamp, must be in [{}, {}]", timestamp + 1,
                   std::numeric_limits<std::int64_t>::max());
  }
  return std::optional(timestamp);
}

namespace {

// Storage takes keys of so many bytes.
QueryResult<void> check_element_keys(std::size_t partition, std::size_t row,
                                     const ColumnChange& change) {
  for (const CellChange& cell : change.cells) {
    if (!cell.row.empty()) TRY_VOID(check_key_sizes(partition, row + cell.row.size()));
  }
  return {};
}

// Several assignments may write one element: then as if they were statements of one batch. Which of
// them comes first does not matter.
void join_cells(std::vector<CellChange>& cells) {
  const auto place = [](const CellChange& cell) { return std::tie(cell.row, cell.column); };
  if (std::ranges::is_sorted(cells, std::less_equal<>(), place)) return;
  std::ranges::sort(cells, std::less<>(), place);
  auto kept = cells.begin();
  for (auto at = std::next(kept); at != cells.end(); ++at) {
    if (place(*kept) != place(*at)) {
      if (++kept != at) *kept = std::move(*at);
    } else if (!stays(*kept, *at)) {
      *kept = std::move(*at);
    }
  }
  cells.erase(std::next(kept), cells.end());
}

QueryResult<void> change_row(const ModificationPlan& plan, const BoundPrimaryKey& key,
                             const Lifetime& lifetime, const Evaluation& evaluation,
                             replication::PartitionWrite& write) {
  causality::Mutation& mutation = write.mutation;
  for (const Assignment& assignment : plan.assignments) {
    TRY(ColumnChange change, change_of(plan, assignment, lifetime, evaluation, nullptr));
    const Column& column = plan.table->columns[assignment.column];
    const Bytes row = is_static(plan, assignment) ? Bytes() : key.clustering;
    TRY_VOID(check_element_keys(key.partition.size(), row.size(), change));
    for (CellChange& cell : change.cells) {
      cell.row = model::joined_key(row, cell.row);
      mutation.cells.push_back(std::move(cell));
    }
    if (change.elements == Elements::kept) continue;
    mutation.deleted_ranges.push_back(range_of_elements(row, column.id));
    if (write.explicit_timestamp) add_column(write.columns.of_rows, column.id);
  }
  return {};
}

}  // namespace

QueryResult<std::optional<replication::PartitionWrite>> row_write(const ModificationPlan& plan,
                                                                  const Evaluation& evaluation,
                                                                  WriteCollector::Stamp stamp) {
  TRY(stamp, stamp_of(plan, evaluation, stamp));
  TRY(BoundPrimaryKey key, plan.where.bind_row(evaluation));
  Lifetime lifetime{.of_values = {}, .of_deletes = memory_of(plan, stamp, evaluation)};
  TRY(lifetime.of_values, expiry_of(plan, evaluation));
  replication::PartitionWrite write;
  write.explicit_timestamp = stamp.is_explicit;
  causality::Mutation& mutation = write.mutation;
  mutation.cells.reserve(plan.assignments.size() + 1);
  // Before the other cells, for so they are sorted.
  if (marks_row(plan)) {
    mutation.cells.push_back(row_marker(lifetime.of_values));
    mutation.cells.back().row = key.clustering;
  }
  TRY_VOID(change_row(plan, key, lifetime, evaluation, write));
  join_cells(mutation.cells);
  if (plan.whole_rows) {
    const auto range = model::rows_with_prefix(key.clustering);
    mutation.deleted_ranges.push_back(range_of_plan(plan, range));
    if (stamp.is_explicit) write.columns = row_columns_of(*plan.table);
  }
  if (!mutation.deleted_ranges.empty()) mutation.remembered_until = lifetime.of_deletes;
  if (mutation.cells.empty() && mutation.deleted_ranges.empty()) {
    return std::optional<replication::PartitionWrite>();
  }
  std::ranges::sort(mutation.deleted_ranges);
  write.table = plan.storage;
  write.partition = std::move(key.partition);
  write.unites_clocks = unites_clocks(plan);
  mutation.timestamp = causality::Timestamp{stamp.timestamp_us};
  return std::optional(std::move(write));
}

namespace {

// A column's change, and where it goes.
struct PlacedChange {
  const Assignment* assignment;
  ColumnChange change;
};

QueryResult<void> place(const ModificationPlan& plan, const Bytes& partition,
                        WriteCollector::Stamp stamp, const Bytes& clustering,
                        const Lifetime& lifetime, const Evaluation& evaluation,
                        const PlacedChange& placed, WriteCollector& into) {
  const Bytes row = is_static(plan, *placed.assignment) ? Bytes() : clustering;
  const ColumnChange& change = placed.change;
  if (change.elements != Elements::kept) {
    into.add_elements(plan, partition, stamp, row,
                      plan.table->columns[placed.assignment->column].id,
                      change.elements == Elements::replaced, lifetime.of_deletes);
  }
  for (const CellChange& cell : change.cells) {
    TRY_VOID(evaluation.turn());
    CellChange there = cell;
    there.row = model::joined_key(row, cell.row);
    into.add(plan, partition, stamp, std::move(there));
  }
  return {};
}

// What the lists of this row decide.
QueryResult<std::vector<PlacedChange>> changes_of_lists(
    const ModificationPlan& plan, const Bytes& partition, const Bytes& clustering,
    const Lifetime& lifetime, const Evaluation& evaluation, const FoundLists& lists) {
  static const ListElements kNone;
  std::vector<PlacedChange> changes;
  for (const Assignment& assignment : plan.assignments) {
    if (!reads_list(*plan.table, assignment)) continue;
    const Bytes row = is_static(plan, assignment) ? Bytes() : clustering;
    const auto found = lists.find({partition, row, assignment.column});
    const ListElements& list = found == lists.end() ? kNone : found->second;
    TRY(ColumnChange change, change_of(plan, assignment, lifetime, evaluation, &list));
    changes.push_back({&assignment, std::move(change)});
  }
  return changes;
}

std::size_t size_of(const ColumnChange& change) {
  return change.cells.size() + (change.elements == Elements::kept ? 0 : 1);
}

QueryResult<void> check_size(const WriteCollector& collected, std::size_t more) {
  if (collected.size() + more > kChangesMax) return invalid("Batch too large");
  return {};
}

}  // namespace

QueryResult<void> collect(const ModificationPlan& plan, const Evaluation& evaluation,
                          WriteCollector::Stamp stamp, WriteCollector& into,
                          const FoundLists& lists) {
  if (plan.json && evaluation.values.size() <= plan.json->first_value) {
    TRY(const BoundValues values, values_of_json(plan, evaluation));
    return collect(plan, {values, evaluation.moment, evaluation.pace, evaluation.guard}, stamp,
                   into, lists);
  }
  TRY(stamp, stamp_of(plan, evaluation, stamp));
  TRY(const BoundRestrictions where, plan.where.bind(evaluation));
  const std::size_t rows = where.partitions.size() * where.rows.size();
  if (rows > kKeysMax) {
    return invalid("The IN restrictions of this statement name more than {} rows", kKeysMax);
  }
  Lifetime lifetime{.of_values = {}, .of_deletes = memory_of(plan, stamp, evaluation)};
  TRY(lifetime.of_values, expiry_of(plan, evaluation));
  std::vector<PlacedChange> changes;
  std::size_t changes_per_row = (plan.whole_rows ? 1 : 0) + (marks_row(plan) ? 1 : 0);
  for (const Assignment& assignment : plan.assignments) {
    TRY_VOID(evaluation.turn());
    if (reads_list(*plan.table, assignment)) continue;
    TRY(ColumnChange change, change_of(plan, assignment, lifetime, evaluation, nullptr));
    changes_per_row += size_of(change);
    changes.push_back({&assignment, std::move(change)});
  }
  TRY_VOID(check_size(into, rows * changes_per_row));
  for (const Bytes& partition : where.partitions) {
    for (const model::ClusteringRange& range : where.rows) {
      TRY_VOID(evaluation.turn());
      for (const PlacedChange& placed : changes) {
        TRY_VOID(check_element_keys(partition.size(), range.from.size(), placed.change));
        TRY_VOID(place(plan, partition, stamp, range.from, lifetime, evaluation, placed, into));
      }
      TRY(const auto of_lists,
          changes_of_lists(plan, partition, range.from, lifetime, evaluation, lists));
      for (const PlacedChange& placed : of_lists) {
        TRY_VOID(check_size(into, size_of(placed.change)));
        TRY_VOID(place(plan, partition, stamp, range.from, lifetime, evaluation, placed, into));
      }
      if (plan.whole_rows) {
        into.add(plan, partition, stamp, range_of_plan(plan, range), lifetime.of_deletes);
      }
      if (marks_row(plan)) {
        CellChange marker = row_marker(lifetime.of_values);
        marker.row = range.from;
        into.add(plan, partition, stamp, std::move(marker));
      }
    }
  }
  return {};
}

}  // namespace helenus::cql
