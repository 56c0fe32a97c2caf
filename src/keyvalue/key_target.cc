#include "keyvalue/key_target.h"

#include <array>
#include <utility>
#include <vector>

#include "cql/plan/row_reader.h"
#include "keyvalue/value_text.h"
#include "model/clustering_key.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"

namespace helenus::keyvalue {

using base::Bytes;

namespace {

// What storage adds between and behind the parts of a key.
constexpr std::size_t kKeyBytesAdded = 2;

HttpResult<Bytes> value_of_part(const model::Column& column, std::string_view text) {
  if (!has_text(column.type)) {
    return Refusal(400, "column {} is of type {}, which has no form in a path", column.name,
                   column.type.to_cql());
  }
  TRY(Bytes value, value_of_text(column.type, text));
  return value;
}

HttpResult<Bytes> partition_of(const KeyPath& path, const model::Table& table,
                               model::KeyspaceNumber keyspace) {
  if (table.partition_key().size() != 1) {
    return Refusal(400, "the partition key of {}.{} has {} columns, and a path has a key of one",
                   table.keyspace, table.name, table.partition_key().size());
  }
  TRY(const Bytes key, value_of_part(table.partition_key().front(), path.key));
  const std::array<base::ByteView, 1> values = {key.view()};
  TRY(const Bytes routing_key, model::make_routing_key(values));
  return model::make_partition(keyspace, ring::token_of(routing_key), routing_key);
}

HttpResult<Bytes> clustering_of(const KeyPath& path, const model::Table& table) {
  const auto columns = table.clustering();
  if (columns.empty()) return Bytes();
  if (path.names.size() < columns.size()) {
    return Refusal(400, "rows of {}.{} are clustered: name {} values of them, with colons between",
                   table.keyspace, table.name, columns.size());
  }
  std::vector<Bytes> values;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    TRY(Bytes value, value_of_part(columns[i], path.names[i]));
    values.push_back(std::move(value));
  }
  const std::vector<base::ByteView> views(values.begin(), values.end());
  TRY(Bytes key, model::encode_clustering(table.clustering_columns(), views));
  return key;
}

HttpResult<const model::Column*> column_of(const KeyPath& path, const model::Table& table) {
  const std::size_t clustered = table.clustering().size();
  const auto regular = table.regular_columns();
  if (path.names.size() <= clustered) {
    const bool is_implied = clustered > 0 && regular.size() == 1 && has_text(regular.front().type);
    return is_implied ? &regular.front() : nullptr;
  }
  if (path.names.size() > clustered + 1) {
    return Refusal(400, "{} names behind the key, and {}.{} has {}", path.names.size(),
                   table.keyspace, table.name, clustered + 1);
  }
  const model::Column* column = table.find(path.names.back());
  if (column == nullptr) {
    return Refusal(404, "table {}.{} has no column {}", table.keyspace, table.name,
                   path.names.back());
  }
  if (column->kind != model::ColumnKind::regular) {
    return Refusal(400, "column {} is of the key, or static", column->name);
  }
  if (!has_text(column->type)) {
    return Refusal(400, "column {} is of type {}, which has no form here", column->name,
                   column->type.to_cql());
  }
  return column;
}

}  // namespace

HttpResult<KeyTarget> find_target(const KeyPath& path, const cql::CatalogSnapshot& catalog) {
  TRY_VOID(cql::check_rows(catalog));
  KeyTarget target;
  target.table = catalog.users().find_table(path.keyspace, path.table);
  const auto storage = target.table ? catalog.storage_of(target.table->id) : std::nullopt;
  if (!storage) return Refusal(404, "there is no table {}.{}", path.keyspace, path.table);
  if (target.table->is_counter()) {
    return Refusal(400, "{}.{} is a table of counters, which are no values", path.keyspace,
                   path.table);
  }
  target.storage = *storage;
  target.policy = cql::policy_of(*target.table);
  TRY(target.partition, partition_of(path, *target.table, catalog.keyspace_number(path.keyspace)));
  TRY(target.clustering, clustering_of(path, *target.table));
  TRY(target.column, column_of(path, *target.table));
  if (target.partition.size() + target.clustering.size() + kKeyBytesAdded > model::kRowKeySizeMax) {
    return Refusal(400, "the key is longer than {} bytes", model::kRowKeySizeMax - kKeyBytesAdded);
  }
  return target;
}

}  // namespace helenus::keyvalue
