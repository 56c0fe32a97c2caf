#include "runtime/native/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "runtime/native/inbox.h"

namespace helenus::runtime::native {
namespace {

using base::Errc;

class NotingJob final : public PoolJob {
 public:
  NotingJob(Inbox& home, std::function<void()> work) : PoolJob(home), work_(std::move(work)) {}
  void work() override { work_(); }
  void finish() override { finished = true; }
  bool finished = false;

 private:
  std::function<void()> work_;
};

class ThreadPoolTest : public testing::Test {
 protected:
  // Finishes jobs as a loop would, until `count` have come back.
  void finish(std::size_t count) {
    while (count > 0) {
      std::vector<Letter> letters;
      std::vector<PoolJob*> jobs;
      inbox_->take(letters, jobs);
      for (PoolJob* job : jobs) job->finish();
      count -= jobs.size();
    }
  }

  std::unique_ptr<Inbox> inbox_ = *Inbox::open(1);
};

TEST_F(ThreadPoolTest, JobsBeginInOrderAndFinishAtHome) {
  const auto pool = *ThreadPool::open(1);
  std::vector<int> order;
  std::vector<std::unique_ptr<NotingJob>> jobs;
  for (int number = 0; number < 50; ++number) {
    jobs.push_back(
        std::make_unique<NotingJob>(*inbox_, [&order, number] { order.push_back(number); }));
    ASSERT_TRUE(pool->submit(*jobs.back()).has_value());
  }
  finish(jobs.size());
  EXPECT_EQ(order.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  for (const auto& job : jobs) EXPECT_TRUE(job->finished);
}

TEST_F(ThreadPoolTest, AJobCanBeWithdrawnUntilItBegins) {
  const auto pool = *ThreadPool::open(1);
  std::latch begun(1);
  std::latch go_on(1);
  bool second_worked = false;
  NotingJob first(*inbox_, [&] {
    begun.count_down();
    go_on.wait();
  });
  NotingJob second(*inbox_, [&] { second_worked = true; });
  ASSERT_TRUE(pool->submit(first).has_value());
  ASSERT_TRUE(pool->submit(second).has_value());
  begun.wait();
  EXPECT_FALSE(pool->withdraw(first)) << "it is under way";
  EXPECT_TRUE(pool->withdraw(second));
  EXPECT_FALSE(pool->withdraw(second)) << "it is out already";
  go_on.count_down();
  finish(1);
  EXPECT_TRUE(first.finished);
  EXPECT_FALSE(second_worked);
}

TEST_F(ThreadPoolTest, AFullQueueRefusesMore) {
  const auto pool = *ThreadPool::open(1);
  std::latch begun(1);
  std::latch go_on(1);
  NotingJob blocker(*inbox_, [&] {
    begun.count_down();
    go_on.wait();
  });
  ASSERT_TRUE(pool->submit(blocker).has_value());
  begun.wait();
  std::vector<std::unique_ptr<NotingJob>> jobs;
  for (std::size_t i = 0; i < ThreadPool::kQueuedMax; ++i) {
    jobs.push_back(std::make_unique<NotingJob>(*inbox_, [] {}));
    ASSERT_TRUE(pool->submit(*jobs.back()).has_value());
  }
  NotingJob one_more(*inbox_, [] {});
  EXPECT_TRUE(pool->submit(one_more).failed_with(Errc::overloaded));
  go_on.count_down();
  finish(1 + jobs.size());
}

TEST_F(ThreadPoolTest, WhatIsQueuedIsDoneBeforeThePoolEnds) {
  std::atomic<int> worked = 0;
  std::vector<std::unique_ptr<NotingJob>> jobs;
  {
    const auto pool = *ThreadPool::open(3);
    for (int i = 0; i < 500; ++i) {
      jobs.push_back(std::make_unique<NotingJob>(*inbox_, [&worked] { ++worked; }));
      ASSERT_TRUE(pool->submit(*jobs.back()).has_value());
    }
  }
  EXPECT_EQ(worked, 500);
}

TEST_F(ThreadPoolTest, DescriptorsToCloseAreClosed) {
  int number = -1;
  {
    const auto pool = *ThreadPool::open(1);
    Descriptor descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = descriptor.number();
    ASSERT_GE(::fcntl(number, F_GETFD), 0);
    pool->close_later(std::move(descriptor));
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace helenus::runtime::native
