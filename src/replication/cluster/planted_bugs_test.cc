// Rules broken on purpose (PlantedBugs): each story holds by the rules as they are, and does not
// when its rule is broken. Bugs of pure parts are planted beside their laws: pages that have no
// ranges or claim beyond their end in answer_merge_test.cc, the time that remains in rpc_test.cc,
// and all rules of the specification in src/explore.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Bytes;
using model::Consistency;

ReplicatedSetup with(const PlantedBugs& bugs, bool anti_entropy = true) {
  ReplicatedSetup setup;
  setup.anti_entropy = anti_entropy;
  setup.bugs = bugs;
  return setup;
}

PartitionWrite put_at(const Bytes& partition, std::string_view row, std::string_view value,
                      std::int64_t timestamp) {
  PartitionWrite write = put(partition, row, value);
  write.mutation.timestamp = causality::Timestamp{timestamp};
  return write;
}

PartitionWrite explicit_put(const Bytes& partition, std::string_view row, std::string_view value,
                            std::int64_t timestamp) {
  PartitionWrite write = put_at(partition, row, value, timestamp);
  write.explicit_timestamp = true;
  return write;
}

PartitionWrite remove_cell(const Bytes& partition, std::string_view row) {
  PartitionWrite write = put(partition, row, "");
  write.mutation.cells.front().kind = causality::VersionKind::deletion;
  return write;
}

// Who has been repaired in one row of a mutation has all of the mutation.
bool repairs_are_whole(const PlantedBugs& bugs) {
  ReplicatedWorld world(1, with(bugs, false));
  const Bytes partition = world.partition("ada");
  world.kill(2);
  world.see({0, 1});
  PartitionWrite both = put(partition, "r1", "v");
  both.mutation.cells.push_back(put(partition, "r2", "v").mutation.cells.front());
  EXPECT_TRUE(world.write(0, std::move(both), Consistency::quorum).met);
  world.start(2);
  world.see({0, 2});
  EXPECT_EQ(world.read(2, partition, "r1", Consistency::quorum), "v");
  return world.read(2, partition, "r2", Consistency::quorum) == "v";
}

TEST(PlantedBugs, ARepairThatBringsAPartIsFound) {
  EXPECT_TRUE(repairs_are_whole({}));
  EXPECT_FALSE(repairs_are_whole({.repairs_bring_parts = true}));
}

// A delete at QUORUM through a replica that never heard of the write that two others have.
bool deletes_cover(const PlantedBugs& bugs) {
  ReplicatedWorld world(1, with(bugs, false));
  const Bytes partition = world.partition("ada");
  world.kill(0);
  world.see({1, 2});
  EXPECT_TRUE(world.write(1, put_at(partition, "r", "v", 100), Consistency::quorum).met);
  world.start(0);
  world.see_all();
  EXPECT_TRUE(world.write(0, remove_cell(partition, "r"), Consistency::quorum).met);
  world.world().run_for(1s);
  return world.read(1, partition, "r", Consistency::all) == std::nullopt;
}

TEST(PlantedBugs, ADeleteByItsOwnClockAloneIsFound) {
  EXPECT_TRUE(deletes_cover({}));
  EXPECT_FALSE(deletes_cover({.deletes_by_own_clock = true}));
}

// The same of what a batch deletes beside what it writes, and of any write where the table says so.
TEST(PlantedBugs, WhatIsDeletedBesideAWriteIsCoveredToo) {
  ReplicatedWorld world(1, with({}, false));
  const Bytes partition = world.partition("ada");
  world.kill(0);
  world.see({1, 2});
  EXPECT_TRUE(world.write(1, put_at(partition, "r", "v", 100), Consistency::quorum).met);
  EXPECT_TRUE(world.write(1, put_at(partition, "s", "old", 100), Consistency::quorum).met);
  EXPECT_TRUE(world.write(1, put_at(partition, "t", "old", 100), Consistency::quorum).met);
  world.start(0);
  world.see_all();
  PartitionWrite batch = remove_cell(partition, "r");
  batch.mutation.cells.push_back(put(partition, "s", "new").mutation.cells.front());
  EXPECT_TRUE(world.write(0, std::move(batch), Consistency::quorum).met);
  PartitionWrite causal = put(partition, "t", "new");
  causal.unites_clocks = true;
  EXPECT_TRUE(world.write(0, std::move(causal), Consistency::quorum).met);
  world.world().run_for(1s);
  EXPECT_EQ(world.read(1, partition, "r", Consistency::all), std::nullopt);
  EXPECT_EQ(world.read(1, partition, "s", Consistency::all), "new");
  EXPECT_EQ(world.read(1, partition, "t", Consistency::all), "new");
}

// A table that one node does not know yet, and rows of it that come there by a pull.
bool unknown_waits(const PlantedBugs& bugs) {
  constexpr storage::TableId kNew{8};
  const auto with_tables_below = [](metadata::ClusterMetadata metadata, std::uint64_t storage) {
    metadata.next.storage = metadata::StorageId{storage};
    return metadata;
  };
  ReplicatedSetup setup = with(bugs);
  setup.deltas = ReplicatedWriter::Deltas::left_to_anti_entropy;
  setup.metadata = with_tables_below(setup.metadata, 8);
  ReplicatedWorld world(1, setup);
  EXPECT_TRUE(world.settle());
  const metadata::ClusterMetadata next = with_tables_below(world.setup.metadata, 9);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(world.run(i, world.node(i).create_table(kNew)).has_value());
    world.node(i).take(next);
  }
  world.write(0, put(world.partition("ada"), "r", "v", kNew), Consistency::one);
  world.world().run_for(3s);
  EXPECT_TRUE(world.run(2, world.node(2).create_table(kNew)).has_value());
  world.node(2).take(next);
  EXPECT_TRUE(world.settle());
  return world.contents(2, kNew) == world.contents(0, kNew);
}

TEST(PlantedBugs, AnUnknownTableThatIsTakenForADroppedOneIsFound) {
  EXPECT_TRUE(unknown_waits({}));
  EXPECT_FALSE(unknown_waits({.unknown_is_dropped = true}));
}

// An older write that one replica lacks still, and a newer delete that all have.
bool nothing_returns(const PlantedBugs& bugs) {
  ReplicatedSetup setup = with(bugs);
  setup.options.pulls_max = 0;
  ReplicatedWorld world(1, setup);
  const Bytes partition = world.partition("ada");
  world.see({2});
  EXPECT_TRUE(world.write(2, put_at(partition, "r", "old", 5), Consistency::one).met);
  world.see_all();
  PartitionWrite deletes = remove_cell(partition, "r");
  deletes.mutation.timestamp = causality::Timestamp{10};
  EXPECT_TRUE(world.write(0, std::move(deletes), Consistency::one).met);
  world.world().run_for(1s);
  EXPECT_TRUE(world.run(0, world.node(0).compact(kTable)).has_value());
  for (std::size_t i = 0; i < kNodes; ++i) world.kill(i);
  world.setup.options.pulls_max = 4;
  for (std::size_t i = 0; i < kNodes; ++i) world.start(i);
  world.see_all();
  EXPECT_TRUE(world.settle());
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (!world.contents(i).empty()) return false;
  }
  return true;
}

TEST(PlantedBugs, AWatermarkOfWhatIsNotAllHereIsFound) {
  EXPECT_TRUE(nothing_returns({}));
  EXPECT_FALSE(nothing_returns({.watermarks_without_covering = true}));
}

// A write at an old explicit time is judged, and must read the disk for it, while a newer one of
// another node comes in.
bool the_newer_one_wins(const PlantedBugs& bugs) {
  constexpr int kRounds = 25;
  ReplicatedSetup setup = with(bugs);
  setup.has_cache = false;
  ReplicatedWorld world(1, setup);
  const auto partition = [&](int round) { return world.partition(fmt::format("p{}", round)); };
  for (int round = 0; round < kRounds; ++round) {
    world.write(0, put_at(partition(round), "r", "first", 1), Consistency::all);
  }
  EXPECT_TRUE(world.settle());
  EXPECT_TRUE(world.run(0, world.node(0).compact(kTable)).has_value());
  world.machine(0).disk_queue().faults.slowness = 100;
  for (int round = 0; round < kRounds; ++round) {
    std::optional<base::Result<ReplicatedWriter::Written>> newer;
    std::optional<base::Result<ReplicatedWriter::Written>> older;
    world.begin(1,
                world.node(1).write(put_at(partition(round), "r", "newer", 10), Consistency::one),
                newer);
    world.world().run_for(round * 100us);
    world.begin(
        0, world.node(0).write(explicit_put(partition(round), "r", "older", 5), Consistency::one),
        older);
    EXPECT_TRUE(
        world.world().run_until([&] { return newer.has_value() && older.has_value(); }, 10s));
  }
  world.machine(0).disk_queue().faults.slowness = 1;
  EXPECT_TRUE(world.settle());
  int wins = 0;
  for (int round = 0; round < kRounds; ++round) {
    wins += world.read(2, partition(round), "r", Consistency::all) == "newer" ? 1 : 0;
  }
  return wins == kRounds;
}

TEST(PlantedBugs, AWriteThatIsJudgedLosesToADeltaThatComesMeanwhile) {
  EXPECT_TRUE(the_newer_one_wins({}));
}

// The delete of a newer value is stable and forgotten, the value itself is not stable: a replica
// lacks what its actor minted before. Whoever writes below its timestamp loses to it.
bool loses_to_what_is_covered(const PlantedBugs& bugs) {
  ReplicatedSetup setup = with(bugs);
  setup.options.pulls_max = 0;
  ReplicatedWorld world(1, setup);
  const Bytes partition = world.partition("ada");
  world.see({0, 1});
  EXPECT_TRUE(world.write(1, put(partition, "other", "v"), Consistency::one).met);
  world.see_all();
  EXPECT_TRUE(world.write(1, put_at(partition, "r", "newer", 20), Consistency::all).met);
  EXPECT_TRUE(world.write(2, remove_cell(partition, "r"), Consistency::one).met);
  world.world().run_for(1s);
  EXPECT_TRUE(world.run(0, world.node(0).compact(kTable)).has_value());
  EXPECT_FALSE(world.node(0).keeps_nothing());
  auto judged = world.run(
      0, world.node(0).write(explicit_put(partition, "r", "older", 10), Consistency::one));
  EXPECT_TRUE(judged.has_value());
  return !judged->reply.minted;
}

TEST(PlantedBugs, AnExplicitTimestampJudgedWithoutTheLogIsFound) {
  EXPECT_TRUE(loses_to_what_is_covered({}));
  EXPECT_FALSE(loses_to_what_is_covered({.judges_without_log = true}));
}

// A delete of rows at an old time deletes what is older, and names no cell of which something newer
// may come again: here of `r`, which is nowhere stored any more.
TEST(PlantedBugs, ADeleteOfRowsAtAnOldTimeSparesWhatTheLogHas) {
  for (const bool judges_without_log : {false, true}) {
    ReplicatedSetup setup = with({.judges_without_log = judges_without_log});
    setup.options.pulls_max = 0;
    ReplicatedWorld world(1, setup);
    const Bytes partition = world.partition("ada");
    world.see({0, 1});
    EXPECT_TRUE(world.write(1, put(partition, "other", "v"), Consistency::one).met);
    world.see_all();
    EXPECT_TRUE(world.write(1, put_at(partition, "q", "older", 5), Consistency::all).met);
    EXPECT_TRUE(world.write(1, put_at(partition, "r", "newer", 20), Consistency::all).met);
    EXPECT_TRUE(world.write(2, remove_cell(partition, "r"), Consistency::one).met);
    world.world().run_for(1s);
    EXPECT_TRUE(world.run(0, world.node(0).compact(kTable)).has_value());
    PartitionWrite older = remove(partition, {.from = bytes("p"), .to = bytes("z")});
    older.mutation.timestamp = causality::Timestamp{10};
    older.explicit_timestamp = true;
    older.columns.of_rows = {kColumn};
    const auto judged = world.run(0, world.node(0).write(std::move(older), Consistency::one));
    ASSERT_TRUE(judged.has_value() && judged->delta.has_value());
    const auto names = [&](std::string_view row) {
      const auto in = [&](const causality::RowRange& range) { return range.contains(bytes(row)); };
      const auto at = [&](const causality::CellChange& cell) { return cell.row == bytes(row); };
      return std::ranges::any_of(judged->delta->deleted_ranges, in) ||
             std::ranges::any_of(judged->delta->cells, at);
    };
    EXPECT_TRUE(names("q"));
    EXPECT_TRUE(names("s")) << "nobody wrote it";
    EXPECT_EQ(names("r"), judges_without_log);
  }
}

// Two values of the same time, each at one replica: everybody is shown the same of them.
bool all_show_the_same(const PlantedBugs& bugs) {
  ReplicatedWorld world(1, with(bugs, false));
  const Bytes partition = world.partition("ada");
  world.see({0});
  EXPECT_TRUE(world.write(0, put_at(partition, "r", "a", 10), Consistency::one).met);
  world.see({1});
  EXPECT_TRUE(world.write(1, put_at(partition, "r", "b", 10), Consistency::one).met);
  world.see({0, 1});
  const auto first = world.read(0, partition, "r", Consistency::quorum);
  return first == world.read(1, partition, "r", Consistency::quorum);
}

TEST(PlantedBugs, ADigestWithoutDotsIsFound) {
  EXPECT_TRUE(all_show_the_same({}));
  EXPECT_FALSE(all_show_the_same({.digests_without_dots = true}));
}

// What a write has replaced it goes on beating what that had beaten.
bool beats_what_it_replaced(const PlantedBugs& bugs) {
  ReplicatedWorld world(1, with(bugs));
  const Bytes partition = world.partition("ada");
  world.see({2});
  EXPECT_TRUE(world.write(2, put_at(partition, "r", "beaten", 50), Consistency::one).met);
  world.see({0, 1});
  EXPECT_TRUE(world.write(1, put_at(partition, "r", "newest", 100), Consistency::one).met);
  world.world().run_for(1s);
  EXPECT_TRUE(world.write(0, put_at(partition, "r", "last", 1), Consistency::one).met);
  world.see_all();
  EXPECT_TRUE(world.settle());
  return world.read(2, partition, "r", Consistency::all) == "last";
}

TEST(PlantedBugs, ATimestampThatIsNotRaisedIsFound) {
  EXPECT_TRUE(beats_what_it_replaced({}));
  EXPECT_FALSE(beats_what_it_replaced({.timestamps_are_not_raised = true}));
}

}  // namespace
}  // namespace helenus::replication::testing
