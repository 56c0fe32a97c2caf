#include "storage/mutations/operation_screen.h"

#include <gtest/gtest.h>

#include "base/codec.h"

namespace helenus::storage {
namespace {

using causality::OperationId;
using causality::OperationTime;
using Answer = OperationScreen::Answer;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kStart = 1'700'000'000'000;

OperationId id_at(std::int64_t time_ms, std::uint64_t number = 0) {
  OperationId id{};
  base::store_be(id.data(), static_cast<std::uint64_t>(time_ms) << 16 | 0x7000U);
  base::store_be(id.data() + 8, number | std::uint64_t{1} << 63);
  return id;
}

OperationScreen screen_at(std::int64_t wall_ms, OperationWindow options = {}) {
  OperationScreen screen(options);
  screen.tell(wall_ms * kMs, 0);
  return screen;
}

TEST(OperationScreen, AnIdIsOldOrNewOrPerhapsKnownOrFromTheFuture) {
  OperationScreen screen = screen_at(kStart, {.window_ms = 1000, .skew_ms = 100});
  EXPECT_EQ(screen.judge(id_at(kStart)), Answer::surely_new);
  EXPECT_EQ(screen.judge(id_at(kStart + 100)), Answer::surely_new);
  EXPECT_EQ(screen.judge(id_at(kStart + 101)), Answer::from_the_future);
  EXPECT_EQ(screen.judge(id_at(kStart - 1099)), Answer::surely_new);
  EXPECT_EQ(screen.judge(id_at(kStart - 1100)), Answer::expired);
  screen.remember(id_at(kStart));
  EXPECT_EQ(screen.judge(id_at(kStart)), Answer::perhaps_known);
}

TEST(OperationScreen, WhatWasRememberedIsPerhapsKnownUntilItExpires) {
  constexpr int kIds = 20'000;
  OperationScreen screen = screen_at(kStart, {.window_ms = 1000, .skew_ms = 100});
  std::int64_t now = kStart;
  // From the future as far as is allowed, so that it has to be known the longest.
  for (int i = 0; i < kIds; ++i) screen.remember(id_at(kStart + 100, static_cast<unsigned>(i)));
  while (screen.floor().value() < kStart + 100) {
    for (int i = 0; i < kIds; i += 97) {
      ASSERT_EQ(screen.judge(id_at(kStart + 100, static_cast<unsigned>(i))), Answer::perhaps_known);
    }
    now += 50;
    screen.tell(now * kMs, (now - kStart) * kMs);
  }
  EXPECT_EQ(screen.judge(id_at(kStart + 100)), Answer::expired);
}

TEST(OperationScreen, StrangersAreTakenForKnownAtTheDeclaredRate) {
  OperationScreen screen = screen_at(kStart);
  for (unsigned i = 0; i < 50'000; ++i) screen.remember(id_at(kStart, i));
  int perhaps = 0;
  for (unsigned i = 0; i < 10'000; ++i) {
    perhaps += screen.judge(id_at(kStart, 1'000'000 + i)) == Answer::perhaps_known ? 1 : 0;
  }
  EXPECT_LT(perhaps, 130);
}

TEST(OperationScreen, AClockThatStepsBackLetsNothingInAgain) {
  OperationScreen screen = screen_at(kStart, {.window_ms = 1000, .skew_ms = 100});
  screen.remember(id_at(kStart));
  std::int64_t monotonic = 0;
  for (int i = 0; i < 2000; ++i) screen.tell((kStart + i) * kMs, ++monotonic * kMs);
  ASSERT_EQ(screen.judge(id_at(kStart)), Answer::expired);
  OperationTime floor = screen.floor();
  for (int i = 0; i < 5000; ++i) {
    screen.tell((kStart - 100'000) * kMs, ++monotonic * kMs);
    ASSERT_GE(screen.floor(), floor);
    floor = screen.floor();
  }
  EXPECT_EQ(screen.judge(id_at(kStart)), Answer::expired);
}

TEST(OperationScreen, AClockThatStepsAheadExpiresNothingAtOnce) {
  OperationScreen screen = screen_at(kStart, {.window_ms = 1000, .skew_ms = 100});
  screen.remember(id_at(kStart));
  screen.tell((kStart + 1'000'000) * kMs, 10 * kMs);
  EXPECT_EQ(screen.judge(id_at(kStart)), Answer::perhaps_known);
  EXPECT_LE(screen.now().value(), kStart + 12);
}

TEST(OperationScreen, AStartGoesOnFromTheFloorOfTheLastOne) {
  OperationScreen screen({.window_ms = 1000, .skew_ms = 100});
  screen.begin(OperationTime{kStart});
  screen.tell((kStart - 500'000) * kMs, 0);
  EXPECT_EQ(screen.floor().value(), kStart);
  EXPECT_EQ(screen.judge(id_at(kStart)), Answer::expired);
  EXPECT_EQ(screen.judge(id_at(kStart + 1)), Answer::surely_new);
}

TEST(OperationScreen, WithoutMemoryItSaysPerhapsOfAll) {
  OperationScreen screen = screen_at(kStart, {.memory_bytes_max = std::uint64_t{1} << 16});
  unsigned remembered = 0;
  while (!screen.is_blind()) screen.remember(id_at(kStart, remembered++));
  ASSERT_LT(remembered, 1'000'000U);
  EXPECT_EQ(screen.judge(id_at(kStart, 77'000'000)), Answer::perhaps_known);
  EXPECT_EQ(screen.judge(id_at(kStart - 1'000'000)), Answer::expired);
}

}  // namespace
}  // namespace helenus::storage
