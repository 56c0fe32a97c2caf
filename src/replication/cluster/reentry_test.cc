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

class ReplicaReentry : public ::testing::Test, protected ReplicatedWorld {
 protected:
  static ReplicatedSetup setup_of(runtime::Duration sync_period) {
    ReplicatedSetup setup;
    setup.anti_entropy = true;
    setup.sync_mode = storage::LogSyncMode::periodic;
    setup.sync_period = sync_period;
    return setup;
  }
  explicit ReplicaReentry(runtime::Duration sync_period = 1s)
      : ReplicatedWorld(1, setup_of(sync_period)) {}

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

  // So many that a power loss does not leave all of them by luck.
  void write_many(std::size_t i) {
    for (int row = 0; row < kRows; ++row) {
      EXPECT_TRUE(write(i, put(partition_, fmt::format("r{}", row), "v"), Consistency::quorum).met);
    }
  }

  static constexpr int kRows = 50;
  const base::Bytes partition_ = partition("ada");
};

class SlowlySynced : public ReplicaReentry {
 protected:
  SlowlySynced() : ReplicaReentry(10min) {}
};

// What was acknowledged by the one that loses it and by one that has not synced it: clocks that are
// told do not have it, and a majority of the other two would miss it.
TEST_F(SlowlySynced, HasAgainWhatAnotherHasNotSyncedYet) {
  see({0, 2});
  write_many(0);
  machine(2).power_loss();
  begin_reentry(2);
  start(2);
  EXPECT_LT(contents(2).size(), std::size_t{kRows}) << "nothing was lost";
  see_all();
  EXPECT_EQ(progress_of(2).tablets, 4U);
  const auto refused = run(2, node(2).write(put(partition_, "r", "w"), Consistency::one));
  EXPECT_TRUE(refused.failed_with(Errc::refused) || refused.failed_with(Errc::unavailable));
  EXPECT_TRUE(catches_up(2));
  EXPECT_EQ(contents(2), contents(0));
  EXPECT_EQ(contents(2).size(), std::size_t{kRows});
  finish_reentry(2);
  EXPECT_EQ(progress_of(2).tablets, 0U);
  EXPECT_EQ(read(2, partition_, "r0", Consistency::one), "v");
  EXPECT_TRUE(write(2, put(partition_, "r", "w"), Consistency::all).met);
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
TEST_F(SlowlySynced, WhoHasLostWhatItMintedStopsServing) {
  write_many(2);
  machine(2).power_loss();
  see({0, 1});
  // What is told is what is synced, and before a flush the log is.
  EXPECT_TRUE(run(0, node(0).compact(kTable)).has_value());
  // As if nobody had noticed.
  start(2);
  EXPECT_LT(contents(2).size(), std::size_t{kRows}) << "nothing was lost";
  see_all();
  EXPECT_TRUE(world().run_until([&] { return progress_of(2).has_lost_writes; }, 10s));
  const WriteReply reply = write(0, put(partition_, "r", "w"), Consistency::all);
  EXPECT_FALSE(reply.met);
  // Under another name what it has lost is as any other write.
  begin_reentry(2);
  EXPECT_TRUE(run(2, node(2).take_names()).has_value());
  EXPECT_TRUE(catches_up(2));
  finish_reentry(2);
  EXPECT_FALSE(progress_of(2).has_lost_writes);
  EXPECT_EQ(contents(2), contents(0));
  EXPECT_GE(contents(2).size(), std::size_t{kRows});
  EXPECT_TRUE(write(0, put(partition_, "r", "x"), Consistency::all).met);
}

}  // namespace
}  // namespace helenus::replication::testing
