#include "runtime/native/inbox.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>

#include "runtime/native/native_core.h"

namespace helenus::runtime::native {
namespace {

using base::Errc;

constexpr CoreId kNeighbour{1};

class InboxTest : public testing::Test {
 protected:
  CoreMessage noting(int number) {
    return [this, number](Runtime&) { seen_.push_back(number); };
  }
  void run_all() {
    std::vector<Letter> letters;
    std::vector<PoolJob*> jobs;
    inbox_->take(letters, jobs);
    for (Letter& letter : letters) letter.message(core_->runtime());
  }
  bool woken() {
    pollfd wake{.fd = inbox_->wake_descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&wake, 1, 0) == 1;
  }

  std::unique_ptr<Inbox> inbox_ = *Inbox::open(2);
  std::vector<int> seen_;

 private:
  std::unique_ptr<ThreadPool> pool_ = *ThreadPool::open(1);
  SharedAddresses addresses_;
  base::NullSink sink_;
  std::unique_ptr<NativeCore> core_ = *NativeCore::open(
      CoreId(0), 1, NativeCore::Files::threads,
      {.pool = *pool_, .addresses = addresses_, .log_sink = sink_, .boot_id = "boot"});
};

TEST_F(InboxTest, MessagesComeInTheOrderSent) {
  for (int number = 0; number < 100; ++number) {
    const Post post = number % 3 == 0 ? Post::answer : Post::limited;
    ASSERT_TRUE(inbox_->send(kNeighbour, noting(number), post).has_value());
  }
  EXPECT_TRUE(inbox_->waiting());
  run_all();
  EXPECT_FALSE(inbox_->waiting());
  ASSERT_EQ(seen_.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(seen_));
}

TEST_F(InboxTest, TooManyFromOneCoreAreRefusedButNotThoseOfAnother) {
  for (std::size_t i = 0; i < Cores::kWaitingMax; ++i) {
    ASSERT_TRUE(inbox_->send(kNeighbour, noting(1), Post::limited).has_value());
  }
  EXPECT_TRUE(inbox_->send(kNeighbour, noting(2), Post::limited).failed_with(Errc::overloaded));
  EXPECT_TRUE(inbox_->send(CoreId(0), noting(3), Post::limited).has_value());
  EXPECT_TRUE(inbox_->send(kNeighbour, noting(4), Post::answer).has_value());
  EXPECT_TRUE(inbox_->send(kNeighbour, noting(5), Post::control).has_value());
  run_all();
  EXPECT_EQ(seen_.size(), Cores::kWaitingMax + 3);
  EXPECT_TRUE(inbox_->send(kNeighbour, noting(6), Post::limited).has_value());
}

TEST_F(InboxTest, AClosedInboxTakesNothing) {
  inbox_->close();
  for (const Post post : {Post::limited, Post::answer, Post::control}) {
    EXPECT_TRUE(inbox_->send(kNeighbour, noting(1), post).failed_with(Errc::closed));
  }
}

TEST_F(InboxTest, OnlyASleepingLoopIsWokenAndOnlyOnce) {
  ASSERT_TRUE(inbox_->send(kNeighbour, noting(1), Post::limited).has_value());
  EXPECT_FALSE(woken()) << "the loop was awake";
  EXPECT_FALSE(inbox_->prepare_to_sleep()) << "something is waiting";
  run_all();
  EXPECT_TRUE(inbox_->prepare_to_sleep());
  ASSERT_TRUE(inbox_->send(kNeighbour, noting(2), Post::limited).has_value());
  ASSERT_TRUE(inbox_->send(kNeighbour, noting(3), Post::limited).has_value());
  std::uint64_t wake_ups = 0;
  ASSERT_EQ(::read(inbox_->wake_descriptor(), &wake_ups, sizeof wake_ups), sizeof wake_ups);
  EXPECT_EQ(wake_ups, 1U);
  EXPECT_FALSE(woken());
}

// The loop sleeps whenever it may; a lost wake-up would leave it asleep for good.
TEST_F(InboxTest, NoWakeUpIsLostBetweenThreads) {
  constexpr int kMessages = 20'000;
  std::thread sender([&] {
    for (int number = 0; number < kMessages; ++number) {
      while (!inbox_->send(kNeighbour, noting(number), Post::limited)) std::this_thread::yield();
    }
  });
  while (seen_.size() < kMessages) {
    if (inbox_->prepare_to_sleep()) {
      pollfd wake{.fd = inbox_->wake_descriptor(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&wake, 1, 60'000), 1) << "asleep with " << seen_.size() << " messages";
      std::uint64_t wake_ups = 0;
      ASSERT_EQ(::read(inbox_->wake_descriptor(), &wake_ups, sizeof wake_ups), sizeof wake_ups);
      inbox_->awake();
    }
    run_all();
  }
  sender.join();
  EXPECT_TRUE(std::ranges::is_sorted(seen_));
}

}  // namespace
}  // namespace helenus::runtime::native
