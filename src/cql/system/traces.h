// Traces: what happened to requests whose clients asked for it (the tracing flag of a frame), as
// drivers read it back from system_traces.sessions and system_traces.events.
//
// Bounded: the newest kSessionsMax are kept, their texts cut. They are of this life of the process;
// clients read them within seconds.
//
// Core affinity: one core. Every core keeps those of its own requests, so that tracing one waits
// for nobody; who reads system_traces is told those of all, and of all nodes (system_tables.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/uuid.h"
#include "runtime/address.h"
#include "runtime/time.h"

namespace helenus::cql {

class Traces {
 public:
  static constexpr std::size_t kSessionsMax = 1000;
  // Of each text.
  static constexpr std::size_t kTextSizeMax = 2048;

  struct Event {
    base::Uuid id;  // of version 1
    std::string activity;
    std::int32_t elapsed_us = 0;  // since the session began
  };
  struct Session {
    base::Uuid id;  // of version 1
    // Where the clients of the node that coordinated it connect; none: it is this node.
    std::optional<runtime::Address> coordinator = std::nullopt;
    runtime::Address client;
    std::string command;  // "QUERY"
    std::string request;  // "Execute CQL3 query"
    std::map<std::string, std::string> parameters;
    runtime::WallTime started_at;
    std::int32_t duration_us = 0;
    std::vector<Event> events;
  };

  // A session that is over. Its texts are cut.
  void add(Session session);

  // The oldest first.
  const std::deque<Session>& sessions() const { return sessions_; }

 private:
  std::deque<Session> sessions_;
};

}  // namespace helenus::cql
