// Server: listens for clients of the CQL protocol on one core and serves each by a Connection.
//
// Bounded: so many connections, and one more is told OVERLOADED and closed; so many bytes of
// requests in memory over all connections, and fewer of such as have not come whole. A node runs
// one Server a core on the same address: the bytes and the number of connections are the node's if
// its servers share limits.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "cql/protocol/response.h"
#include "cql/server/byte_budget.h"
#include "cql/server/connection.h"
#include "cql/server/connection_limit.h"
#include "cql/server/incomplete_requests.h"
#include "cql/server/request_handler.h"
#include "cql/server/server_statistics.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::cql {

struct ServerOptions {
  std::size_t connections_max = 8192;
  // Of one client's address; as many as there may be at all if zero.
  std::size_t connections_per_address_max = 0;
  // What the servers of all cores share, instead of numbers of their own.
  std::shared_ptr<ConnectionLimit> connections = nullptr;
  // How many more may be told so at a time; beyond them connections are closed without a word.
  std::size_t connections_refused_max = 64;
  // No less than a request of the largest size needs, compressed and plain.
  std::size_t request_bytes_max = std::size_t{256} << 20;
  // What the servers of all cores may hold together; not less than that either.
  std::shared_ptr<ByteLimit> request_bytes = nullptr;
  // And what bodies that have not come whole may take of it, instead of a part of its own.
  std::shared_ptr<IncompleteRequests> incomplete_requests = nullptr;
  // How long requests may take to end when the server stops.
  runtime::Duration drain_timeout = std::chrono::seconds(10);
  // What SUPPORTED says.
  std::string cql_version = "3.4.6";
  // Several cores listen on the same address.
  bool shared_between_cores = false;
  ConnectionLimits connection;
};

// A client, as people are shown it.
struct ClientInfo {
  std::uint64_t id = 0;
  runtime::Address address;
  runtime::WallTime connected_at;
  std::string driver_name;
  std::string driver_version;
  std::string keyspace;
  std::string compression;
  std::uint64_t requests = 0;
  std::size_t requests_under_way = 0;
};

class Server {
 public:
  // The handler outlives the server.
  Server(runtime::Runtime& runtime, RequestHandler& handler, ServerOptions options);

  // Errors: those of listening. Requires: not started, and not stopped.
  base::Result<void> start(const runtime::Address& address);
  // Accepts and reads no more; answers what is under way, for drain_timeout at most; then ends
  // every connection and returns when all is quiet. Also right without a start that succeeded, and
  // a second time. For good: there is no second start.
  runtime::Task<void> stop();

  // The address in force. Requires: started.
  runtime::Address address() const { return listener_->address(); }

  // To every client that registered for this kind of event.
  void broadcast(const protocol::Event& event);

  const ServerStatistics& statistics() const { return statistics_; }
  std::size_t request_bytes_used() const { return request_bytes_.bytes_used(); }
  // Those connected now, the oldest first; without those that are being refused.
  std::vector<ClientInfo> clients() const;

 private:
  runtime::Task<void> accept_connections();
  void admit(std::unique_ptr<runtime::Stream> stream);
  runtime::Task<void> serve(std::unique_ptr<runtime::Stream> stream);
  runtime::Task<void> turn_away(std::unique_ptr<runtime::Stream> stream,
                                Connection::Admission refusal);

  runtime::Runtime& runtime_;
  const ServerOptions options_;
  const std::shared_ptr<ConnectionLimit> connection_limit_;
  const ConnectionLimits refused_limits_;
  base::Logger log_;
  ByteBudget request_bytes_;
  const std::shared_ptr<IncompleteRequests> incomplete_requests_;
  ServerStatistics statistics_;
  const protocol::Response supported_;
  const ConnectionContext context_;
  const ConnectionContext refused_context_;
  std::uint64_t next_id_ = 1;
  std::size_t connections_refused_current_ = 0;
  // By id, which is by age. They live in the frames of the tasks that serve them.
  std::map<std::uint64_t, Connection*> connections_;
  std::map<std::uint64_t, Connection*> refused_;
  runtime::StopSource stopping_;
  std::unique_ptr<runtime::Listener> listener_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::cql
