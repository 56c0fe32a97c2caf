// What a CQL server counts. All of it grows only, but what is said to be current.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/histogram.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/primitives.h"
#include "cql/protocol/response.h"

namespace helenus::cql {

struct ServerStatistics {
  // Of answers: RESULTs by their kind, and errors.
  static constexpr std::size_t kErrors = 0;
  static constexpr std::size_t kAnswerKinds = 1 + protocol::kResultKinds;

  std::uint64_t connections_current = 0;
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;    // too many at once
  std::uint64_t connections_timed_out = 0;  // slow to start, to finish a frame, or to
                                            // take answers; closed as this core stood still
  std::uint64_t requests_current = 0;       // given to the handler and not answered
  std::array<std::uint64_t, protocol::kOpcodesEnd> requests{};  // by opcode
  // From a request about data that is wholly read to its answer, which waits to be written; in
  // nanoseconds, by the kind of the answer.
  std::array<base::Histogram, kAnswerKinds> answer_ns;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::map<protocol::ErrorCode, std::uint64_t> errors;  // answers that were errors
  std::uint64_t events = 0;                             // sent, each client counted

  // Adds what another core's server counted.
  void add(const ServerStatistics& other) {
    connections_current += other.connections_current;
    connections_accepted += other.connections_accepted;
    connections_refused += other.connections_refused;
    connections_timed_out += other.connections_timed_out;
    requests_current += other.requests_current;
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i] += other.requests[i];
    for (std::size_t i = 0; i < answer_ns.size(); ++i) answer_ns[i].merge(other.answer_ns[i]);
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    for (const auto& [code, count] : other.errors) errors[code] += count;
    events += other.events;
  }

  std::uint64_t errors_total() const {
    std::uint64_t total = 0;
    for (const auto& [code, count] : errors) total += count;
    return total;
  }
};

}  // namespace helenus::cql
