#include "cql/schema/table_change.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/schema/property_values.h"
#include "cql/schema/table_properties.h"
#include "cql/schema/type_names.h"

namespace helenus::cql {

using model::Column;
using model::ColumnKind;
using model::DataType;
using model::Table;
using parser::Name;

namespace {

constexpr const char* kStaticNeedsClustering =
    "Static columns are only useful (and thus allowed) if the table has at least one clustering "
    "column";

std::string full_name(const Table& table) {
  return fmt::format("{}.{}", table.keyspace, table.name);
}

QueryResult<void> check_fields(const DataType& type) {
  if (type.kind() != model::TypeKind::udt || !type.is_multi_cell()) return {};
  if (std::ranges::any_of(type.parts(), &DataType::is_multi_cell)) {
    return invalid("Non-frozen UDTs with nested non-frozen collections are not supported");
  }
  return {};
}

// Whether the table's files hold increments: it has counters, or had some before all were dropped.
// A table of keys alone was made for values.
bool is_made_for_counters(const Table& table) {
  if (!table.static_columns().empty() || !table.regular_columns().empty()) {
    return table.is_counter();
  }
  return std::ranges::any_of(table.dropped_columns, [](const model::DroppedColumn& dropped) {
    return dropped.type.is_counter();
  });
}

// ---- CREATE TABLE ----

// Columns of a CREATE TABLE by name, as they are being sorted into keys and others.
using Declared = std::map<std::string, Column>;

QueryResult<Declared> declare_columns(const parser::CreateTable& statement,
                                      const model::Keyspace& keyspace) {
  Declared declared;
  for (const parser::ColumnDefinition& definition : statement.columns) {
    Column column{.name = definition.name.text,
                  .kind = definition.is_static ? ColumnKind::static_column : ColumnKind::regular,
                  .type = DataType::text(),
                  .id = {}};
    TRY(column.type, resolve_type(definition.type, keyspace));
    TRY_VOID(check_fields(column.type));
    if (!declared.emplace(column.name, std::move(column)).second) {
      return invalid("Duplicate column '{}' declaration for table '{}'", definition.name.text,
                     statement.table.name.text);
    }
  }
  return declared;
}

QueryResult<void> check_key_column(const Column& column) {
  if (column.type.is_multi_cell()) {
    return invalid("Invalid non-frozen {} type {} for PRIMARY KEY column '{}'",
                   column.type.is_collection() ? "collection" : "user-defined",
                   column.type.to_cql(), column.name);
  }
  if (column.type.is_counter()) {
    return invalid("counter type is not supported for PRIMARY KEY column '{}'", column.name);
  }
  if (column.type.mentions(model::TypeKind::duration)) {
    return invalid("duration type is not supported for PRIMARY KEY column '{}'", column.name);
  }
  if (column.type.mentions(model::TypeKind::vector)) {
    return invalid("vector type is not supported for PRIMARY KEY column '{}'", column.name);
  }
  if (column.kind == ColumnKind::static_column) {
    return invalid("Static column '{}' cannot be part of the PRIMARY KEY", column.name);
  }
  return {};
}

QueryResult<void> place_key(const std::vector<Name>& names, ColumnKind kind,
                            const std::string& table, Declared& declared,
                            std::set<std::string>& placed) {
  std::uint32_t position = 0;
  for (const Name& name : names) {
    const auto found = declared.find(name.text);
    if (found == declared.end()) {
      return invalid("Unknown column '{}' referenced in PRIMARY KEY for table '{}'", name.text,
                     table);
    }
    if (!placed.insert(name.text).second) {
      return invalid("Duplicate column '{}' in PRIMARY KEY clause for table '{}'", name.text,
                     table);
    }
    TRY_VOID(check_key_column(found->second));
    found->second.kind = kind;
    found->second.position = position++;
  }
  return {};
}

QueryResult<void> place_keys(const parser::CreateTable& statement, Declared& declared) {
  const std::string& table = statement.table.name.text;
  if (statement.primary_keys.empty()) {
    return invalid("No PRIMARY KEY specifed for table '{}' (exactly one required)", table);
  }
  if (statement.primary_keys.size() > 1) {
    return invalid("Multiple PRIMARY KEY specified for table '{}' (exactly one required)", table);
  }
  const parser::PrimaryKey& key = statement.primary_keys.front();
  std::set<std::string> placed;
  if (key.partition.size() > kKeyColumnsMax || key.clustering.size() > kKeyColumnsMax) {
    return invalid("A key of table '{}' has at most {} columns", table, kKeyColumnsMax);
  }
  TRY_VOID(place_key(key.partition, ColumnKind::partition_key, table, declared, placed));
  return place_key(key.clustering, ColumnKind::clustering, table, declared, placed);
}

QueryResult<void> order_clustering(const parser::CreateTable& statement, Declared& declared) {
  const std::vector<Name>& clustering = statement.primary_keys.front().clustering;
  const std::vector<parser::Ordering>& order = statement.clustering_order;
  std::set<std::string> ordered;
  for (const parser::Ordering& ordering : order) {
    const std::string& name = ordering.column.text;
    if (!ordered.insert(name).second) {
      return invalid("Duplicate column '{}' in CLUSTERING ORDER BY clause for table '{}'", name,
                     statement.table.name.text);
    }
    if (std::ranges::find(clustering, name, &Name::text) == clustering.end()) {
      return invalid(
          "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not "
          "clustering columns",
          name);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = order[i].column.text;
    if (name != clustering[i].text) {
      if (!ordered.contains(clustering[i].text)) {
        return invalid("Missing CLUSTERING ORDER for column {}", clustering[i].text);
      }
      return invalid(
          "The order of columns in the CLUSTERING ORDER directive must match that of the "
          "clustering columns ({} must appear before {})",
          clustering[i].text, name);
    }
    declared.at(name).descending = order[i].descending;
  }
  return {};
}

QueryResult<void> check_others(const Declared& declared, bool has_clustering,
                               const model::TableOptions& options) {
  bool counters = false;
  bool others = false;
  for (const auto& [name, column] : declared) {
    const bool is_key =
        column.kind == ColumnKind::partition_key || column.kind == ColumnKind::clustering;
    if (is_key) continue;
    if (column.kind == ColumnKind::static_column && !has_clustering) {
      return invalid(kStaticNeedsClustering);
    }
    (column.type.is_counter() ? counters : others) = true;
  }
  if (counters && others) {
    return invalid("Cannot mix counter and non counter columns in the same table");
  }
  if (counters && options.default_time_to_live > 0) {
    return invalid("Cannot set default_time_to_live on a table with counters");
  }
  if (counters && options.conflicts == model::Conflicts::siblings) {
    return config_error("Cannot set conflicts on a table with counters");
  }
  return {};
}

// ---- ALTER TABLE ----

// Whether values written as `before` can be read as `after`, by Cassandra's rules.
bool is_compatible(const DataType& before, const DataType& after) {
  if (before == after) return true;
  if (before.is_multi_cell() || after.is_multi_cell()) return false;
  if (after.kind() == model::TypeKind::blob) return true;
  return after.kind() == model::TypeKind::varchar && before.kind() == model::TypeKind::ascii;
}

// The columns of an ALTER TABLE ... ADD, one after the other; in the table when all are there, so
// that many take no longer than they must.
class ColumnAdder {
 public:
  ColumnAdder(const model::Keyspace& keyspace, const Table& before)
      : keyspace_(keyspace), table_(before), counters_(is_made_for_counters(before)) {
    for (const model::DroppedColumn& dropped : before.dropped_columns) {
      dropped_.emplace(dropped.name, &dropped);
    }
  }

  QueryResult<void> add(const parser::ColumnDefinition& definition, bool if_not_exists);
  Table take() &&;

 private:
  QueryResult<void> check_again(const Column& column) const;
  QueryResult<void> check_counter(const Column& column) const;

  const model::Keyspace& keyspace_;
  const Table& table_;
  const bool counters_;
  std::map<std::string_view, const model::DroppedColumn*> dropped_;
  std::set<std::string> names_;
  std::vector<Column> added_;
};

QueryResult<void> ColumnAdder::check_again(const Column& column) const {
  const auto found = dropped_.find(column.name);
  if (found == dropped_.end()) return {};
  const model::DroppedColumn* const dropped = found->second;
  if (!is_compatible(dropped->type, column.type)) {
    return invalid(
        "Cannot re-add previously dropped column '{}' of type {}, incompatible with previous type "
        "{}",
        column.name, column.type.to_cql(), dropped->type.to_cql());
  }
  if (dropped->kind != column.kind) {
    return invalid(
        "Cannot re-add previously dropped column '{}' of kind {}, incompatible with previous kind "
        "{}",
        column.name, to_upper(name_of(column.kind)), to_upper(name_of(dropped->kind)));
  }
  if (dropped->type.is_counter()) {
    return invalid("Cannot re-add previously dropped counter column {}", column.name);
  }
  return {};
}

QueryResult<void> ColumnAdder::check_counter(const Column& column) const {
  if (counters_ && !column.type.is_counter()) {
    return config_error(
        fmt::format("{}: Cannot have a non counter column (\"{}\") in a counter table",
                    full_name(table_), column.name));
  }
  if (!counters_ && column.type.is_counter()) {
    return config_error(
        fmt::format("{}: Cannot have a counter column (\"{}\") in a non counter table",
                    full_name(table_), column.name));
  }
  return {};
}

QueryResult<void> ColumnAdder::add(const parser::ColumnDefinition& definition, bool if_not_exists) {
  Column column{
      .name = definition.name.text,
      .kind = definition.is_static ? ColumnKind::static_column : ColumnKind::regular,
      .type = DataType::text(),
      .id = {},
  };
  TRY(column.type, resolve_type(definition.type, keyspace_));
  if (table_.find(column.name) != nullptr || names_.contains(column.name)) {
    if (if_not_exists) return {};
    return invalid("Column with name '{}' already exists", column.name);
  }
  if (definition.is_static && table_.clustering().empty()) return invalid(kStaticNeedsClustering);
  TRY_VOID(check_fields(column.type));
  TRY_VOID(check_again(column));
  TRY_VOID(check_counter(column));
  names_.insert(column.name);
  added_.push_back(std::move(column));
  return {};
}

Table ColumnAdder::take() && {
  Table table = table_;
  for (Column& column : added_) {
    column.id = causality::ColumnId{table.next_column_id++};
    table.columns.push_back(std::move(column));
  }
  model::sort_columns(table.columns);
  return table;
}

QueryResult<Table> apply(const parser::AddColumns& change, const model::Keyspace& keyspace,
                         const Table& before, std::int64_t /*now_us*/) {
  ColumnAdder adder(keyspace, before);
  for (const parser::ColumnDefinition& definition : change.columns) {
    TRY_VOID(adder.add(definition, change.if_not_exists));
  }
  Table table = std::move(adder).take();
  if (table.columns.size() > kColumnsPerTableMax) {
    return invalid("A table has at most {} columns", kColumnsPerTableMax);
  }
  return table;
}

QueryResult<void> check_no_index(const Table& table, const Column& column, std::string_view verb) {
  std::vector<std::string> names;
  for (const model::Index& index : table.indexes) {
    if (index.column == column.id) names.push_back(index.name);
  }
  if (names.empty()) return {};
  if (verb == "rename") {
    return invalid("Can't rename column {} because it has dependent secondary indexes ({})",
                   column.name, fmt::join(names, ", "));
  }
  return invalid("Cannot drop column {} because it has dependent secondary indexes ({})",
                 column.name, fmt::join(names, ", "));
}

QueryResult<Table> apply(const parser::DropColumns& change, const model::Keyspace& /*keyspace*/,
                         const Table& before, std::int64_t now_us) {
  std::int64_t dropped_at_us = now_us;
  if (change.timestamp) {
    const std::optional<std::int64_t> timestamp = parse_integer(change.timestamp->text);
    if (!timestamp) return invalid("Invalid timestamp {}", change.timestamp->text);
    dropped_at_us = *timestamp;
  }
  Table table = before;
  std::set<std::string_view> gone;
  std::vector<const Column*> columns;
  for (const Name& name : change.columns) {
    const Column* column = gone.contains(name.text) ? nullptr : before.find(name.text);
    if (column == nullptr) {
      if (change.if_exists) continue;
      return invalid("Column {} was not found in table '{}'", name.text, full_name(table));
    }
    if (column->kind == ColumnKind::partition_key || column->kind == ColumnKind::clustering) {
      return invalid("Cannot drop PRIMARY KEY column {}", name.text);
    }
    if (column->type.kind() == model::TypeKind::udt && column->type.is_multi_cell()) {
      return invalid("Cannot drop non-frozen column {} of user type {}", name.text,
                     column->type.to_cql());
    }
    TRY_VOID(check_no_index(before, *column, "drop"));
    gone.insert(column->name);
    columns.push_back(column);
  }
  const auto is_gone = [&](const auto& column) { return gone.contains(column.name); };
  std::erase_if(table.dropped_columns, is_gone);
  for (const Column* column : columns) {
    table.dropped_columns.push_back({.name = column->name,
                                     .kind = column->kind,
                                     .type = column->type,
                                     .dropped_at_us = dropped_at_us,
                                     .id = column->id});
  }
  std::erase_if(table.columns, is_gone);
  return table;
}

QueryResult<Table> apply(const parser::RenameColumns& change, const model::Keyspace& /*keyspace*/,
                         const Table& before, std::int64_t /*now_us*/) {
  Table table = before;
  for (const parser::Renaming& renaming : change.columns) {
    const Column* column = before.find(renaming.from.text);
    if (column == nullptr) {
      if (change.if_exists) continue;
      return invalid("Undefined column name {} in table {}", renaming.from.text, full_name(before));
    }
    if (column->kind != ColumnKind::partition_key && column->kind != ColumnKind::clustering) {
      return invalid("Cannot rename non PRIMARY KEY column {}", renaming.from.text);
    }
    TRY_VOID(check_no_index(before, *column, "rename"));
    if (table.find(renaming.to.text) != nullptr) {
      return invalid(
          "Cannot rename column {} to {} in table '{}'; another column with that name already "
          "exists",
          renaming.from.text, renaming.to.text, full_name(before));
    }
    const auto renamed = std::ranges::find(table.columns, column->id, &Column::id);
    renamed->name = renaming.to.text;
  }
  return table;
}

QueryResult<Table> apply(const parser::AlterColumnType& /*change*/,
                         const model::Keyspace& /*keyspace*/, const Table& /*before*/,
                         std::int64_t /*now_us*/) {
  return invalid("Altering column types is no longer supported");
}

QueryResult<Table> apply(const parser::DropCompactStorage& /*change*/,
                         const model::Keyspace& /*keyspace*/, const Table& /*before*/,
                         std::int64_t /*now_us*/) {
  return invalid("DROP COMPACT STORAGE is not supported: no table is compact.");
}

QueryResult<Table> apply(const parser::Properties& change, const model::Keyspace& /*keyspace*/,
                         const Table& before, std::int64_t /*now_us*/) {
  Table table = before;
  TRY(table.options, read_altered_table_properties(change, before.options));
  if (table.is_counter() && table.options.default_time_to_live > 0) {
    return invalid("Cannot set default_time_to_live on a table with counters");
  }
  return table;
}

QueryResult<void> check_invariants(const Table& table) {
  for (const Column& column : table.columns) TRY_VOID(check_name_size(column.name));
  const base::Result<void> valid = model::validate(table);
  if (valid) return {};
  return config_error(fmt::format("{}: {}", full_name(table), valid.error().context()));
}

}  // namespace

QueryResult<Table> make_table(const parser::CreateTable& statement, const model::Keyspace& keyspace,
                              const base::Uuid& id) {
  if (statement.compact_storage) {
    return invalid("Compact tables are not supported: without COMPACT STORAGE, please.");
  }
  if (statement.columns.size() > kColumnsPerTableMax) {
    return invalid("A table has at most {} columns", kColumnsPerTableMax);
  }
  TRY(TableProperties properties, read_new_table_properties(statement.properties));
  TRY(Declared declared, declare_columns(statement, keyspace));
  TRY_VOID(place_keys(statement, declared));
  TRY_VOID(order_clustering(statement, declared));
  const bool has_clustering = !statement.primary_keys.front().clustering.empty();
  TRY_VOID(check_others(declared, has_clustering, properties.options));

  Table table;
  table.keyspace = keyspace.name;
  table.name = statement.table.name.text;
  table.id = properties.id.value_or(id);
  table.options = std::move(properties.options);
  for (auto& [name, column] : declared) table.columns.push_back(std::move(column));
  model::sort_columns(table.columns);
  for (Column& column : table.columns) column.id = causality::ColumnId{table.next_column_id++};
  TRY_VOID(check_invariants(table));
  return table;
}

QueryResult<Table> alter_table(const parser::AlterTable& statement, const model::Keyspace& keyspace,
                               const Table& before, std::int64_t now_us) {
  TRY(Table table,
      std::visit([&](const auto& change) { return apply(change, keyspace, before, now_us); },
                 statement.change));
  TRY_VOID(check_invariants(table));
  return table;
}

}  // namespace helenus::cql
