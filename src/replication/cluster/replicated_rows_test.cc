// Three replicas on simulated machines, each an engine, and what is written and read through them.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Errc;
using model::Consistency;

// Nothing but what requests do brings anything from one to the other.
class ReplicatedRows : public ::testing::Test, protected ReplicatedWorld {
 protected:
  const base::Bytes partition_ = partition("ada");
};

TEST_F(ReplicatedRows, AWriteAtQuorumIsReadThroughEveryNode) {
  const WriteReply reply = write(0, put(partition_, "r", "v"), Consistency::quorum);
  EXPECT_TRUE(reply.met);
  EXPECT_EQ(reply.report.required, 2U);
  EXPECT_GE(reply.report.received, 2U);
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(read(i, partition_, "r", Consistency::quorum), "v") << i;
  }
  world().run_for(1s);
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(read(i, partition_, "r", Consistency::one), "v") << i;
  }
}

TEST_F(ReplicatedRows, WithOneNodeDownQuorumGoesOnAndAllDoesNot) {
  kill(2);
  see({0, 1});
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::quorum).met);
  EXPECT_EQ(read(1, partition_, "r", Consistency::quorum), "v");
  const auto refused = run(0, node(0).write(put(partition_, "r", "w"), Consistency::all));
  EXPECT_TRUE(refused.failed_with(Errc::unavailable));
  LevelReport report;
  EXPECT_TRUE(run(0, node(0).read(partition_, "r", Consistency::all, &report))
                  .failed_with(Errc::unavailable));
  EXPECT_EQ(report.required, 3U);
  EXPECT_EQ(report.received, 2U);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "v");
  // It comes back without what it missed: a quorum with it still sees the write.
  start(2);
  see_all();
  EXPECT_EQ(read(2, partition_, "r", Consistency::quorum), "v");
}

// What a majority has shown it has: whoever reads after that with another majority sees it, too.
TEST_F(ReplicatedRows, AReadOfSeveralBringsReplicasWhatTheyLack) {
  kill(2);
  see({0, 1});
  EXPECT_TRUE(write(0, put(partition_, "r", "old"), Consistency::quorum).met);
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::quorum).met);
  EXPECT_TRUE(write(1, put(partition_, "gone", "v"), Consistency::quorum).met);
  start(2);
  see({0, 2});
  EXPECT_EQ(read(2, partition_, "r", Consistency::one), std::nullopt);
  EXPECT_EQ(read(2, partition_, "r", Consistency::quorum), "v");
  EXPECT_EQ(read(2, partition_, "r", Consistency::one), "v");
  EXPECT_EQ(read(2, partition_, "gone", Consistency::one), "v") << "the partition's mutations";
  // And deletes.
  kill(2);
  see({0, 1});
  EXPECT_TRUE(write(0, remove(partition_), Consistency::quorum).met);
  start(2);
  see({0, 2});
  world().run_for(1s);  // the others dial it again
  EXPECT_EQ(read(2, partition_, "r", Consistency::one), "v");
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), std::nullopt);
  EXPECT_EQ(read(2, partition_, "r", Consistency::one), std::nullopt);
}

// The delete is at one replica alone, the second has nothing, the third still has the value: who
// has read of the first two that nothing is there does not see the value again.
TEST_F(ReplicatedRows, AReadOfSeveralBringsDeletesToWhoHasNothingOfTheRow) {
  kill(1);
  see({0, 2});
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::quorum).met);
  kill(2);
  see({0});
  EXPECT_TRUE(write(0, remove(partition_), Consistency::one).met);
  start(1);
  see({0, 1});
  world().run_for(1s);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), std::nullopt);
  kill(0);
  start(2);
  see({1, 2});
  world().run_for(1s);
  EXPECT_EQ(read(2, partition_, "r", Consistency::one), "v");
  EXPECT_EQ(read(1, partition_, "r", Consistency::quorum), std::nullopt);
}

TEST_F(ReplicatedRows, WhereReplicasShowTheSameOneSendsRowsAndTheOthersDigests) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  const RequestStatistics& statistics = node(0).link().statistics();
  EXPECT_EQ(read(0, partition_, "r", Consistency::all), "v");
  EXPECT_EQ(read(0, partition_, "nothing", Consistency::quorum), std::nullopt);
  EXPECT_EQ(statistics.digest_reads, 2U);
  EXPECT_EQ(statistics.digest_mismatches, 0U);
  EXPECT_EQ(read(0, partition_, "r", Consistency::one), "v");
  EXPECT_EQ(statistics.digest_reads, 2U) << "nobody else was asked";
  // One of them lacks a write: all is asked for, and it gets it.
  kill(1);
  see({0, 2});
  EXPECT_TRUE(write(0, put(partition_, "r", "w"), Consistency::quorum).met);
  start(1);
  see({0, 1});
  world().run_for(1s);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "w");
  EXPECT_EQ(statistics.digest_mismatches, 1U);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "w");
  EXPECT_EQ(statistics.digest_mismatches, 1U) << "they are equal now";
  EXPECT_EQ(statistics.digest_reads, 4U);
}

TEST_F(ReplicatedRows, WhoWasAskedForRowsAndDoesNotAnswerIsReplacedByOneThatIsAskedForRows) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  kill(0);
  see({1, 2});
  start(0);
  kill(2);  // and the others have not heard of it
  see_all();
  world().run_for(1s);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "v");
  EXPECT_EQ(read(1, partition_, "r", Consistency::quorum), "v");
}

TEST_F(ReplicatedRows, ANodeThatIsThoughtToBeUpAndIsNotCostsASpare) {
  EXPECT_TRUE(write(0, put(partition_, "r", "v"), Consistency::all).met);
  kill(1);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), "v");
  EXPECT_TRUE(write(0, put(partition_, "r", "w"), Consistency::quorum).met);
  const WriteReply reply = write(0, put(partition_, "r", "x"), Consistency::all);
  EXPECT_FALSE(reply.met);
  EXPECT_GE(reply.report.received, 1U);
  EXPECT_LT(reply.report.received, 3U);
  EXPECT_EQ(read(2, partition_, "r", Consistency::quorum), "x");
}

TEST_F(ReplicatedRows, ADeleteAtQuorumCoversWhatAnotherReplicaHasTaken) {
  // The first replica never hears of the write: the second and the third have it.
  kill(0);
  see({1, 2});
  EXPECT_TRUE(write(1, put(partition_, "r", "v"), Consistency::quorum).met);
  start(0);
  see_all();
  // Its own clock has not seen the write, and its timestamp is not larger.
  EXPECT_TRUE(write(0, remove(partition_), Consistency::quorum).met);
  world().run_for(1s);
  for (std::size_t i = 0; i < kNodes; ++i) {
    EXPECT_EQ(read(i, partition_, "r", Consistency::all), std::nullopt) << i;
  }
}

TEST_F(ReplicatedRows, AScanMergesWhatReplicasHave) {
  const auto place = ReplicaMap::make(setup.metadata, 1, id(0))->find_place(partition_.view());
  ASSERT_TRUE(place.has_value());
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(write(static_cast<std::size_t>(i) % kNodes,
                      put(partition_, fmt::format("r{}", i), "v"), Consistency::quorum)
                    .met);
  }
  kill(2);
  see({0, 1});
  EXPECT_TRUE(write(0, put(partition_, "r3", "w"), Consistency::quorum).met);
  PartitionWrite cut = remove(partition_);
  cut.mutation.deleted_ranges = {{.from = bytes("r0"), .to = bytes("r2")}};
  EXPECT_TRUE(write(1, std::move(cut), Consistency::quorum).met);
  start(2);
  see_all();
  const std::vector<std::string> expected = {"r2=v", "r3=w", "r4=v", "r5=v"};
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto rows = run(i, node(i).scan(place->index, Consistency::quorum));
    ASSERT_TRUE(rows.has_value()) << rows.error().to_string();
    EXPECT_EQ(*rows, expected) << i;
  }
}

// ---- Siblings ----

class ReplicatedSiblings : public ::testing::Test, protected ReplicatedWorld {
 protected:
  ReplicatedSiblings() : ReplicatedWorld(1, {.policy = causality::Policy::siblings}) {}

  causality::Context context_at(std::size_t i) {
    auto context = run(i, node(i).context(partition_, "r", Consistency::quorum));
    EXPECT_TRUE(context.has_value()) << context.error().to_string();
    return context ? *std::move(context) : causality::Context{};
  }
  static PartitionWrite under(causality::Context context, PartitionWrite write) {
    write.mutation.context = std::move(context);
    return write;
  }
  void expect_everywhere(const std::optional<std::string>& value) {
    for (std::size_t i = 0; i < kNodes; ++i) {
      EXPECT_EQ(read(i, partition_, "r", Consistency::quorum), value) << i;
    }
  }

  const base::Bytes partition_ = partition("ada");
};

TEST_F(ReplicatedSiblings, WritesUnderOneContextThroughTwoNodesStayUntilBothAreReplaced) {
  EXPECT_TRUE(write(0, put(partition_, "r", "a"), Consistency::quorum).met);
  const causality::Context seen = context_at(2);
  EXPECT_TRUE(write(0, under(seen, put(partition_, "r", "b")), Consistency::quorum).met);
  EXPECT_TRUE(write(1, under(seen, put(partition_, "r", "c")), Consistency::quorum).met);
  expect_everywhere("b,c");
  const causality::Context both = context_at(2);
  EXPECT_TRUE(write(2, under(both, put(partition_, "r", "d")), Consistency::quorum).met);
  expect_everywhere("d");
}

TEST_F(ReplicatedSiblings, ADeleteUnderAContextLeavesWhatItsClientHasNotSeen) {
  EXPECT_TRUE(write(0, put(partition_, "r", "a"), Consistency::quorum).met);
  const causality::Context seen = context_at(0);
  EXPECT_TRUE(write(1, under(seen, put(partition_, "r", "b")), Consistency::quorum).met);
  for (const Consistency level : {Consistency::one, Consistency::quorum, Consistency::all}) {
    EXPECT_TRUE(write(2, under(seen, remove(partition_)), level).met);
    expect_everywhere("b");
  }
  EXPECT_TRUE(write(2, under(context_at(1), remove(partition_)), Consistency::quorum).met);
  expect_everywhere(std::nullopt);
}

// The write is at the minting replica and another one; the third is heard.
TEST_F(ReplicatedSiblings, ADeleteWithoutAContextHasSeenWhatItsOwnReplicaHas) {
  kill(1);
  see({0, 2});
  EXPECT_TRUE(write(0, put(partition_, "r", "a"), Consistency::quorum).met);
  start(1);
  kill(2);
  see({0, 1});
  world().run_for(1s);  // the others dial it again
  EXPECT_TRUE(write(0, remove(partition_), Consistency::quorum).met);
  EXPECT_EQ(read(0, partition_, "r", Consistency::quorum), std::nullopt);
  EXPECT_EQ(read(0, partition_, "r", Consistency::one), std::nullopt);
}

}  // namespace
}  // namespace helenus::replication::testing
