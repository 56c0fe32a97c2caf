#include "cql/agreement/schema_in_metadata.h"

#include <algorithm>
#include <utility>

#include "metadata/transitions.h"

namespace helenus::cql {

using base::Result;
using metadata::ClusterMetadata;

namespace {

CatalogSnapshot::StorageIds storage_ids(const ClusterMetadata& metadata) {
  CatalogSnapshot::StorageIds ids;
  for (const auto& [table, id] : metadata.storage) {
    ids.emplace(table, storage::TableId{id.value()});
  }
  return ids;
}

CatalogSnapshot::KeyspaceNumbers keyspace_numbers(const ClusterMetadata& metadata) {
  CatalogSnapshot::KeyspaceNumbers numbers;
  for (const auto& [name, keyspace] : metadata.keyspaces) numbers.emplace(name, keyspace.number);
  return numbers;
}

}  // namespace

Result<ClusterMetadata> with_schema(const ClusterMetadata& metadata, model::Schema schema) {
  TRY(ClusterMetadata next, metadata::change_schema(metadata, std::move(schema)));
  if (!metadata::change_is_under_way(next) || metadata::change_is_under_way(metadata)) return next;
  // Where replicas move the nodes see to it that nothing is lost (R17).
  return metadata::moves_replicas(next) ? next : metadata::finish_change(next, next.epoch);
}

DecidedSchema decided_schema(const ClusterMetadata& metadata, std::uint64_t version,
                             model::NodeId self) {
  return {.users = metadata.schema,
          .storage = storage_ids(metadata),
          .keyspaces = keyspace_numbers(metadata),
          .next_storage = storage::TableId{metadata.next.storage.value()},
          .context_secret = metadata.secret.bytes,
          .version = version,
          .has_all_rows = metadata.find(self) != nullptr};
}

}  // namespace helenus::cql
