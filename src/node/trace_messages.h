// What nodes tell each other of the requests that clients wanted traced: a driver reads a trace
// through any node, also one that has not coordinated the request.
//
//   traces    what is here of traced requests?              node that is asked ▸ every other one
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/system/traces.h"
#include "rpc/message.h"
#include "rpc/verb.h"
#include "runtime/address.h"

namespace helenus::node {

struct TracesRequest {};

struct TracesReply {
  // Of sessions of one answer: the newest ones that have no more bytes than that.
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;

  runtime::Address coordinator;  // of all of them: where its clients connect
  std::vector<cql::Traces::Session> sessions;
};

inline constexpr rpc::Method<TracesRequest, TracesReply> kTracesMethod{rpc::verbs::kTraces};

}  // namespace helenus::node

namespace helenus::rpc {

template <>
struct Codec<node::TracesRequest> {
  static base::Bytes encode(const node::TracesRequest& request, ProtocolVersion version);
  static base::Result<node::TracesRequest> decode(const base::Bytes& bytes,
                                                  ProtocolVersion version);
};

template <>
struct Codec<node::TracesReply> {
  static base::Bytes encode(const node::TracesReply& reply, ProtocolVersion version);
  // Every session has the coordinator.
  static base::Result<node::TracesReply> decode(const base::Bytes& bytes, ProtocolVersion version);
};

}  // namespace helenus::rpc
