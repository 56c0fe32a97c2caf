// Who is suspected of having stopped, and what is usual.
#include "replication/cluster/answer_times.h"

#include <optional>

#include <gtest/gtest.h>

#include "metadata/metadata_test_support.h"

namespace helenus::replication {
namespace {

using namespace std::chrono_literals;
using runtime::MonotonicTime;
class Suspicion : public ::testing::Test {
 protected:
  using Kind = AnswerTimes::Kind;
  static MonotonicTime at(runtime::Duration since) { return MonotonicTime(1h + since); }
  void answer(runtime::Duration began, runtime::Duration took) {
    AnswerTimes::Asked asked(times_, node_, Kind::point, at(began));
    asked.answered(at(began + took));
  }

  const model::NodeId node_ = metadata::testing::node_id(1);
  AnswerTimes times_;
};

TEST_F(Suspicion, FallsOnWhoOwesAnAnswerForThreeTimesAsLongAsUsual) {
  for (int i = 0; i < 100; ++i) answer(i * 1ms, 60ms);
  AnswerTimes::Asked asked(times_, node_, Kind::point, at(1s));
  EXPECT_FALSE(times_.is_suspected(node_, at(1150ms)));
  EXPECT_TRUE(times_.is_suspected(node_, at(1250ms)));
  asked.answered(at(1300ms));
  EXPECT_FALSE(times_.is_suspected(node_, at(1300ms)));
}

TEST_F(Suspicion, IsNoQuickerThanATenthOfASecondAndNoSlowerThanThreeQuarters) {
  for (int i = 0; i < 100; ++i) answer(i * 1ms, 1ms);
  {
    AnswerTimes::Asked asked(times_, node_, Kind::point, at(1s));
    EXPECT_FALSE(times_.is_suspected(node_, at(1099ms)));
    EXPECT_TRUE(times_.is_suspected(node_, at(1100ms)));
  }
  for (int i = 0; i < 100; ++i) answer(10s + i * 1ms, 5s);
  AnswerTimes::Asked asked(times_, node_, Kind::point, at(30s));
  EXPECT_FALSE(times_.is_suspected(node_, at(30700ms)));
  EXPECT_TRUE(times_.is_suspected(node_, at(30750ms)));
}

TEST_F(Suspicion, LastsUntilSomethingIsAnswered) {
  {
    AnswerTimes::Asked asked(times_, node_, Kind::point, at(0s));
    asked.given_up(at(5s));
  }
  EXPECT_TRUE(times_.is_suspected(node_, at(1h))) << "nothing is under way, and nothing came";
  {
    AnswerTimes::Asked probe(times_, node_, Kind::point, at(1h));
    probe.refused(at(1h + 1ms));
  }
  EXPECT_FALSE(times_.is_suspected(node_, at(1h + 2ms)));
}

TEST_F(Suspicion, DoesNotFallOnWhoAnswersOthersMeanwhile) {
  AnswerTimes::Asked slow(times_, node_, Kind::scan, at(0s));
  for (int i = 0; i < 100; ++i) answer(i * 50ms, 1ms);
  EXPECT_FALSE(times_.is_suspected(node_, at(5s)));
  EXPECT_TRUE(times_.is_suspected(node_, at(6s)));
}

TEST_F(Suspicion, DoesNotFallOnWhoIsNotWaitedFor) {
  {
    AnswerTimes::Asked dropped(times_, node_, Kind::point, at(0s));
  }
  {
    AnswerTimes::Asked cut(times_, node_, Kind::point, at(0s));
    cut.given_up(at(1ms));
  }
  EXPECT_FALSE(times_.is_suspected(node_, at(1h)));
}

TEST_F(Suspicion, OwesAProbeFromTimeToTime) {
  EXPECT_TRUE(times_.claim_probe(node_, at(0s)));
  EXPECT_FALSE(times_.claim_probe(node_, at(99ms)));
  EXPECT_TRUE(times_.claim_probe(node_, at(100ms)));
}

TEST_F(Suspicion, RequestsEndInAnyOrder) {
  std::optional<AnswerTimes::Asked> first;
  std::optional<AnswerTimes::Asked> second;
  std::optional<AnswerTimes::Asked> third;
  first.emplace(times_, node_, Kind::point, at(0ms));
  second.emplace(times_, node_, Kind::point, at(50ms));
  third.emplace(times_, node_, Kind::point, at(90ms));
  second.reset();
  EXPECT_TRUE(times_.is_suspected(node_, at(100ms)));
  first.reset();
  EXPECT_FALSE(times_.is_suspected(node_, at(100ms)));
  EXPECT_TRUE(times_.is_suspected(node_, at(190ms)));
  third.reset();
  EXPECT_FALSE(times_.is_suspected(node_, at(190ms)));
}

TEST(RecentTimes, QuantilesAreOfLate) {
  RecentTimes times;
  for (int i = 0; i < 990; ++i) times.record(1ms);
  for (int i = 0; i < 10; ++i) times.record(100ms);
  EXPECT_GE(times.quantile(0.5), 1ms);
  EXPECT_LT(times.quantile(0.99), 2ms);
  EXPECT_GE(times.quantile(1), 100ms);
  EXPECT_LT(times.quantile(1), 130ms);
  for (int i = 0; i < 100'000; ++i) times.record(10ms);
  EXPECT_GE(times.quantile(0.01), 10ms) << "what was long ago counts no more";
  RecentTimes edges;
  edges.record(0ns);
  EXPECT_LE(edges.quantile(1), 2us);
  edges.record(-1s);
  edges.record(24h);
  EXPECT_GT(edges.quantile(1), 1s);
}

}  // namespace
}  // namespace helenus::replication
