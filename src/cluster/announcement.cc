#include "cluster/announcement.h"

#include <utility>

#include "base/assert.h"
#include "model/schema_codec.h"

namespace helenus::cluster {

using consensus::Version;
using membership::StateKey;

membership::Status status_of(const metadata::ClusterMetadata& metadata, model::NodeId node) {
  const metadata::Node* found = metadata.find(node);
  if (found == nullptr) return membership::Status::joining;
  switch (found->state) {
    case metadata::NodeState::joining:
      return membership::Status::joining;
    case metadata::NodeState::normal:
      return membership::Status::normal;
    case metadata::NodeState::leaving:
    case metadata::NodeState::removing:
      return membership::Status::leaving;
  }
  UNREACHABLE();
}

void announce(membership::GossipService& gossip, const metadata::NodeDescription& self,
              const metadata::ClusterMetadata& known, const metadata::ClusterMetadata& applied,
              Version applied_version) {
  const auto say = [&](StateKey key, base::Bytes value) {
    const auto said = gossip.set(key, std::move(value));
    ASSERT(said, "{}", said.error());
  };
  say(StateKey::node_address, membership::encode_address(self.node_address));
  say(StateKey::client_address, membership::encode_address(self.client_address));
  say(StateKey::datacenter, base::Bytes::copy_of(self.datacentre));
  say(StateKey::rack, base::Bytes::copy_of(self.rack));
  say(StateKey::schema_version,
      membership::encode_schema_version(model::schema_version(applied.schema)));
  say(StateKey::metadata_version, membership::encode_metadata_version(applied_version.value()));
  say(StateKey::status, membership::encode_status(status_of(known, self.id)));
}

Version applied_version_of(const membership::GossipService& gossip, model::NodeId node) {
  const auto* states = gossip.membership().gossip().find(node);
  const base::Bytes* value = states == nullptr ? nullptr : states->find(StateKey::metadata_version);
  if (value == nullptr) return Version(0);
  const auto version = membership::decode_metadata_version(*value);
  return version ? Version(*version) : Version(0);
}

}  // namespace helenus::cluster
