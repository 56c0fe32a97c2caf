// The share of background work, as arithmetic: what it comes to in the long run, and who may raise
// it.
#include "runtime/background_share.h"

#include <chrono>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::runtime {
namespace {

using namespace std::chrono_literals;

class Wants final : public BackgroundPressure {
 public:
  explicit Wants(double share) : share_(share) {}
  double background_share_wanted() override { return share_; }
  void change_to(double share) { share_ = share; }

 private:
  double share_;
};

// A core on which both kinds of work are always ready: after each slice the foreground has what it
// is owed, and at most the rest of the step that it is in.
RC_GTEST_PROP(BackgroundShare, BothSidesGetTheirShareOfABusyCore,
              (std::uint64_t seed, std::uint16_t longest)) {
  const double set = *rc::gen::inRange(1, 91) / 100.0;
  const Duration step_max = std::chrono::microseconds(1 + longest % 1000);
  base::Prng dice(seed);
  const auto step = [&] {
    return Duration(
        1 + static_cast<Duration::rep>(dice.below(static_cast<std::uint64_t>(step_max.count()))));
  };
  BackgroundShare share;
  share.set_share(set);
  MonotonicTime now = MonotonicTime() + 1s;
  Duration background{0};
  Duration foreground{0};
  constexpr int kSlices = 200;
  for (int slice = 0; slice < kSlices; ++slice) {
    const MonotonicTime began_at = now;
    now = now + step();
    share.ran(began_at, now);
    background += now - began_at;
    while (!share.is_due(now)) {
      const Duration length = step();
      now = now + length;
      foreground += length;
    }
  }
  const double owed = static_cast<double>(background.count()) * (1 - set) / set;
  const auto got = static_cast<double>(foreground.count());
  RC_ASSERT(got >= owed - kSlices);
  RC_ASSERT(got <= owed + kSlices * static_cast<double>(step_max.count()));
}

TEST(BackgroundShare, IsDueOnceTheForegroundHadItsPart) {
  BackgroundShare share;
  share.set_share(0.25);
  const MonotonicTime start = MonotonicTime() + 1s;
  EXPECT_TRUE(share.is_due(start)) << "at first";
  share.ran(start, start + 200us);
  EXPECT_FALSE(share.is_due(start + 200us));
  EXPECT_FALSE(share.is_due(start + 799us));
  EXPECT_TRUE(share.is_due(start + 800us));
}

TEST(BackgroundShare, NothingIsSavedUpWhileThereIsNoBackgroundWork) {
  BackgroundShare share;
  share.set_share(0.5);
  const MonotonicTime later = MonotonicTime() + 1h;
  share.ran(later, later + 1ms);
  EXPECT_FALSE(share.is_due(later + 1ms));
  EXPECT_TRUE(share.is_due(later + 2ms));
}

TEST(BackgroundShare, TheLargestPressureCountsAsLongAsItLasts) {
  BackgroundShare share;
  share.set_share(0.25);
  Wants little(0.1);
  share.add(little);
  EXPECT_EQ(share.share(), 0.25);
  {
    Wants much(0.75);
    std::optional<Wants> all(2.0);
    share.add(much);
    share.add(*all);
    EXPECT_EQ(share.share(), BackgroundShare::kMost);
    all.reset();
    EXPECT_EQ(share.share(), 0.75);
    much.change_to(0.5);
    EXPECT_EQ(share.share(), 0.5);
  }
  EXPECT_EQ(share.share(), 0.25);
}

TEST(BackgroundShare, RefusesNoneAndAll) {
  BackgroundShare share;
  EXPECT_DEATH(share.set_share(0), "a share of 0");
  EXPECT_DEATH(share.set_share(1), "a share of 1");
}

}  // namespace
}  // namespace helenus::runtime
