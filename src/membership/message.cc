#include "membership/message.h"

#include <algorithm>
#include <utility>

namespace helenus::membership {

using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using model::NodeId;

namespace {

constexpr std::uint8_t kFormatVersion = 1;

constexpr std::size_t kKnowledgeBytesMin = base::Uuid::kSize + 2;
constexpr std::size_t kStateBytesMin = 3;
constexpr std::size_t kDeltaBytesMin = base::Uuid::kSize + 3 + kStateBytesMin;

// In the order of Body's alternatives.
enum class Kind : std::uint8_t { opening, answer, closing };

void encode(Encoder& out, NodeId node) {
  out.raw(node.value().bytes());
}

NodeId decode_node(Decoder& in) {
  return NodeId(base::decode_uuid(in));
}

std::uint64_t decode_limited(Decoder& in, std::uint64_t max) {
  const std::uint64_t value = in.varint();
  if (value > max) in.fail("a generation or version out of range");
  return value;
}

void encode(Encoder& out, const std::vector<Knowledge>& nodes) {
  out.varint(nodes.size());
  for (const Knowledge& knowledge : nodes) {
    encode(out, knowledge.node);
    out.varint(knowledge.generation);
    out.varint(knowledge.version);
  }
}

std::vector<Knowledge> decode_knowledge(Decoder& in) {
  const std::size_t count = in.count(kKnowledgeBytesMin);
  std::vector<Knowledge> nodes;
  nodes.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Knowledge knowledge{.node = decode_node(in)};
    knowledge.generation = decode_limited(in, kGenerationMax);
    knowledge.version = decode_limited(in, kVersionMax);
    if (knowledge.generation == 0 && knowledge.version != 0) in.fail("a version of no life");
    if (!nodes.empty() && knowledge.node <= nodes.back().node) in.fail("nodes out of order");
    nodes.push_back(knowledge);
  }
  return nodes;
}

void encode(Encoder& out, const Delta& delta) {
  encode(out, delta.node);
  out.varint(delta.generation);
  out.varint(delta.after);
  out.varint(delta.states.size());
  Version previous = delta.after;
  for (const State& state : delta.states) {
    ASSERT(state.version > previous && state.value.size() <= kStateValueBytesMax);
    out.u8(static_cast<std::uint8_t>(state.key));
    out.varint(state.version - previous);
    out.prefixed(state.value);
    previous = state.version;
  }
}

State decode_state(Decoder& in, Version previous) {
  State state;
  const std::uint8_t key = in.u8();
  if (key >= kStateKeyCountMax) in.fail("a key out of range");
  state.key = static_cast<StateKey>(key);
  const std::uint64_t step = decode_limited(in, kVersionMax - previous);
  if (step == 0) in.fail("versions out of order");
  state.version = previous + step;
  const base::ByteView value = in.prefixed();
  if (value.size() > kStateValueBytesMax) in.fail("a value that is too long");
  if (state.key == StateKey::heartbeat && !value.empty()) in.fail("a heartbeat with a value");
  if (in.ok()) state.value = base::Bytes::copy_of(value);
  return state;
}

Delta decode_delta(Decoder& in) {
  Delta delta;
  delta.node = decode_node(in);
  delta.generation = decode_limited(in, kGenerationMax);
  if (delta.generation == 0) in.fail("states of no life");
  delta.after = decode_limited(in, kVersionMax);
  const std::size_t count = in.count(kStateBytesMin);
  if (count == 0) in.fail("a delta without a state");
  std::uint64_t keys_seen = 0;
  Version previous = delta.after;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    State state = decode_state(in, previous);
    if (!in.ok()) break;
    const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(state.key);
    if ((keys_seen & bit) != 0) in.fail("a key twice");
    keys_seen |= bit;
    previous = state.version;
    delta.states.push_back(std::move(state));
  }
  return delta;
}

void encode(Encoder& out, const std::vector<Delta>& deltas) {
  out.varint(deltas.size());
  for (const Delta& delta : deltas) encode(out, delta);
}

std::vector<Delta> decode_deltas(Decoder& in) {
  const std::size_t count = in.count(kDeltaBytesMin);
  std::vector<Delta> deltas;
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Delta delta = decode_delta(in);
    if (!deltas.empty() && delta.node <= deltas.back().node) in.fail("nodes out of order");
    deltas.push_back(std::move(delta));
  }
  return deltas;
}

constexpr std::uint8_t kArcHasAfter = 1;
constexpr std::uint8_t kArcHasLast = 2;

void encode(Encoder& out, const Opening& opening) {
  const Arc& arc = opening.digest.arc;
  out.u8(static_cast<std::uint8_t>((arc.after ? kArcHasAfter : 0) | (arc.last ? kArcHasLast : 0)));
  if (arc.after) encode(out, *arc.after);
  if (arc.last) encode(out, *arc.last);
  encode(out, opening.digest.nodes);
}

Opening decode_opening(Decoder& in) {
  Opening opening;
  Arc& arc = opening.digest.arc;
  const std::uint8_t ends = in.u8();
  if (ends > (kArcHasAfter | kArcHasLast)) in.fail("an arc with more than two ends");
  if ((ends & kArcHasAfter) != 0) arc.after = decode_node(in);
  if ((ends & kArcHasLast) != 0) arc.last = decode_node(in);
  if (arc.after && arc.last && *arc.after >= *arc.last)
    in.fail("an arc that ends before it begins");
  opening.digest.nodes = decode_knowledge(in);
  const auto outside = [&](const Knowledge& knowledge) { return !arc.contains(knowledge.node); };
  if (std::ranges::any_of(opening.digest.nodes, outside)) in.fail("a node outside of the arc");
  return opening;
}

void encode(Encoder& out, const Answer& answer) {
  encode(out, answer.wanted);
  encode(out, answer.deltas);
}

void encode(Encoder& out, const Closing& closing) {
  encode(out, closing.deltas);
}

Body decode_body(Decoder& in, std::uint8_t kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::opening:
      return decode_opening(in);
    case Kind::answer: {
      Answer answer;
      answer.wanted = decode_knowledge(in);
      answer.deltas = decode_deltas(in);
      return answer;
    }
    case Kind::closing:
      return Closing{decode_deltas(in)};
  }
  in.fail("no such kind of message");
  return {};
}

}  // namespace

base::Bytes encode(const Message& message) {
  ASSERT(!message.cluster.empty() && message.cluster.size() <= kClusterNameBytesMax);
  base::Buffer buffer;
  Encoder out(buffer);
  out.u8(kFormatVersion);
  out.u8(static_cast<std::uint8_t>(message.body.index()));
  out.prefixed(message.cluster);
  encode(out, message.sender);
  std::visit([&](const auto& body) { encode(out, body); }, message.body);
  out.raw(message.later);
  return std::move(buffer).freeze();
}

base::Result<Message> decode(base::ByteView bytes) {
  if (bytes.size() > kMessageBytesMax) {
    return Error(Errc::corrupt, "a gossip message of {} bytes", bytes.size());
  }
  Decoder in(bytes);
  const std::uint8_t version = in.u8();
  if (version > kFormatVersion) {
    return Error(Errc::unsupported, "gossip messages of version {}, where {} is understood",
                 version, kFormatVersion);
  }
  if (version == 0) in.fail("version 0");
  const std::uint8_t kind = in.u8();
  Message message;
  message.cluster = in.prefixed_text();
  if (message.cluster.empty() || message.cluster.size() > kClusterNameBytesMax) {
    in.fail("a cluster name that is empty or too long");
  }
  message.sender = decode_node(in);
  message.body = decode_body(in, kind);
  if (in.ok()) message.later = base::Bytes::copy_of(in.raw(in.remaining()));
  TRY_VOID(in.finish());
  return message;
}

std::size_t encoded_size(const Knowledge& knowledge) {
  return base::Uuid::kSize + base::varint_size(knowledge.generation) +
         base::varint_size(knowledge.version);
}

std::size_t encoded_head_size(Generation generation, Version after) {
  // The number of states takes one byte: a node has fewer than 128 keys.
  static_assert(kStateKeyCountMax < 128);
  return base::Uuid::kSize + base::varint_size(generation) + base::varint_size(after) + 1;
}

std::size_t encoded_size(const State& state, Version previous) {
  return 1 + base::varint_size(state.version - previous) + base::varint_size(state.value.size()) +
         state.value.size();
}

}  // namespace helenus::membership
