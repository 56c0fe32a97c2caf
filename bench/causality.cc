// bench-causality: what clocks cost, and how fast small deltas become bytes and come back.
//
// Clocks stand beside the same sets in Roaring bitmaps, one an actor, the compressed set most
// systems would reach for. "few gaps" is one gap an actor, "many gaps" a thousand runs of random
// length: a replica that lost one message in thirty. Nothing here waits, so all is processor time.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <roaring/roaring64map.hh>

#include "base/prng.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "causality/clock.h"
#include "causality/codec.h"

namespace helenus::bench {
namespace {

using causality::Clock;
using RoaringClock = std::map<causality::ActorId, Roaring64Map>;

// On one core.
constexpr double kDeltasPerSecondGoal = 5e6;

struct Pair {
  Clock mine;
  Clock theirs;
};

Clock clock_with(std::uint32_t actors, int gaps, std::uint64_t seed) {
  base::Prng prng(seed);
  Clock clock;
  for (std::uint32_t actor = 1; actor <= actors; ++actor) {
    causality::CounterSet counters = causality::CounterSet::up_to(1'000'000);
    causality::Counter next = 1'000'000;
    for (int gap = 0; gap < gaps; ++gap) {
      next += 2 + prng.below(2);
      const causality::Counter last = next + prng.below(60);
      counters.insert({next, last});
      next = last;
    }
    clock.add(causality::actor_of(actor, 1), std::move(counters));
  }
  return clock;
}

RoaringClock roaring_of(const Clock& clock) {
  RoaringClock copy;
  for (const Clock::Entry& entry : clock.entries()) {
    Roaring counters;
    for (const causality::CounterRange& range : entry.counters.ranges()) {
      counters.addRange(range.first, range.last + 1);
    }
    counters.runOptimize();
    copy.emplace(entry.actor, Roaring64Map(counters));
  }
  return copy;
}

RoaringClock join(const RoaringClock& a, const RoaringClock& b) {
  RoaringClock all = a;
  for (const auto& [actor, set] : b) all[actor] |= set;
  return all;
}
std::uint64_t missing(const RoaringClock& mine, const RoaringClock& theirs) {
  std::uint64_t count = 0;
  for (const auto& [actor, set] : theirs) {
    const auto own = mine.find(actor);
    count += own == mine.end() ? set.cardinality() : (set - own->second).cardinality();
  }
  return count;
}

void clocks(const Options& options, Report& report, std::uint32_t actors, int gaps) {
  const double seconds = options.quick ? 0.02 : 0.1;
  const int rounds = options.quick ? 3 : 5;
  const Pair ours{clock_with(actors, gaps, 1), clock_with(actors, gaps, 2)};
  const RoaringClock mine = roaring_of(ours.mine);
  const RoaringClock theirs = roaring_of(ours.theirs);
  const std::string shape = fmt::format("{} actors, {} gaps each", actors, gaps);
  const Medians joins = by_turns(
      rounds,
      [&] {
        return operations_per_second<CpuStopwatch>(seconds,
                                                   [&] { keep(join(ours.mine, ours.theirs)); });
      },
      [&] {
        return operations_per_second<CpuStopwatch>(seconds, [&] { keep(join(mine, theirs)); });
      });
  report.row({.name = "join, " + shape,
              .value = joins.ours,
              .unit = "/s",
              .peer = "Roaring64Map",
              .peer_value = joins.peer});
  const Medians missings = by_turns(
      rounds,
      [&] {
        return operations_per_second<CpuStopwatch>(seconds,
                                                   [&] { keep(missing(ours.mine, ours.theirs)); });
      },
      [&] {
        return operations_per_second<CpuStopwatch>(seconds, [&] { keep(missing(mine, theirs)); });
      });
  report.row({.name = "missing, " + shape,
              .value = missings.ours,
              .unit = "/s",
              .peer = "Roaring64Map",
              .peer_value = missings.peer});
  std::uint64_t roaring_bytes = 0;
  for (const auto& [actor, set] : mine) roaring_bytes += 8 + set.getSizeInBytes();
  report.row({.name = "encoded size, " + shape,
              .value = static_cast<double>(causality::encoded(ours.mine).size()),
              .unit = "bytes",
              .peer = "Roaring64Map",
              .peer_value = static_cast<double>(roaring_bytes)});
}

causality::Delta small_delta() {
  causality::Delta delta;
  delta.dot = {causality::actor_of(2, 1), 1'000'001};
  delta.timestamp = causality::Timestamp{1'700'000'000'000'000};
  delta.context.epoch = causality::Epoch{7};
  for (std::uint32_t node = 1; node <= 3; ++node) {
    delta.context.dots.add(causality::actor_of(node, 1), causality::CounterSet::up_to(1'000'000));
  }
  causality::CellChange change;
  change.row = base::Bytes::copy_of("user:123456789");
  change.value = base::Bytes::copy_of(std::string(32, 'v'));
  delta.cells.push_back(change);
  return delta;
}

void deltas(const Options& options, Report& report) {
  const double seconds = options.quick ? 0.05 : 0.5;
  const causality::Delta delta = small_delta();
  const base::Bytes bytes = causality::encoded(delta);
  base::Buffer buffer(4096);
  const auto encode = [&] {
    buffer.clear();
    base::Encoder out(buffer);
    causality::encode(out, delta);
    keep(buffer.size());
  };
  report.row({.name = fmt::format("encode a delta of {} bytes", bytes.size()),
              .value = operations_per_second<CpuStopwatch>(seconds, encode),
              .unit = "/s",
              .peer = "the goal",
              .peer_value = kDeltasPerSecondGoal});
  report.row({.name = fmt::format("decode a delta of {} bytes", bytes.size()),
              .value = operations_per_second<CpuStopwatch>(
                  seconds, [&] { keep(causality::decode_delta(bytes).has_value()); }),
              .unit = "/s",
              .peer = "the goal",
              .peer_value = kDeltasPerSecondGoal});
}

void run(const Options& options, Report& report) {
  deltas(options, report);
  for (const std::uint32_t actors : {3U, 30U, 300U}) {
    for (const int gaps : {1, 1000}) clocks(options, report, actors, gaps);
  }
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::run);
}
