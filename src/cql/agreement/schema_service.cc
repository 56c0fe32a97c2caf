#include "cql/agreement/schema_service.h"

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cql/agreement/schema_in_metadata.h"
#include "metadata/transitions.h"

namespace helenus::cql {

using base::Errc;
using base::Error;
using base::Result;
using metadata::ClusterMetadata;
using protocol::ErrorCode;
using protocol::SchemaChange;
using runtime::Task;
using runtime::Until;

namespace {

std::vector<std::string> data_centers_of(const ClusterMetadata& metadata) {
  std::vector<std::string> names;
  for (const metadata::Node& node : metadata.nodes) names.push_back(node.description.datacentre);
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

// Of a change that was not made, or of which it is not known.
QueryError error_of(const Error& error) {
  switch (error.code()) {
    case Errc::invalid_argument:
    case Errc::overloaded:
      return QueryError(error);
    case Errc::unsupported:
      return QueryError(ErrorCode::config_error, std::string(error.context()));
    case Errc::timeout:
    case Errc::cancelled:
    case Errc::closed:
    case Errc::connection_lost:
      return QueryError(ErrorCode::server_error,
                        fmt::format("The schema may have been changed, or may yet be: {}", error));
    default:
      return QueryError(ErrorCode::server_error,
                        fmt::format("The schema was not changed: {}", error));
  }
}

// R9: whether more than half of the members of each tablet of the keyspace are here; in a joint
// change of those of either set.
bool has_majorities(const ClusterMetadata& metadata, std::string_view keyspace,
                    const std::function<bool(model::NodeId)>& is_here) {
  const auto found = metadata.keyspaces.find(keyspace);
  if (found == metadata.keyspaces.end()) return true;
  const auto tablets = metadata::replicas_of(metadata, found->second.replication);
  const auto has_majority = [&](const std::vector<model::NodeId>& nodes) {
    const auto here = static_cast<std::size_t>(std::ranges::count_if(nodes, is_here));
    return nodes.empty() || 2 * here > nodes.size();
  };
  return std::ranges::all_of(tablets, [&](const metadata::TabletReplicas& tablet) {
    return has_majority(tablet.members) && has_majority(tablet.next);
  });
}

Error no_longer_here() {
  return Error(Errc::refused, "this node is no longer one of the cluster");
}

}  // namespace

void SchemaService::take_statements(cluster::ClusterService& cluster, WaitShown shown) {
  cluster_ = &cluster;
  shown_ = std::move(shown);
  catalog_.decide_by(*this);
}

Task<QueryResult<std::optional<SchemaChange>>> SchemaService::change(SchemaFunction function,
                                                                     Until until) {
  // Of the last attempt.
  std::optional<QueryError> refusal;
  std::optional<SchemaChange> change;
  std::optional<ClusterMetadata> before;
  const auto transition = [&](const ClusterMetadata& now) -> Result<ClusterMetadata> {
    refusal.reset();
    change.reset();
    if (now.find(self_) == nullptr) return no_longer_here();
    auto changed = function(now.schema, data_centers_of(now));
    if (!changed) {
      refusal = changed.error();
      return Error(Errc::refused, changed.error().text());
    }
    change = std::move(changed->change);
    if (!change) return now;
    before = now;
    return with_schema(now, std::move(changed->next));
  };
  const auto decided = co_await decide(transition, std::move(until));
  if (!decided && refusal) co_return *std::move(refusal);
  if (!decided) co_return decided.error();
  const bool drops_rows = change && change->kind == protocol::SchemaChangeKind::dropped &&
                          (change->target == protocol::SchemaTarget::table ||
                           change->target == protocol::SchemaTarget::keyspace);
  if (drops_rows) CO_TRY_VOID(check_held(*before, change->keyspace));
  co_return change;
}

Task<QueryResult<void>> SchemaService::truncate(base::Uuid table, Until until) {
  // Of the last attempt.
  bool is_gone = false;
  std::optional<ClusterMetadata> before;
  const auto transition = [&](const ClusterMetadata& now) -> Result<ClusterMetadata> {
    if (now.find(self_) == nullptr) return no_longer_here();
    auto truncated = metadata::truncate(now, table);
    is_gone = truncated.failed_with(Errc::not_found);
    before = now;
    return truncated;
  };
  auto decided = co_await decide(transition, std::move(until));
  if (!decided && is_gone) co_return invalid("The table was dropped meanwhile");
  if (!decided) co_return decided;
  const auto truncated = before->schema.find_table(table);
  if (truncated == nullptr) co_return decided;
  co_return check_held(*before, truncated->keyspace);
}

QueryResult<void> SchemaService::check_held(const ClusterMetadata& before,
                                            std::string_view keyspace) const {
  const auto is_here = [this](model::NodeId node) {
    const auto* seen = cluster_->gossip().view().find(node);
    return node == self_ || (seen != nullptr && seen->up);
  };
  if (has_majorities(before, keyspace, is_here)) return {};
  return QueryError(
      ErrorCode::server_error,
      "It is done, and not yet known to a majority of the replicas of every row, as too "
      "few nodes are up");
}

Task<QueryResult<void>> SchemaService::decide(cluster::Transition transition, Until until) {
  const auto decided = co_await cluster_->change(std::move(transition), until);
  if (!decided) co_return error_of(decided.error());
  const auto applied = co_await cluster_->wait_applied_everywhere(cluster_->version(), until);
  if (!applied) {
    co_return QueryError(
        ErrorCode::server_error,
        fmt::format("The schema is as wanted, and not yet on every node: {}", applied.error()));
  }
  std::ignore = co_await shown_(std::move(until));
  co_return {};
}

Task<Result<void>> SchemaService::apply(cluster::MetadataPtr metadata, consensus::Version version,
                                        Until until) {
  co_return co_await catalog_.adopt(decided_schema(*metadata, version.value(), self_),
                                    std::move(until));
}

}  // namespace helenus::cql
