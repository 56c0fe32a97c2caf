#include "membership/phi_detector.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "membership/membership_test_support.h"

namespace helenus::membership {
namespace {

using namespace std::chrono_literals;
using model::NodeId;
using testing::at_ms;
using testing::node_of;

const NodeId kPeer = node_of(1);

// Beats once a second until the guess that windows begin with is gone.
std::int64_t beat_regularly(PhiDetector& detector, int beats) {
  detector.watch(kPeer);
  for (int i = 0; i <= beats; ++i) detector.heard(kPeer, at_ms(1'000 * i));
  return 1'000 * std::int64_t{beats};
}

TEST(PhiDetector, PhiIsTheElapsedTimeOverTheMeanInDecimalLogarithms) {
  PhiDetector detector(PhiConfig{.samples_max = 100});
  const std::int64_t last = beat_regularly(detector, 150);
  EXPECT_NEAR(detector.phi(kPeer, at_ms(last + 1'000)), 1 / std::log(10.0), 1e-9);
  EXPECT_NEAR(detector.phi(kPeer, at_ms(last + 5'000)), 5 / std::log(10.0), 1e-9);
  // The chance of a silence of t is 10^-phi.
  EXPECT_NEAR(std::pow(10, -detector.phi(kPeer, at_ms(last + 2'000))), std::exp(-2.0), 1e-9);
  EXPECT_TRUE(detector.is_alive(kPeer, at_ms(last + 18'400)));
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(last + 18'500)));
}

TEST(PhiDetector, TheGuessCountsAsOneInterval) {
  PhiDetector detector(PhiConfig{.interval_initial = 2s});
  const std::int64_t last = beat_regularly(detector, 3);
  // (2 + 1 + 1 + 1) / 4 seconds.
  EXPECT_NEAR(detector.phi(kPeer, at_ms(last + 1'250)), 1 / std::log(10.0), 1e-9);
}

TEST(PhiDetector, ALongSilenceDoesNotMakeItPatient) {
  PhiDetector detector(PhiConfig{.samples_max = 10});
  std::int64_t now = beat_regularly(detector, 20);
  const double before = detector.phi(kPeer, at_ms(now + 1'000));
  now += 3'600'000;
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(now)));
  detector.heard(kPeer, at_ms(now));
  EXPECT_TRUE(detector.is_alive(kPeer, at_ms(now)));
  EXPECT_DOUBLE_EQ(detector.phi(kPeer, at_ms(now + 1'000)), before);
}

TEST(PhiDetector, BeatsInABunchDoNotMakeItRash) {
  PhiDetector detector(PhiConfig{.samples_max = 4, .mean_min = 100ms});
  detector.watch(kPeer);
  for (int i = 0; i < 10; ++i) detector.heard(kPeer, at_ms(5));
  EXPECT_NEAR(detector.phi(kPeer, at_ms(105)), 1 / std::log(10.0), 1e-9);
}

TEST(PhiDetector, AForgottenNodeStartsAgain) {
  PhiDetector detector(PhiConfig{});
  beat_regularly(detector, 3);
  detector.forget(kPeer);
  detector.heard(kPeer, at_ms(9'000));
  EXPECT_EQ(detector.phi(kPeer, at_ms(9'000)), FailureDetector::kUnheardOf);
  detector.watch(kPeer);
  EXPECT_FALSE(detector.is_alive(kPeer, at_ms(9'000)));
}

RC_GTEST_PROP(PhiDetector, SuspicionGrowsWithSilenceAndFallsWithTheThreshold, ()) {
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4'000));
  PhiDetector strict(PhiConfig{.threshold = 2, .samples_max = 5});
  PhiDetector patient(PhiConfig{.threshold = 8, .samples_max = 5});
  strict.watch(kPeer);
  patient.watch(kPeer);
  std::int64_t now = 0;
  for (const int step : steps) {
    now += step;
    strict.heard(kPeer, at_ms(now));
    patient.heard(kPeer, at_ms(now));
  }
  double previous = 0;
  for (int i = 0; i < 20 && !steps.empty(); ++i, now += 700) {
    const double level = strict.suspicion(kPeer, at_ms(now));
    RC_ASSERT(level >= previous);
    RC_ASSERT(std::isfinite(level));
    RC_ASSERT(patient.suspicion(kPeer, at_ms(now)) <= level);
    previous = level;
  }
}

}  // namespace
}  // namespace helenus::membership
