// RequestHandler: what a connection gives the requests to that are about data, and Session: what it
// knows of the client that sends them.
//
// The connection itself answers STARTUP, OPTIONS and REGISTER, and everything that is malformed.
// The handler gets QUERY, PREPARE, EXECUTE and BATCH, many at a time and in any order of
// completion.
//
// Core affinity: that of the connection. A handler that works on other cores returns to this one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "runtime/address.h"
#include "runtime/maybe_task.h"
#include "runtime/stop_token.h"
#include "runtime/time.h"

namespace helenus::cql {

// One connection's state, from its first byte to its last. The connection owns it; it outlives
// every request of that connection.
struct Session {
  std::uint64_t id = 0;  // never the same twice while the server lives
  runtime::Address client;
  runtime::WallTime connected_at;
  // What the client says of itself in STARTUP, cut to kClientTextSizeMax.
  std::string driver_name;
  std::string driver_version;
  protocol::Compression compression = protocol::Compression::none;
  std::uint8_t version = 0;  // of the protocol; 0 before the first frame
  std::array<bool, protocol::kEventKinds> subscribed{};

  // The handler's: what USE chose, as it is (not quoted); empty before the first one. A request
  // reads it when it begins.
  std::string keyspace;

  static constexpr std::size_t kClientTextSizeMax = 256;
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // Answers one request; errors are answers too. What can be done without waiting may be done
  // before a task is returned, so that it holds less than the request; where that is all, the
  // answer itself is returned. `stop` is requested when
  // nobody waits for the answer any more (the client is gone, or the server must end now): the
  // sooner it returns then, the better, and what it returns is dropped. It must return in bounded
  // time even without that. The session outlives the task, the handler outlives all sessions.
  virtual runtime::MaybeTask<protocol::Response> handle(protocol::Request request, Session& session,
                                                        runtime::StopToken stop) = 0;
  // Whether the request may change data: one that has waited for long is not begun any more (R3).
  // Asked of those alone.
  virtual bool may_change_data(const protocol::Request& request) = 0;
};

}  // namespace helenus::cql
