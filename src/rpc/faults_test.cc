// Clusters of 3 to 20 nodes that call each other all the time while the network loses packets and
// parts, machines pause, crash and come back. Every call ends; what it said of itself is true; and
// when all is well again everybody reaches everybody. HELENUS_RPC_SEEDS asks for more runs.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "rpc/rpc_test_support.h"
#include "runtime/when_all.h"
#include "sim/nemesis.h"

namespace helenus::rpc {
namespace {

// What callers saw, in memory that no crash touches.
struct Chatter {
  std::size_t size = 0;
  std::uint64_t next = 0;
  bool over = false;
  std::map<std::string, Errc> failed;
  std::vector<std::string> answered;
};

Task<void> call_somebody(Runtime& rt, Rpc& rpc, Chatter& chatter) {
  NodeId to = rpc.node();
  while (to == rpc.node()) to = node_of(rt.random.below(chatter.size));
  const std::string number = std::to_string(chatter.next++);
  const Duration patience = 1ms * rt.random.between(10, 2000);
  const auto answer = co_await rpc.call(to, kCount, text(number), Until::after(rt, patience));
  if (answer) {
    EXPECT_EQ(answer->text(), number);
    chatter.answered.push_back(number);
  } else {
    chatter.failed.emplace(number, answer.error().code());
  }
}

Task<void> call_again_and_again(Runtime& rt, Rpc& rpc, Chatter& chatter) {
  while (!chatter.over) {
    co_await call_somebody(rt, rpc, chatter);
    const auto slept = co_await runtime::sleep_for(rt, 1ms * rt.random.below(100), {});
    EXPECT_TRUE(slept.has_value());
  }
}

Task<void> chat(Runtime& rt, Rpc& rpc, Chatter& chatter) {
  std::vector<Task<void>> callers;
  for (int i = 0; i < 3; ++i) callers.push_back(call_again_and_again(rt, rpc, chatter));
  co_await runtime::when_all(std::move(callers));
}

Task<void> reach_everybody(Runtime& rt, Rpc& rpc, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    const auto answer = co_await rpc.call(node_of(i), kEcho, text("x"), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value()) << answer.error().to_string();
  }
}

bool was_surely_not_run(Errc code) {
  return code == Errc::unavailable || code == Errc::overloaded || code == Errc::closed;
}

struct Faults {
  std::size_t size;
  std::uint64_t seed;
  sim::FaultSet kinds;
  Duration lasting;
};

void run_cluster(const Faults& faults) {
  SCOPED_TRACE(fmt::format("{} nodes, seed {}", faults.size, faults.seed));
  Chatter chatter;
  chatter.size = faults.size;
  Cluster cluster(faults.seed, faults.size);
  cluster.set_story_at_start([&chatter](Runtime& rt, Rpc& rpc) { return chat(rt, rpc, chatter); });
  cluster.start_all();
  std::vector<sim::MachineId> targets;
  for (std::size_t i = 0; i < faults.size; ++i) targets.push_back(cluster.machine(i).id());
  base::Prng prng = base::Prng::for_purpose(faults.seed, "faults");
  const auto plan =
      sim::FaultPlan::draw({.permitted = faults.kinds, .liars_max = 0}, targets, prng);
  {
    sim::Nemesis nemesis(cluster.world(), plan, targets);
    nemesis.start();
    cluster.world().run_for(faults.lasting);
    nemesis.stop();
  }
  // Longer than the longest pause between dials, and than it takes to notice a silent peer.
  chatter.over = true;
  cluster.world().run_for(30s);
  for (std::size_t i = 0; i < faults.size; ++i) {
    ASSERT_TRUE(cluster.machine(i).is_up()) << plan.to_string();
    EXPECT_FALSE(cluster.node(i).is_telling()) << "a call does not end";
  }
  for (std::size_t i = 0; i < faults.size; ++i) {
    const TestNode::Story story = [&faults](Runtime& rt, Rpc& rpc) {
      return reach_everybody(rt, rpc, faults.size);
    };
    cluster.tell(i, story);
  }

  std::map<std::string, std::uint64_t, std::less<>> runs;
  for (std::size_t i = 0; i < faults.size; ++i) {
    for (const auto& [number, count] : cluster.seen(i).runs) runs[number] += count;
  }
  for (const auto& [number, count] : runs) EXPECT_EQ(count, 1U) << number;
  for (const std::string& number : chatter.answered) EXPECT_EQ(runs.count(number), 1U) << number;
  for (const auto& [number, code] : chatter.failed) {
    if (!was_surely_not_run(code)) continue;
    EXPECT_EQ(runs.count(number), 0U) << number << " " << name_of(code);
  }
  EXPECT_GT(chatter.answered.size(), faults.size);
  for (std::size_t i = 0; i < faults.size; ++i) {
    for (std::size_t j = 0; j < faults.size; ++j) {
      if (i == j) continue;
      EXPECT_EQ(cluster.statistics(i, j).requests_current, 0U);
      EXPECT_EQ(cluster.statistics(i, j).handlers_current, 0U);
    }
  }
  cluster.stop_all();
}

constexpr sim::FaultSet kEverything = sim::kNetworkFaults | sim::kProcessFaults |
                                      sim::kClockFaults | sim::FaultSet{sim::Fault::buggify};

// As many seeds as usual, or as HELENUS_RPC_SEEDS says.
std::uint64_t seeds(std::uint64_t usual) {
  return base::count_from_environment("HELENUS_RPC_SEEDS", usual);
}

TEST(RpcFaults, ThreeNodesThroughEverything) {
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    run_cluster({.size = 3, .seed = seed, .kinds = kEverything, .lasting = 60s});
  }
}

TEST(RpcFaults, SevenNodesOnABadNetwork) {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    run_cluster({.size = 7, .seed = seed, .kinds = sim::kNetworkFaults, .lasting = 60s});
  }
}

TEST(RpcFaults, TwentyNodesThroughEverything) {
  for (std::uint64_t seed = 1; seed <= seeds(1); ++seed) {
    run_cluster({.size = 20, .seed = seed, .kinds = kEverything, .lasting = 30s});
  }
}

// Without a plan, so that each of these surely happens.

TEST(RpcFaults, APartitionFailsCallsAndHeals) {
  Cluster cluster(1, 3);
  cluster.start_all();
  const TestNode::Story call = [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 1s));
    EXPECT_TRUE(answer.has_value());
  };
  cluster.tell(0, call);
  const std::vector<std::uint32_t> sides = {0, 1, 0};
  cluster.world().network().partition(sides);
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto lost = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 1s));
    EXPECT_TRUE(lost.failed_with(Errc::timeout));
    const auto near = co_await rpc.call(node_of(2), kEcho, text("x"), Until::after(rt, 1s));
    EXPECT_TRUE(near.has_value());
  });
  // Silence is noticed, and then calls no longer wait for their deadline.
  cluster.world().run_for(15s);
  EXPECT_EQ(cluster.statistics(0, 1).connections_current, 0U);
  EXPECT_GE(cluster.logged(0, "a connection to a node broke", "silent for too long"), 1U);
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto dialled = co_await rpc.call(node_of(1), kEcho, Bytes(), Until::after(rt, 20s));
    EXPECT_TRUE(dialled.failed_with(Errc::unavailable));
    const auto began_at = rt.clock.now();
    const auto failed = co_await rpc.call(node_of(1), kEcho, Bytes(), Until::after(rt, 20s));
    EXPECT_TRUE(failed.failed_with(Errc::unavailable));
    EXPECT_EQ(rt.clock.now(), began_at);
  });
  cluster.world().network().heal_partitions();
  cluster.world().run_for(6s);
  cluster.tell(0, call);
  cluster.stop_all();
}

TEST(RpcFaults, ACrashedNodeIsDialledAgainWhenItIsBack) {
  Cluster cluster(2, 2);
  cluster.start_all();
  const TestNode::Story waiting = [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto lost = co_await rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 60s));
    EXPECT_TRUE(lost.failed_with(Errc::connection_lost)) << lost.error().to_string();
  };
  cluster.node(0).tell(waiting);
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_begun == 1; }, 1s));
  cluster.machine(1).kill();
  cluster.world().run_for(1s);
  EXPECT_FALSE(cluster.node(0).is_telling()) << "a kernel tells when its process is gone";
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    for (int i = 0; i < 100; ++i) {
      const auto failed = co_await rpc.call(node_of(1), kEcho, Bytes(), Until::after(rt, 60s));
      EXPECT_TRUE(failed.failed_with(Errc::unavailable));
      const auto slept = co_await runtime::sleep_for(rt, 100ms, {});
      EXPECT_TRUE(slept.has_value());
    }
  });
  // A hundred calls in ten seconds, and a handful of dials.
  EXPECT_LE(cluster.statistics(0, 1).dials_failed, 10U);
  EXPECT_GE(cluster.statistics(0, 1).dials_failed, 4U);
  EXPECT_EQ(cluster.logged(0, "no connection to a node", "refused"), 1U);
  // Its first call ends our pause.
  cluster.start(1);
  cluster.tell(1, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(0), kEcho, Bytes(), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value());
  });
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kEcho, Bytes(), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value());
  });
  cluster.stop_all();
}

TEST(RpcFaults, ANodeThatIsHeldUpCanBeReachedAndOneThatIsGoneCannot) {
  Cluster cluster(4, 3);
  cluster.start_all();
  const auto reach = [&](Result<void> expected) {
    cluster.tell(0, [expected](Runtime& rt, Rpc& rpc) -> Task<void> {
      const auto reached = co_await rpc.reach(node_of(1), Until::after(rt, 2s));
      EXPECT_EQ(reached.has_value(), expected.has_value());
      if (!expected && !reached) EXPECT_EQ(reached.error().code(), expected.error().code());
    });
  };
  reach({});
  EXPECT_EQ(cluster.statistics(0, 1).dials, 0U) << "nothing was to be said";
  cluster.machine(1).pause();
  reach({});
  cluster.machine(1).resume();
  const std::vector<std::uint32_t> sides = {0, 1, 0};
  cluster.world().network().partition(sides);
  reach(Error(Errc::timeout));
  cluster.world().network().heal_partitions();
  cluster.machine(1).kill();
  reach(Error(Errc::refused));
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    EXPECT_TRUE(co_await rpc.reach(node_of(0), Until::after(rt, 2s)));
    const auto nobody = co_await rpc.reach(node_of(77), Until::after(rt, 2s));
    EXPECT_TRUE(nobody.failed_with(Errc::unavailable));
    rpc.forget(node_of(2));
    const auto forgotten = co_await rpc.reach(node_of(2), Until::after(rt, 2s));
    EXPECT_TRUE(forgotten.failed_with(Errc::unavailable));
    co_await rpc.stop();
    EXPECT_TRUE((co_await rpc.reach(node_of(1), Until::after(rt, 2s))).failed_with(Errc::closed));
  });
  cluster.stop_all();
}

TEST(RpcFaults, APausedNodeDelaysItsAnswersOnly) {
  Cluster cluster(3, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kEcho, Bytes(), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value());
  });
  cluster.machine(1).pause();
  cluster.world().after(3s, [&] { cluster.machine(1).resume(); });
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value());
  });
  EXPECT_EQ(cluster.statistics(0, 1).dials, 1U);
  cluster.stop_all();
}

}  // namespace
}  // namespace helenus::rpc
