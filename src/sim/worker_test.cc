#include "sim/worker.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <signal.h>

namespace helenus::sim {
namespace {

TEST(Worker, SendsRecordsInTheirOrderAndEnds) {
  Worker worker([](const Worker::Send& send) {
    send("one");
    send("");
    // More than a pipe holds.
    send(std::string(1 << 20, 'x'));
  });
  EXPECT_EQ(worker.receive(), "one");
  EXPECT_EQ(worker.receive(), "");
  EXPECT_EQ(worker.receive(), std::string(1 << 20, 'x'));
  EXPECT_EQ(worker.receive(), std::nullopt);
  EXPECT_TRUE(worker.join());
  EXPECT_EQ(worker.receive(), std::nullopt);
}

TEST(Worker, GoesItsOwnWay) {
  int number = 1;
  Worker worker([&](const Worker::Send& send) {
    number = 2;
    send(std::to_string(number));
  });
  EXPECT_EQ(worker.receive(), "2");
  EXPECT_EQ(number, 1);
}

TEST(Worker, ThatDiesHasNotEndedWell) {
  Worker worker([](const Worker::Send& send) {
    send("alive");
    ::raise(SIGKILL);
  });
  EXPECT_EQ(worker.receive(), "alive");
  EXPECT_EQ(worker.receive(), std::nullopt);
  EXPECT_FALSE(worker.join());
}

TEST(Worker, ThatNobodyListensToEnds) {
  Worker worker([](const Worker::Send& send) {
    while (true) send(std::string(4096, 'x'));
  });
  EXPECT_TRUE(worker.receive().has_value());
  EXPECT_FALSE(worker.join());
}

}  // namespace
}  // namespace helenus::sim
