// What a CQL server counts. All of it grows only, but what is said to be current.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "cql/protocol/frame.h"
#include "cql/protocol/primitives.h"

namespace helenus::cql {

struct ServerStatistics {
  std::uint64_t connections_current = 0;
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;    // too many at once
  std::uint64_t connections_timed_out = 0;  // slow to start, to finish a frame, or to take answers
  std::uint64_t requests_current = 0;       // given to the handler and not answered
  std::array<std::uint64_t, protocol::kOpcodesEnd> requests{};  // by opcode
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t bytes_outgoing_current = 0;             // of answers that are not written
  std::map<protocol::ErrorCode, std::uint64_t> errors;  // answers that were errors
  std::uint64_t events = 0;                             // sent, each client counted

  std::uint64_t errors_total() const {
    std::uint64_t total = 0;
    for (const auto& [code, count] : errors) total += count;
    return total;
  }
};

}  // namespace helenus::cql
