#include "replication/explicit_timestamps/partition_latches.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::replication {
namespace {

using base::Bytes;
using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using Places = std::vector<std::pair<storage::TableId, Bytes>>;
using ::testing::ElementsAre;

constexpr storage::TableId kOne{1};
constexpr storage::TableId kOther{2};

Bytes place(const char* name) {
  return Bytes::copy_of(name);
}

// Holds it for a while.
Task<void> take_and_say(Runtime& runtime, PartitionLatches& latches, std::string name,
                        std::vector<std::string>& said) {
  auto hold = co_await latches.take(kOne, place("p"), Until::forever());
  CO_ASSERT_OK(hold);
  said.push_back("in " + name);
  CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(5), {}));
  said.push_back("out " + name);
}

TEST(PartitionLatches, AreTakenInTheOrderOfAsking) {
  storage::testing::LogWorld world;
  world.run([](Runtime& runtime) -> Task<void> {
    PartitionLatches latches(runtime);
    std::vector<std::string> said;
    std::vector<Task<void>> tasks;
    for (const char* name : {"a", "b", "c"}) {
      tasks.push_back(take_and_say(runtime, latches, name, said));
    }
    co_await runtime::when_all(std::move(tasks));
    EXPECT_THAT(said, ElementsAre("in a", "out a", "in b", "out b", "in c", "out c"));
    EXPECT_FALSE(latches.is_held(kOne, place("p")));
  });
}

TEST(PartitionLatches, HoldOnePartitionOfOneTable) {
  storage::testing::LogWorld world;
  world.run([](Runtime& runtime) -> Task<void> {
    PartitionLatches latches(runtime);
    EXPECT_FALSE(latches.is_held(kOne, place("p")));
    auto hold = co_await latches.take(kOne, place("p"), Until::forever());
    CO_ASSERT_OK(hold);
    EXPECT_TRUE(latches.is_held(kOne, place("p")));
    EXPECT_FALSE(latches.is_held(kOne, place("q")));
    EXPECT_FALSE(latches.is_held(kOther, place("p")));
    PartitionLatches::Hold moved = std::move(*hold);
    EXPECT_TRUE(latches.is_held(kOne, place("p")));
    moved.release();
    moved.release();
    EXPECT_FALSE(latches.is_held(kOne, place("p")));
  });
}

// Whoever gives up waiting leaves the place to those behind.
TEST(PartitionLatches, AreNotKeptByThoseWhoGaveUp) {
  storage::testing::LogWorld world;
  world.run([](Runtime& runtime) -> Task<void> {
    PartitionLatches latches(runtime);
    auto hold = co_await latches.take(kOne, place("p"), Until::forever());
    CO_ASSERT_OK(hold);
    const auto late = co_await latches.take(kOne, place("p"),
                                            Until::after(runtime, std::chrono::milliseconds(1)));
    EXPECT_TRUE(late.failed_with(Errc::timeout));
    runtime::StopSource stop;
    stop.request_stop();
    const auto stopped = co_await latches.take(kOne, place("p"), {.stop = stop.token()});
    EXPECT_TRUE(stopped.failed_with(Errc::cancelled));
    EXPECT_TRUE(latches.is_held(kOne, place("p")));
    hold->release();
    EXPECT_FALSE(latches.is_held(kOne, place("p")));
    CO_ASSERT_OK(co_await latches.take(kOne, place("p"), Until::forever()));
  });
}

Task<void> take_often(Runtime& runtime, PartitionLatches& latches, Places places, int& inside) {
  const Until soon = Until::after(runtime, std::chrono::minutes(1));
  for (int i = 0; i < 20; ++i) {
    const auto holds = co_await latches.take_all(places, soon);
    CO_ASSERT_OK(holds);
    EXPECT_EQ(holds->size(), 2U);
    EXPECT_EQ(++inside, 1);
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(1), {}));
    --inside;
  }
}

TEST(PartitionLatches, OfSeveralPartitionsNeverWaitInACircle) {
  storage::testing::LogWorld world;
  world.run([](Runtime& runtime) -> Task<void> {
    PartitionLatches latches(runtime);
    int inside = 0;
    const Places forth = {{kOne, place("p")}, {kOne, place("q")}, {kOne, place("p")}};
    const Places back = {{kOne, place("q")}, {kOne, place("p")}};
    co_await runtime::when_all(take_often(runtime, latches, forth, inside),
                               take_often(runtime, latches, back, inside));
    EXPECT_FALSE(latches.is_held(kOne, place("p")));
  });
}

TEST(PartitionLatches, AreAllLetGoWhenOneIsNotGot) {
  storage::testing::LogWorld world;
  world.run([](Runtime& runtime) -> Task<void> {
    PartitionLatches latches(runtime);
    const auto hold = co_await latches.take(kOne, place("q"), Until::forever());
    CO_ASSERT_OK(hold);
    const auto both = co_await latches.take_all({{kOne, place("p")}, {kOne, place("q")}},
                                                Until::after(runtime, std::chrono::seconds(1)));
    EXPECT_TRUE(both.failed_with(Errc::timeout));
    EXPECT_FALSE(latches.is_held(kOne, place("p")));
    EXPECT_TRUE(latches.is_held(kOne, place("q")));
  });
}

}  // namespace
}  // namespace helenus::replication
