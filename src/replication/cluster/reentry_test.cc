// Replicas that may have lost what they acknowledged, and have it again.
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/transitions.h"
#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Errc;
using model::Consistency;
using ::testing::UnorderedElementsAre;

class ReentryWorld : public ReplicatedWorld {
 public:
  ReentryWorld(std::uint64_t seed, runtime::Duration sync_period)
      : ReplicatedWorld(seed, setup_of(sync_period)) {}

  // All that run act by these metadata, and who starts.
  void take(const metadata::ClusterMetadata& metadata) {
    setup.metadata = metadata;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (is_up(i)) node(i).take(metadata);
    }
  }
  void begin_reentry(std::size_t i) { take(*metadata::begin_reentry(setup.metadata, id(i))); }
  void finish_reentry(std::size_t i) {
    const metadata::ClusterMetadata& now = setup.metadata;
    take(*metadata::finish_reentry(now, id(i), now.find(id(i))->reentered, now.epoch));
  }
  ReentryProgress progress_of(std::size_t i) { return node(i).anti_entropy().reentry(); }
  bool catches_up(std::size_t i, runtime::Duration limit = 10s) {
    return world().run_until([&] { return progress_of(i).tablets_behind == 0; }, limit);
  }
  // Each of them reaches the disk by itself, or does not.
  void write_many(std::size_t i) {
    for (std::size_t row = 0; row < kRows; ++row) {
      EXPECT_TRUE(write(i, put(partition_, fmt::format("r{}", row), "v"), Consistency::quorum).met);
    }
  }

  static constexpr std::size_t kRows = 50;
  const base::Bytes partition_ = partition("ada");

 private:
  static ReplicatedSetup setup_of(runtime::Duration sync_period) {
    ReplicatedSetup setup;
    setup.anti_entropy = true;
    setup.sync_mode = storage::LogSyncMode::periodic;
    setup.sync_period = sync_period;
    return setup;
  }
};

class ReplicaReentry : public ::testing::Test, protected ReentryWorld {
 protected:
  ReplicaReentry() : ReentryWorld(1, 1s) {}
};

// One in four power losses takes nothing.
constexpr std::uint64_t kSeeds = 6;
constexpr runtime::Duration kNeverSynced = 10min;

// What was acknowledged by the one that loses it and by one that has not synced it: clocks that are
// told do not have it, and a majority of the other two would miss it.
TEST(ReplicaReentryBySeed, HasAgainWhatAnotherHasNotSyncedYet) {
  std::size_t losses = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ReentryWorld world(seed, kNeverSynced);
    world.see({0, 2});
    world.write_many(0);
    world.machine(2).power_loss();
    world.begin_reentry(2);
    world.start(2);
    if (world.contents(2).size() < ReentryWorld::kRows) ++losses;
    world.see_all();
    EXPECT_EQ(world.progress_of(2).tablets, 4U);
    const base::Bytes& partition = world.partition_;
    const auto refused =
        world.run(2, world.node(2).write(put(partition, "r", "w"), Consistency::one));
    EXPECT_TRUE(refused.failed_with(Errc::refused) || refused.failed_with(Errc::unavailable));
    EXPECT_TRUE(world.catches_up(2));
    EXPECT_EQ(world.contents(2), world.contents(0));
    EXPECT_EQ(world.contents(2).size(), ReentryWorld::kRows);
    world.finish_reentry(2);
    EXPECT_EQ(world.progress_of(2).tablets, 0U);
    EXPECT_EQ(world.read(2, partition, "r0", Consistency::one), "v");
    EXPECT_TRUE(world.write(2, put(partition, "r", "w"), Consistency::all).met);
  }
  EXPECT_GT(losses, 0U);
}

TEST_F(ReplicaReentry, WaitsForBothOthersOfThreeUnlessOneIsGivenUp) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  kill(1);
  machine(2).power_loss();
  see({0});
  begin_reentry(2);
  start(2);
  see({0, 2});
  EXPECT_FALSE(catches_up(2, 5s));
  EXPECT_EQ(progress_of(2).tablets_behind, 4U);
  EXPECT_THAT(progress_of(2).waits_for, UnorderedElementsAre(id(1)));
  node(2).anti_entropy().give_up({id(1)});
  EXPECT_TRUE(catches_up(2, 1s));
  EXPECT_EQ(contents(2), contents(0));
}

// Who counts for nothing is neither asked nor waited for.
TEST_F(ReplicaReentry, InDoubtAReplicaCountsForNothing) {
  begin_reentry(2);
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::quorum).met);
  const auto refused = run(0, node(0).write(put(partition_, "r", "w"), Consistency::all));
  EXPECT_TRUE(refused.failed_with(Errc::unavailable));
  LevelReport report;
  EXPECT_TRUE(run(0, node(0).read(partition_, "r", Consistency::all, &report))
                  .failed_with(Errc::unavailable));
  EXPECT_EQ(report.received, 2U);
  EXPECT_EQ(read(1, partition_, "r", Consistency::quorum), "v");
  // It gets by itself what is written meanwhile.
  EXPECT_TRUE(world().run_until([&] { return contents(2) == contents(0); }, 10s));
}

// All of them after a power cut: whoever is first has what any of them has.
TEST_F(ReplicaReentry, WhereAllAreInDoubtEachPullsFromEveryOther) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  world().run_for(2s);
  see({0});
  EXPECT_TRUE(write(0, put(partition_, "s", "only here"), Consistency::one).met);
  world().run_for(2s);
  for (std::size_t i = 0; i < kNodes; ++i) machine(i).power_loss();
  for (std::size_t i = 0; i < kNodes; ++i) begin_reentry(i);
  start(1);
  start(2);
  see({1, 2});
  EXPECT_FALSE(catches_up(1, 3s));
  start(0);
  see_all();
  EXPECT_TRUE(catches_up(1));
  finish_reentry(1);
  EXPECT_EQ(contents(1).size(), 2U);
  EXPECT_TRUE(catches_up(0) && catches_up(2));
  EXPECT_EQ(contents(2), contents(0));
}

// What it minted and lost a peer has, and tells of it: it must not mint that again (S13).
TEST(ReplicaReentryBySeed, WhoHasLostWhatItMintedStopsServing) {
  std::size_t losses = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    ReentryWorld world(seed, kNeverSynced);
    const base::Bytes& partition = world.partition_;
    world.write_many(2);
    world.machine(2).power_loss();
    world.see({0, 1});
    // What is told is what is synced, and before a flush the log is.
    EXPECT_TRUE(world.run(0, world.node(0).compact(kTable)).has_value());
    // As if nobody had noticed.
    world.start(2);
    if (world.contents(2).size() == ReentryWorld::kRows) continue;
    ++losses;
    world.see_all();
    const auto has_noticed = [&] { return world.progress_of(2).has_lost_writes; };
    EXPECT_TRUE(world.world().run_until(has_noticed, 10s));
    EXPECT_FALSE(world.write(0, put(partition, "r", "w"), Consistency::all).met);
    // Under another name what it has lost is as any other write.
    world.begin_reentry(2);
    EXPECT_TRUE(world.run(2, world.node(2).take_names()).has_value());
    EXPECT_TRUE(world.catches_up(2));
    world.finish_reentry(2);
    EXPECT_FALSE(world.progress_of(2).has_lost_writes);
    EXPECT_EQ(world.contents(2), world.contents(0));
    EXPECT_EQ(world.contents(2).size(), ReentryWorld::kRows + 1);
    EXPECT_TRUE(world.write(0, put(partition, "r", "x"), Consistency::all).met);
  }
  EXPECT_GT(losses, 0U);
}

}  // namespace
}  // namespace helenus::replication::testing
