// What nodes tell each other of a change of the ring (R17): whoever drives it asks those of whom
// the next step needs something.
//
//   progress    how far are your replicas?        node that drives ▸ those that fill or pull
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "replication/cluster/anti_entropy.h"
#include "rpc/message.h"
#include "rpc/verb.h"

namespace helenus::node {

struct RingProgressRequest {
  friend bool operator==(const RingProgressRequest&, const RingProgressRequest&) = default;
};

struct RingProgressReply {
  static constexpr std::size_t kNodesMax = 4096;

  replication::RingProgress progress;
  friend bool operator==(const RingProgressReply&, const RingProgressReply&) = default;
};

inline constexpr rpc::Method<RingProgressRequest, RingProgressReply> kRingProgressMethod{
    rpc::verbs::kRingProgress};

}  // namespace helenus::node

namespace helenus::rpc {

template <>
struct Codec<node::RingProgressRequest> {
  static base::Bytes encode(const node::RingProgressRequest& request, ProtocolVersion version);
  static base::Result<node::RingProgressRequest> decode(const base::Bytes& bytes,
                                                        ProtocolVersion version);
};

template <>
struct Codec<node::RingProgressReply> {
  static base::Bytes encode(const node::RingProgressReply& reply, ProtocolVersion version);
  static base::Result<node::RingProgressReply> decode(const base::Bytes& bytes,
                                                      ProtocolVersion version);
};

}  // namespace helenus::rpc
