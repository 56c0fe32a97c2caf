#include "sim/scenarios/test_cluster.h"

#include <optional>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/sleep.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

using ::testing::Each;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string kCreateKeyspace =
    "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
const std::string kCreateTable = "CREATE TABLE ks.t (k int PRIMARY KEY, v int)";

class TestClusterTest : public ::testing::Test {
 protected:
  explicit TestClusterTest(TestCluster::Options options = {})
      : cluster_(world_, std::move(options)) {}
  ~TestClusterTest() override {
    cluster_.heal();
    EXPECT_TRUE(cluster_.stop_all()) << cluster_.phases();
  }
  void make_quiet() {
    cluster_.start_all();
    ASSERT_TRUE(cluster_.wait_quiet()) << cluster_.phases();
  }
  // Whether one node sees another one up.
  bool sees(std::size_t i, std::size_t j) {
    const auto* seen = cluster_.node(i).cluster().gossip().view().find(ids_[j]);
    return seen != nullptr && seen->up;
  }
  void learn_ids() {
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      ids_.push_back(cluster_.node(i).identity().node);
    }
  }

  World world_{1};
  TestCluster cluster_;
  std::vector<model::NodeId> ids_;
};

TEST_F(TestClusterTest, BecomesAClusterThatAnswers) {
  EXPECT_FALSE(cluster_.is_up(0));
  EXPECT_THAT(cluster_.phases(), StartsWith("n0 is down; n1 is down"));
  make_quiet();
  EXPECT_EQ(cluster_.ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(cluster_.ask(1, kCreateTable), "done");
  EXPECT_THAT(cluster_.ask(2, kCreateTable), StartsWith("2400: "));
  EXPECT_THAT(cluster_.ask_at_once({{0, "SELECT schema_version FROM system.local"},
                                    {1, "SELECT schema_version FROM system.local"}}),
              Each(Eq(cluster_.ask(2, "SELECT schema_version FROM system.local"))));
}

TEST_F(TestClusterTest, TellsOfTheMetadataOfEveryNode) {
  std::vector<std::uint64_t> newest(3);
  cluster_.on_metadata([&](std::size_t i, consensus::Version version, const auto& metadata) {
    EXPECT_GE(version.value(), newest[i]);
    EXPECT_NE(metadata, nullptr);
    newest[i] = version.value();
  });
  make_quiet();
  EXPECT_EQ(cluster_.ask(0, kCreateKeyspace), "done");
  EXPECT_TRUE(cluster_.wait_quiet());
  EXPECT_THAT(newest, Each(Eq(cluster_.node(0).cluster().version().value())));
}

TEST_F(TestClusterTest, IsNotQuietWhileOneIsDownOrStandsStill) {
  make_quiet();
  for (const bool power : {false, true}) {
    if (power) {
      cluster_.power_loss(1);
    } else {
      cluster_.kill(1);
    }
    EXPECT_FALSE(cluster_.is_up(1));
    EXPECT_FALSE(cluster_.is_quiet());
    cluster_.start(1);
    EXPECT_TRUE(cluster_.wait_quiet()) << cluster_.phases();
  }
  learn_ids();
  cluster_.pause(2);
  EXPECT_TRUE(world_.run_until([&] { return !sees(0, 2); }, 1min));
  EXPECT_FALSE(cluster_.is_quiet());
  cluster_.resume(2);
  EXPECT_TRUE(cluster_.wait_quiet());
  EXPECT_TRUE(cluster_.stop(0));
  EXPECT_FALSE(cluster_.is_quiet());
  cluster_.start(0);
  EXPECT_TRUE(cluster_.wait_up({0}));
  EXPECT_TRUE(cluster_.wait_all_up());
  EXPECT_THAT(cluster_.failed_starts(), IsEmpty());
}

TEST_F(TestClusterTest, PartsAndHeals) {
  make_quiet();
  learn_ids();
  cluster_.isolate(0);
  EXPECT_TRUE(world_.run_until([&] { return !sees(1, 0) && !sees(0, 2); }, 1min));
  EXPECT_TRUE(sees(1, 2));
  // Clients reach all of them.
  EXPECT_EQ(cluster_.ask(1, kCreateKeyspace), "done");
  EXPECT_THAT(cluster_.ask(0, kCreateTable), HasSubstr(": "));
  cluster_.heal();
  EXPECT_TRUE(cluster_.wait_quiet());
}

TEST_F(TestClusterTest, HasClocksThatDiffer) {
  make_quiet();
  const auto difference = [&] {
    return cluster_.machine(1).clock().wall_at(world_.now()).since_origin() -
           cluster_.machine(0).clock().wall_at(world_.now()).since_origin();
  };
  EXPECT_EQ(difference(), Duration(0));
  cluster_.skew_clock(1, 5s);
  EXPECT_EQ(difference(), Duration(5s));
  cluster_.step_clock(1, -2s);
  EXPECT_EQ(difference(), Duration(3s));
  cluster_.set_clock_rate(0, 1'000'000);
  world_.run_for(10s);
  EXPECT_EQ(difference(), Duration(2990ms));
}

TEST_F(TestClusterTest, TellsAStoryOnANodeUnlessItDies) {
  make_quiet();
  const auto sleep = [](runtime::Runtime& runtime, node::Node&) -> runtime::Task<void> {
    static_cast<void>(co_await runtime::sleep_for(runtime, 10s, {}));
  };
  const WorldTime began = world_.now();
  EXPECT_TRUE(cluster_.tell(0, sleep));
  EXPECT_GE(world_.now() - began, Duration(10s));
  bool over = false;
  cluster_.begin(0, sleep, [&] { over = true; });
  cluster_.kill(0);
  world_.run_for(20s);
  EXPECT_FALSE(over);
  cluster_.start(0);
  EXPECT_TRUE(cluster_.wait_all_up());
}

class LonelyTest : public TestClusterTest {
 protected:
  LonelyTest()
      : TestClusterTest(
            {.cores = {1}, .seeds = 1, .retry_after = 1s, .configure = [](node::Config& config) {
               config.cluster_name = "ilion";
             }}) {}
};

TEST_F(LonelyTest, TriesAgainWhenItCouldNotStart) {
  EXPECT_EQ(cluster_.config(0).cluster_name, "ilion");
  cluster_.fill_disk(0);
  cluster_.start(0);
  EXPECT_TRUE(world_.run_until([&] { return cluster_.start_error(0).has_value(); }, 10s));
  EXPECT_EQ(cluster_.start_error(0)->code(), base::Errc::no_space);
  cluster_.heal();
  EXPECT_TRUE(cluster_.wait_up({0}));
  EXPECT_FALSE(cluster_.failed_starts().empty());
}

TEST_F(LonelyTest, KeepsRowsOnItsDisk) {
  make_quiet();
  EXPECT_EQ(cluster_.ask(0, kCreateKeyspace), "done");
  EXPECT_EQ(cluster_.ask(0, kCreateTable), "done");
  cluster_.slow_disk(0, 50);
  EXPECT_EQ(cluster_.ask(0, "INSERT INTO ks.t (k, v) VALUES (1, 2)"), "done");
  cluster_.power_loss(0);
  cluster_.heal();
  cluster_.start(0);
  EXPECT_TRUE(cluster_.wait_quiet());
  EXPECT_EQ(cluster_.ask(0, "SELECT v FROM ks.t WHERE k = 1"), "2");
  cluster_.fail_disk(0, 1);
  EXPECT_NE(cluster_.ask(0, "INSERT INTO ks.t (k, v) VALUES (1, 3)"), "done");
}

// Deletes wait for it, however long: there is no time after which they are forgotten.
TEST_F(TestClusterTest, AReplicaThatWasAwayForAYearBringsNothingBack) {
  make_quiet();
  EXPECT_EQ(cluster_.ask(0,
                         "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', "
                         "'replication_factor': 3}"),
            "done");
  EXPECT_EQ(cluster_.ask(0, "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))"), "done");
  for (int c = 0; c < 6; ++c) {
    EXPECT_EQ(cluster_.ask(0, fmt::format("INSERT INTO ks.t (k, c, v) VALUES (1, {}, 7)", c)),
              "done");
  }
  world_.run_for(10s);
  cluster_.kill(2);
  EXPECT_EQ(cluster_.ask(0, "DELETE FROM ks.t WHERE k = 1 AND c = 0"), "done");
  EXPECT_EQ(cluster_.ask(1, "DELETE FROM ks.t WHERE k = 1 AND c >= 1 AND c < 3"), "done");
  EXPECT_EQ(cluster_.ask(1, "DELETE v FROM ks.t WHERE k = 1 AND c = 3"), "done");
  const auto compact = [](runtime::Runtime& runtime, node::Node& node) -> runtime::Task<void> {
    const auto merged = co_await node.database().maintain(
        node::Database::Maintenance::compact, "ks", "t", runtime::Until::after(runtime, 1min));
    EXPECT_TRUE(merged.has_value());
  };
  for (const std::size_t i : {0U, 1U}) EXPECT_TRUE(cluster_.tell(i, compact));
  constexpr Duration kYear = 365 * 24h;
  for (std::size_t i = 0; i < 3; ++i) cluster_.step_clock(i, kYear);
  world_.run_for(5min);
  for (const std::size_t i : {0U, 1U}) EXPECT_TRUE(cluster_.tell(i, compact));
  cluster_.start(2);
  ASSERT_TRUE(cluster_.wait_quiet()) << cluster_.phases();
  const std::string left = cluster_.ask(0, "SELECT c, v FROM ks.t WHERE k = 1");
  EXPECT_EQ(left, "3, null; 4, 7; 5, 7");
  world_.run_for(10s);
  const std::string select = "SELECT c, v FROM ks.t WHERE k = 1";
  EXPECT_THAT(cluster_.ask_at_once({{0, select}, {1, select}, {2, select}}), Each(Eq(left)));
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_TRUE(cluster_.tell(i, compact));
  EXPECT_THAT(cluster_.ask_at_once({{0, select}, {1, select}, {2, select}}), Each(Eq(left)));
}

}  // namespace
}  // namespace helenus::sim
