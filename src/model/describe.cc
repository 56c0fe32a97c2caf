#include "model/describe.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "model/identifier.h"
#include "model/number.h"

namespace helenus::model {

namespace {

constexpr std::string_view kIndent = "    ";

std::string qualified(std::string_view keyspace, std::string_view name) {
  return to_cql_identifier(keyspace) + "." + to_cql_identifier(name);
}

// Appends `, ` before all but the first.
template <class Range, class ToText>
std::string listed(const Range& range, ToText to_text) {
  std::string text;
  for (const auto& element : range) {
    if (!text.empty()) text += ", ";
    text += to_text(element);
  }
  return text;
}

std::string name_of_column(const Column& column) {
  return to_cql_identifier(column.name);
}

std::string primary_key(const Table& table) {
  std::string key = listed(table.partition_key(), name_of_column);
  if (table.partition_key().size() > 1) key = "(" + key + ")";
  if (!table.clustering().empty()) key += ", " + listed(table.clustering(), name_of_column);
  return "PRIMARY KEY (" + key + ")";
}

std::string columns_of(const Table& table) {
  const bool single = table.partition_key().size() == 1 && table.clustering().empty();
  std::string text;
  for (std::size_t index = 0; index < table.columns.size(); ++index) {
    const Column& column = table.columns[index];
    text += fmt::format("{}{} {}", kIndent, to_cql_identifier(column.name), column.type.to_cql());
    if (column.kind == ColumnKind::static_column) text += " static";
    if (single && column.kind == ColumnKind::partition_key) text += " PRIMARY KEY";
    if (!single || index + 1 < table.columns.size()) text += ",";
    text += "\n";
  }
  if (!single) text += std::string(kIndent) + primary_key(table) + "\n";
  return text;
}

std::string extensions_of(const TableOptions& options) {
  return "{" +
         listed(options.extensions,
                [](const auto& entry) {
                  return to_cql_string(entry.first) + ": 0x" + base::to_hex(entry.second);
                }) +
         "}";
}

using Option = std::pair<std::string_view, std::string>;

std::vector<Option> options_of(const TableOptions& options) {
  const TableOptions defaults;
  std::vector<Option> all = {
      {"additional_write_policy", to_cql_string(options.additional_write_policy)},
      {"bloom_filter_fp_chance", float_to_text(options.bloom_filter_fp_chance)},
      {"caching", to_cql_map(options.caching)},
      {"cdc", options.cdc ? "true" : "false"},
      {"comment", to_cql_string(options.comment)},
      {"compaction", to_cql_map(options.compaction)},
      {"compression", to_cql_map(options.compression)},
      {"memtable", to_cql_string(options.memtable)},
      {"crc_check_chance", float_to_text(options.crc_check_chance)},
      {"default_time_to_live", fmt::format("{}", options.default_time_to_live)},
      {"extensions", extensions_of(options)},
      {"gc_grace_seconds", fmt::format("{}", options.gc_grace_seconds)},
      {"max_index_interval", fmt::format("{}", options.max_index_interval)},
      {"memtable_flush_period_in_ms", fmt::format("{}", options.memtable_flush_period_in_ms)},
      {"min_index_interval", fmt::format("{}", options.min_index_interval)},
      {"read_repair", to_cql_string(options.read_repair)},
      {"speculative_retry", to_cql_string(options.speculative_retry)},
  };
  if (options.causal_writes != defaults.causal_writes) {
    all.emplace_back("causal_writes", to_cql_string(name_of(options.causal_writes)));
  }
  if (options.conflicts != defaults.conflicts) {
    all.emplace_back("conflicts", to_cql_string(name_of(options.conflicts)));
  }
  if (options.delete_memory_seconds != defaults.delete_memory_seconds) {
    all.emplace_back("delete_memory", fmt::format("{}", options.delete_memory_seconds));
  }
  if (options.filter != defaults.filter) all.emplace_back("filter", to_cql_map(options.filter));
  return all;
}

std::string name_and_order(const Column& column) {
  return to_cql_identifier(column.name) + (column.descending ? " DESC" : " ASC");
}

std::string table_text(std::string_view verb, const Table& table,
                       const std::vector<Option>& options) {
  std::string text = fmt::format("{} TABLE {} (\n{}) WITH ", verb,
                                 qualified(table.keyspace, table.name), columns_of(table));
  const std::string next = "\n" + std::string(kIndent) + "AND ";
  if (!table.clustering().empty()) {
    text += "CLUSTERING ORDER BY (" + listed(table.clustering(), name_and_order) + ")" + next;
  }
  bool first = true;
  for (const auto& [option, value] : options) {
    if (!first) text += next;
    first = false;
    text += fmt::format("{} = {}", option, value);
  }
  return text + ";";
}

}  // namespace

std::string to_cql_map(const OptionMap& map) {
  return "{" +
         listed(map,
                [](const auto& entry) {
                  return to_cql_string(entry.first) + ": " + to_cql_string(entry.second);
                }) +
         "}";
}

std::string describe_keyspace(const Keyspace& keyspace) {
  constexpr std::string_view kPackage = "org.apache.cassandra.locator.";
  // The class comes first, and strategies of Cassandra go by their short names.
  std::string replication = "'class': ";
  if (const auto found = keyspace.replication.find("class"); found != keyspace.replication.end()) {
    std::string_view name = found->second;
    if (name.starts_with(kPackage)) name.remove_prefix(kPackage.size());
    replication += to_cql_string(name);
  }
  for (const auto& [option, value] : keyspace.replication) {
    if (option == "class") continue;
    replication += ", " + to_cql_string(option) + ": " + to_cql_string(value);
  }
  // Two spaces before AND: as Cassandra does.
  return fmt::format("CREATE KEYSPACE {} WITH replication = {{{}}}  AND durable_writes = {};",
                     to_cql_identifier(keyspace.name), replication, keyspace.durable_writes);
}

std::string describe_table(const Table& table) {
  std::string text = table_text("CREATE", table, options_of(table.options));
  for (const Index& index : table.indexes) text += "\n\n" + describe_index(table, index);
  return text;
}

std::string describe_index(const Table& table, const Index& index) {
  std::string text = fmt::format("CREATE {}INDEX {} ON {} ({})", index.is_custom ? "CUSTOM " : "",
                                 to_cql_identifier(index.name),
                                 qualified(table.keyspace, table.name), target_text(table, index));
  OptionMap options = index.options;
  const auto named = options.extract("class_name");
  if (!named.empty()) text += " USING " + to_cql_string(named.mapped());
  if (!options.empty()) text += " WITH OPTIONS = " + to_cql_map(options);
  return text + ";";
}

std::string describe_virtual_keyspace(const Keyspace& keyspace) {
  const std::string name = to_cql_identifier(keyspace.name);
  return fmt::format(
      "/*\nWarning: Keyspace {0} is a virtual keyspace and cannot be recreated with CQL.\n"
      "Structure, for reference:\nVIRTUAL KEYSPACE {0};\n*/",
      name);
}

std::string describe_virtual_table(const Table& table) {
  return fmt::format(
      "/*\nWarning: Table {} is a virtual table and cannot be recreated with CQL.\n"
      "Structure, for reference:\n{}\n*/",
      qualified(table.keyspace, table.name),
      table_text("VIRTUAL", table, {{"comment", to_cql_string(table.options.comment)}}));
}

std::string describe_type(const DataType& type) {
  ASSERT(type.kind() == TypeKind::udt);
  std::string text = fmt::format("CREATE TYPE {} (\n", qualified(type.keyspace(), type.name()));
  for (std::size_t index = 0; index < type.parts().size(); ++index) {
    if (index > 0) text += ",\n";
    text += fmt::format("{}{} {}", kIndent, to_cql_identifier(type.field_names()[index]),
                        type.parts()[index].to_cql());
  }
  return text + "\n);";
}

}  // namespace helenus::model
