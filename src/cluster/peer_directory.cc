#include "cluster/peer_directory.h"

#include <utility>
#include <vector>

namespace helenus::cluster {

using model::NodeId;

PeerDirectory::PeerDirectory(const NodeContext& context, rpc::Rpc& rpc,
                             membership::GossipService& gossip, const KnownMetadata& known)
    : context_(context),
      rpc_(rpc),
      gossip_(gossip),
      known_(known),
      log_(context.runtime.logger("cluster")) {}

void PeerDirectory::on_newer(const MetadataPtr& now, const MetadataPtr& before) {
  const NodeId self = context_.self.id;
  for (const metadata::Node& node : now->nodes) {
    if (node.id() == self) continue;
    if (const auto introduced = rpc_.introduce(node.id(), node.description.node_address);
        !introduced) {
      log_.warn("the rpc did not accept the address of a node", base::kv("node", node.id()),
                base::kv("error", introduced.error()));
    }
  }
  if (!before) return;
  for (const metadata::Node& node : before->nodes) {
    if (now->find(node.id()) != nullptr) continue;
    if (node.id() != self) {
      gossip_.forget(node.id());
      continue;
    }
    context_.phase.set("was removed from the cluster");
    log_.error("this node was removed from the cluster", base::kv("version", known_.version()));
  }
}

void PeerDirectory::on_event(const membership::Event& event) {
  const bool is_new = event.kind == membership::Event::Kind::new_node;
  if (is_new && known_.metadata()->was_removed(event.node)) gossip_.forget(event.node);
}

void PeerDirectory::greet_all() {
  std::vector<NodeId> others;
  for (const metadata::Node& node : known_.metadata()->nodes) {
    if (node.id() != context_.self.id) others.push_back(node.id());
  }
  gossip_.greet(std::move(others));
}

}  // namespace helenus::cluster
