#include "membership/phi_detector.h"

#include <algorithm>
#include <numbers>

#include "base/assert.h"

namespace helenus::membership {

using model::NodeId;
using runtime::Duration;
using runtime::MonotonicTime;

PhiDetector::PhiDetector(const PhiConfig& config) : config_(config) {
  ASSERT(config.threshold > 0 && config.samples_max >= 1);
  ASSERT(config.interval_initial > Duration(0) && config.interval_max > Duration(0));
  ASSERT(config.mean_min > Duration(0));
}

void PhiDetector::watch(NodeId node) {
  windows_.try_emplace(node);
}

void PhiDetector::forget(NodeId node) {
  windows_.erase(node);
}

void PhiDetector::heard(NodeId node, MonotonicTime now) {
  const auto found = windows_.find(node);
  if (found == windows_.end()) return;
  Window& window = found->second;
  if (!window.last_heard) {
    add(window, config_.interval_initial);
  } else if (const Duration interval = elapsed(*window.last_heard, now);
             interval <= config_.interval_max) {
    add(window, interval);
  }
  window.last_heard = now;
}

double PhiDetector::suspicion(NodeId node, MonotonicTime now) const {
  return phi(node, now) / config_.threshold;
}

double PhiDetector::phi(NodeId node, MonotonicTime now) const {
  const auto found = windows_.find(node);
  if (found == windows_.end() || !found->second.last_heard) return kUnheardOf;
  const Window& window = found->second;
  const auto count = static_cast<Duration::rep>(window.intervals.size());
  const Duration mean = std::max(window.sum / count, config_.mean_min);
  return ratio(elapsed(*window.last_heard, now), mean) * std::numbers::log10e;
}

void PhiDetector::add(Window& window, Duration interval) const {
  window.sum += interval;
  if (window.intervals.size() < config_.samples_max) {
    window.intervals.push_back(interval);
    return;
  }
  window.sum -= window.intervals[window.oldest];
  window.intervals[window.oldest] = interval;
  window.oldest = (window.oldest + 1) % config_.samples_max;
}

}  // namespace helenus::membership
