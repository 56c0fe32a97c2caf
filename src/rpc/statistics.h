// What is counted about one peer, and about those that are none. All of it grows only, but what is
// said to be current.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/histogram.h"
#include "base/result.h"
#include "runtime/time.h"

namespace helenus::rpc {

struct PeerStatistics {
  // Both directions.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t connections_current = 0;

  // What we ask of it.
  std::uint64_t dials = 0;
  std::uint64_t dials_failed = 0;
  std::uint64_t connections_broken = 0;
  std::uint64_t requests_sent = 0;
  std::uint64_t requests_current = 0;  // waiting to be sent or answered
  std::uint64_t one_way_sent = 0;
  std::uint64_t one_way_dropped = 0;                 // never sent, for whatever reason
  std::uint64_t answers = 0;                         // errors among them
  std::uint64_t answers_late = 0;                    // nobody waited any more
  std::map<base::Errc, std::uint64_t> calls_failed;  // by reason, the peer's errors among them

  // What it asks of us.
  std::uint64_t connections_accepted = 0;
  std::uint64_t requests_received = 0;
  std::uint64_t one_way_received = 0;
  std::uint64_t requests_refused = 0;  // overloaded, or a verb that nobody serves
  std::uint64_t requests_late = 0;     // not executed: their time was over when they were read
  std::uint64_t requests_cancelled = 0;
  std::uint64_t answers_dropped = 0;  // cancelled, too late, or the connection was gone
  std::uint64_t handlers_current = 0;
  std::uint64_t one_way_ignored = 0;  // overloaded, or a verb that nobody serves

  // Microseconds from a ping to its pong: the network and two event loops, no handler.
  base::Histogram round_trip_us;
  // The same, of late: an eighth of the way towards each new one. An input to ring::Proximity.
  std::optional<runtime::Duration> round_trip_smoothed;
  // Microseconds from a call to its answer.
  base::Histogram answer_us;
};

struct Statistics {
  std::uint64_t connections_accepted = 0;
  std::uint64_t connections_refused = 0;  // by us: strangers, other versions, too many
  std::uint64_t proofs_refused = 0;       // of these, without a proof of the secret
  std::uint64_t connections_bad = 0;      // garbage, damage, silence
  std::uint64_t connections_current = 0;  // that others dialled
  std::uint64_t handler_bytes_current = 0;
};

}  // namespace helenus::rpc
