// Replicas that lost sight of each other, and become equal by themselves.
#include "replication/cluster/anti_entropy.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/test_scale.h"
#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Bytes;
using base::Errc;
using model::Consistency;

constexpr storage::TableId kOther{8};

ReplicatedSetup by_anti_entropy(
    ReplicatedWriter::Deltas deltas = ReplicatedWriter::Deltas::left_to_anti_entropy) {
  ReplicatedSetup setup;
  setup.anti_entropy = true;
  setup.deltas = deltas;
  return setup;
}

std::uint64_t announcements(ReplicatedWorld& world) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kNodes; ++i) {
    for (std::uint32_t core = 0; core < world.setup.cores; ++core) {
      count += world.node(i).anti_entropy(core).report().announcements;
    }
  }
  return count;
}

void expect_equal(ReplicatedWorld& world, storage::TableId table = kTable) {
  const auto expected = world.contents(0, table);
  EXPECT_FALSE(expected.empty());
  for (std::size_t i = 1; i < kNodes; ++i) EXPECT_EQ(world.contents(i, table), expected) << i;
}

void expect_silence(ReplicatedWorld& world) {
  const std::uint64_t before = announcements(world);
  world.world().run_for(10s);
  EXPECT_EQ(announcements(world), before);
}

TEST(AntiEntropy, ANodeThatWasDownCatchesUpAndThenNothingIsKeptNorSaid) {
  for (std::uint64_t seed = 1; seed <= base::count_from_environment("HELENUS_REPLICA_SEEDS", 3);
       ++seed) {
    SCOPED_TRACE(seed);
    ReplicatedWorld world(seed, by_anti_entropy(ReplicatedWriter::Deltas::sent));
    EXPECT_TRUE(world.settle());
    const Bytes partition = world.partition("ada");
    world.kill(2);
    world.see({0, 1});
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(world
                      .write(static_cast<std::size_t>(i) % 2,
                             put(partition, fmt::format("r{}", i % 7), fmt::format("v{}", i)),
                             Consistency::quorum)
                      .met);
    }
    world.world().run_for(1s);
    EXPECT_FALSE(world.node(0).keeps_nothing());
    EXPECT_EQ(world.node(0).anti_entropy().report().peers.at(1).lacking_there, 20U);
    world.start(2);
    world.see_all();
    EXPECT_TRUE(world.settle());
    expect_equal(world);
    EXPECT_EQ(world.node(2).anti_entropy().report().mutations_pulled, 20U);
    expect_silence(world);
    for (std::size_t i = 0; i < kNodes; ++i) {
      EXPECT_EQ(world.node(i).engine().statistics().mutation_files, 0U) << i;
    }
  }
}

TEST(AntiEntropy, WithoutDeltasAllBecomeEqual) {
  ReplicatedWorld world(1, by_anti_entropy());
  for (int i = 0; i < 30; ++i) {
    const Bytes partition =
        world.partition(fmt::format("p{}", i % 5), std::int64_t{i % 5 - 2} << 61);
    EXPECT_TRUE(world
                    .write(static_cast<std::size_t>(i) % kNodes,
                           put(partition, fmt::format("r{}", i % 3), fmt::format("v{}", i)),
                           Consistency::one)
                    .met);
  }
  EXPECT_TRUE(world.settle());
  expect_equal(world);
  expect_silence(world);
}

TEST(AntiEntropy, TabletsOfAllCoresBecomeEqual) {
  ReplicatedSetup setup = by_anti_entropy();
  setup.cores = 2;
  ReplicatedWorld world(1, setup);
  EXPECT_TRUE(world.settle());
  world.kill(2);
  world.see({0, 1});
  for (int i = 0; i < 40; ++i) {
    const Bytes partition =
        world.partition(fmt::format("p{}", i % 5), std::int64_t{i % 5 - 2} << 61);
    world.write(static_cast<std::size_t>(i) % 2,
                put(partition, fmt::format("r{}", i % 3), fmt::format("v{}", i)), Consistency::one);
  }
  world.start(2);
  world.see_all();
  EXPECT_TRUE(world.settle());
  expect_equal(world);
  for (std::uint32_t core = 0; core < 2; ++core) {
    EXPECT_GT(world.node(2).anti_entropy(core).report().mutations_pulled, 0U) << core;
  }
  expect_silence(world);
}

TEST(AntiEntropy, AWriteReachesTheOthersWithinASecond) {
  ReplicatedWorld world(1, by_anti_entropy());
  EXPECT_TRUE(world.settle());
  world.write(1, put(world.partition("ada"), "r", "v"), Consistency::one);
  world.world().run_for(1s);
  expect_equal(world);
}

TEST(AntiEntropy, WhatIsOnItsWayIsNotPulled) {
  ReplicatedWorld world(1, by_anti_entropy(ReplicatedWriter::Deltas::sent));
  // The third looks at another moment, and hears of what the first wrote from the second before it
  // comes.
  world.kill(2);
  world.world().run_for(30ms);
  world.start(2);
  world.see_all();
  EXPECT_TRUE(world.settle());
  world.world().network().set_slowness(0, 2, 100);
  for (int i = 0; i < 200; ++i) {
    world.write(static_cast<std::size_t>(i) % kNodes,
                put(world.partition("ada"), fmt::format("r{}", i), "v"), Consistency::one);
    world.world().run_for(3ms);
  }
  EXPECT_TRUE(world.settle());
  for (std::size_t i = 0; i < kNodes; ++i) {
    const AntiEntropyReport report = world.node(i).anti_entropy().report();
    EXPECT_EQ(report.pulls, 0U) << i;
    EXPECT_LT(report.announcements, 40U) << i;
  }
}

TEST(AntiEntropy, EverybodyStartsAnewAndIsToldAgain) {
  ReplicatedWorld world(1, by_anti_entropy());
  world.write(0, put(world.partition("ada"), "r", "v"), Consistency::one);
  for (std::size_t i = 0; i < kNodes; ++i) world.kill(i);
  for (std::size_t i = 0; i < kNodes; ++i) world.start(i);
  world.see_all();
  EXPECT_TRUE(world.settle());
  expect_equal(world);
  // One that starts anew hears from the others of what it has not forgotten.
  world.kill(1);
  world.start(1);
  world.see_all();
  EXPECT_TRUE(world.settle());
  expect_silence(world);
}

TEST(AntiEntropy, DeletesVanishEverywhere) {
  ReplicatedWorld world(1, by_anti_entropy());
  const Bytes partition = world.partition("ada");
  const Bytes other = world.partition("bob");
  for (int i = 0; i < 9; ++i) {
    world.write(static_cast<std::size_t>(i) % kNodes, put(partition, fmt::format("r{}", i), "v"),
                Consistency::one);
    world.write(0, put(other, fmt::format("r{}", i), "v"), Consistency::one);
  }
  EXPECT_TRUE(world.settle());
  for (std::size_t i = 0; i < kNodes; ++i) ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
  EXPECT_GT(world.node(2).engine().statistics().sstables, 0U);
  // A row, rows, and a partition, each through another node; one of them is away meanwhile.
  world.kill(2);
  world.see({0, 1});
  world.write(0, remove(partition, causality::range_of_row(bytes("r0"))), Consistency::one);
  world.write(1, remove(partition, {.from = bytes("r1"), .to = {}}), Consistency::one);
  world.write(1, remove(other), Consistency::one);
  world.world().run_for(2s);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(world.contents(i).empty()) << i;
    ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
    EXPECT_GT(world.node(i).engine().statistics().sstables, 0U) << "the third has not seen them";
  }
  world.start(2);
  world.see_all();
  EXPECT_TRUE(world.settle());
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_TRUE(world.contents(i).empty()) << i;
    ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
    EXPECT_EQ(world.node(i).engine().statistics().sstables, 0U) << i;
  }
}

// ---- Tables that come and go ----

metadata::ClusterMetadata with_tables_below(metadata::ClusterMetadata metadata,
                                            std::uint64_t storage) {
  metadata.next.storage = metadata::StorageId{storage};
  return metadata;
}

class ChangingTables : public ::testing::Test, protected ReplicatedWorld {
 protected:
  ChangingTables() : ReplicatedWorld(1, setup_of_two_tables()) {
    EXPECT_TRUE(settle());
    kill(2);
    see({0, 1});
    for (int i = 0; i < 4; ++i) {
      write(0, put(partition("ada"), fmt::format("r{}", i), "v", kOther), Consistency::one);
      write(1, put(partition("ada"), fmt::format("r{}", i), "v"), Consistency::one);
    }
    world().run_for(1s);
  }
  static ReplicatedSetup setup_of_two_tables() {
    ReplicatedSetup setup = by_anti_entropy();
    setup.tables = {kTable, kOther};
    setup.metadata = with_tables_below(setup.metadata, 9);
    return setup;
  }
};

TEST_F(ChangingTables, WhatAPeerHasDroppedIsCoveredAsThePeerSays) {
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(run(i, node(i).drop_table(kOther)));
  start(2);
  see_all();
  EXPECT_TRUE(settle());
  EXPECT_EQ(node(2).anti_entropy().report().dots_covered, 4U);
  EXPECT_TRUE(contents(2, kOther).empty());
  expect_equal(*this);
}

TEST_F(ChangingTables, WhatWasDroppedHereIsCoveredThoughPeersGiveIt) {
  setup.tables = {kTable};
  start(2);
  ASSERT_TRUE(run(2, node(2).drop_table(kOther)));
  see_all();
  EXPECT_TRUE(settle());
  EXPECT_EQ(node(2).anti_entropy().report().dots_covered, 4U);
  expect_equal(*this);
}

TEST(AntiEntropy, WhatIsOfATableNotYetGivenWaitsForTheMetadata) {
  ReplicatedSetup setup = by_anti_entropy();
  setup.metadata = with_tables_below(setup.metadata, 8);
  ReplicatedWorld world(1, setup);
  EXPECT_TRUE(world.settle());
  const metadata::ClusterMetadata next = with_tables_below(world.setup.metadata, 9);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(world.run(i, world.node(i).create_table(kOther)));
    world.node(i).take(next);
  }
  for (int i = 0; i < 4; ++i) {
    world.write(0, put(world.partition("ada"), fmt::format("r{}", i), "v", kOther),
                Consistency::one);
  }
  world.write(1, put(world.partition("ada"), "r", "v"), Consistency::one);
  world.world().run_for(5s);
  // What is of other tables does not wait for them.
  EXPECT_EQ(world.contents(2), world.contents(0));
  const AntiEntropyReport report = world.node(2).anti_entropy().report();
  EXPECT_GT(report.mutations_put_off, 0U);
  EXPECT_EQ(report.dots_covered, 0U);
  EXPECT_EQ(report.peers.at(0).lacking_here, 4U);
  EXPECT_LT(report.pulls, 20U) << "it pauses";
  EXPECT_FALSE(world.node(0).keeps_nothing());
  ASSERT_TRUE(world.run(2, world.node(2).create_table(kOther)));
  world.node(2).take(next);
  EXPECT_TRUE(world.settle(2s)) << "at once";
  expect_equal(world, kOther);
}

// ---- Trouble ----

TEST(AntiEntropy, BothSidesOfAPartitionBecomeEqualWhenItHeals) {
  for (std::uint64_t seed = 1; seed <= base::count_from_environment("HELENUS_REPLICA_SEEDS", 3);
       ++seed) {
    SCOPED_TRACE(seed);
    ReplicatedWorld world(seed, by_anti_entropy());
    const std::vector<std::uint32_t> groups = {0, 1, 1};
    world.world().network().partition(groups);
    for (int i = 0; i < 10; ++i) {
      const Bytes partition = world.partition("ada");
      world.write(static_cast<std::size_t>(i) % kNodes,
                  put(partition, fmt::format("r{}", i), fmt::format("v{}", i)), Consistency::one);
      if (i == 6) world.write(0, remove(partition), Consistency::one);
    }
    world.world().run_for(20s);
    EXPECT_EQ(world.contents(1), world.contents(2));
    EXPECT_NE(world.contents(0), world.contents(1));
    EXPECT_FALSE(world.node(1).keeps_nothing());
    world.world().network().heal_partitions();
    EXPECT_TRUE(world.settle());
    expect_equal(world);
  }
}

TEST(AntiEntropy, LossyWiresOnlySlowItDown) {
  ReplicatedWorld world(1, by_anti_entropy());
  world.world().network().faults = {.loss = 0.2, .duplication = 0.1, .reordering = 0.2};
  for (int i = 0; i < 30; ++i) {
    world.write(static_cast<std::size_t>(i) % kNodes,
                put(world.partition("ada"), fmt::format("r{}", i), "v"), Consistency::one);
    world.world().run_for(50ms);
  }
  EXPECT_TRUE(world.settle(5min));
  expect_equal(world);
}

TEST(AntiEntropy, ManyMutationsComeInPages) {
  ReplicatedSetup setup = by_anti_entropy();
  setup.options.pulled_bytes_max = 1000;
  setup.options.pages_max = 5;
  ReplicatedWorld world(1, setup);
  world.kill(2);
  world.see({0, 1});
  for (int i = 0; i < 300; ++i) {
    world.write(0, put(world.partition("ada"), fmt::format("r{}", i), "some value"),
                Consistency::one);
  }
  world.start(2);
  world.see_all();
  EXPECT_TRUE(world.settle());
  expect_equal(world);
  const AntiEntropyReport report = world.node(2).anti_entropy().report();
  EXPECT_EQ(report.mutations_pulled, 300U);
  EXPECT_GE(report.pages, 10U);
  EXPECT_GE(report.pages, report.bytes_pulled / 2000);
  EXPECT_GE(report.pulls, report.pages / 5);
}

TEST(AntiEntropy, AnnouncementsAreOfBoundedSize) {
  ReplicatedSetup setup = by_anti_entropy();
  setup.options.announced_bytes_max = 1;
  ReplicatedWorld world(1, setup);
  EXPECT_TRUE(world.settle());
  for (std::size_t i = 0; i < kNodes; ++i) {
    const AntiEntropyReport report = world.node(i).anti_entropy().report();
    EXPECT_GE(report.announcements, 2 * report.tablets);
    EXPECT_EQ(report.announcements, report.clocks_announced);
  }
  expect_silence(world);
}

TEST(AntiEntropy, APeerThatIsNotThereIsPassedOver) {
  ReplicatedWorld world(1, by_anti_entropy());
  EXPECT_TRUE(world.settle());
  world.kill(2);
  world.see({0, 1});
  for (int i = 0; i < 5; ++i) {
    world.write(0, put(world.partition("ada"), fmt::format("r{}", i), "v"), Consistency::one);
  }
  world.world().run_for(1s);
  EXPECT_EQ(world.contents(0), world.contents(1));
  // The first one is gone when the third comes back, and is still taken for up.
  world.kill(0);
  world.start(2);
  world.see_all();
  EXPECT_TRUE(world.world().run_until(
      [&] { return world.node(2).anti_entropy().report().mutations_pulled == 5; }, 5s));
  EXPECT_EQ(world.contents(2), world.contents(1));
  EXPECT_FALSE(world.node(1).keeps_nothing());
  world.start(0);
  world.see_all();
  EXPECT_TRUE(world.settle());
}

// ---- Epochs, strangers and lost states ----

metadata::ClusterMetadata in_next_epoch(metadata::ClusterMetadata metadata) {
  metadata.epoch = metadata::Epoch{metadata.epoch.value() + 1};
  for (metadata::Tablet& tablet : metadata.tablets) tablet.epoch = metadata.epoch;
  return metadata;
}

TEST(AntiEntropy, ReplicasOfDifferentEpochsDoNotListenToEachOther) {
  ReplicatedWorld world(1, by_anti_entropy());
  world.write(0, put(world.partition("ada"), "r", "v"), Consistency::one);
  EXPECT_TRUE(world.settle());
  const metadata::ClusterMetadata next = in_next_epoch(world.setup.metadata);
  world.node(0).take(next);
  world.write(0, put(world.partition("ada"), "s", "v"), Consistency::one);
  world.write(1, put(world.partition("ada"), "t", "v"), Consistency::one);
  world.world().run_for(5s);
  EXPECT_EQ(world.contents(0).size(), 2U);
  EXPECT_EQ(world.contents(1), world.contents(2));
  EXPECT_FALSE(world.node(0).keeps_nothing());
  EXPECT_FALSE(world.node(1).keeps_nothing()) << "nothing is stable without the first";
  const AntiEntropyReport report = world.node(0).anti_entropy().report();
  EXPECT_GT(report.clocks_refused, 0U);
  EXPECT_GT(report.clocks_ignored, 0U);
  EXPECT_LT(report.announcements, 40U);
  for (std::size_t i = 1; i < kNodes; ++i) world.node(i).take(next);
  EXPECT_TRUE(world.settle());
  expect_equal(world);
  EXPECT_EQ(world.contents(0).size(), 3U);
  expect_silence(world);
}

TEST(AntiEntropy, APageThatComesInAnotherEpochIsNotTaken) {
  ReplicatedWorld world(1, by_anti_entropy());
  EXPECT_TRUE(world.settle());
  for (sim::MachineId i = 0; i < 2; ++i) {
    world.world().network().set_slowness(i, 2, 100);
    world.world().network().set_slowness(2, i, 100);
  }
  world.write(0, put(world.partition("ada"), "r", "v"), Consistency::one);
  EXPECT_TRUE(world.world().run_until(
      [&] { return world.node(2).anti_entropy().report().pulls > 0; }, 10s));
  world.world().run_for(1ms);
  world.node(2).take(in_next_epoch(world.setup.metadata));
  world.world().run_for(5s);
  EXPECT_EQ(world.node(2).anti_entropy().report().mutations_pulled, 0U);
  EXPECT_TRUE(world.contents(2).empty());
}

TEST(AntiEntropy, WhatWasStableAmongOtherReplicasIsNotAmongThese) {
  ReplicatedWorld world(1, by_anti_entropy());
  world.write(0, put(world.partition("ada"), "r", "v"), Consistency::one);
  world.write(0, remove(world.partition("ada")), Consistency::one);
  EXPECT_TRUE(world.settle());
  const metadata::ClusterMetadata next = in_next_epoch(world.setup.metadata);
  world.node(0).take(next);
  ASSERT_TRUE(world.run(0, world.node(0).compact(kTable)));
  EXPECT_GT(world.node(0).engine().statistics().sstables, 0U);
  for (std::size_t i = 1; i < kNodes; ++i) world.node(i).take(next);
  EXPECT_TRUE(world.settle());
  world.world().run_for(1s);
  ASSERT_TRUE(world.run(0, world.node(0).compact(kTable)));
  EXPECT_EQ(world.node(0).engine().statistics().sstables, 0U);
}

TEST(AntiEntropy, WhatAPowerLossMayTakeIsKeptByTheOthersAndComesBack) {
  for (std::uint64_t seed = 1; seed <= base::count_from_environment("HELENUS_REPLICA_SEEDS", 3);
       ++seed) {
    SCOPED_TRACE(seed);
    ReplicatedWorld world(seed, by_anti_entropy(ReplicatedWriter::Deltas::sent));
    EXPECT_TRUE(world.settle());
    world.kill(0);
    world.setup.sync_mode = storage::LogSyncMode::periodic;
    world.start(0);
    world.see_all();
    EXPECT_TRUE(world.settle());
    EXPECT_TRUE(world.write(0, put(world.partition("ada"), "r", "v"), Consistency::all).met);
    world.world().run_for(400ms);
    EXPECT_FALSE(world.node(1).keeps_nothing()) << "the first one has not synced it";
    world.machine(0).power_loss();
    world.world().run_for(10s);
    EXPECT_FALSE(world.node(1).keeps_nothing());
    world.start(0);
    world.see_all();
    // As new ones they take what the others have of the old ones.
    storage::Engine& engine = world.node(0).engine();
    for (const storage::TabletId tablet : engine.tablets_in_doubt()) {
      ASSERT_TRUE(world.run(0, engine.reincarnate(tablet, causality::actor_of(1, 77))));
    }
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(world.contents(0).size(), 1U);
    expect_equal(world);
  }
}

class OneToTalkTo : public ::testing::Test, protected ReplicatedWorld {
 protected:
  OneToTalkTo() : ReplicatedWorld(1, by_anti_entropy()) { EXPECT_TRUE(settle()); }
  AnnounceMessage announcement_of(causality::Epoch epoch, std::uint64_t life) {
    const HeldTablet& held = node(0).held().all().front();
    return {.wall = causality::WallTime{1},
            .clocks = {{.tablet = held.info.id, .epoch = epoch, .life = life, .clock = {}}}};
  }
  causality::Epoch epoch() { return node(0).held().all().front().epoch; }
  AntiEntropy& anti_entropy() { return node(0).anti_entropy(); }
  base::Result<PullReply> pull(model::NodeId from, storage::TabletId tablet, causality::Epoch of) {
    PullMessage message;
    message.tablet = tablet;
    message.epoch = of;
    return run(0, anti_entropy().on_pull(from, message, {}));
  }
};

TEST_F(OneToTalkTo, StrangersLearnNothingAndAreNotListenedTo) {
  const storage::TabletId tablet = node(0).held().all().front().info.id;
  const model::NodeId stranger = id(7);
  const causality::Epoch later{epoch().value() + 1};
  EXPECT_EQ(anti_entropy().on_announce(stranger, announcement_of(epoch(), 1)).known,
            std::vector<std::optional<std::uint64_t>>{std::nullopt});
  EXPECT_EQ(anti_entropy().on_announce(id(1), announcement_of(later, 1)).known,
            std::vector<std::optional<std::uint64_t>>{std::nullopt});
  EXPECT_TRUE(pull(stranger, tablet, epoch()).failed_with(Errc::refused));
  EXPECT_TRUE(pull(id(1), tablet, later).failed_with(Errc::refused));
  EXPECT_TRUE(pull(id(1), storage::TabletId{12345}, epoch()).failed_with(Errc::refused));
  EXPECT_TRUE(pull(id(1), tablet, epoch()).has_value());
}

TEST_F(OneToTalkTo, WhoSaysThatItBeganAnewIsToldAgain) {
  EXPECT_EQ(anti_entropy().report().peers.front().clocks_to_tell, 0U);
  const auto reply = anti_entropy().on_announce(id(1), announcement_of(epoch(), 99));
  EXPECT_TRUE(reply.known.front().has_value());
  EXPECT_EQ(anti_entropy().report().peers.front().clocks_to_tell, 1U);
  EXPECT_TRUE(settle());
}

TEST_F(OneToTalkTo, AReplicaThatHasLostItsOwnWritesSaysSo) {
  const HeldTablet& held = node(0).held().all().front();
  AnnounceMessage message = announcement_of(epoch(), 99);
  message.clocks.front().clock.add({.actor = held.info.actor, .counter = 1000});
  anti_entropy().on_announce(id(1), message);
  EXPECT_EQ(anti_entropy().report().tablets_behind_themselves, 1U);
  world().run_for(20s);
  EXPECT_LT(anti_entropy().report().pulls, 20U);
}

// ---- Histories ----

// What was minted is known, so what a reader is to be shown in the end is, too.
class History {
 public:
  explicit History(std::uint64_t seed) : prng_(seed), world_(seed, drawn(prng_)) {}

  void run() {
    for (int step = 0; step < 120; ++step) take_step();
    calm();
    check();
  }

 private:
  static ReplicatedSetup drawn(base::Prng& prng) {
    ReplicatedSetup setup =
        by_anti_entropy(prng.chance(0.5) ? ReplicatedWriter::Deltas::sent
                                         : ReplicatedWriter::Deltas::left_to_anti_entropy);
    setup.cores = prng.chance(0.5) ? 2 : 1;
    if (prng.chance(0.5)) setup.options.pulled_bytes_max = 500;
    if (prng.chance(0.5)) setup.options.pulls_max = 1;
    return setup;
  }

  void take_step() {
    const std::size_t node = prng_.below(kNodes);
    switch (prng_.below(12)) {
      case 0:
        world_.is_up(node) ? stop(node) : start(node);
        break;
      case 1: {
        const std::vector<std::uint32_t> groups = {prng_.chance(0.5) ? 1U : 0U,
                                                   prng_.chance(0.5) ? 1U : 0U, 0U};
        world_.world().network().partition(groups);
        break;
      }
      case 2:
        world_.world().network().heal_partitions();
        break;
      case 3:
        world_.world().run_for(std::chrono::milliseconds(prng_.below(3000)));
        break;
      case 4:
        if (world_.is_up(node)) EXPECT_TRUE(world_.run(node, world_.node(node).compact(kTable)));
        break;
      default:
        if (world_.is_up(node)) write(node);
    }
    world_.world().run_for(std::chrono::milliseconds(prng_.below(50)));
  }

  void stop(std::size_t node) {
    if (prng_.chance(0.5)) {
      world_.kill(node);
    } else {
      world_.machine(node).power_loss();
    }
    // Not everybody notices.
    if (prng_.chance(0.5)) world_.see_all();
  }
  void start(std::size_t node) {
    world_.start(node);
    world_.see_all();
  }

  void write(std::size_t node) {
    const auto which = static_cast<std::int64_t>(prng_.below(3));
    const Bytes partition = world_.partition(fmt::format("p{}", which), (which - 1) << 62);
    const std::string row = fmt::format("r{}", prng_.below(4));
    PartitionWrite write;
    switch (prng_.below(6)) {
      case 0:
        write = remove(partition);
        break;
      case 1:
        write = remove(partition, {.from = bytes(row), .to = {}});
        break;
      case 2:
        write = remove(partition, causality::range_of_row(bytes(row)));
        break;
      default:
        write = put(partition, row, fmt::format("v{}", values_++));
    }
    write.mutation.timestamp = causality::Timestamp{static_cast<std::int64_t>(prng_.below(5))};
    auto written = world_.run(node, world_.node(node).write(std::move(write), Consistency::one));
    ASSERT_TRUE(written.has_value()) << written.error().to_string();
    ASSERT_TRUE(written->delta.has_value());
    minted_[partition].absorb(causality::fragment_of(*written->delta, causality::Policy::lww));
  }

  void calm() {
    world_.world().network().heal_partitions();
    for (std::size_t node = 0; node < kNodes; ++node) {
      if (!world_.is_up(node)) world_.start(node);
    }
    world_.see_all();
    EXPECT_TRUE(world_.settle(5min));
  }

  std::set<std::string> expected() const {
    std::set<std::string> all;
    for (const auto& [partition, store] : minted_) {
      for (int i = 0; i < 4; ++i) {
        const std::string row = fmt::format("r{}", i);
        const auto value = shown(store, bytes(row));
        if (value) all.insert(fmt::format("{}/{}={}", partition.text(), row, *value));
      }
    }
    return all;
  }

  void check() {
    for (int round = 0; round < 2; ++round) {
      for (std::size_t node = 0; node < kNodes; ++node) {
        EXPECT_EQ(world_.contents(node), expected()) << node;
        EXPECT_TRUE(world_.run(node, world_.node(node).compact(kTable)));
      }
    }
    // Nothing is left of what was deleted.
    for (const auto& [partition, store] : minted_) {
      world_.write(0, remove(partition), Consistency::one);
    }
    EXPECT_TRUE(world_.settle());
    for (std::size_t node = 0; node < kNodes; ++node) {
      EXPECT_TRUE(world_.run(node, world_.node(node).compact(kTable)));
      EXPECT_EQ(world_.node(node).sstables(), 0U) << node;
    }
  }

  base::Prng prng_;
  ReplicatedWorld world_;
  int values_ = 0;
  std::map<Bytes, causality::PartitionStore> minted_;
};

TEST(AntiEntropy, WhateverHappensAllShowWhatWasWrittenAndKeepNothing) {
  const std::uint64_t seeds = base::count_from_environment("HELENUS_REPLICA_HISTORIES", 10);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed);
    history.run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace helenus::replication::testing
