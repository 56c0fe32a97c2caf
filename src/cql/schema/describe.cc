#include "cql/schema/describe.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "cql/schema/system_schema.h"
#include "model/describe.h"
#include "model/identifier.h"

namespace helenus::cql {

using base::Bytes;
using model::DataType;
using model::Keyspace;
using model::KeyspacePtr;
using model::text_value;
using parser::DescribeKind;

namespace {

// What Cassandra names as the table of these rows.
constexpr const char* kKeyspace = "system";
constexpr const char* kTable = "describe";
constexpr std::string_view kPartitionerPackage = "org.apache.cassandra.dht.";

protocol::ColumnSpec column(const char* name, DataType type = DataType::text()) {
  return {.keyspace = kKeyspace, .table = kTable, .name = name, .type = std::move(type)};
}

class Describer {
 public:
  Describer(const model::Schema& schema, const model::Schema& users, std::string_view keyspace)
      : schema_(schema), users_(users), session_keyspace_(keyspace) {}

  QueryResult<Description> tell(const parser::Describe& statement, const ClusterFacts& cluster);

 private:
  // Rows of names, or of names with their CREATE statements.
  void list(std::string_view keyspace, const char* type, std::string_view name);
  void element(std::string_view keyspace, const char* type, std::string_view name,
               std::string text);
  void elements_of(const Keyspace& keyspace, bool only_keyspace);
  void add_table(const model::Table& table);
  void add_type(const DataType& type);

  QueryResult<void> tell_list(DescribeKind kind);
  QueryResult<void> tell_element(const parser::Describe& statement);
  QueryResult<void> tell_anything(const parser::QualifiedName& name);
  QueryResult<void> tell_keyspace(std::string_view name, bool only_keyspace);
  void tell_cluster(const ClusterFacts& cluster);

  QueryResult<KeyspacePtr> find(std::string_view keyspace) const;
  // The keyspace of a name, or the session's.
  QueryResult<KeyspacePtr> keyspace_of(const parser::QualifiedName& name) const;

  const model::Schema& schema_;
  const model::Schema& users_;
  const std::string_view session_keyspace_;
  Description told_;
};

void Describer::list(std::string_view keyspace, const char* type, std::string_view name) {
  told_.rows.push_back({text_value(model::to_cql_identifier(keyspace)), text_value(type),
                        text_value(model::to_cql_identifier(name))});
}

void Describer::element(std::string_view keyspace, const char* type, std::string_view name,
                        std::string text) {
  list(keyspace, type, name);
  told_.rows.back().push_back(text_value(text));
}

void Describer::add_table(const model::Table& table) {
  element(table.keyspace, "table", table.name,
          is_virtual_keyspace(table.keyspace) ? model::describe_virtual_table(table)
                                              : model::describe_table(table));
}

void Describer::add_type(const DataType& type) {
  element(type.keyspace(), "type", type.name(), model::describe_type(type));
}

void Describer::elements_of(const Keyspace& keyspace, bool only_keyspace) {
  element(keyspace.name, "keyspace", keyspace.name,
          is_virtual_keyspace(keyspace.name) ? model::describe_virtual_keyspace(keyspace)
                                             : model::describe_keyspace(keyspace));
  if (only_keyspace) return;
  for (const DataType& type : model::types_in_order_of_use(keyspace)) add_type(type);
  for (const auto& [name, table] : keyspace.tables) add_table(*table);
}

QueryResult<KeyspacePtr> Describer::find(std::string_view keyspace) const {
  KeyspacePtr found = schema_.find_keyspace(keyspace);
  if (found == nullptr) return invalid("'{}' not found in keyspaces", keyspace);
  return found;
}

QueryResult<KeyspacePtr> Describer::keyspace_of(const parser::QualifiedName& name) const {
  if (name.keyspace) return find(name.keyspace->text);
  if (session_keyspace_.empty()) return invalid("No keyspace specified and no current keyspace");
  return find(session_keyspace_);
}

QueryResult<void> Describer::tell_list(DescribeKind kind) {
  std::vector<KeyspacePtr> keyspaces;
  if (kind == DescribeKind::keyspaces || session_keyspace_.empty()) {
    for (const auto& [name, keyspace] : schema_.keyspaces()) keyspaces.push_back(keyspace);
  } else {
    TRY(KeyspacePtr keyspace, find(session_keyspace_));
    keyspaces.push_back(std::move(keyspace));
  }
  for (const KeyspacePtr& keyspace : keyspaces) {
    if (kind == DescribeKind::keyspaces) list(keyspace->name, "keyspace", keyspace->name);
    if (kind == DescribeKind::tables) {
      for (const auto& [name, table] : keyspace->tables) list(keyspace->name, "table", name);
    }
    if (kind == DescribeKind::types) {
      for (const auto& [name, type] : keyspace->types) list(keyspace->name, "type", name);
    }
  }
  return {};
}

QueryResult<void> Describer::tell_keyspace(std::string_view name, bool only_keyspace) {
  TRY(const KeyspacePtr keyspace, find(name));
  elements_of(*keyspace, only_keyspace);
  return {};
}

QueryResult<void> Describer::tell_anything(const parser::QualifiedName& name) {
  if (!name.keyspace && schema_.find_keyspace(name.name.text) != nullptr) {
    return tell_keyspace(name.name.text, /*only_keyspace=*/false);
  }
  const std::string keyspace_name = name.keyspace               ? name.keyspace->text
                                    : session_keyspace_.empty() ? name.name.text
                                                                : std::string(session_keyspace_);
  TRY(const KeyspacePtr keyspace, find(keyspace_name));
  const model::TablePtr table = keyspace->find_table(name.name.text);
  if (table == nullptr) {
    return invalid("'{}' not found in keyspace '{}'", name.name.text, keyspace_name);
  }
  add_table(*table);
  return {};
}

QueryResult<void> Describer::tell_element(const parser::Describe& statement) {
  if (statement.kind == DescribeKind::keyspace || statement.kind == DescribeKind::only_keyspace) {
    const bool only_keyspace = statement.kind == DescribeKind::only_keyspace;
    if (statement.name) return tell_keyspace(statement.name->name.text, only_keyspace);
    if (session_keyspace_.empty()) return invalid("No keyspace specified and no current keyspace");
    return tell_keyspace(session_keyspace_, only_keyspace);
  }
  ASSERT(statement.name.has_value());
  const std::string& name = statement.name->name.text;
  if (statement.kind == DescribeKind::anything) return tell_anything(*statement.name);
  TRY(const KeyspacePtr keyspace, keyspace_of(*statement.name));
  switch (statement.kind) {
    case DescribeKind::table: {
      const model::TablePtr table = keyspace->find_table(name);
      if (table == nullptr) {
        return invalid("Table '{}' not found in keyspace '{}'", name, keyspace->name);
      }
      add_table(*table);
      return {};
    }
    case DescribeKind::type: {
      const std::optional<DataType> type = keyspace->find_type(name);
      if (!type) return invalid("User defined type '{}' not found in '{}'", name, keyspace->name);
      add_type(*type);
      return {};
    }
    case DescribeKind::index: {
      const model::TablePtr table = keyspace->find_table_of_index(name);
      if (table == nullptr) {
        return invalid("Table for existing index '{}' not found in '{}'", name, keyspace->name);
      }
      element(keyspace->name, "index", name,
              model::describe_index(*table, *table->find_index(name)));
      return {};
    }
    case DescribeKind::materialized_view:
      return invalid("Materialized view '{}' not found in '{}'", name, keyspace->name);
    case DescribeKind::function:
      return invalid("User defined function '{}' not found in '{}'", name, keyspace->name);
    default:
      return invalid("User defined aggregate '{}' not found in '{}'", name, keyspace->name);
  }
}

void Describer::tell_cluster(const ClusterFacts& cluster) {
  std::string_view partitioner = cluster.partitioner;
  if (partitioner.starts_with(kPartitionerPackage)) {
    partitioner.remove_prefix(kPartitionerPackage.size());
  }
  told_.columns = {column("cluster"), column("partitioner"), column("snitch")};
  told_.rows.push_back(
      {text_value(cluster.cluster_name), text_value(partitioner), text_value(cluster.snitch)});
  const KeyspacePtr keyspace = users_.find_keyspace(session_keyspace_);
  if (keyspace == nullptr) return;
  const auto addresses = DataType::list_of(DataType::text(), /*frozen=*/true);
  const auto ownership = DataType::map_of(DataType::text(), *addresses, /*frozen=*/true);
  std::vector<model::MapEntry> entries;
  for (const RangeOwners& range :
       cluster.ranges ? cluster.ranges(*keyspace) : std::vector<RangeOwners>()) {
    std::vector<Bytes> owners;
    for (const std::string& address : range.addresses) owners.push_back(text_value(address));
    entries.emplace_back(text_value(to_string(range.token)), model::compose_list(owners));
  }
  told_.columns.push_back(column("range_ownership", *ownership));
  told_.rows.back().push_back(model::compose_map(DataType::text(), std::move(entries)));
}

QueryResult<Description> Describer::tell(const parser::Describe& statement,
                                         const ClusterFacts& cluster) {
  told_.columns = {column("keyspace_name"), column("type"), column("name")};
  switch (statement.kind) {
    case DescribeKind::cluster:
      tell_cluster(cluster);
      break;
    case DescribeKind::keyspaces:
    case DescribeKind::tables:
    case DescribeKind::types:
    case DescribeKind::functions:
    case DescribeKind::aggregates:
      TRY_VOID(tell_list(statement.kind));
      break;
    case DescribeKind::schema:
    case DescribeKind::full_schema: {
      const bool full = statement.kind == DescribeKind::full_schema;
      told_.columns.push_back(column("create_statement"));
      for (const auto& [name, keyspace] : (full ? schema_ : users_).keyspaces()) {
        elements_of(*keyspace, /*only_keyspace=*/false);
      }
      break;
    }
    default:
      told_.columns.push_back(column("create_statement"));
      TRY_VOID(tell_element(statement));
  }
  return std::move(told_);
}

}  // namespace

QueryResult<Description> describe(const parser::Describe& statement, const model::Schema& schema,
                                  const model::Schema& users, std::string_view session_keyspace,
                                  const ClusterFacts& cluster) {
  return Describer(schema, users, session_keyspace).tell(statement, cluster);
}

}  // namespace helenus::cql
