#include "cql/agreement/schema_in_metadata.h"

#include <algorithm>
#include <utility>

#include "metadata/transitions.h"

namespace helenus::cql {

using base::Result;
using metadata::ClusterMetadata;

namespace {

bool moves_data(const ClusterMetadata& metadata) {
  const bool somebody_moves = std::ranges::any_of(metadata.nodes, [](const metadata::Node& node) {
    return node.state != metadata::NodeState::normal;
  });
  if (somebody_moves) return true;
  return std::ranges::any_of(metadata.keyspaces, [&](const auto& keyspace) {
    const auto replicas = metadata::replicas_of(metadata, keyspace.second.replication);
    return std::ranges::any_of(replicas,
                               [](const auto& tablet) { return !tablet.pending.empty(); });
  });
}

CatalogSnapshot::StorageIds storage_ids(const ClusterMetadata& metadata) {
  CatalogSnapshot::StorageIds ids;
  for (const auto& [table, id] : metadata.storage) {
    ids.emplace(table, storage::TableId{id.value()});
  }
  return ids;
}

}  // namespace

Result<ClusterMetadata> with_schema(const ClusterMetadata& metadata, model::Schema schema) {
  TRY(ClusterMetadata next, metadata::change_schema(metadata, std::move(schema)));
  if (!metadata::change_is_under_way(next) || moves_data(next)) return next;
  return metadata::finish_change(next, next.epoch);
}

DecidedSchema decided_schema(const ClusterMetadata& metadata, std::uint64_t version,
                             model::NodeId self) {
  return {.users = metadata.schema,
          .storage = storage_ids(metadata),
          .keyspaces = {},  // 0 for all, as tablets are those of the node and not of a keyspace
          .next_storage = storage::TableId{metadata.next.storage.value()},
          .context_secret = metadata.secret.bytes,
          .version = version,
          .has_all_rows = metadata.nodes.size() == 1 && metadata.find(self) != nullptr};
}

}  // namespace helenus::cql
