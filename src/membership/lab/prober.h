// ProbingDetector: a failure detector that asks instead of listening; and Prober, which lets a
// Membership machine ask and answer. Gossip carries no probes: they travel beside it.
#pragma once

#include <optional>
#include <vector>

#include "base/prng.h"
#include "membership/failure_detector.h"
#include "membership/lab/probe.h"
#include "membership/membership.h"

namespace helenus::membership {

class ProbingDetector : public FailureDetector {
 public:
  // To be called often: what it wants to have sent.
  virtual std::vector<OutgoingProbe> tick(runtime::MonotonicTime now, base::Prng& random) = 0;
  // An acknowledgement came of a probe whose origin is this node.
  virtual void acknowledged(const Probe& probe, runtime::MonotonicTime now) = 0;
};

// Both outlive it. Without a detector that asks it only answers.
class Prober {
 public:
  Prober(const Membership& machine, ProbingDetector* detector)
      : machine_(machine), detector_(detector) {}

  std::vector<OutgoingProbe> tick(runtime::MonotonicTime now, base::Prng& random) {
    return detector_ == nullptr ? std::vector<OutgoingProbe>() : detector_->tick(now, random);
  }
  // What to send on receiving a probe.
  std::optional<OutgoingProbe> receive(const Probe& probe, model::NodeId from,
                                       runtime::MonotonicTime now) {
    const Gossip& gossip = machine_.gossip();
    if (probe.kind == Probe::Kind::acknowledgement && probe.origin == gossip.self()) {
      if (detector_ != nullptr) detector_->acknowledged(probe, now);
      return std::nullopt;
    }
    const std::optional<OutgoingProbe> next = answer_to(probe, from, gossip.self());
    // Only to nodes that are known: a probe must not make this node call strangers.
    if (next && next->to != from && gossip.find(next->to) == nullptr) return std::nullopt;
    return next;
  }

 private:
  const Membership& machine_;
  ProbingDetector* detector_;
};

}  // namespace helenus::membership
