#include <algorithm>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "runtime/sleep.h"
#include "sim/function_process.h"
#include "sim/scenario.h"
#include "sim/scenarios/log_node.h"
#include "sim/scenarios/register_replica.h"
#include "sim/scenarios/registry.h"

namespace helenus::sim {

void PrintTo(const ScenarioInfo& scenario, std::ostream* out) {
  *out << scenario.name;
}

namespace {

using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;

// ---- The shipped scenarios ----

class EachScenario : public testing::TestWithParam<ScenarioInfo> {};

TEST_P(EachScenario, ASeedGivesTheSameStateHashTwice) {
  const std::uint64_t seeds = GetParam().is_dear ? 1 : 5;
  std::set<std::uint64_t> hashes;
  for (std::uint64_t seed = 100; seed < 100 + seeds; ++seed) {
    const RunOutcome once = run_scenario(GetParam(), {.seed = seed});
    const RunOutcome twice = run_scenario(GetParam(), {.seed = seed});
    EXPECT_EQ(once.state_hash, twice.state_hash) << "seed " << seed;
    EXPECT_EQ(once.events, twice.events);
    EXPECT_EQ(once.plan, twice.plan);
    EXPECT_EQ(once.violations.kept(), twice.violations.kept());
    hashes.insert(once.state_hash);
  }
  EXPECT_EQ(hashes.size(), seeds) << "each seed has a hash of its own";
}

TEST_P(EachScenario, RightOnesHoldAndWrongOnesAreCaught) {
  if (GetParam().is_dear) GTEST_SKIP() << "its seeds are tests of their own";
  const std::uint64_t seeds = GetParam().expected_to_fail ? 1000 : 25;
  std::uint64_t violations = 0;
  for (std::uint64_t seed = 0; seed < seeds && violations == 0; ++seed) {
    const RunOutcome outcome = run_scenario(GetParam(), {.seed = seed});
    violations += outcome.violations.count();
    if (!GetParam().expected_to_fail) {
      ASSERT_TRUE(outcome.violations.empty()) << outcome.violations.kept().front() << "\n"
                                              << replay_command(GetParam(), seed);
    }
  }
  EXPECT_EQ(violations > 0, GetParam().expected_to_fail);
}

INSTANTIATE_TEST_SUITE_P(Sim, EachScenario, testing::ValuesIn(all_scenarios()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Registry, FindsByNameAndOnlyThose) {
  EXPECT_NE(find_scenario("register"), nullptr);
  EXPECT_EQ(find_scenario("regis"), nullptr);
  EXPECT_EQ(find_scenario(""), nullptr);
}

// ---- How a run is judged ----

// Does nothing but what its one process does.
class LonelyScenario : public Scenario {
 public:
  explicit LonelyScenario(FunctionProcess::Function function) : function_(std::move(function)) {}
  FaultBudget budget() const override { return {}; }
  void setup(World& world, base::Prng&) override {
    world.add_machine({.name = "lonely"}, FunctionProcess::factory(function_)).start();
  }
  std::vector<MachineId> targets() const override { return {0}; }
  Duration safety_phase() const override { return 1s; }
  Duration liveness_limit() const override { return 1s; }
  bool quiet() const override { return true; }
  void check(Violations&) override {}
  void add_to(base::Digest&) const override {}

 private:
  FunctionProcess::Function function_;
};

Task<void> sleep_on(Runtime& rt, StopToken stop) {
  (void)co_await runtime::sleep_for(rt, 24h, std::move(stop));
}

Task<void> sleep_deaf(Runtime& rt, StopToken) {
  (void)co_await runtime::sleep_for(rt, 24h, {});
}

Task<void> fail_an_assertion(Runtime& rt, StopToken stop) {
  const auto slept = co_await runtime::sleep_for(rt, 500ms, std::move(stop));
  ASSERT(!slept.has_value(), "wrong on purpose");
}

class NeverSettles final : public LonelyScenario {
 public:
  NeverSettles() : LonelyScenario(sleep_on) {}
  bool quiet() const override { return false; }
};

class Complains final : public LonelyScenario {
 public:
  Complains() : LonelyScenario(sleep_on) {}
  void check(Violations& violations) override {
    for (std::size_t i = 0; i < 2 * Violations::kKeptMax; ++i) violations.add("too bad");
  }
};

template <class S>
RunOutcome run_of() {
  const ScenarioInfo info{
      .name = "test",
      .description = "",
      .expected_to_fail = false,
      .make = []() -> std::unique_ptr<Scenario> { return std::make_unique<S>(); }};
  return run_scenario(info, {.seed = 1});
}

TEST(RunScenario, AnOrderlyScenarioHasNoViolations) {
  struct Orderly final : LonelyScenario {
    Orderly() : LonelyScenario(sleep_on) {}
  };
  const RunOutcome outcome = run_of<Orderly>();
  EXPECT_TRUE(outcome.violations.empty());
  EXPECT_GT(outcome.events, 0);
  EXPECT_GE(outcome.virtual_time, 1s);
  EXPECT_TRUE(outcome.plan.starts_with("no faults (latency "));
}

TEST(RunScenario, OneThatNeverSettlesIsNotLive) {
  const RunOutcome outcome = run_of<NeverSettles>();
  ASSERT_EQ(outcome.violations.count(), 1);
  EXPECT_EQ(outcome.violations.kept()[0], "not quiet 1 s after the last fault");
}

TEST(RunScenario, AProcessThatDoesNotStopIsAViolation) {
  struct Deaf final : LonelyScenario {
    Deaf() : LonelyScenario(sleep_deaf) {}
  };
  const RunOutcome outcome = run_of<Deaf>();
  ASSERT_EQ(outcome.violations.count(), 1);
  EXPECT_EQ(outcome.violations.kept()[0], "lonely does not stop when asked");
}

TEST(RunScenario, ViolationsAreCountedAndTheFirstOnesKept) {
  const RunOutcome outcome = run_of<Complains>();
  EXPECT_EQ(outcome.violations.count(), 2 * Violations::kKeptMax);
  EXPECT_EQ(outcome.violations.kept().size(), Violations::kKeptMax);
}

TEST(RunScenarioDeathTest, AFailedAssertionTellsHowToReplayIt) {
  struct Asserts final : LonelyScenario {
    Asserts() : LonelyScenario(fail_an_assertion) {}
  };
  EXPECT_DEATH(
      run_of<Asserts>(),
      "wrong on purpose[^$]*replay: build/release/bin/helenus-sim --scenario test --seed 1");
}

// ---- The systems' own formats ----

base::Bytes log_of(const std::vector<std::uint64_t>& records) {
  base::Buffer buffer;
  for (const std::uint64_t record : records) append_log_record(buffer, record, record * 10);
  return std::move(buffer).freeze();
}

TEST(LogNode, ALogIsReadBackUpToItsTornTail) {
  const base::Bytes whole = log_of({1, 2, 3});
  EXPECT_EQ(parse_log(whole).records, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(parse_log(whole).size, whole.size());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const LogContent content = parse_log(whole.slice(0, size));
    EXPECT_LE(content.size, size);
    EXPECT_LT(content.records.size(), 3);
    EXPECT_TRUE(std::ranges::equal(content.records, std::vector<std::uint64_t>{1, 2, 3} |
                                                        std::views::take(content.records.size())));
  }
}

TEST(LogNode, ZerosAndDamageAreATornTail) {
  base::Buffer buffer;
  append_log_record(buffer, 1, 0);
  const std::size_t first = buffer.size();
  std::ranges::fill(buffer.extend(1000), std::byte{0});
  EXPECT_EQ(parse_log(buffer.view()).size, first);

  const base::Bytes whole = log_of({1, 2, 3});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    base::Buffer damaged;
    damaged.append(whole);
    damaged.data()[at] ^= std::byte{1};
    EXPECT_LT(parse_log(damaged.view()).records.size(), 3) << at;
  }
}

RC_GTEST_PROP(LogNode, HostileBytesAreNoRecords, (std::vector<unsigned char> bytes)) {
  const LogContent content = parse_log(std::as_bytes(std::span(bytes)));
  RC_ASSERT(content.size <= bytes.size());
}

TEST(Register, HostileAnswersAreErrors) {
  EXPECT_FALSE(decode_answer(base::Bytes()).has_value());
  EXPECT_FALSE(decode_answer(base::Bytes::of_static("\x03 too short")).has_value());
  EXPECT_FALSE(decode_answer(encode_get()).has_value());
  EXPECT_FALSE(decode_listing(base::Bytes::of_static("\xff\xff\xff")).has_value());
}

}  // namespace
}  // namespace helenus::sim
