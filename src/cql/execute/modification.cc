// Modifications with their values: cells and ranges, collected into one mutation a partition.
#include <algorithm>
#include <iterator>
#include <limits>
#include <ranges>
#include <set>
#include <utility>

#include "base/assert.h"
#include "cql/plan/modification_plan.h"
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
using Change = ModificationPlan::Change;

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

// How long what a modification does lasts.
struct Lifetime {
  std::optional<causality::WallTime> of_values;
  std::optional<causality::WallTime> of_deletes;
};

bool is_empty_collection(const model::DataType& type, const Bytes& value) {
  if (!type.is_collection() || !type.is_multi_cell()) return false;
  const auto count = model::read_int(value.view().first(std::min<std::size_t>(4, value.size())));
  return count && *count == 0;
}

QueryResult<std::int64_t> amount_of(const Column& column, Change change, const Bytes& value) {
  TRY(const std::int64_t amount, model::read_bigint(value));
  if (change == Change::add) return amount;
  if (amount == std::numeric_limits<std::int64_t>::min()) {
    return invalid(
        "The negation of {} overflows supported counter precision (signed 8 bytes "
        "integer) for column {}",
        amount, column.name);
  }
  return -amount;
}

// What an assignment does to its cell, wherever that lies; nothing for UNSET.
QueryResult<std::optional<CellChange>> change_of(const ModificationPlan& plan,
                                                 const Assignment& assignment,
                                                 const Lifetime& lifetime,
                                                 const Evaluation& evaluation) {
  const Column& column = plan.table->columns[assignment.column];
  CellChange cell;
  cell.column = column.id;
  cell.kind = VersionKind::deletion;
  cell.expires = lifetime.of_deletes;
  if (assignment.change == Change::remove) return std::optional(std::move(cell));
  TRY(TermValue value, assignment.value->evaluate(evaluation));
  if (value.is_unset()) return std::optional<CellChange>();
  if (assignment.change != Change::set) {
    if (!value.has_bytes()) return invalid("Invalid null value for counter increment");
    cell.kind = VersionKind::increment;
    cell.expires.reset();
    TRY(cell.amount, amount_of(column, assignment.change, value.bytes));
    return std::optional(std::move(cell));
  }
  if (value.is_null() || is_empty_collection(column.type, value.bytes)) {
    return std::optional(std::move(cell));
  }
  cell.kind = VersionKind::value;
  cell.value = std::move(value.bytes);
  cell.expires = lifetime.of_values;
  return std::optional(std::move(cell));
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

RowRange range_of_plan(const ModificationPlan& plan, const model::ClusteringRange& range) {
  if (!plan.where.restricts_clustering()) return {};
  if (plan.where.names_rows()) return causality::range_of_row(range.from);
  return {.from = range.from, .to = range.to};
}

// What rows of the table may have, there or not.
replication::RowColumns row_columns_of(const model::Table& table) {
  replication::RowColumns columns;
  columns.of_rows.push_back(model::kRowMarker);
  for (const Column& column : table.regular_columns()) columns.of_rows.push_back(column.id);
  // The static row's key is empty, and so is that of the only row where nothing is clustered.
  if (table.clustering().empty()) return {.of_rows = {}, .of_first = std::move(columns.of_rows)};
  for (const Column& column : table.static_columns()) columns.of_first.push_back(column.id);
  return columns;
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
  if (changes.deleted_ranges.empty() && stamp.is_explicit)
    changes.columns = row_columns_of(*plan.table);
  changes.deleted_ranges.insert(std::move(row_range));
  changes.remembered_until = remembered_until;
}

// A delete beats what its own timestamp writes into its rows. One without a timestamp of its own is
// minted after, and supersedes, what is not newer; so those cells need not be written at all, and
// at its very timestamp must not be: explicit writes are minted last. What else the mutations do to
// one another the replica finds out when it judges the explicit ones. So the partition's mutations
// are gone through from the last to the first.
std::vector<replication::PartitionWrite> WriteCollector::take() && {
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
    for (auto& [place, cell] : changes.cells) {
      if (deleted.contains(place.first) || plainly_deleted.contains(place.first)) continue;
      if (cell_is_deleted(place)) continue;
      write.mutation.cells.push_back(std::move(cell));
    }
    write.mutation.deleted_ranges.assign(changes.deleted_ranges.begin(),
                                         changes.deleted_ranges.end());
    write.mutation.remembered_until = changes.remembered_until;
    write.columns = std::move(changes.columns);
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

// No column is assigned twice, so no two changes meet in a cell.
QueryResult<std::optional<replication::PartitionWrite>> row_write(const ModificationPlan& plan,
                                                                  const Evaluation& evaluation,
                                                                  WriteCollector::Stamp stamp) {
  TRY(stamp, stamp_of(plan, evaluation, stamp));
  TRY(BoundPrimaryKey key, plan.where.bind_row(evaluation));
  Lifetime lifetime{.of_values = {}, .of_deletes = memory_of(plan, stamp, evaluation)};
  TRY(lifetime.of_values, expiry_of(plan, evaluation));
  replication::PartitionWrite write;
  causality::Mutation& mutation = write.mutation;
  mutation.cells.reserve(plan.assignments.size() + 1);
  for (const Assignment& assignment : plan.assignments) {
    TRY(auto cell, change_of(plan, assignment, lifetime, evaluation));
    if (!cell) continue;
    if (!is_static(plan, assignment)) cell->row = key.clustering;
    mutation.cells.push_back(std::move(*cell));
  }
  if (marks_row(plan)) {
    mutation.cells.push_back(row_marker(lifetime.of_values));
    mutation.cells.back().row = key.clustering;
  }
  if (plan.whole_rows) {
    mutation.deleted_ranges.push_back(range_of_plan(plan, {.from = key.clustering, .to = {}}));
    mutation.remembered_until = lifetime.of_deletes;
    if (stamp.is_explicit) write.columns = row_columns_of(*plan.table);
  }
  if (mutation.cells.empty() && mutation.deleted_ranges.empty()) {
    return std::optional<replication::PartitionWrite>();
  }
  write.table = plan.storage;
  write.partition = std::move(key.partition);
  write.explicit_timestamp = stamp.is_explicit;
  write.unites_clocks = unites_clocks(plan);
  mutation.timestamp = causality::Timestamp{stamp.timestamp_us};
  return std::optional(std::move(write));
}

QueryResult<void> collect(const ModificationPlan& plan, const Evaluation& evaluation,
                          WriteCollector::Stamp stamp, WriteCollector& into) {
  TRY(stamp, stamp_of(plan, evaluation, stamp));
  TRY(const BoundRestrictions where, plan.where.bind(evaluation));
  if (where.partitions.size() * where.rows.size() > kKeysMax) {
    return invalid("The IN restrictions of this statement name more than {} rows", kKeysMax);
  }
  Lifetime lifetime{.of_values = {}, .of_deletes = memory_of(plan, stamp, evaluation)};
  TRY(lifetime.of_values, expiry_of(plan, evaluation));
  std::vector<std::pair<CellChange, bool>> cells;  // and whether it is static
  for (const Assignment& assignment : plan.assignments) {
    TRY(auto cell, change_of(plan, assignment, lifetime, evaluation));
    if (cell) cells.emplace_back(std::move(*cell), is_static(plan, assignment));
  }
  if (marks_row(plan)) cells.emplace_back(row_marker(lifetime.of_values), false);
  const std::size_t changes_per_row = cells.size() + (plan.whole_rows ? 1 : 0);
  if (into.size() + (where.partitions.size() * where.rows.size() * changes_per_row) > kChangesMax) {
    return invalid("Batch too large");
  }
  for (const Bytes& partition : where.partitions) {
    for (const model::ClusteringRange& range : where.rows) {
      if (plan.whole_rows) {
        into.add(plan, partition, stamp, range_of_plan(plan, range), lifetime.of_deletes);
      }
      for (const auto& [cell, of_partition] : cells) {
        CellChange placed = cell;
        if (!of_partition) placed.row = range.from;
        into.add(plan, partition, stamp, std::move(placed));
      }
    }
  }
  return {};
}

}  // namespace helenus::cql
