// RequestTrace: the trace of one request whose client asked for it (the tracing flag of a frame),
// from its first event to its last. Drivers read it back from system_traces.
#pragma once

#include <cstdint>
#include <string>

#include "cql/execute/prepared_statements.h"
#include "cql/execute/statement_clock.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/server/request_handler.h"
#include "cql/system/traces.h"
#include "replication/request/request_level.h"
#include "runtime/runtime.h"
#include "runtime/time.h"

namespace helenus::cql {

class RequestTrace final : public replication::RequestNotes {
 public:
  // Begins with the event that the request is executed. All that is referred to outlives it.
  RequestTrace(runtime::Runtime& runtime, StatementClock& clock, PreparedStatements& prepared,
               const protocol::Request& request, const Session& session);

  void note(std::string activity) override;
  // Ends with the event of the response, which names the trace from now on. Once.
  void end(protocol::Response& response, Traces& traces);

 private:
  void describe_request();
  void add_prepared_text();
  std::int32_t elapsed_us() const;

  runtime::Runtime& runtime_;
  StatementClock& clock_;
  PreparedStatements& prepared_;
  const protocol::Request& request_;
  const runtime::MonotonicTime began_at_;
  // Events are read in the order of their ids: of two within a tick the later one gets the next.
  std::int64_t ticks_ = 0;
  Traces::Session trace_;
};

}  // namespace helenus::cql
