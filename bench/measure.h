// How benchmarks measure: a rate over a stretch of time, medians, and two contestants by turns.
//
// The machine is shared and its speed drifts, so an absolute figure says little and a ratio says
// much, provided both sides saw the same weather: `by_turns` runs them A B A B ... and compares
// medians.
#pragma once

#include <cstdint>
#include <vector>

#include "base/assert.h"
#include "bench/stopwatch.h"

namespace helenus::bench {

// Keeps the compiler from dropping a computation whose result nobody reads.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// The middle value; the mean of the two middle ones of an even number. Requires: not empty.
double median(std::vector<double> values);

// How often a second `operation()` runs, tried for at least `seconds_min`. The clock is read once
// a batch that takes about a hundredth of that, so that reading it costs nothing. What never waits
// may be measured in processor time: operations_per_second<CpuStopwatch>(...).
template <class Watch = Stopwatch, class Operation>
double operations_per_second(double seconds_min, Operation&& operation) {
  const Watch stopwatch;
  std::uint64_t operations = 0;
  std::uint64_t batch = 1;
  double seconds = 0;
  while (seconds < seconds_min) {
    for (std::uint64_t i = 0; i < batch; ++i) operation();
    operations += batch;
    const double before = seconds;
    seconds = stopwatch.seconds();
    if (seconds - before < seconds_min / 100) batch *= 2;
  }
  return static_cast<double>(operations) / seconds;
}

struct Medians {
  double ours = 0;
  double peer = 0;
};

// Calls `ours()` and `peer()` by turns, `rounds` times each; both return what they measured.
// Who begins changes from round to round. Requires: rounds > 0.
template <class Ours, class Peer>
Medians by_turns(int rounds, Ours&& ours, Peer&& peer) {
  ASSERT(rounds > 0);
  std::vector<double> of_ours;
  std::vector<double> of_peer;
  for (int round = 0; round < rounds; ++round) {
    const bool peer_begins = round % 2 == 1;
    if (peer_begins) of_peer.push_back(peer());
    of_ours.push_back(ours());
    if (!peer_begins) of_peer.push_back(peer());
  }
  return {.ours = median(std::move(of_ours)), .peer = median(std::move(of_peer))};
}

}  // namespace helenus::bench
