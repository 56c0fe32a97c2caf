#include "lab/flow_trace.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "base/prng.h"

namespace helenus::lab {

namespace {

struct Flow {
  double began_seconds;
  double duration;  // in units that are yet to be scaled
};

double normal(base::Prng& prng) {
  const double radius = std::sqrt(-2 * std::log(1 - prng.unit()));
  return radius * std::cos(2 * std::numbers::pi * prng.unit());
}

std::vector<Flow> draw(std::uint64_t seed) {
  constexpr double kSwell = 0.75;
  constexpr double kSpread = 1.2;  // of the logarithm of a duration
  auto moments = base::Prng::for_purpose(seed, "flow moments");
  auto durations = base::Prng::for_purpose(seed, "flow durations");
  std::vector<Flow> flows;
  while (flows.size() < kFlows) {
    const double at = moments.unit();
    const double rate = 1 + kSwell * std::sin(2 * std::numbers::pi * at);
    if (!moments.chance(rate / (1 + kSwell))) continue;
    flows.push_back({at * kFlowTraceSeconds, std::exp(kSpread * normal(durations))});
  }
  return flows;
}

std::vector<FlowEvent> events_of(const std::vector<Flow>& flows, double seconds_per_unit) {
  std::vector<FlowEvent> events;
  events.reserve(2 * flows.size());
  for (std::uint64_t i = 0; i < flows.size(); ++i) {
    const double ends = flows[i].began_seconds + flows[i].duration * seconds_per_unit;
    events.push_back({flows[i].began_seconds, i, FlowEventKind::begins});
    events.push_back({ends, i, FlowEventKind::ends});
  }
  std::ranges::sort(events, [](const FlowEvent& a, const FlowEvent& b) {
    return std::tie(a.seconds, a.kind, a.flow) < std::tie(b.seconds, b.kind, b.flow);
  });
  return events;
}

}  // namespace

std::vector<FlowEvent> flow_trace(std::uint64_t seed) {
  const std::vector<Flow> flows = draw(seed);
  double low = 0;
  double high = kFlowTraceSeconds;
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (alive_max(events_of(flows, middle)) <= kFlowsAliveMax ? low : high) = middle;
  }
  return events_of(flows, low);
}

std::uint64_t alive_max(const std::vector<FlowEvent>& trace) {
  std::uint64_t alive = 0;
  std::uint64_t most = 0;
  for (const FlowEvent& event : trace) {
    event.kind == FlowEventKind::begins ? ++alive : --alive;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace helenus::lab
