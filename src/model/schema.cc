#include "model/schema.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "model/identifier.h"
#include "model/value.h"

namespace helenus::model {

using base::Errc;
using base::Error;
using base::Result;

namespace {

std::span<const Column> of_kind(const std::vector<Column>& columns, ColumnKind kind) {
  const auto range = std::ranges::equal_range(columns, kind, {}, &Column::kind);
  return {range.begin(), range.end()};
}

auto place_of(const Column& column) {
  return std::tie(column.kind, column.position, column.name);
}

template <class Map>
auto value_or_null(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? typename Map::mapped_type() : found->second;
}

template <class... Args>
Error invalid(const Table& table, fmt::format_string<Args...> format, Args&&... args) {
  return Error(Errc::invalid_argument, "table {}.{}: {}", table.keyspace, table.name,
               fmt::format(format, std::forward<Args>(args)...));
}

Result<void> validate_order(const Table& table) {
  std::uint32_t place = 0;
  const Column* previous = nullptr;
  for (const Column& column : table.columns) {
    const bool in_key = column.kind <= ColumnKind::clustering;
    if (previous == nullptr || previous->kind != column.kind) place = 0;
    if (column.position != (in_key ? place++ : 0)) {
      return invalid(table, "column {} is at position {}", column.name, column.position);
    }
    if (previous != nullptr && place_of(*previous) >= place_of(column)) {
      return invalid(table, "column {} is out of order", column.name);
    }
    previous = &column;
  }
  return {};
}

Result<void> validate_ids(const Table& table) {
  std::set<std::string_view> names;
  std::set<causality::ColumnId> ids;
  const auto is_good = [&](causality::ColumnId id) {
    return id != kRowMarker && id.value() < table.next_column_id && ids.insert(id).second;
  };
  for (const Column& column : table.columns) {
    if (!names.insert(column.name).second) {
      return invalid(table, "column {} is there twice", column.name);
    }
    if (!is_good(column.id)) return invalid(table, "column {} has id {}", column.name, column.id);
  }
  for (const DroppedColumn& column : table.dropped_columns) {
    if (!is_good(column.id)) {
      return invalid(table, "dropped column {} has id {}", column.name, column.id);
    }
  }
  return {};
}

Result<void> validate_types(const Table& table) {
  bool has_counter = false;
  bool has_other = false;
  for (const Column& column : table.columns) {
    const bool in_key = column.kind <= ColumnKind::clustering;
    if (in_key && (column.type.is_multi_cell() || !is_ordered(column.type) ||
                   column.type.mentions(TypeKind::counter))) {
      return invalid(table, "column {} of type {} is in the primary key", column.name,
                     column.type.to_cql());
    }
    if (column.descending && column.kind != ColumnKind::clustering) {
      return invalid(table, "column {} is descending", column.name);
    }
    if (!in_key) (column.type.is_counter() ? has_counter : has_other) = true;
  }
  if (has_counter && has_other) return invalid(table, "counters beside other columns");
  return {};
}

bool suits(IndexTarget target, const DataType& type) {
  switch (target) {
    case IndexTarget::column:
      return !type.is_multi_cell();
    case IndexTarget::values:
      return type.is_collection() && type.is_multi_cell();
    case IndexTarget::keys:
    case IndexTarget::entries:
      return type.kind() == TypeKind::map && type.is_multi_cell();
    case IndexTarget::full:
      return type.is_collection() && !type.is_multi_cell();
  }
  return false;
}

Result<void> validate_indexes(const Table& table) {
  const Index* previous = nullptr;
  for (const Index& index : table.indexes) {
    const Column* column = table.find(index.column);
    if (column == nullptr || table.is_counter() || !suits(index.target, column->type)) {
      return invalid(table, "index {} is of nothing that there is", index.name);
    }
    if (previous != nullptr && previous->name >= index.name) {
      return invalid(table, "index {} is out of order", index.name);
    }
    previous = &index;
  }
  return {};
}

void add_in_order_of_use(const Keyspace& keyspace, const DataType& type,
                         std::set<std::string_view>& seen, std::vector<DataType>& order) {
  for (const DataType& part : type.parts()) add_in_order_of_use(keyspace, part, seen, order);
  if (type.kind() != TypeKind::udt || type.keyspace() != keyspace.name) return;
  const auto declared = keyspace.types.find(type.name());
  if (declared == keyspace.types.end() || !seen.insert(declared->first).second) return;
  order.push_back(declared->second);
}

}  // namespace

std::string_view name_of(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::partition_key:
      return "partition_key";
    case ColumnKind::clustering:
      return "clustering";
    case ColumnKind::static_column:
      return "static";
    case ColumnKind::regular:
      return "regular";
  }
  UNREACHABLE("column kind {}", static_cast<unsigned>(kind));
}

// Statements may name every column, so only the columns of the key are gone through; the others are
// in the order of their names.
const Column* Table::find(std::string_view column) const {
  for (const std::span<const Column> key : {partition_key(), clustering()}) {
    const auto found = std::ranges::find(key, column, &Column::name);
    if (found != key.end()) return &*found;
  }
  for (const std::span<const Column> others : {static_columns(), regular_columns()}) {
    const auto found = std::ranges::lower_bound(others, column, {}, &Column::name);
    if (found != others.end() && found->name == column) return &*found;
  }
  return nullptr;
}

const Column* Table::find(causality::ColumnId column) const {
  const auto found = std::ranges::find(columns, column, &Column::id);
  return found == columns.end() ? nullptr : &*found;
}

const Index* Table::find_index(std::string_view index) const {
  const auto found = std::ranges::find(indexes, index, &Index::name);
  return found == indexes.end() ? nullptr : &*found;
}

std::string target_text(const Table& table, const Index& index) {
  const Column* column = table.find(index.column);
  const std::string name = column == nullptr ? "" : to_cql_identifier(column->name);
  switch (index.target) {
    case IndexTarget::column:
      return name;
    case IndexTarget::values:
      return "values(" + name + ")";
    case IndexTarget::keys:
      return "keys(" + name + ")";
    case IndexTarget::entries:
      return "entries(" + name + ")";
    case IndexTarget::full:
      return "full(" + name + ")";
  }
  UNREACHABLE("index target {}", static_cast<unsigned>(index.target));
}

std::span<const Column> Table::partition_key() const {
  return of_kind(columns, ColumnKind::partition_key);
}
std::span<const Column> Table::clustering() const {
  return of_kind(columns, ColumnKind::clustering);
}
std::span<const Column> Table::static_columns() const {
  return of_kind(columns, ColumnKind::static_column);
}
std::span<const Column> Table::regular_columns() const {
  return of_kind(columns, ColumnKind::regular);
}

bool Table::is_counter() const {
  return std::ranges::any_of(columns,
                             [](const Column& column) { return column.type.is_counter(); });
}

std::vector<ClusteringColumn> Table::clustering_columns() const {
  std::vector<ClusteringColumn> result;
  for (const Column& column : clustering()) {
    result.push_back({.type = column.type, .descending = column.descending});
  }
  return result;
}

void sort_columns(std::vector<Column>& columns) {
  std::ranges::sort(columns,
                    [](const Column& a, const Column& b) { return place_of(a) < place_of(b); });
}

Result<void> validate(const Table& table) {
  TRY_VOID(validate_order(table));
  if (table.partition_key().empty()) return invalid(table, "no partition key");
  if (!table.static_columns().empty() && table.clustering().empty()) {
    return invalid(table, "static columns without clustering columns");
  }
  TRY_VOID(validate_ids(table));
  TRY_VOID(validate_types(table));
  TRY_VOID(validate_indexes(table));
  return validate(table.options);
}

TablePtr Keyspace::find_table(std::string_view table) const {
  return value_or_null(tables, table);
}

TablePtr Keyspace::find_table_of_index(std::string_view index) const {
  for (const auto& [table_name, table] : tables) {
    if (table->find_index(index) != nullptr) return table;
  }
  return nullptr;
}

std::optional<DataType> Keyspace::find_type(std::string_view type) const {
  const auto found = types.find(type);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

bool operator==(const Keyspace& a, const Keyspace& b) {
  const auto same_table = [](const auto& x, const auto& y) {
    return x.first == y.first && (x.second == y.second || *x.second == *y.second);
  };
  return a.name == b.name && a.replication == b.replication &&
         a.durable_writes == b.durable_writes && a.types == b.types &&
         std::ranges::equal(a.tables, b.tables, same_table);
}

KeyspacePtr Schema::find_keyspace(std::string_view keyspace) const {
  return value_or_null(keyspaces_, keyspace);
}

TablePtr Schema::find_table(std::string_view keyspace, std::string_view table) const {
  const KeyspacePtr found = find_keyspace(keyspace);
  return found == nullptr ? nullptr : found->find_table(table);
}

TablePtr Schema::find_table(const base::Uuid& id) const {
  for (const auto& [name, keyspace] : keyspaces_) {
    for (const auto& [table_name, table] : keyspace->tables) {
      if (table->id == id) return table;
    }
  }
  return nullptr;
}

Schema Schema::with(Keyspace keyspace) const {
  Schema next = *this;
  std::string name = keyspace.name;
  next.keyspaces_.insert_or_assign(std::move(name),
                                   std::make_shared<const Keyspace>(std::move(keyspace)));
  return next;
}

Schema Schema::without(std::string_view keyspace) const {
  Schema next = *this;
  if (const auto found = next.keyspaces_.find(keyspace); found != next.keyspaces_.end()) {
    next.keyspaces_.erase(found);
  }
  return next;
}

Schema Schema::with(Table table) const {
  const KeyspacePtr found = find_keyspace(table.keyspace);
  ASSERT(found != nullptr, "no keyspace {}", table.keyspace);
  Keyspace keyspace = *found;
  std::string name = table.name;
  keyspace.tables.insert_or_assign(std::move(name),
                                   std::make_shared<const Table>(std::move(table)));
  return with(std::move(keyspace));
}

Schema Schema::without_table(std::string_view keyspace, std::string_view table) const {
  const KeyspacePtr found = find_keyspace(keyspace);
  if (found == nullptr) return *this;
  Keyspace changed = *found;
  if (const auto place = changed.tables.find(table); place != changed.tables.end()) {
    changed.tables.erase(place);
  }
  return with(std::move(changed));
}

bool operator==(const Schema& a, const Schema& b) {
  return std::ranges::equal(a.keyspaces_, b.keyspaces_, [](const auto& x, const auto& y) {
    return x.first == y.first && (x.second == y.second || *x.second == *y.second);
  });
}

std::vector<DataType> types_in_order_of_use(const Keyspace& keyspace) {
  std::set<std::string_view> seen;
  std::vector<DataType> order;
  for (const auto& [name, type] : keyspace.types) {
    add_in_order_of_use(keyspace, type, seen, order);
  }
  return order;
}

}  // namespace helenus::model
