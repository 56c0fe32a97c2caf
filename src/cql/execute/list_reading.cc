#include "cql/execute/list_reading.h"

#include <utility>
#include <vector>

#include "cql/execute/replica_counts.h"
#include "cql/execute/row_stream.h"
#include "cql/plan/column_change.h"

namespace helenus::cql {

using base::Bytes;
using model::ColumnKind;
using model::Consistency;
using runtime::Task;
using runtime::Until;

namespace {

// Reads know no ANY, and no EACH_QUORUM.
Consistency read_level_of(Consistency level) {
  if (level == Consistency::any) return Consistency::one;
  return level == Consistency::each_quorum ? Consistency::quorum : level;
}

QueryResult<void> take_lists(const Row& row, const model::Table& table,
                             const std::vector<bool>& wanted, FoundLists& found) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Cell& cell = row.cells[i];
    if (!wanted[i] || !cell.value || cell.elements == nullptr) continue;
    const bool is_static = table.columns[i].kind == ColumnKind::static_column;
    ListElements& list = found[{row.partition, is_static ? Bytes() : row.clustering, i}];
    if (!list.empty()) continue;  // a static one, with another row
    TRY(const auto parts, model::split_collection(*cell.value));
    for (std::size_t j = 0; j < parts.size(); ++j) {
      list.push_back({.name = (*cell.elements)[j].name, .value = Bytes::copy_of(parts[j])});
    }
  }
  return {};
}

}  // namespace

Task<QueryResult<FoundLists>> find_lists(const ModificationPlan& plan, const Evaluation& evaluation,
                                         const ExecutionServices& services, Consistency level,
                                         Until until) {
  std::vector<bool> wanted(plan.table->columns.size());
  for (const auto& assignment : plan.assignments) {
    if (reads_list(*plan.table, assignment)) wanted[assignment.column] = true;
  }
  const RowLayout layout(plan.table, wanted);
  RowRequest request;
  request.table = plan.table;
  CO_TRY(request.where, plan.where.bind(evaluation));
  if (request.where.partitions.size() * request.where.rows.size() > kKeysMax) {
    co_return invalid("The IN restrictions of this statement name more than {} rows", kKeysMax);
  }
  request.layout = &layout;
  request.point_reads = !plan.only_static;
  request.distinct = plan.only_static;
  request.static_without_rows = layout.wants_static();
  request.now = evaluation.moment.seconds();
  request.until = std::move(until);
  request.level = read_level_of(level);
  const Consistency read_level = request.level;
  StoredRows stream(services.runtime, services.coordinator, plan.storage, std::move(request));
  FoundLists found;
  std::size_t bytes = 0;
  for (std::vector<Row> rows;; rows.clear()) {
    constexpr std::size_t kRowsPerFill = 64;
    const auto filled = co_await stream.fill(
        rows, {.rows = kRowsPerFill, .bytes = services.limits.result_bytes_max});
    if (!filled) co_return read_error(filled.error(), read_level, counts_of(stream.report()));
    if (rows.empty()) co_return found;
    for (const Row& row : rows) {
      bytes += size_of(row);
      CO_TRY_VOID(take_lists(row, *plan.table, wanted, found));
    }
    CO_TRY_VOID(check_result_size(bytes, services.limits));
  }
}

}  // namespace helenus::cql
