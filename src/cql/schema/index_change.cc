#include "cql/schema/index_change.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "cql/schema/property_values.h"

namespace helenus::cql {

using model::Column;
using model::ColumnKind;
using model::DataType;
using model::Index;
using model::IndexTarget;
using model::Table;
using model::TypeKind;
using parser::IndexTargetKind;

namespace {

bool is_word_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_';
}

// What USING names. None: the index of its own that every table may have.
QueryResult<std::optional<std::string>> class_of(const parser::CreateIndex& statement) {
  if (!statement.custom_class) {
    if (statement.custom) return invalid("Must specify index implementation via USING");
    return std::optional<std::string>();
  }
  const std::string& name = *statement.custom_class;
  const std::string lower = to_lower(name);
  if (lower == "legacy_local_table" && !statement.custom) return std::optional<std::string>();
  if (lower == "sai" || lower == "storageattachedindex" ||
      name == "org.apache.cassandra.index.sai.StorageAttachedIndex") {
    return std::optional<std::string>(lower == "sai" ? "sai" : "StorageAttachedIndex");
  }
  return invalid("Unable to find custom indexer class '{}'", name);
}

QueryResult<void> check_durations(const DataType& type) {
  if (type.mentions(TypeKind::vector)) {
    return invalid("Secondary indexes are not supported on vectors");
  }
  if (!type.mentions(TypeKind::duration)) return {};
  if (type.is_collection()) {
    return invalid("Secondary indexes are not supported on collections containing durations");
  }
  if (type.kind() == TypeKind::tuple) {
    return invalid("Secondary indexes are not supported on tuples containing durations");
  }
  if (type.kind() == TypeKind::udt) {
    return invalid("Secondary indexes are not supported on UDTs containing durations");
  }
  return invalid("Secondary indexes are not supported on duration columns");
}

IndexTarget target_of(const parser::IndexTarget& target, const DataType& type) {
  switch (target.kind) {
    case IndexTargetKind::column:
      return type.is_collection() ? IndexTarget::values : IndexTarget::column;
    case IndexTargetKind::values:
      return IndexTarget::values;
    case IndexTargetKind::keys:
      return IndexTarget::keys;
    case IndexTargetKind::entries:
      return IndexTarget::entries;
    case IndexTargetKind::full:
      return IndexTarget::full;
  }
  return IndexTarget::column;
}

std::string_view name_of(IndexTarget target) {
  switch (target) {
    case IndexTarget::values:
      return "values";
    case IndexTarget::keys:
      return "keys";
    case IndexTarget::entries:
      return "entries";
    case IndexTarget::full:
      return "full";
    case IndexTarget::column:
      break;
  }
  return "";
}

QueryResult<void> check_target(const Table& table, const Column& column, IndexTarget target) {
  const DataType& type = column.type;
  TRY_VOID(check_durations(type));
  if (column.kind == ColumnKind::partition_key && table.partition_key().size() == 1) {
    return invalid("Cannot create secondary index on the only partition key column {}",
                   column.name);
  }
  const bool is_frozen_collection = type.is_collection() && !type.is_multi_cell();
  if (is_frozen_collection && target != IndexTarget::full) {
    return invalid(
        "Cannot create {0}() index on frozen column {1}. Frozen collections are immutable and must "
        "be fully indexed by using the 'full({1})' modifier",
        name_of(target), column.name);
  }
  if (!is_frozen_collection && target == IndexTarget::full) {
    return invalid("full() indexes can only be created on frozen collections");
  }
  if (!type.is_collection() && target != IndexTarget::column) {
    return invalid(
        "Cannot create {}() index on {}. Non-collection columns only support simple indexes",
        name_of(target), column.name);
  }
  const bool is_of_keys = target == IndexTarget::keys || target == IndexTarget::entries;
  if (is_of_keys && type.kind() != TypeKind::map) {
    return invalid("Cannot create index on {} of column {} with non-map type", name_of(target),
                   column.name);
  }
  if (type.kind() == TypeKind::udt && type.is_multi_cell()) {
    return invalid("Cannot create index on non-frozen UDT column {}", column.name);
  }
  return {};
}

std::string free_name(const model::Keyspace& keyspace, const Table& table, const Column& column) {
  std::string base = table.name + "_" + column.name + "_idx";
  std::erase_if(base, [](char letter) { return !is_word_letter(letter); });
  std::string name = base;
  for (int number = 1; keyspace.find_table_of_index(name) != nullptr; ++number) {
    name = fmt::format("{}_{}", base, number);
  }
  return name;
}

QueryResult<void> check_index_name(const std::string& name) {
  if (!name.empty() && std::ranges::all_of(name, is_word_letter)) return {};
  return invalid("Illegal index name {}", name);
}

QueryResult<model::OptionMap> options_of(const parser::CreateIndex& statement) {
  model::OptionMap options;
  for (const parser::Property& property : statement.properties) {
    if (property.name.text != "options") {
      return property_syntax_error(fmt::format("Unknown property '{}'", property.name.text));
    }
    TRY(options, map_of(property));
  }
  if (!options.empty() && !statement.custom_class) {
    return invalid("Cannot specify options for a non-CUSTOM index");
  }
  for (const char* name : {"class_name", "target"}) {
    if (options.contains(name)) return invalid("Cannot specify {} as a CUSTOM option", name);
  }
  return options;
}

// Options of a storage-attached index change how texts compare: those that do nothing are taken.
QueryResult<void> check_options(const model::OptionMap& options) {
  for (const auto& [name, value] : options) {
    const std::string text = to_lower(value);
    const bool is_default = (name == "case_sensitive" && text == "true") ||
                            (name == "normalize" && text == "false") ||
                            (name == "ascii" && text == "false");
    if (!is_default)
      return invalid("The option '{}' = '{}' of indexes is not supported", name, value);
  }
  return {};
}

}  // namespace

QueryResult<Table> make_index(const parser::CreateIndex& statement, const model::Keyspace& keyspace,
                              const Table& before, const base::Uuid& id) {
  if (statement.index && keyspace.find_table_of_index(statement.index->text) != nullptr) {
    if (statement.if_not_exists) return before;
    return invalid("Index '{}' already exists", statement.index->text);
  }
  if (before.is_counter()) {
    return invalid("Secondary indexes on counter tables aren't supported");
  }
  TRY(const auto class_name, class_of(statement));
  if (statement.targets.empty()) {
    return invalid(class_name ? "Indexes without a target column are not supported"
                              : "Only CUSTOM indexes can be created without specifying a target "
                                "column");
  }
  if (statement.targets.size() > 1) {
    return invalid(class_name ? "Indexes of several columns are not supported"
                              : "Only CUSTOM indexes support multiple columns");
  }
  const std::string& column_name = statement.targets.front().column.text;
  const Column* column = before.find(column_name);
  if (column == nullptr) return invalid("Column '{}' doesn't exist", column_name);
  Index index;
  index.id = id;
  index.column = column->id;
  index.target = target_of(statement.targets.front(), column->type);
  TRY_VOID(check_target(before, *column, index.target));
  TRY(index.options, options_of(statement));
  TRY_VOID(check_options(index.options));
  index.is_custom = class_name.has_value();
  if (class_name) index.options["class_name"] = *class_name;
  index.name = statement.index ? statement.index->text : free_name(keyspace, before, *column);
  TRY_VOID(check_index_name(index.name));
  for (const Index& other : before.indexes) {
    if (other.column != index.column || other.target != index.target ||
        other.is_custom != index.is_custom) {
      continue;
    }
    if (statement.if_not_exists) return before;
    return invalid("Index {} is a duplicate of existing index {}", index.name, other.name);
  }
  if (before.indexes.size() == kIndexesPerTableMax) {
    return invalid("A table has at most {} indexes", kIndexesPerTableMax);
  }
  Table table = before;
  table.indexes.push_back(std::move(index));
  std::ranges::sort(table.indexes, {}, &Index::name);
  return table;
}

Table drop_index(const Table& before, const std::string& index) {
  Table table = before;
  std::erase_if(table.indexes, [&](const Index& each) { return each.name == index; });
  return table;
}

}  // namespace helenus::cql
