// helenus-sim: runs scenarios in the simulator, one seed or many, and tells how to replay what
// failed.
//
//   exit code 0   every run held
//             1   a run had violations
//             2   bad arguments
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/hash.h"
#include "sim/scenario.h"
#include "sim/scenarios/registry.h"

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define HELENUS_SIM_SANITIZED
#endif

namespace helenus::sim {
namespace {

constexpr int kExitViolations = 1;
constexpr int kExitUsage = 2;
// How much of the log a failure shows; --verbose shows all.
constexpr std::size_t kLogLinesMax = 40;

struct Arguments {
  std::vector<std::string> scenarios;
  std::optional<std::uint64_t> seed;
  std::uint64_t seeds = 1;
  std::uint64_t from = 0;
  bool list = false;
  bool faults = false;
  bool verbose = false;
};

struct Tally {
  std::uint64_t runs = 0;
  std::uint64_t violations = 0;
  std::uint64_t events = 0;
  base::Digest digest;
  std::vector<FaultCount> faults;

  void add(const std::vector<FaultCount>& of_run) {
    faults.resize(of_run.size());
    for (std::size_t index = 0; index < of_run.size(); ++index) {
      faults[index].name = of_run[index].name;
      faults[index].count += of_run[index].count;
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
    fmt::print("{:<22}{}{}\n", info.name, info.description,
               info.expected_to_fail ? " (must fail)" : "");
  }
}

void print_failure(const ScenarioInfo& info, const RunOutcome& outcome) {
  fmt::print("{}, seed {}: {} violations\n", info.name, outcome.seed, outcome.violations.count());
  fmt::print("plan: {}\n", outcome.plan);
  for (const std::string& what : outcome.violations.kept()) fmt::print("violation: {}\n", what);
  const std::size_t skipped = outcome.log.size() - std::min(outcome.log.size(), kLogLinesMax);
  for (std::size_t line = skipped; line < outcome.log.size(); ++line) {
    fmt::print("log: {}\n", outcome.log[line]);
  }
  fmt::print("replay: {}\n", replay_command(info, outcome.seed));
}

void print_success(const ScenarioInfo& info, const RunOutcome& outcome) {
  fmt::print("{}, seed {}: {} events, {} ms of virtual time\n", info.name, outcome.seed,
             outcome.events, outcome.virtual_time / 1ms);
  fmt::print("plan: {}\n", outcome.plan);
}

void run_one(const ScenarioInfo& info, std::uint64_t seed, const Arguments& arguments,
             Tally& tally) {
  RunOptions options{.seed = seed, .log = {}};
  if (arguments.verbose) {
    options.log = {.levels = base::LogLevels(base::LogLevel::debug), .echo = true};
  }
  const RunOutcome outcome = run_scenario(info, options);
  ++tally.runs;
  tally.violations += outcome.violations.count();
  tally.events += outcome.events;
  tally.digest.add(outcome.state_hash);
  tally.add(outcome.faults);
  if (arguments.verbose) {
    for (const std::string& site : outcome.buggify_sites) fmt::print("buggify: {}\n", site);
  }
  if (!outcome.violations.empty()) {
    print_failure(info, outcome);
  } else if (arguments.seed || arguments.verbose) {
    print_success(info, outcome);
  }
}

// Twenty lines, however many runs.
void print_progress(std::uint64_t done, std::uint64_t total, const Tally& tally) {
  const std::uint64_t step = std::max<std::uint64_t>(total / 20, 1);
  if (total < 2 || done % step != 0) return;
  fmt::print(stderr, "{} of {} runs, {} violations, {} events\n", done, total, tally.violations,
             tally.events);
}

int run_all(const std::vector<const ScenarioInfo*>& chosen, const Arguments& arguments) {
  const std::uint64_t first = arguments.seed.value_or(arguments.from);
  const std::uint64_t count = arguments.seed ? 1 : arguments.seeds;
  Tally tally;
  for (std::uint64_t offset = 0; offset < count; ++offset) {
    for (const ScenarioInfo* info : chosen) {
      run_one(*info, first + offset, arguments, tally);
      print_progress(tally.runs, count * chosen.size(), tally);
    }
  }
  if (arguments.faults) {
    for (const FaultCount& fault : tally.faults) {
      fmt::print("fault: {} {}\n", fault.name, fault.count);
    }
  }
  fmt::print("{} seeds, {} violations, state hash {:016x}\n", count, tally.violations,
             tally.digest.value());
  return tally.violations == 0 ? 0 : kExitViolations;
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
