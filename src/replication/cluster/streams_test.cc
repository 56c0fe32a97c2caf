// Replicas that lack what no mutation log has any more.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/codec.h"
#include "metadata/transitions.h"
#include "replication/cluster/replicated_world_test_support.h"
#include "storage/entry/entry.h"

namespace helenus::replication::testing {
namespace {

using base::Bytes;
using base::Errc;
using model::Consistency;

ReplicatedSetup with_streams() {
  ReplicatedSetup setup;
  setup.anti_entropy = true;
  return setup;
}

class StreamWorld : public ReplicatedWorld {
 public:
  explicit StreamWorld(ReplicatedSetup its = with_streams()) : ReplicatedWorld(1, std::move(its)) {}

  void put_rows(std::size_t at, const std::string& prefix, int count,
                Consistency level = Consistency::quorum) {
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(write(at, put(partition_, fmt::format("{}{}", prefix, i), "v"), level).met);
    }
  }
  AntiEntropyReport report(std::size_t i) { return node(i).anti_entropy().report(); }
  void take(const metadata::ClusterMetadata& metadata) {
    setup.metadata = metadata;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (is_up(i)) node(i).take(metadata);
    }
  }
  // Its disk is as it was, and it comes back under new names.
  void put_back(std::size_t i, const sim::SimDisk::Image& image) {
    machine(i).power_loss();
    machine(i).disk().put_back(image, true);
    take(*metadata::begin_reentry(setup.metadata, id(i)));
    start(i);
    see_all();
  }
  void finish_reentry(std::size_t i) {
    const metadata::ClusterMetadata& now = setup.metadata;
    take(*metadata::finish_reentry(now, id(i), now.find(id(i))->reentered, now.epoch));
  }
  bool catches_up(std::size_t i) {
    return world().run_until([&] { return node(i).anti_entropy().reentry().tablets_behind == 0; },
                             30s);
  }
  void expect_equal() {
    EXPECT_EQ(contents(1), contents(0));
    EXPECT_EQ(contents(2), contents(0));
  }

  const Bytes partition_ = partition("ada");
};

// Deletes are among what it lacks: what they deleted does not come back, here nor there.
TEST(Streams, APeerBehindTheCapIsCopiedTo) {
  ReplicatedSetup setup = with_streams();
  setup.mutation_log_bytes_max = 1;
  StreamWorld world(setup);
  world.put_rows(0, "old", 3, Consistency::all);
  EXPECT_TRUE(world.settle());
  world.kill(2);
  world.see({0, 1});
  world.put_rows(0, "new", 5);
  EXPECT_TRUE(world
                  .write(0, remove(world.partition_, {.from = bytes("old0"), .to = bytes("old1")}),
                         Consistency::quorum)
                  .met);
  world.world().run_for(2s);
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
  world.world().run_for(2s);
  EXPECT_TRUE(world.node(0).keeps_nothing()) << "the cap has taken it";
  world.start(2);
  world.see_all();
  world.write(0, put(world.partition_, "later", "v"), Consistency::one);
  EXPECT_TRUE(world.settle());
  EXPECT_EQ(world.contents(0).size(), 8U);
  world.expect_equal();
  const AntiEntropyReport report = world.report(2);
  EXPECT_GE(report.streams, 1U);
  EXPECT_EQ(report.streams_failed, 0U);
  EXPECT_EQ(report.withheld, 0U);
  for (std::size_t i = 0; i < kNodes; ++i) {
    ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
  }
  EXPECT_EQ(world.contents(0).size(), 8U);
  world.expect_equal();
}

// Everybody has found stable, and dropped, what the image does not know of.
TEST(Streams, ANodeWhoseDiskIsAsItWasLongAgoIsCopiedTo) {
  StreamWorld world;
  world.put_rows(2, "old", 4, Consistency::all);
  EXPECT_TRUE(world.settle());
  const auto image = world.machine(2).disk().snapshot();
  world.put_rows(2, "new", 10, Consistency::all);
  for (int i = 0; i < 2; ++i) {
    const causality::RowRange rows{.from = bytes(fmt::format("old{}", i)),
                                   .to = bytes(fmt::format("old{}~", i))};
    EXPECT_TRUE(world.write(0, remove(world.partition_, rows), Consistency::all).met);
  }
  EXPECT_TRUE(world.settle());
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
  world.put_back(2, *image);
  EXPECT_TRUE(world.catches_up(2));
  EXPECT_GE(world.report(2).streams, 1U);
  world.finish_reentry(2);
  EXPECT_EQ(world.contents(2).size(), 12U);
  world.expect_equal();
  EXPECT_EQ(world.read(2, world.partition_, "old0", Consistency::one), std::nullopt);
  EXPECT_TRUE(world.write(2, put(world.partition_, "after", "w"), Consistency::all).met);
  EXPECT_TRUE(world.settle());
  world.expect_equal();
}

TEST(Streams, ACopyIsTakenOnRequest) {
  ReplicatedSetup setup = with_streams();
  setup.options.streamed_bytes_max = 1;  // an entry a page
  StreamWorld world(setup);
  world.kill(2);
  world.see({0, 1});
  world.put_rows(0, "r", 6);
  world.start(2);
  for (const HeldTablet& held : world.node(2).held().all()) {
    const auto copied = world.run(
        2, world.node(2).anti_entropy().copy(held.info.id, world.id(0), runtime::Until::forever()));
    EXPECT_TRUE(copied.has_value()) << copied.error().to_string();
  }
  EXPECT_EQ(world.contents(2), world.contents(0));
  EXPECT_EQ(world.contents(2).size(), 6U);
  EXPECT_TRUE(world
                  .run(2, world.node(2).anti_entropy().copy(storage::TabletId{99}, world.id(0),
                                                            runtime::Until::forever()))
                  .failed_with(Errc::not_found));
}

// The one that gives dies in the middle: nothing of it is taken, and the other one gives all.
TEST(Streams, ASourceThatDiesLeavesNothingBehind) {
  ReplicatedSetup setup = with_streams();
  setup.mutation_log_bytes_max = 1;
  setup.options.streamed_bytes_max = 1;
  StreamWorld world(setup);
  world.kill(2);
  world.see({0, 1});
  world.put_rows(0, "r", 200);
  world.world().run_for(2s);
  for (std::size_t i = 0; i < 2; ++i) ASSERT_TRUE(world.run(i, world.node(i).compact(kTable)));
  world.world().run_for(2s);
  world.start(2);
  world.see_all();
  world.write(0, put(world.partition_, "later", "v"), Consistency::one);
  EXPECT_TRUE(world.world().run_until([&] { return world.report(2).streams > 0; }, 10s));
  world.world().run_for(20ms);
  EXPECT_TRUE(world.contents(2).size() <= 1) << "all or nothing";
  const std::size_t source = world.report(0).streams_served > 0 ? 0 : 1;
  world.kill(source);
  EXPECT_TRUE(world.world().run_until([&] { return world.contents(2).size() >= 200; }, 1min));
  world.start(source);
  world.see_all();
  EXPECT_TRUE(world.settle(3min));
  world.expect_equal();
}

// ---- What a hostile or broken peer may not send ----

StreamedEntry an_entry(const std::string& key, const causality::Dot& dot,
                       storage::EntryKind kind = storage::EntryKind::row) {
  storage::Entry entry;
  causality::Version version{
      .dot = dot, .timestamp = causality::Timestamp{1}, .expires = {}, .value = bytes("v")};
  causality::CellStore cell;
  cell.add(std::move(version));
  entry.absorb_cell(kColumn, std::move(cell));
  base::Buffer buffer;
  base::Encoder out(buffer);
  encode(out, entry);
  return {.key = bytes(storage::encode_key({base::as_bytes("p"), kind, base::as_bytes(key)})),
          .partition_size = 1,
          .entry = std::move(buffer).freeze()};
}

TEST(Streams, OnlyWhatIsClaimedOfTheTabletIsTaken) {
  const causality::Dot dot{causality::actor_of(1, 1), 3};
  causality::Clock claim;
  claim.add(dot);
  const storage::KeyRange range{.from = bytes("p"), .to = bytes("q")};
  EXPECT_TRUE(check_streamed(an_entry("r", dot), range, claim).has_value());
  const auto refused = [&](const StreamedEntry& entry, const storage::KeyRange& of) {
    return check_streamed(entry, of, claim).failed_with(Errc::corrupt);
  };
  EXPECT_TRUE(refused(an_entry("r", {causality::actor_of(1, 1), 4}), range));
  EXPECT_TRUE(refused(an_entry("r", dot), {.from = bytes("q"), .to = std::nullopt}));
  EXPECT_TRUE(refused(an_entry("r", dot, storage::EntryKind::deleted_ranges), range));
  StreamedEntry cut = an_entry("r", dot);
  cut.entry = cut.entry.slice(0, cut.entry.size() - 1);
  EXPECT_FALSE(check_streamed(cut, range, claim).has_value());
  StreamedEntry odd = an_entry("r", dot);
  odd.key = bytes("p\x07r");
  EXPECT_TRUE(refused(odd, range));
}

}  // namespace
}  // namespace helenus::replication::testing
