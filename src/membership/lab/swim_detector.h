// SwimDetector: asks instead of listening, after SWIM (Das, Gupta and Motivala, 2002).
//
// Each period one node is pinged, all of them in turn in an order shuffled anew each time through,
// so that the time until a node is asked has a limit. Without an acknowledgement in time some
// others are asked to ping it: their way may be open where ours is not. Without one by then, the
// node is *suspected*, and dead when the suspicion has lasted: any sign of life clears it.
//
//   heard of ──no answer, direct or by helpers──▶ suspected ──suspicion_timeout──▶ dead
//       ▲────────────────── an acknowledgement, or heard of ──────────────────────────┘
//
// SWIM-like: suspicions stay here instead of spreading. What refutes them, a later incarnation in
// SWIM, is the heartbeat that gossip brings anyway. Nodes that are dead are still asked in their
// turn, so they are found again.
//
// The load does not grow with the cluster: a ping a period and at most `helpers` requests. The time
// until a node is asked does: up to two periods a node.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "membership/lab/prober.h"

namespace helenus::membership {

struct SwimConfig {
  runtime::Duration period = std::chrono::seconds(1);
  // Less than the period: what is left of it is for the helpers.
  runtime::Duration acknowledgement_timeout = std::chrono::milliseconds(300);
  std::size_t helpers = 3;
  runtime::Duration suspicion_timeout = std::chrono::seconds(5);
};

class SwimDetector final : public ProbingDetector {
 public:
  // Requires: 0 < acknowledgement_timeout < period, suspicion_timeout > 0.
  SwimDetector(model::NodeId self, const SwimConfig& config);

  void watch(model::NodeId node) override;
  void forget(model::NodeId node) override;
  void heard(model::NodeId node, runtime::MonotonicTime now) override;
  double suspicion(model::NodeId node, runtime::MonotonicTime now) const override;
  std::vector<OutgoingProbe> tick(runtime::MonotonicTime now, base::Prng& random) override;
  void acknowledged(const Probe& probe, runtime::MonotonicTime now) override;

 private:
  struct Member {
    bool heard_of = false;
    std::optional<runtime::MonotonicTime> suspected_since;
  };
  struct Current {
    Probe probe;
    runtime::MonotonicTime sent_at;
    std::optional<runtime::MonotonicTime> helpers_asked_at;
    bool acknowledged = false;
  };

  void advance_current(runtime::MonotonicTime now, base::Prng& random,
                       std::vector<OutgoingProbe>& out);
  void ask_helpers(base::Prng& random, std::vector<OutgoingProbe>& out) const;
  std::optional<model::NodeId> next_subject(base::Prng& random);

  model::NodeId self_;
  SwimConfig config_;
  std::map<model::NodeId, Member> members_;
  std::vector<model::NodeId> turn_;  // who is still to be asked this time through
  std::optional<Current> current_;
  std::uint64_t last_number_ = 0;
};

}  // namespace helenus::membership
