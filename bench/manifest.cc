// bench-manifest: what gaps in the clock of a manifest cost.
//
// A table that writes and flushes seldom leaves, in its tablet's clock in the manifest, a gap for
// each run of its dots that other tables have flushed around (docs/adr/0021). The manifest is
// written whole at every flush. Measured: its size, making its bytes, reading them again, taking
// the dots of another memtable into the clock, and writing it durably into the current directory;
// in milliseconds, less is better. The peer is the same manifest without gaps.
//
// The gaps are of single dots, which is the worst: a million of them (a hundred thousand with
// --quick).
#include "storage/manifest/manifest.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/measure.h"
#include "bench/report.h"
#include "causality/clock.h"
#include "runtime/native/native_host.h"

namespace helenus::bench {
namespace {

using runtime::Runtime;
using runtime::Task;
using storage::ManifestState;

const causality::ActorId kActor = causality::actor_of(1, 1);
constexpr int kRounds = 9;

ManifestState with_gaps(std::uint64_t gaps) {
  ManifestState state;
  storage::TabletRecord& tablet = state.tablets[storage::TabletId{1}];
  tablet.actor = kActor;
  for (std::uint64_t dot = 0; dot <= gaps; ++dot) {
    tablet.clock.add(causality::Dot{kActor, 1 + 2 * dot});
  }
  return state;
}

// Of processor time: it never waits.
template <class Work>
double milliseconds(Work&& work) {
  const CpuStopwatch stopwatch;
  work();
  return stopwatch.seconds() * 1e3;
}

void compare_in_memory(const ManifestState& gaps, const ManifestState& none, Report& report) {
  const auto add = [&](std::string name, auto&& work) {
    const Medians medians = by_turns(
        kRounds, [&] { return milliseconds([&] { work(gaps); }); },
        [&] { return milliseconds([&] { work(none); }); });
    report.row({.name = std::move(name),
                .value = medians.ours,
                .unit = "ms",
                .peer = "no gaps",
                .peer_value = medians.peer});
  };
  report.row({.name = "size",
              .value = static_cast<double>(encode(gaps).size()) / 1e3,
              .unit = "kB",
              .peer = "no gaps",
              .peer_value = static_cast<double>(encode(none).size()) / 1e3});
  add("make the bytes", [](const ManifestState& state) { keep(encode(state).size()); });
  const base::Bytes bytes_of_gaps = encode(gaps);
  const base::Bytes bytes_of_none = encode(none);
  add("read the bytes", [&](const ManifestState& state) {
    keep(storage::decode_manifest(&state == &gaps ? bytes_of_gaps : bytes_of_none).has_value());
  });
  causality::Clock memtable;
  memtable.add(causality::DotRange{kActor, 10'000'000, 10'000'100});
  add("take in a flush's dots", [&](const ManifestState& state) {
    const causality::Clock& clock = state.tablets.begin()->second.clock;
    keep(causality::join(clock, memtable).empty());
  });
}

Task<int> compare(Runtime& runtime, const Options& options, Report& report) {
  const std::uint64_t count = options.quick ? 100'000 : 1'000'000;
  const ManifestState gaps = with_gaps(count);
  const ManifestState none = with_gaps(0);
  fmt::print("{} gaps\n", count);
  compare_in_memory(gaps, none, report);
  const std::string path = std::filesystem::current_path() / "bench-manifest.tmp";
  std::vector<double> with;
  std::vector<double> without;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool ours : {true, false}) {
      const Stopwatch stopwatch;
      const auto written = co_await storage::write_manifest(runtime, path, ours ? gaps : none);
      ASSERT(written.has_value());
      (ours ? with : without).push_back(stopwatch.seconds() * 1e3);
    }
  }
  std::filesystem::remove(path);
  report.row({.name = "write durably",
              .value = median(with),
              .unit = "ms",
              .peer = "no gaps",
              .peer_value = median(without)});
  co_return 0;
}

void run(const Options& options, Report& report) {
  auto host = runtime::native::NativeHost::open({.cores = 1});
  ASSERT(host.has_value());
  (*host)->run(
      [&](Runtime& runtime, runtime::StopToken) { return compare(runtime, options, report); });
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::run);
}
