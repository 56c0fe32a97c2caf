#include "cluster/join_rules.h"

#include "metadata/transitions.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using metadata::ClusterMetadata;

Result<void> check_place(const ClusterMetadata& metadata, const std::string& cluster_name,
                         const metadata::NodeDescription& self) {
  if (metadata.cluster_name != cluster_name) {
    return Error(Errc::refused, "this node is of the cluster \"{}\", and not of \"{}\"",
                 metadata.cluster_name, cluster_name);
  }
  const metadata::Node* node = metadata.find(self.id);
  // The removed node hears of its removal when it asks to join.
  if (node == nullptr) return {};
  const metadata::NodeDescription& known = node->description;
  if (known.datacentre != self.datacentre || known.rack != self.rack) {
    return Error(
        Errc::refused,
        "the cluster knows this node in rack \"{}\" of data centre \"{}\", and not in \"{}\" "
        "of \"{}\": a node's place decides which data it holds",
        known.rack, known.datacentre, self.rack, self.datacentre);
  }
  return {};
}

namespace {

Result<void> check_transfer(const ClusterMetadata& now, const metadata::NodeDescription& self,
                            bool has_transfer) {
  if (has_transfer || now.keyspaces.empty() || now.was_removed(self.id)) return {};
  return Error(Errc::unsupported,
               "the cluster has {} keyspaces, and this release copies no data to a node that "
               "joins: nodes join before the first keyspace is made",
               now.keyspaces.size());
}

}  // namespace

Result<ClusterMetadata> begin_join(const ClusterMetadata& now,
                                   const metadata::NodeDescription& self, bool has_transfer) {
  TRY_VOID(check_transfer(now, self, has_transfer));
  return metadata::begin_join(now, self);
}

Result<model::NodeId> node_named(const ClusterMetadata& metadata, std::string_view name) {
  for (const metadata::Node& node : metadata.nodes) {
    if (node.id().value().to_string() == name ||
        node.description.node_address.to_string() == name) {
      return node.id();
    }
  }
  return Error(Errc::not_found, "the cluster has no node {}: see helenus status", name);
}

Result<ClusterMetadata> begin_replacement(const ClusterMetadata& now,
                                          const metadata::NodeDescription& self, model::NodeId dead,
                                          bool has_transfer) {
  TRY_VOID(check_transfer(now, self, has_transfer));
  return metadata::begin_replacement(now, dead, self, metadata::DataLoss::refused);
}

Result<ClusterMetadata> advance_join(const ClusterMetadata& now, model::NodeId self,
                                     metadata::Epoch pending) {
  const metadata::Node* node = now.find(self);
  if (node != nullptr && node->state != metadata::NodeState::joining) return now;
  if (node != nullptr && now.epoch != pending) {
    return Error(Errc::locked, "the ring to hold still: epoch {} is followed by epoch {}", pending,
                 now.epoch);
  }
  return metadata::advance_change(now, pending);
}

bool may_retry_join(Errc code) {
  switch (code) {
    case Errc::locked:
    case Errc::timeout:
    case Errc::unavailable:
    case Errc::already_exists:
      return true;
    default:
      return false;
  }
}

}  // namespace helenus::cluster
