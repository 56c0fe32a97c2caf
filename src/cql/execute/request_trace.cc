#include "cql/execute/request_trace.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "cql/plan/time_uuid.h"
#include "model/consistency.h"

namespace helenus::cql {

RequestTrace::RequestTrace(runtime::Runtime& runtime, StatementClock& clock,
                           PreparedStatements& prepared, const protocol::Request& request,
                           const Session& session)
    : runtime_(runtime),
      clock_(clock),
      prepared_(prepared),
      request_(request),
      began_at_(runtime.clock.now()) {
  trace_.client = session.client;
  trace_.started_at = runtime.clock.wall_now();
  trace_.command = "QUERY";
  describe_request();
  Moment moment = clock_.now();
  trace_.id = time_uuid_of(moment);
  const auto text = trace_.parameters.find("query");
  note(text == trace_.parameters.end() ? trace_.request : "Executing " + text->second);
}

void RequestTrace::describe_request() {
  std::optional<protocol::Consistency> level;
  if (const auto* query = std::get_if<protocol::QueryRequest>(&request_.message)) {
    trace_.request = "Execute CQL3 query";
    trace_.parameters["query"] = query->text;
    level = query->parameters.consistency;
    if (query->parameters.page_size) {
      trace_.parameters["page_size"] = std::to_string(*query->parameters.page_size);
    }
  } else if (const auto* execute = std::get_if<protocol::ExecuteRequest>(&request_.message)) {
    trace_.request = "Execute CQL3 prepared query";
    add_prepared_text();
    level = execute->parameters.consistency;
  } else if (const auto* prepare = std::get_if<protocol::PrepareRequest>(&request_.message)) {
    trace_.request = "Preparing CQL3 query";
    trace_.parameters["query"] = prepare->text;
  } else if (const auto* batch = std::get_if<protocol::BatchRequest>(&request_.message)) {
    trace_.request = "Execute batch of CQL3 queries";
    trace_.parameters["statements"] = std::to_string(batch->statements.size());
    level = batch->consistency;
  }
  if (level) trace_.parameters["consistency_level"] = model::name_of(*level);
}

void RequestTrace::add_prepared_text() {
  const auto* execute = std::get_if<protocol::ExecuteRequest>(&request_.message);
  if (execute == nullptr) return;
  const std::string* const text = prepared_.text_of(execute->id);
  if (text != nullptr) trace_.parameters["query"] = *text;
}

std::int32_t RequestTrace::elapsed_us() const {
  const auto elapsed =
      std::chrono::duration_cast<std::chrono::microseconds>(runtime_.clock.now() - began_at_)
          .count();
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(elapsed, std::numeric_limits<std::int32_t>::max()));
}

void RequestTrace::note(std::string activity) {
  Moment at = clock_.now();
  ticks_ = std::max(at.nanoseconds() / 100, ticks_ + 1);
  trace_.events.push_back({time_uuid(ticks_, random_node(at)), std::move(activity), elapsed_us()});
}

void RequestTrace::end(protocol::Response& response, Traces& traces) {
  note(fmt::format("Answering with {} bytes", response.body_size()));
  trace_.duration_us = elapsed_us();
  add_prepared_text();  // another core may have lent it only now
  response.prefix.tracing = trace_.id;
  traces.add(std::move(trace_));
}

}  // namespace helenus::cql
