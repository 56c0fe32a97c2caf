// helenus-sim: runs scenarios in the simulator, one seed or many, in one process or several, and
// tells how to replay what failed. What it prints does not depend on how many processes there are.
//
//   exit code 0   every run held
//             1   a run had violations, or did not see what it must see
//             2   bad arguments
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/codec.h"
#include "base/hash.h"
#include "sim/scenario.h"
#include "sim/scenarios/registry.h"
#include "sim/worker.h"

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define HELENUS_SIM_SANITIZED
#endif

namespace helenus::sim {
namespace {

constexpr int kExitViolations = 1;
constexpr int kExitUsage = 2;
constexpr std::uint32_t kJobsMax = 64;

struct Arguments {
  std::vector<std::string> scenarios;
  std::optional<std::uint64_t> seed;
  std::uint64_t seeds = 1;
  std::uint64_t from = 0;
  bool list = false;
  bool faults = false;
  bool sightings = false;
  std::uint32_t jobs = 1;
  bool verbose = false;
};

// What one run comes to: what it prints, and what adds up.
struct Report {
  std::string text = {};
  std::uint64_t violations = 0;
  std::uint64_t events = 0;
  std::uint64_t state_hash = 0;
  std::vector<std::uint64_t> faults = {};  // in the order of fault_names()
  std::vector<Sighting> sightings = {};
};

struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t violations = 0;
  std::uint64_t events = 0;
  base::Digest digest;
  std::vector<std::uint64_t> faults;
  std::map<std::string, Sighting> sightings;

  void add(const Report& report) {
    ++runs;
    violations += report.violations;
    events += report.events;
    digest.add(report.state_hash);
    faults.resize(std::max(faults.size(), report.faults.size()));
    for (std::size_t i = 0; i < report.faults.size(); ++i) faults[i] += report.faults[i];
    for (const Sighting& sighting : report.sightings) {
      Sighting& sum = sightings.try_emplace(sighting.name, sighting.name, 0, 0).first->second;
      sum.count += sighting.count;
      sum.wanted += sighting.wanted;
    }
  }
};

// ---- A run that takes the process with it ----

void tell_replay() {
  if (const char* command = take_replay_of_dying_run()) {
    // Unbuffered, and without memory that would have to be found first.
    std::fputs("replay: ", stderr);
    std::fputs(command, stderr);
    std::fputs("\n", stderr);
  }
}

void tell_replay_and_die(int signal) {
  tell_replay();
  // The default again, as soon as this returns.
  std::raise(signal);
}

// A wild pointer, a stack without end, an exception nobody caught, or an endless loop that somebody
// puts an end to: which run it was is told all the same.
void tell_replay_when_killed() {
  static std::array<char, 65536> stack;
  const stack_t alternative{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action{};
  action.sa_handler = tell_replay_and_die;
  action.sa_flags = static_cast<int>(SA_ONSTACK | SA_RESETHAND);
  std::vector<int> signals{SIGABRT, SIGINT, SIGTERM};
#ifdef HELENUS_SIM_SANITIZED
  __sanitizer_set_death_callback(tell_replay);
#else
  signals.insert(signals.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
#endif
  for (const int signal : signals) ::sigaction(signal, &action, nullptr);
}

void print_list() {
  for (const ScenarioInfo& info : all_scenarios()) {
    fmt::print("{:<26}{}{}\n", info.name, info.description,
               info.expected_to_fail ? " (must fail)" : "");
  }
}

std::string text_of_failure(const ScenarioInfo& info, const RunOutcome& outcome) {
  std::string text = replay_command(info, outcome.seed) + "\n";
  text += fmt::format("{}, seed {}: {} violations\n", info.name, outcome.seed,
                      outcome.violations.count());
  text += fmt::format("plan: {}\n", outcome.plan);
  for (const std::string& what : outcome.violations.kept()) {
    text += fmt::format("violation: {}\n", what);
  }
  for (const std::string& line : outcome.trace) text += fmt::format("trace: {}\n", line);
  return text;
}

std::string text_of_success(const ScenarioInfo& info, const RunOutcome& outcome) {
  return fmt::format("{}, seed {}: {} events, {} ms of virtual time\nplan: {}\n", info.name,
                     outcome.seed, outcome.events, outcome.virtual_time / 1ms, outcome.plan);
}

Report run_one(const ScenarioInfo& info, std::uint64_t seed, const Arguments& arguments) {
  RunOptions options{.seed = seed, .log = {}};
  if (arguments.verbose) {
    options.log = {.levels = base::LogLevels(base::LogLevel::debug), .echo = true};
  }
  const RunOutcome outcome = run_scenario(info, options);
  Report report{.violations = outcome.violations.count(),
                .events = outcome.events,
                .state_hash = outcome.state_hash,
                .faults = outcome.faults,
                .sightings = outcome.sightings};
  if (!outcome.violations.empty()) {
    report.text = text_of_failure(info, outcome);
  } else if (arguments.seed || arguments.verbose) {
    report.text = text_of_success(info, outcome);
  }
  if (arguments.verbose) {
    for (const std::string& site : outcome.buggify_sites) {
      report.text += fmt::format("buggify: {}\n", site);
    }
  }
  return report;
}

// ---- Several processes ----

std::string encoded(const Report& report) {
  base::Buffer bytes;
  base::Encoder out(bytes);
  out.prefixed(report.text);
  out.varint(report.violations);
  out.varint(report.events);
  out.varint(report.state_hash);
  out.varint(report.faults.size());
  for (const std::uint64_t count : report.faults) out.varint(count);
  out.varint(report.sightings.size());
  for (const Sighting& sighting : report.sightings) {
    out.prefixed(sighting.name);
    out.varint(sighting.count);
    out.varint(sighting.wanted);
  }
  return std::string(base::as_text(bytes.view()));
}

Report decoded(std::string_view bytes) {
  base::Decoder in(base::as_bytes(bytes));
  Report report;
  report.text = in.prefixed_text();
  report.violations = in.varint();
  report.events = in.varint();
  report.state_hash = in.varint();
  report.faults.resize(in.count(1));
  for (std::uint64_t& count : report.faults) count = in.varint();
  report.sightings.resize(in.count(3));
  for (Sighting& sighting : report.sightings) {
    sighting.name = in.prefixed_text();
    sighting.count = in.varint();
    sighting.wanted = in.varint();
  }
  ASSERT(in.finish().has_value(), "what a worker sends is whole");
  return report;
}

struct Run {
  const ScenarioInfo* info;
  std::uint64_t seed;
};

// Of all runs, in their order.
class Reports {
 public:
  Reports(std::vector<Run> runs, const Arguments& arguments)
      : runs_(std::move(runs)), arguments_(arguments) {
    const std::size_t jobs = std::min<std::size_t>(arguments.jobs, runs_.size());
    for (std::size_t first = 0; jobs > 1 && first < jobs; ++first) {
      workers_.push_back(std::make_unique<Worker>([this, first, jobs](const Worker::Send& send) {
        for (std::size_t i = first; i < runs_.size(); i += jobs) {
          send(encoded(run_one(*runs_[i].info, runs_[i].seed, arguments_)));
        }
      }));
    }
  }

  std::size_t size() const { return runs_.size(); }

  // Requires: in the order of the runs, each once.
  Report take(std::size_t i) {
    const Run& run = runs_[i];
    if (workers_.empty()) return run_one(*run.info, run.seed, arguments_);
    const auto bytes = workers_[i % workers_.size()]->receive();
    if (bytes) return decoded(*bytes);
    return {
        .text = fmt::format("{}\n{}, seed {}: its process died, or that of an earlier run did\n",
                            replay_command(*run.info, run.seed), run.info->name, run.seed),
        .violations = 1};
  }

 private:
  const std::vector<Run> runs_;
  const Arguments& arguments_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Twenty lines, however many runs.
void print_progress(std::uint64_t total, const Tally& tally) {
  const std::uint64_t step = std::max<std::uint64_t>(total / 20, 1);
  if (total < 2 || tally.runs % step != 0) return;
  fmt::print(stderr, "{} of {} runs, {} violations, {} events\n", tally.runs, total,
             tally.violations, tally.events);
}

// Whether all was seen that must be.
bool print_sightings(const Tally& tally) {
  bool all_seen = true;
  for (const auto& [name, sum] : tally.sightings) {
    fmt::print("seen: {} {}\n", name, sum.count);
    if (sum.count >= sum.wanted) continue;
    all_seen = false;
    fmt::print("not enough: {} {} times, wanted are {}\n", name, sum.count, sum.wanted);
  }
  return all_seen;
}

int run_all(const std::vector<const ScenarioInfo*>& chosen, const Arguments& arguments) {
  const std::uint64_t first = arguments.seed.value_or(arguments.from);
  const std::uint64_t count = arguments.seed ? 1 : arguments.seeds;
  std::vector<Run> runs;
  for (std::uint64_t offset = 0; offset < count; ++offset) {
    for (const ScenarioInfo* info : chosen) runs.push_back({info, first + offset});
  }
  Reports reports(std::move(runs), arguments);
  Tally tally;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Report report = reports.take(i);
    fmt::print("{}", report.text);
    tally.add(report);
    print_progress(reports.size(), tally);
  }
  if (arguments.faults) {
    const auto names = fault_names();
    for (std::size_t i = 0; i < tally.faults.size(); ++i) {
      fmt::print("fault: {} {}\n", names[i], tally.faults[i]);
    }
  }
  const bool all_seen = !arguments.sightings || print_sightings(tally);
  fmt::print("{} seeds, {} violations, state hash {:016x}\n", count, tally.violations,
             tally.digest.value());
  return tally.violations == 0 && all_seen ? 0 : kExitViolations;
}

int usage_error(const std::string& message) {
  fmt::print(stderr, "helenus-sim: {}\n", message);
  return kExitUsage;
}

int run_main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs scenarios in the simulator, by seed.", "helenus-sim");
  app.add_option("--scenario", arguments.scenarios, "which, by name; may be repeated");
  auto* seed = app.add_option("--seed", arguments.seed, "run this one seed");
  auto* seeds = app.add_option("--seeds", arguments.seeds, "run this many seeds");
  auto* from = app.add_option("--from", arguments.from, "the first of them");
  app.add_flag("--list", arguments.list, "list the scenarios");
  app.add_flag("--faults", arguments.faults, "tell how often each fault happened");
  app.add_flag("--sightings", arguments.sightings,
               "tell what scenarios saw happen, and fail if it is not enough");
  app.add_option("--jobs", arguments.jobs, "run in so many processes")
      ->check(CLI::Range(std::uint32_t{1}, kJobsMax));
  app.add_flag("-v,--verbose", arguments.verbose, "show logs, plans and buggify sites");
  seed->excludes(seeds)->excludes(from);
  for (CLI::Option* number : {seed, seeds, from}) number->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return usage_error(error.what());
  }
  if (arguments.list) {
    print_list();
    return 0;
  }
  if (arguments.seeds == 0) return usage_error("--seeds: at least one");
  if (arguments.from > UINT64_MAX - arguments.seeds) {
    return usage_error("--from: the seeds end at 2^64");
  }
  std::vector<const ScenarioInfo*> chosen;
  for (const std::string& name : arguments.scenarios) {
    const ScenarioInfo* info = find_scenario(name);
    if (info == nullptr) return usage_error(fmt::format("no scenario {}; see --list", name));
    chosen.push_back(info);
  }
  for (const ScenarioInfo& info : all_scenarios()) {
    if (arguments.scenarios.empty() && !info.expected_to_fail) chosen.push_back(&info);
  }
  tell_replay_when_killed();
  return run_all(chosen, arguments);
}

}  // namespace
}  // namespace helenus::sim

int main(int argc, char** argv) {
  return helenus::sim::run_main(argc, argv);
}
