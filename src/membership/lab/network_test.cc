// Whole clusters of Membership machines on a bad network: views agree once it has healed, whichever
// detector runs; how fast and how wrong detectors are; what gossip costs.
//
// HELENUS_MEMBERSHIP_REPORT=1 runs the reports on more and larger clusters; they print a line each.
#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "membership/lab/model_network.h"
#include "membership/lab/swim_detector.h"
#include "membership/lab/timeout_detector.h"
#include "membership/phi_detector.h"

namespace helenus::membership {
namespace {

using namespace std::chrono_literals;
using model::NodeId;
using Network = ModelNetwork;
using NetworkConfig = ModelNetworkConfig;

MakeDetector phi(double threshold) {
  return [threshold](NodeId) {
    return std::make_unique<PhiDetector>(PhiConfig{.threshold = threshold});
  };
}
MakeDetector timeout() {
  return [](NodeId) { return std::make_unique<TimeoutDetector>(15s); };
}
MakeDetector swim() {
  return [](NodeId self) { return std::make_unique<SwimDetector>(self, SwimConfig{}); };
}

NetworkConfig network_of(std::size_t nodes, MakeDetector make_detector, std::uint64_t seed = 1) {
  NetworkConfig config;
  config.nodes = nodes;
  config.seed = seed;
  config.make_detector = std::move(make_detector);
  return config;
}

bool is_long_run() {
  return std::getenv("HELENUS_MEMBERSHIP_REPORT") != nullptr;
}

// Runs until the views agree; how long that took, or nothing.
std::optional<std::int64_t> agreement_within_ms(Network& network, std::int64_t limit_ms) {
  const std::int64_t begin = network.now_ms();
  while (network.now_ms() - begin < limit_ms) {
    network.run_ms(1'000);
    if (network.disagreement().empty()) return network.now_ms() - begin;
  }
  return std::nullopt;
}

class AnyDetector : public ::testing::TestWithParam<std::pair<const char*, MakeDetector (*)()>> {
 protected:
  MakeDetector make() const { return GetParam().second(); }
};

TEST_P(AnyDetector, AClusterFormsFromItsSeeds) {
  for (const std::size_t nodes : {3U, 10U, 30U}) {
    Network network(network_of(nodes, make()));
    EXPECT_TRUE(agreement_within_ms(network, 60'000)) << network.disagreement();
  }
}

TEST_P(AnyDetector, ViewsAgreeAfterLossPartitionPauseCrashAndRestart) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    Network network(network_of(12, make(), seed));
    ASSERT_TRUE(agreement_within_ms(network, 60'000)) << network.disagreement();
    network.set_loss(0.2);
    network.partition(5);
    network.crash(7);
    network.set_paused(9, true);
    network.run_ms(40'000);
    network.restart(2);
    network.crash(3);
    network.run_ms(10'000);
    network.heal();
    network.set_paused(9, false);
    network.start(7);
    ASSERT_TRUE(agreement_within_ms(network, 120'000)) << network.disagreement();
    network.set_loss(0);
    network.run_ms(30'000);
    EXPECT_EQ(network.disagreement(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Membership, AnyDetector,
                         ::testing::Values(std::pair{"phi", +[] { return phi(8); }},
                                           std::pair{"timeout", &timeout},
                                           std::pair{"swim", &swim}),
                         [](const auto& parameter) { return std::string(parameter.param.first); });

TEST(Network, ACrashIsSeenByAllAndNobodyElseIsSuspected) {
  Network network(network_of(20, phi(8)));
  ASSERT_TRUE(agreement_within_ms(network, 60'000));
  network.run_ms(30'000);
  network.crash(11);
  network.run_ms(60'000);
  EXPECT_EQ(network.report().detections, 19U);
  EXPECT_EQ(network.report().false_suspicions, 0U);
  EXPECT_LT(network.report().detection_ms_max, 40'000);
  EXPECT_EQ(network.disagreement(), "");
}

TEST(Network, ARestartedNodeWhoseClockWasSetBackIsHeardAgain) {
  Network network(network_of(5, phi(8)));
  ASSERT_TRUE(agreement_within_ms(network, 60'000));
  network.jump_wall(3, -86'400);
  network.restart(3);
  ASSERT_TRUE(agreement_within_ms(network, 60'000)) << network.disagreement();
  EXPECT_EQ(network.machine(3).gossip().statistics().generations_raised, 1U);
}

TEST(Network, AClockThatJumpsAheadSuspectsNobody) {
  Network network(network_of(5, phi(8)));
  ASSERT_TRUE(agreement_within_ms(network, 60'000));
  network.jump_monotonic(2, 3'600'000);
  network.run_ms(60'000);
  EXPECT_EQ(network.report().false_suspicions, 0U);
  EXPECT_EQ(network.disagreement(), "");
}

TEST(Network, APartitionOfAHundredNodesHeals) {
  Network network(network_of(100, phi(5)));
  ASSERT_TRUE(agreement_within_ms(network, 60'000)) << network.disagreement();
  network.partition(30);
  network.run_ms(25'000);
  EXPECT_NE(network.disagreement(), "");
  network.heal();
  EXPECT_TRUE(agreement_within_ms(network, 60'000)) << network.disagreement();
}

// Every second a few nodes crash or come back, stand still or go on, are cut off, or have a clock
// that jumps; messages are lost all the while. In the end all run but the last.
void suffer(Network& network, std::size_t nodes, std::uint64_t seed, int seconds) {
  base::Prng dice(seed);
  std::vector<bool> down(nodes);
  std::vector<bool> paused(nodes);
  const auto set_down = [&](std::size_t node, bool wanted) {
    if (down[node] == wanted) return;
    down[node] = wanted;
    wanted ? network.crash(node) : network.start(node);
  };
  network.set_loss(0.2);
  for (int second = 0; second < seconds; ++second) {
    for (std::size_t strike = 0; strike < 1 + nodes / 30; ++strike) {
      const std::size_t node = dice.below(nodes);
      switch (dice.below(5)) {
        case 0:
          set_down(node, !down[node]);
          break;
        case 1:
          paused[node] = !paused[node];
          network.set_paused(node, paused[node]);
          break;
        case 2:
          network.partition(dice.below(nodes));
          break;
        case 3:
          network.jump_monotonic(node, static_cast<std::int64_t>(dice.below(3'600'000)));
          break;
        default:
          network.jump_wall(node, static_cast<std::int64_t>(dice.below(7'200)) - 3'600);
          if (!down[node]) network.restart(node);
      }
    }
    network.run_ms(1'000);
  }
  network.heal();
  network.set_loss(0);
  for (std::size_t node = 0; node < nodes; ++node) {
    network.set_paused(node, false);
    set_down(node, node + 1 == nodes);
  }
}

TEST(Network, ViewsAgreeAfterEveryKindOfFault) {
  for (const std::size_t nodes : {3U, 10U, 100U}) {
    for (std::uint64_t seed = 1; seed <= (nodes == 100 ? 1U : 5U); ++seed) {
      SCOPED_TRACE(fmt::format("{} nodes, seed {}", nodes, seed));
      Network network(network_of(nodes, phi(8), seed));
      suffer(network, nodes, seed, 30);
      EXPECT_NE(network.disagreement(), "") << "too little went wrong";
      EXPECT_TRUE(agreement_within_ms(network, 120'000)) << network.disagreement();
    }
  }
}

// One crash a run; every other node is an observer.
DetectionReport detection_with(MakeDetector make, std::size_t nodes, double loss) {
  NetworkConfig config = network_of(nodes, std::move(make));
  config.loss = loss;
  Network network(config);
  network.run_ms(60'000);
  network.crash(nodes / 2);
  network.run_ms(90'000);
  return network.report();
}

TEST(Network, ALargerThresholdIsSlowerAndWrongLessOften) {
  const std::size_t nodes = is_long_run() ? 100 : 20;
  std::vector<DetectionReport> reports;
  for (const double threshold : {1.0, 3.0, 5.0, 8.0}) {
    reports.push_back(detection_with(phi(threshold), nodes, 0.1));
    const DetectionReport& report = reports.back();
    fmt::print(
        "{} nodes, 10 % loss, phi {}: detection mean {} ms, worst {} ms, {} false "
        "suspicions in 150 s\n",
        nodes, threshold, report.detection_ms_mean(), report.detection_ms_max,
        report.false_suspicions);
  }
  for (std::size_t i = 1; i < reports.size(); ++i) {
    EXPECT_LE(reports[i].false_suspicions, reports[i - 1].false_suspicions);
    EXPECT_GE(reports[i].detection_ms_mean(), reports[i - 1].detection_ms_mean());
  }
  EXPECT_GT(reports.front().false_suspicions, 0U) << "the network is too good to tell";
  EXPECT_EQ(reports.back().false_suspicions, 0U);
  EXPECT_GE(reports.back().detections, nodes - 1);
}

TEST(Network, BytesOfANodeInARoundStayWithinTheirLimit) {
  std::vector<std::size_t> sizes = {3, 10, 30, 100};
  if (is_long_run()) sizes.insert(sizes.end(), {300, 1'000});
  GossipLimits limits;
  limits.digest_bytes_max = 512;
  limits.delta_bytes_max = GossipLimits::kDeltaBytesMin;
  for (const bool limited : {false, true}) {
    for (const std::size_t nodes : sizes) {
      NetworkConfig config = network_of(nodes, phi(8));
      if (limited) config.limits = limits;
      Network network(config);
      network.run_ms(10'000);
      const std::uint64_t before = network.bytes_sent();
      constexpr std::int64_t kRounds = 5;
      network.run_ms(1'000 * kRounds);
      const std::uint64_t bytes = (network.bytes_sent() - before) / (nodes * kRounds);
      fmt::print(
          "{} nodes, digests of {} bytes at most: {} bytes per node and round, largest "
          "message {}\n",
          nodes, config.limits.digest_bytes_max, bytes, network.message_bytes_largest());
      // Head of a message: version, kind, name, sender, arc and counts.
      constexpr std::size_t kHeadBytesMax = 96;
      const std::size_t message_bytes_max =
          config.limits.digest_bytes_max + config.limits.delta_bytes_max + kHeadBytesMax;
      EXPECT_LE(network.message_bytes_largest(), message_bytes_max);
      // Three messages an exchange, and at most three exchanges that a node begins in a round.
      EXPECT_LE(bytes, 9 * message_bytes_max);
      // And no more than the nodes that can be spoken of: four times each in an exchange.
      EXPECT_LE(bytes, 3 * (4 * 30 * nodes + 3 * kHeadBytesMax));
    }
  }
}

TEST(Network, AClusterLargerThanADigestStillAgrees) {
  NetworkConfig config = network_of(40, phi(8));
  config.limits.digest_bytes_max = 256;
  config.limits.delta_bytes_max = GossipLimits::kDeltaBytesMin;
  Network network(config);
  EXPECT_TRUE(agreement_within_ms(network, 120'000)) << network.disagreement();
}

}  // namespace
}  // namespace helenus::membership
