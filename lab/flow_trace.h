// A stand-in for twenty minutes of the Yahoo! network flow trace, which is not public.
//
// The paper on consistent cuckoo filters publishes what it takes from it: 58,941 flows in 20
// minutes, each with a beginning and an end, and a largest number alive at once that its Fig. 4(a)
// shows as about 2,430 buckets of three, so about 7,290 flows. The trace here has exactly these
// numbers. What is not published is chosen: flows begin at random moments, at a rate that swells
// and ebbs by three quarters over the 20 minutes; they last as a log-normal variable says (heavy
// tail, as flows in data centres have), scaled so that the largest number alive comes out right. A
// flow that outlasts the 20 minutes ends after them: the paper speaks of removals at the end of its
// tests.
#pragma once

#include <cstdint>
#include <vector>

namespace helenus::lab {

inline constexpr std::uint64_t kFlows = 58'941;
inline constexpr double kFlowTraceSeconds = 20 * 60;
inline constexpr std::uint64_t kFlowsAliveMax = 7'290;

enum class FlowEventKind : std::uint8_t { begins, ends };

struct FlowEvent {
  double seconds = 0;      // since the trace began; flows begin before kFlowTraceSeconds
  std::uint64_t flow = 0;  // its number, below kFlows; each begins once
  FlowEventKind kind = FlowEventKind::begins;
};

// In order of time; a function of the seed.
std::vector<FlowEvent> flow_trace(std::uint64_t seed);

// The most that are alive at once.
std::uint64_t alive_max(const std::vector<FlowEvent>& trace);

}  // namespace helenus::lab
