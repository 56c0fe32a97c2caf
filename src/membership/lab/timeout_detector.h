// TimeoutDetector: a node that was not heard of for a fixed time is dead. The one to compare with.
#pragma once

#include <map>
#include <optional>

#include "base/assert.h"
#include "membership/failure_detector.h"

namespace helenus::membership {

class TimeoutDetector final : public FailureDetector {
 public:
  // Requires: timeout > 0.
  explicit TimeoutDetector(runtime::Duration timeout) : timeout_(timeout) {
    ASSERT(timeout > runtime::Duration(0));
  }

  void watch(model::NodeId node) override { last_heard_.try_emplace(node); }
  void forget(model::NodeId node) override { last_heard_.erase(node); }
  void heard(model::NodeId node, runtime::MonotonicTime now) override {
    if (const auto found = last_heard_.find(node); found != last_heard_.end()) found->second = now;
  }
  double suspicion(model::NodeId node, runtime::MonotonicTime now) const override {
    const auto found = last_heard_.find(node);
    if (found == last_heard_.end() || !found->second) return kUnheardOf;
    return ratio(elapsed(*found->second, now), timeout_);
  }

 private:
  runtime::Duration timeout_;
  std::map<model::NodeId, std::optional<runtime::MonotonicTime>> last_heard_;
};

}  // namespace helenus::membership
