#include "cql/catalog/catalog_snapshot.h"

#include <utility>

#include "model/schema_codec.h"

namespace helenus::cql {

using model::Schema;
using storage::TableId;

namespace {

Schema merged(const Schema& users, const Schema& system) {
  Schema all = users;
  for (const auto& [name, keyspace] : system.keyspaces()) all = all.with(*keyspace);
  return all;
}

}  // namespace

CatalogSnapshot::CatalogSnapshot(const Schema& users, const Schema& system, StorageIds storage,
                                 KeyspaceNumbers keyspaces, std::uint64_t number,
                                 std::string data_center, bool has_all_rows)
    : users_(users),
      schema_(merged(users, system)),
      version_(model::schema_version(users)),
      storage_(std::move(storage)),
      keyspaces_(std::move(keyspaces)),
      number_(number),
      data_center_(std::move(data_center)),
      has_all_rows_(has_all_rows) {}

QueryResult<void> check_rows(const CatalogSnapshot& catalog) {
  if (catalog.has_all_rows()) return {};
  return invalid(
      "This node is not one of its cluster, or does not know yet that it is: it serves no rows");
}

model::KeyspaceNumber CatalogSnapshot::keyspace_number(std::string_view keyspace) const {
  const auto found = keyspaces_.find(keyspace);
  return found == keyspaces_.end() ? model::KeyspaceNumber() : found->second;
}

std::optional<TableId> CatalogSnapshot::storage_of(const base::Uuid& table) const {
  const auto found = storage_.find(table);
  if (found == storage_.end()) return std::nullopt;
  return found->second;
}

}  // namespace helenus::cql
