// Hostile bytes against gossip: a message that decodes encodes to the bytes it came from, and a
// node that takes it, honest or not, stays within its limits, goes only forward, and sends what
// decodes.
#include "membership/gossip.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/assert.h"
#include "membership/message.h"

namespace {

using namespace helenus;  // NOLINT: a main is nobody's header
using membership::Gossip;
using membership::Message;

model::NodeId node_of(std::uint8_t number) {
  base::Uuid::Octets octets{};
  octets.back() = std::byte{number};
  return model::NodeId(base::Uuid(octets));
}

void check_node(const membership::NodeStates& node) {
  membership::Version previous = 0;
  for (const membership::State& state : node.states()) {
    ASSERT(state.version > previous);
    previous = state.version;
  }
  ASSERT(node.states().size() <= membership::kStateKeyCountMax);
}

void check_reply(const std::optional<membership::Body>& reply,
                 const membership::GossipLimits& limits) {
  if (!reply) return;
  const Message message{.cluster = "c", .sender = node_of(1), .body = *reply};
  const base::Bytes bytes = membership::encode(message);
  ASSERT(bytes.size() <= limits.digest_bytes_max + limits.delta_bytes_max + 64);
  ASSERT(membership::decode(bytes) == message);
}

Gossip::Received deliver(Gossip& gossip, const membership::Body& body, base::Prng& random) {
  if (const auto* opening = std::get_if<membership::Opening>(&body)) {
    return gossip.receive(*opening, random);
  }
  if (const auto* answer = std::get_if<membership::Answer>(&body)) {
    return gossip.receive(*answer, random);
  }
  if (const auto* closing = std::get_if<membership::Closing>(&body))
    return gossip.receive(*closing);
  return {};
}

void decode_values(const membership::NodeStates& node) {
  using membership::StateKey;
  const auto value = [&](StateKey key) {
    const base::Bytes* found = node.find(key);
    return found == nullptr ? base::Bytes() : *found;
  };
  if (const auto status = membership::decode_status(value(StateKey::status))) {
    ASSERT(membership::encode_status(*status) == value(StateKey::status));
  }
  if (const auto load = membership::decode_load(value(StateKey::load))) {
    ASSERT(membership::encode_load(*load) == value(StateKey::load));
  }
  if (const auto tokens = membership::decode_tokens(value(StateKey::tokens))) {
    ASSERT(membership::encode_tokens(*tokens) == value(StateKey::tokens));
  }
  if (const auto address = membership::decode_address(value(StateKey::node_address))) {
    ASSERT(membership::encode_address(*address) == value(StateKey::node_address));
  }
  if (const auto version = membership::decode_schema_version(value(StateKey::schema_version))) {
    ASSERT(membership::encode_schema_version(*version) == value(StateKey::schema_version));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::ByteView bytes = std::as_bytes(std::span(data, size));
  const auto message = membership::decode(bytes);
  if (!message) return 0;
  ASSERT(base::equal(membership::encode(*message), bytes));

  membership::GossipLimits limits;
  limits.digest_bytes_max = 64;
  limits.delta_bytes_max = membership::GossipLimits::kDeltaBytesMin;
  limits.nodes_max = 3;
  base::Prng random(size);
  Gossip gossip(node_of(1), 5, limits);
  const membership::Delta known{.node = node_of(2),
                                .generation = 5,
                                .after = 0,
                                .states = {{membership::StateKey::heartbeat, 3, {}}}};
  gossip.receive(membership::Closing{{known}});
  for (int time = 0; time < 2; ++time) {
    const Gossip::Received received = deliver(gossip, message->body, random);
    ASSERT(time == 0 || received.progress.empty());
    check_reply(received.reply, limits);
    ASSERT(gossip.nodes().size() <= limits.nodes_max);
    ASSERT(gossip.own().generation() >= 5 && gossip.find(node_of(2))->generation() >= 5);
    for (const auto& [id, node] : gossip.nodes()) {
      check_node(node);
      decode_values(node);
    }
  }
  return 0;
}
