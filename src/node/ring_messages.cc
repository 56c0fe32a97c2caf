// The bytes of what nodes tell each other of a change of the ring: docs/formats/ring-progress.md.
#include "node/ring_messages.h"

#include <cstdint>

#include "base/codec.h"
#include "model/node_id.h"

namespace helenus::rpc {

using base::Bytes;
using base::Decoder;
using base::Encoder;
using base::Result;
using node::RingProgressReply;
using node::RingProgressRequest;

namespace {

constexpr std::uint8_t kRingFormatVersion = 1;

Result<void> check_ring_version(std::uint8_t version) {
  if (version == kRingFormatVersion) return {};
  return base::Error(base::Errc::unsupported, "format version {} of a ring's progress", version);
}

}  // namespace

Bytes Codec<RingProgressRequest>::encode(const RingProgressRequest&, ProtocolVersion) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.u8(kRingFormatVersion);
  return std::move(buffer).freeze();
}

Result<RingProgressRequest> Codec<RingProgressRequest>::decode(const Bytes& bytes,
                                                               ProtocolVersion) {
  Decoder in(bytes.view());
  const std::uint8_t version = in.u8();
  TRY_VOID(in.finish());
  TRY_VOID(check_ring_version(version));
  return RingProgressRequest{};
}

Bytes Codec<RingProgressReply>::encode(const RingProgressReply& reply, ProtocolVersion) {
  const replication::RingProgress& progress = reply.progress;
  base::Buffer buffer;
  Encoder out(buffer);
  out.u8(kRingFormatVersion);
  out.varint(progress.as_of.value());
  out.varint(progress.pending);
  out.varint(progress.pending_to_fill);
  out.varint(progress.joint);
  out.varint(progress.joint_behind);
  out.varint(progress.withheld);
  out.varint(progress.waits_for.size());
  for (const model::NodeId node : progress.waits_for) out.raw(node.value().bytes());
  return std::move(buffer).freeze();
}

Result<RingProgressReply> Codec<RingProgressReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Decoder in(bytes.view());
  const std::uint8_t version = in.u8();
  if (in.ok()) TRY_VOID(check_ring_version(version));
  RingProgressReply reply;
  replication::RingProgress& progress = reply.progress;
  progress.as_of = causality::Epoch(in.varint());
  progress.pending = in.varint();
  progress.pending_to_fill = in.varint();
  progress.joint = in.varint();
  progress.joint_behind = in.varint();
  progress.withheld = in.varint();
  if (progress.pending_to_fill > progress.pending || progress.joint_behind > progress.joint) {
    in.fail("more is left than there is");
  }
  const std::size_t nodes = in.count(base::Uuid::kSize);
  if (nodes > RingProgressReply::kNodesMax) in.fail("too many nodes");
  for (std::size_t i = 0; i < nodes && in.ok(); ++i) {
    const model::NodeId node(base::decode_uuid(in));
    if (!progress.waits_for.empty() && node <= *progress.waits_for.rbegin()) {
      in.fail("nodes are not in order");
    }
    progress.waits_for.insert(node);
  }
  TRY_VOID(in.finish());
  return reply;
}

}  // namespace helenus::rpc
