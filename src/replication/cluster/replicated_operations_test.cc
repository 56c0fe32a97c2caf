// Operation ids among three replicas: a write that comes again through another node.
#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "replication/cluster/replicated_world_test_support.h"

namespace helenus::replication::testing {
namespace {

using base::Errc;
using model::Consistency;

class ReplicatedOperations : public ::testing::Test, protected ReplicatedWorld {
 protected:
  causality::OperationId new_id() {
    const auto now = machine(0).clock().wall_at(world().now()).since_origin() / 1ms;
    causality::OperationId id{};
    base::store_be(id.data(), static_cast<std::uint64_t>(now) << 16 | 0x7000U);
    base::store_be(id.data() + 8, ++last_ | std::uint64_t{1} << 63);
    return id;
  }
  PartitionWrite put_as(const causality::OperationId& id, std::string_view value = "v") const {
    PartitionWrite write = put(partition_, "r", value);
    write.mutation.operation = id;
    return write;
  }
  ReplicatedWriter::Written written(std::size_t i, PartitionWrite what, Consistency level) {
    auto done = run(i, node(i).write(std::move(what), level));
    EXPECT_TRUE(done.has_value()) << done.error().to_string();
    return *std::move(done);
  }

  const base::Bytes partition_ = partition("ada");
  std::uint64_t last_ = 0;
};

TEST_F(ReplicatedOperations, ThatCameToAReplicaAreNotMintedThereAgain) {
  const auto id = new_id();
  const auto first = written(0, put_as(id), Consistency::all);
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto again = written(i, put_as(id), Consistency::quorum);
    EXPECT_TRUE(again.reply.met);
    EXPECT_EQ(again.delta->dot, first.delta->dot) << i;
  }
  EXPECT_NE(written(1, put_as(new_id()), Consistency::quorum).delta->dot, first.delta->dot);
}

// The first attempt was left at one replica. The second one, through the same node, is not answered
// before as many have it as the level asks for.
TEST_F(ReplicatedOperations, ThatAreKnownAreBroughtToTheOthersFirst) {
  const auto id = new_id();
  kill(1);
  kill(2);
  see({0});
  const auto first = written(0, put_as(id), Consistency::one);
  const auto alone = run(0, node(0).write(put_as(id), Consistency::quorum));
  EXPECT_TRUE(alone.failed_with(Errc::unavailable));
  start(1);
  see({0, 1});
  world().run_for(1s);
  EXPECT_EQ(read(1, partition_, "r", Consistency::one), std::nullopt);
  const auto again = written(0, put_as(id), Consistency::quorum);
  EXPECT_TRUE(again.reply.met);
  EXPECT_EQ(again.delta->dot, first.delta->dot);
  EXPECT_EQ(read(1, partition_, "r", Consistency::one), "v");
}

// Two replicas that did not know of each other: two dots of one operation, which both know then.
TEST_F(ReplicatedOperations, ThatWereMintedTwiceAreKnownUnderEither) {
  const auto id = new_id();
  kill(1);
  kill(2);
  see({0});
  const auto first = written(0, put_as(id), Consistency::one);
  kill(0);
  start(1);
  start(2);
  see({1, 2});
  world().run_for(1s);
  const auto second = written(1, put_as(id), Consistency::quorum);
  EXPECT_NE(second.delta->dot, first.delta->dot);
  start(0);
  see_all();
  world().run_for(1s);
  const auto third = written(0, put_as(id), Consistency::all);
  EXPECT_EQ(third.delta->dot, first.delta->dot);
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto dot = written(i, put_as(id), Consistency::quorum).delta->dot;
    EXPECT_TRUE(dot == first.delta->dot || dot == second.delta->dot) << i;
  }
}

TEST_F(ReplicatedOperations, OfAnotherKeyAreRefused) {
  const auto id = new_id();
  std::ignore = written(0, put_as(id), Consistency::quorum);
  PartitionWrite other = put(partition("eve"), "r", "v");
  other.mutation.operation = id;
  EXPECT_TRUE(run(0, node(0).write(std::move(other), Consistency::quorum))
                  .failed_with(Errc::invalid_argument));
}

}  // namespace
}  // namespace helenus::replication::testing
