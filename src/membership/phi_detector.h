// PhiDetector: the accrual failure detector of Hayashibara et al. with the exponential estimate of
// Cassandra (Lakshman and Malik, section 5.3).
//
// Intervals between heartbeats are taken to be exponentially distributed with the mean of the last
// ones seen. Then the chance that a beat is still to come after t is e^(-t / mean), and
//
//   phi(t) = -log10 of that chance = t / mean / ln 10
//
// A node is dead from phi = threshold on: at threshold 1 one verdict in ten is wrong if the
// estimate is right, at 2 one in a hundred, and so on; at 8 a node is dead after 18.4 mean
// intervals.
//
// As in Cassandra a window starts with a guess, so that one interval does not make an estimate, and
// an interval above a limit is left out: a node that was cut off for an hour did not thereby become
// one that beats once an hour.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "membership/failure_detector.h"

namespace helenus::membership {

struct PhiConfig {
  double threshold = 8;            // above 0
  std::size_t samples_max = 1000;  // intervals remembered of each node; at least 1
  runtime::Duration interval_initial = std::chrono::seconds(2);  // the guess
  runtime::Duration interval_max = std::chrono::seconds(2);      // longer ones are left out
  // Beats that come in a bunch do not make the mean smaller than this.
  runtime::Duration mean_min = std::chrono::milliseconds(10);
};

class PhiDetector final : public FailureDetector {
 public:
  // Requires: values as stated, durations above 0.
  explicit PhiDetector(const PhiConfig& config);

  void watch(model::NodeId node) override;
  void forget(model::NodeId node) override;
  void heard(model::NodeId node, runtime::MonotonicTime now) override;
  double suspicion(model::NodeId node, runtime::MonotonicTime now) const override;

  double phi(model::NodeId node, runtime::MonotonicTime now) const;

 private:
  // The last intervals, as a ring once there are samples_max of them.
  struct Window {
    std::optional<runtime::MonotonicTime> last_heard;
    std::vector<runtime::Duration> intervals;
    std::size_t oldest = 0;
    runtime::Duration sum{0};
  };

  void add(Window& window, runtime::Duration interval) const;

  PhiConfig config_;
  std::map<model::NodeId, Window> windows_;
};

}  // namespace helenus::membership
