// Server: listens for clients of the CQL protocol on one core and serves each by a Connection.
//
// Bounded: what clients may take is admission.h's. A node runs one Server a core on the same
// address.
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
#include "cql/server/admission.h"
#include "cql/server/connection.h"
#include "cql/server/request_handler.h"
#include "cql/server/server_statistics.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::cql {

struct ServerOptions {
  // Of the core; it outlives the server. Without it the server has one of its own, with the limits.
  Admission* admission = nullptr;
  AdmissionLimits limits = {};
  // How long requests may take to end when the server stops.
  runtime::Duration drain_timeout = std::chrono::seconds(10);
  // What SUPPORTED says.
  std::string cql_version = "3.4.6";
  // Several cores listen on the same address.
  bool shared_between_cores = false;
  ConnectionTimeouts timeouts;
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
  const Admission& admission() const { return *admission_; }
  // Those connected now, the oldest first; without those that are being refused.
  std::vector<ClientInfo> clients() const;

 private:
  runtime::Task<void> accept_connections();
  void admit(std::unique_ptr<runtime::Stream> stream);
  // Ends the connections that were open meanwhile.
  void on_standstill(runtime::Duration duration);
  runtime::Task<void> serve(std::unique_ptr<runtime::Stream> stream);
  runtime::Task<void> turn_away(std::unique_ptr<runtime::Stream> stream, Refusal refusal);

  runtime::Runtime& runtime_;
  const ServerOptions options_;
  const ConnectionTimeouts refused_timeouts_;
  base::Logger log_;
  const std::unique_ptr<Admission> own_admission_;  // unless it was given one
  Admission* const admission_;
  ServerStatistics statistics_;
  const protocol::Response supported_;
  const ConnectionContext context_;
  const ConnectionContext refused_context_;
  std::uint64_t next_id_ = 1;
  // By id, which is by age. They live in the frames of the tasks that serve them.
  std::map<std::uint64_t, Connection*> connections_;
  std::map<std::uint64_t, Connection*> refused_;
  StandstillWatch standstill_;
  runtime::StopSource stopping_;
  std::unique_ptr<runtime::Listener> listener_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::cql
