// Reads and writes while a node stands still that nobody has declared down yet: whom they ask, and
// when they ask another one, too.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "replication/cluster/gather.h"
#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Errc;
using model::Consistency;

class StoppedNode : public ::testing::Test, protected ReplicatedWorld {
 protected:
  // How long a read at QUORUM through the first node takes.
  runtime::Duration time_read(const Speculation& speculation = {}) {
    const auto began = world().now();
    const auto value =
        run(0, node(0).read(partition_, "r", Consistency::quorum, nullptr, speculation));
    EXPECT_TRUE(value.has_value()) << value.error().to_string();
    return world().now() - began;
  }
  // The node that reads through the first one ask beside it.
  std::size_t asked_by_the_first() {
    const auto place = node(0).link().map()->find_place(partition_.view());
    const auto order = in_order_of_asking(place->keyspace->tablet(place->index), node(0).link());
    return order[1]->node == id(1) ? 1 : 2;
  }
  RequestStatistics& statistics() { return node(0).link().statistics(); }

  const base::Bytes partition_ = partition("ada");
};

TEST_F(StoppedNode, IsAskedLastUntilItAnswers) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  for (int i = 0; i < 50; ++i) time_read();
  const std::size_t stopped = asked_by_the_first();
  machine(stopped).pause();
  // The first reads meanwhile are helped by the third node.
  EXPECT_LT(time_read(), 100ms);
  EXPECT_GT(statistics().spares_asked, 0U);
  while (!node(0).link().is_suspected(id(stopped))) {
    EXPECT_LT(time_read(), 100ms);
    ASSERT_LT(world().now(), sim::WorldTime(1min));
  }
  const std::uint64_t spares = statistics().spares_asked;
  EXPECT_NE(asked_by_the_first(), stopped);
  for (int i = 0; i < 200; ++i) {
    EXPECT_LT(time_read(Speculation::parse("500ms")), 50ms);
    world().run_for(10ms);
  }
  EXPECT_EQ(statistics().spares_asked, spares) << "nobody waited for it";
  EXPECT_GT(statistics().probes, 0U);
  EXPECT_TRUE(node(0).link().is_suspected(id(stopped)));
  machine(stopped).resume();
  world().run_for(100ms);
  time_read();
  world().run_for(100ms);
  EXPECT_FALSE(node(0).link().is_suspected(id(stopped)));
  EXPECT_EQ(asked_by_the_first(), stopped);
}

TEST_F(StoppedNode, WritesAndDeletesGoOnAtQuorum) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  machine(1).pause();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::quorum).met);
    EXPECT_TRUE(write(0, remove(partition_), Consistency::quorum).met);
    EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), std::nullopt);
    world().run_for(100ms);
  }
  const WriteReply reply = write(0, put(partition_, "r", "v"), Consistency::all);
  EXPECT_FALSE(reply.met);
  EXPECT_EQ(reply.report, (LevelReport{.required = 3, .received = 2, .failed = 0}));
  LevelReport report;
  const auto late = run(0, node(0).read(partition_, "r", Consistency::all, &report));
  EXPECT_TRUE(late.failed_with(Errc::timeout)) << late.error().to_string();
  EXPECT_EQ(report, (LevelReport{.required = 3, .received = 2, .failed = 0}));
  machine(1).resume();
}

TEST_F(StoppedNode, ATableSaysWhenAnotherOneIsAsked) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  time_read(Speculation::parse("ALWAYS"));
  EXPECT_EQ(statistics().spares_asked, 1U);
  time_read(Speculation::parse("99p"));
  machine(asked_by_the_first()).pause();
  // The node is not suspected as long as it owes nothing.
  const auto waited = time_read(Speculation::parse("70ms"));
  EXPECT_GE(waited, 70ms);
  EXPECT_LT(waited, 90ms);
  for (std::size_t i = 1; i < kNodes; ++i) machine(i).resume();
  world().run_for(100ms);
  machine(asked_by_the_first()).pause();
  LevelReport report;
  const auto never = run(
      0, node(0).read(partition_, "r", Consistency::quorum, &report, Speculation::parse("NEVER")));
  EXPECT_TRUE(never.failed_with(Errc::timeout)) << "it waits for the two it has asked";
  EXPECT_EQ(report, (LevelReport{.required = 2, .received = 1, .failed = 0}));
  for (std::size_t i = 1; i < kNodes; ++i) machine(i).resume();
}

// Two data centres: the third node is far.
ReplicatedSetup two_data_centres() {
  metadata::Founding founding{
      .cluster_name = "Troy", .tokens = ring::evenly_spread_tokens(4), .nodes = {}};
  for (std::uint8_t i = 1; i <= kNodes; ++i) {
    founding.nodes.push_back(
        metadata::testing::a_node(i, "r" + std::to_string(i), i == 3 ? "far" : "near"));
  }
  auto metadata = metadata::found(std::move(founding));
  EXPECT_TRUE(metadata.has_value());
  model::Keyspace keyspace;
  keyspace.name = "k";
  keyspace.replication = {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"},
                          {"near", "2"},
                          {"far", "1"}};
  auto next = metadata::change_schema(*metadata, metadata->schema.with(std::move(keyspace)));
  EXPECT_TRUE(next.has_value());
  ReplicatedSetup setup;
  setup.metadata = *std::move(next);
  return setup;
}

TEST(DataCentres, TheNearOnesAreAskedFirstAndLocalLevelsAskNoOther) {
  ReplicatedWorld world(1, two_data_centres());
  const base::Bytes partition = world.partition("ada");
  EXPECT_TRUE(world.write(0, put(partition, "r", "v"), Consistency::all).met);
  // Whoever is asked needlessly would be missed.
  world.machine(2).pause();
  for (const Consistency level :
       {Consistency::quorum, Consistency::local_quorum, Consistency::local_one}) {
    const auto began = world.world().now();
    EXPECT_EQ(world.read(0, partition, "r", level), "v");
    EXPECT_LT(world.world().now() - began, 40ms) << static_cast<int>(level);
  }
  EXPECT_EQ(world.node(0).link().statistics().spares_asked, 0U);
  EXPECT_TRUE(world.run(0, world.node(0).read(partition, "r", Consistency::each_quorum))
                  .failed_with(Errc::timeout));
  world.machine(2).resume();
  world.world().run_for(1s);
  EXPECT_EQ(world.read(0, partition, "r", Consistency::each_quorum), "v");
  EXPECT_EQ(world.read(2, partition, "r", Consistency::local_quorum), "v");
  // One that is down in the own data centre is not made up for by another one.
  world.machine(1).kill();
  world.see({0, 2});
  LevelReport report;
  EXPECT_TRUE(world.run(0, world.node(0).read(partition, "r", Consistency::local_quorum, &report))
                  .failed_with(Errc::unavailable));
  EXPECT_EQ(report, (LevelReport{.required = 2, .received = 1, .failed = 0}));
  EXPECT_EQ(world.read(0, partition, "r", Consistency::quorum), "v");
}

}  // namespace
}  // namespace helenus::replication::testing
