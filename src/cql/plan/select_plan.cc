#include "cql/plan/select_plan.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace helenus::cql {

using model::Column;
using model::ColumnKind;
using model::DataType;
using model::TypeKind;
using parser::Select;

QueryResult<model::TablePtr> find_table(const parser::QualifiedName& name,
                                        const model::Schema& schema,
                                        const std::string& session_keyspace) {
  const std::string& keyspace = name.keyspace ? name.keyspace->text : session_keyspace;
  if (keyspace.empty()) {
    return invalid(
        "No keyspace has been specified. USE a keyspace, or explicitly specify "
        "keyspace.tablename");
  }
  const model::KeyspacePtr found = schema.find_keyspace(keyspace);
  if (found == nullptr) return invalid("keyspace {} does not exist", keyspace);
  model::TablePtr table = found->find_table(name.name.text);
  if (table == nullptr) return invalid("table {} does not exist", name.name.text);
  return table;
}

namespace {

class SelectPlanner {
 public:
  SelectPlanner(const Select& select, const CatalogSnapshot& catalog, model::TablePtr table,
                PlanScope& scope)
      : select_(select), catalog_(catalog), scope_(scope) {
    plan_.table = std::move(table);
    plan_.storage = catalog.storage_of(plan_.table->id);
    plan_.speculation = replication::Speculation::parse(plan_.table->options.speculative_retry);
    keyspace_ = catalog.keyspace_number(plan_.table->keyspace);
    if (!plan_.storage) return;
    rows_ = check_rows(catalog);
  }

  QueryResult<SelectPlan> plan();

 private:
  QueryResult<void> plan_where();
  QueryResult<void> plan_order();
  QueryResult<void> plan_distinct();
  QueryResult<void> plan_groups();
  QueryResult<void> plan_limits();
  void lay_out();

  const Select& select_;
  const CatalogSnapshot& catalog_;
  PlanScope& scope_;
  model::KeyspaceNumber keyspace_;
  QueryResult<void> rows_;  // whether the table's are here
  SelectPlan plan_;
};

QueryResult<void> SelectPlanner::plan_where() {
  Restrictions::Rules rules;
  rules.kind = StatementKind::select;
  rules.keyspace = keyspace_;
  // All rows of a virtual table are made in any case.
  plan_.allow_filtering = select_.allow_filtering;
  rules.allow_filtering = select_.allow_filtering || !plan_.storage;
  TRY(plan_.where, Restrictions::plan(select_.where, plan_.table, rules, scope_));
  if (plan_.storage && plan_.where.index() != nullptr && !plan_.where.names_partitions()) {
    plan_.index = catalog_.storage_of(plan_.where.index()->id);
  }
  plan_.static_without_rows =
      !plan_.where.restricts_clustering() && !plan_.where.restricts_regular();
  return {};
}

QueryResult<void> SelectPlanner::plan_order() {
  if (select_.order_by.empty()) return {};
  if (!plan_.where.names_partitions()) {
    return invalid(
        "ORDER BY is only supported when the partition key is restricted by an EQ or an "
        "IN.");
  }
  const std::size_t first = plan_.table->partition_key().size();
  std::optional<bool> reversed;
  std::size_t next = 0;
  for (const parser::Ordering& ordering : select_.order_by) {
    TRY(const std::size_t index, column_index(*plan_.table, ordering.column.text));
    const Column& column = plan_.table->columns[index];
    if (column.kind != ColumnKind::clustering) {
      return invalid(
          "Order by is currently only supported on the clustered columns of the PRIMARY "
          "KEY, got {}",
          column.name);
    }
    for (; next != column.position; ++next) {
      if (next > column.position || !plan_.where.has_one_value(first + next)) {
        return invalid(
            "Order by currently only supports the ordering of columns following their "
            "declared order in the PRIMARY KEY");
      }
    }
    ++next;
    const bool against = ordering.descending != column.descending;
    if (reversed && *reversed != against) return invalid("Unsupported order by relation");
    reversed = against;
  }
  plan_.ordered = true;
  plan_.reversed = *reversed;
  return {};
}

QueryResult<void> SelectPlanner::plan_distinct() {
  if (!select_.distinct) return {};
  plan_.distinct = true;
  std::vector<bool> selected(plan_.table->columns.size());
  plan_.selection.mark(selected);
  for (std::size_t i = 0; i < selected.size(); ++i) {
    const Column& column = plan_.table->columns[i];
    if (selected[i] && column.kind != ColumnKind::partition_key &&
        column.kind != ColumnKind::static_column) {
      return invalid(
          "SELECT DISTINCT queries must only request partition key columns and/or "
          "static columns (not {})",
          column.name);
    }
    if (!selected[i] && column.kind == ColumnKind::partition_key &&
        !plan_.where.names_partitions()) {
      return invalid(
          "SELECT DISTINCT queries must request all the partition key columns (missing "
          "{})",
          column.name);
    }
  }
  if (plan_.where.restricts_clustering() || plan_.where.restricts_regular()) {
    return invalid(
        "SELECT DISTINCT with WHERE clause only supports restriction by partition key "
        "and/or static columns.");
  }
  return {};
}

QueryResult<void> SelectPlanner::plan_groups() {
  std::size_t next = 0;
  for (const parser::Expression& expression : select_.group_by) {
    const auto* column = std::get_if<parser::Column>(&expression.node);
    if (column == nullptr) return invalid("Functions are not supported in the GROUP BY clause");
    TRY(const std::size_t index, column_index(*plan_.table, column->name.text));
    const ColumnKind kind = plan_.table->columns[index].kind;
    if (kind != ColumnKind::partition_key && kind != ColumnKind::clustering) {
      return invalid(
          "Group by is currently only supported on the columns of the PRIMARY KEY, got "
          "{}",
          column->name.text);
    }
    for (; next != index; ++next) {
      if (next > index || !plan_.where.has_one_value(next)) {
        return invalid(
            "Group by currently only support groups of columns following their declared "
            "order in the PRIMARY KEY");
      }
    }
    ++next;
    plan_.group_by.push_back(index);
  }
  // Groups lie within a partition: whoever names a clustering column means the whole key before it.
  if (!plan_.group_by.empty() && next < plan_.table->partition_key().size()) {
    return invalid("Group by is not supported on only a part of the partition key");
  }
  return {};
}

QueryResult<void> SelectPlanner::plan_limits() {
  const DataType type(TypeKind::int_);
  const std::string& keyspace = plan_.table->keyspace;
  const std::string& table = plan_.table->name;
  if (select_.limit) {
    TRY(plan_.limit, compile_term(*select_.limit, {keyspace, table, "[limit]", type}, scope_));
  }
  if (!select_.per_partition_limit) return {};
  if (plan_.distinct) {
    return invalid("PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries");
  }
  if (plan_.selection.has_aggregate() && plan_.group_by.empty()) {
    return invalid("PER PARTITION LIMIT is not allowed with aggregate queries.");
  }
  TRY(plan_.per_partition_limit,
      compile_term(*select_.per_partition_limit, {keyspace, table, "[per_partition_limit]", type},
                   scope_));
  return {};
}

void SelectPlanner::lay_out() {
  std::vector<bool> wanted(plan_.table->columns.size());
  plan_.selection.mark(wanted);
  for (const std::size_t column : plan_.where.columns_filtered()) wanted[column] = true;
  for (const std::size_t column : plan_.group_by) wanted[column] = true;
  plan_.layout.emplace(plan_.table, std::move(wanted));
  const bool only_columns = std::ranges::all_of(
      plan_.selection.selectors(),
      [](const Selector& selector) { return selector.kind() == Selector::Kind::column; });
  plan_.is_point = plan_.storage && plan_.where.is_row_key() && only_columns && !plan_.distinct &&
                   plan_.group_by.empty() && !plan_.limit && !plan_.per_partition_limit &&
                   !plan_.layout->wants_static() && !plan_.layout->has_elements() &&
                   plan_.table->options.conflicts != model::Conflicts::siblings;
}

QueryResult<SelectPlan> SelectPlanner::plan() {
  TRY_VOID(rows_);
  TRY(plan_.selection, Selection::plan(select_.selectors, *plan_.table, scope_));
  TRY_VOID(plan_where());
  TRY_VOID(plan_distinct());
  TRY_VOID(plan_order());
  TRY_VOID(plan_groups());
  TRY_VOID(plan_limits());
  if (select_.json) plan_.selection = plan_.selection.as_json(*plan_.table);
  lay_out();
  plan_.columns_may_change =
      select_.selectors.empty() ||
      std::ranges::any_of(plan_.selection.columns(), [](const protocol::ColumnSpec& column) {
        return column.type.mentions(TypeKind::udt);
      });
  plan_.columns = protocol::EncodedColumns(plan_.selection.columns());
  plan_.metadata_id = metadata_id_of(plan_.columns);
  return std::move(plan_);
}

}  // namespace

base::Bytes metadata_id_of(const protocol::EncodedColumns& columns) {
  return base::Bytes::copy_of(
      base::ByteView(protocol::prepared_id("", base::as_text(columns.specs().view()))));
}

QueryResult<SelectPlan> plan_select(const Select& select, const CatalogSnapshot& catalog,
                                    const std::string& session_keyspace, MarkerTypes& markers) {
  TRY(model::TablePtr table, find_table(select.table, catalog.schema(), session_keyspace));
  const model::KeyspacePtr keyspace = catalog.schema().find_keyspace(table->keyspace);
  PlanScope scope{*keyspace, markers};
  return SelectPlanner(select, catalog, std::move(table), scope).plan();
}

}  // namespace helenus::cql
