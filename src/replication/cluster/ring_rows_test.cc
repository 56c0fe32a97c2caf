// Rows while the replicas of their tablets change: what is asked in an epoch that is over, and who
// pulls from whom before a change is finished (R17, R18).
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metadata/transitions.h"
#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Errc;
using metadata::ClusterMetadata;
using model::Consistency;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RingRows : public ::testing::Test, protected ReplicatedWorld {
 protected:
  RingRows() : ReplicatedWorld(1, setup_of()) {}

  void take(const ClusterMetadata& metadata, std::set<std::size_t> by = {0, 1, 2}) {
    setup.metadata = metadata;
    for (const std::size_t i : by) node(i).take(metadata);
  }
  ClusterMetadata leaving() const { return *metadata::begin_leave(setup.metadata, id(2)); }
  static ClusterMetadata advanced(const ClusterMetadata& metadata) {
    return *metadata::advance_change(metadata, metadata.epoch);
  }
  std::size_t behind(std::size_t i) { return node(i).anti_entropy().ring_progress().joint_behind; }

  const base::Bytes partition_ = partition("ada");

 private:
  static ReplicatedSetup setup_of() {
    ReplicatedSetup setup;
    setup.anti_entropy = true;
    return setup;
  }
};

TEST_F(RingRows, WhoStaysHasPulledFromAllBeforeAChangeIsFinished) {
  // The first one lacks it, and does not hear of it: quorums of before are those of the others.
  kill(0);
  see({1, 2});
  EXPECT_TRUE(write(1, put(partition_, "r", "v"), Consistency::quorum).met);
  kill(1);
  start(0);
  take(leaving(), {0, 2});
  const ClusterMetadata joint = advanced(setup.metadata);
  take(joint, {0, 2});
  see({0, 2});
  // One that stays has not been asked: the change must wait for it.
  world().run_for(2s);
  EXPECT_GT(behind(0), 0U);
  EXPECT_THAT(node(0).anti_entropy().ring_progress().waits_for, ElementsAre(id(1)));
  EXPECT_EQ(node(2).anti_entropy().ring_progress().joint, 0U);
  start(1);
  see_all();
  EXPECT_TRUE(world().run_until([&] { return behind(0) == 0 && behind(1) == 0; }, 10s));
  take(advanced(joint), {0, 1});
  see({0, 1});
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "v");
  EXPECT_THAT(contents(0), Contains(HasSubstr("r=v")));
}

TEST_F(RingRows, AWriteThatIsOvertakenByAnEpochIsCountedAnew) {
  const ClusterMetadata next = leaving();
  const ClusterMetadata joint = advanced(next);
  take(joint, {1, 2});
  std::optional<base::Result<ReplicatedWriter::Written>> written;
  begin(0, node(0).write(put(partition_, "r", "v"), Consistency::quorum), written);
  world().run_for(500ms);
  EXPECT_FALSE(written.has_value()) << "others are in another epoch, and acknowledge nothing";
  take(joint, {0});
  EXPECT_TRUE(world().run_until([&] { return written.has_value(); }, 1s));
  ASSERT_TRUE(written->has_value()) << written->error().to_string();
  EXPECT_TRUE((*written)->reply.met);
  EXPECT_EQ((*written)->reply.report.required, 4U);
  EXPECT_EQ(read(1, partition_, "r", Consistency::quorum), "v");
}

TEST_F(RingRows, AWriteWaitsForReplicasThatAreBehindIt) {
  const ClusterMetadata joint = advanced(leaving());
  take(joint, {0});
  std::optional<base::Result<ReplicatedWriter::Written>> written;
  begin(0, node(0).write(put(partition_, "r", "v"), Consistency::quorum), written);
  world().run_for(500ms);
  EXPECT_FALSE(written.has_value());
  take(joint, {1, 2});
  EXPECT_TRUE(world().run_until([&] { return written.has_value(); }, 1s));
  EXPECT_TRUE(written->has_value() && (*written)->reply.met);
}

TEST_F(RingRows, AReadOfAnEpochThatIsOverIsAskedAgain) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  const ClusterMetadata joint = advanced(leaving());
  take(joint, {1, 2});
  std::optional<base::Result<std::optional<std::string>>> found;
  begin(0, node(0).read(partition_, "r", Consistency::quorum), found);
  std::optional<base::Result<std::vector<std::string>>> scanned;
  begin(0, node(0).scan(2, Consistency::quorum), scanned);
  world().run_for(500ms);
  EXPECT_FALSE(found.has_value());
  EXPECT_FALSE(scanned.has_value());
  // Nobody is in its epoch, as long as that lasts.
  std::optional<base::Result<std::optional<std::string>>> late;
  begin(0, node(0).read(partition_, "r", Consistency::quorum), late);
  EXPECT_TRUE(world().run_until([&] { return late.has_value(); }, 3s));
  EXPECT_TRUE(late->failed_with(Errc::unavailable));
  found.reset();
  begin(0, node(0).read(partition_, "r", Consistency::quorum), found);
  world().run_for(100ms);
  take(joint, {0});
  EXPECT_TRUE(world().run_until([&] { return found.has_value(); }, 1s));
  ASSERT_TRUE(found->has_value()) << found->error().to_string();
  EXPECT_EQ(**found, "v");
}

}  // namespace
}  // namespace helenus::replication::testing
