// When a read asks another replica, as tables say it.
#include "replication/request/speculation.h"

#include <string_view>

#include <gtest/gtest.h>

namespace helenus::replication {
namespace {

using namespace std::chrono_literals;

TEST(Speculation, IsReadAsTheSchemaKeepsIt) {
  EXPECT_EQ(Speculation::parse("99p"), Speculation());
  EXPECT_EQ(Speculation::parse("99.5p"), (Speculation{.percentile = 99.5}));
  EXPECT_EQ(Speculation::parse("50ms"),
            (Speculation{.kind = Speculation::Kind::fixed, .fixed = 50ms}));
  EXPECT_EQ(Speculation::parse("MIN(90p,50ms)"),
            (Speculation{.kind = Speculation::Kind::sooner, .percentile = 90, .fixed = 50ms}));
  EXPECT_EQ(Speculation::parse("MAX(90p,50ms)").kind, Speculation::Kind::later);
  EXPECT_EQ(Speculation::parse("ALWAYS").kind, Speculation::Kind::always);
  EXPECT_EQ(Speculation::parse("NEVER").kind, Speculation::Kind::never);
  EXPECT_EQ(Speculation::parse("NONE").kind, Speculation::Kind::never);
}

TEST(Speculation, WhatCannotBeReadIsTheDefault) {
  for (const std::string_view text : {"", "p", "ms", "-1ms", "0p", "MIN(", "MIN()", "MAX(99p)",
                                      "MIN(99p,50ms", "50", "1e300ms", "nanp"}) {
    EXPECT_EQ(Speculation::parse(text), Speculation()) << text;
  }
}

TEST(Speculation, WaitsForWhatIsUsual) {
  EXPECT_EQ(Speculation::parse("99p").patience(20ms), 20ms);
  EXPECT_EQ(Speculation::parse("99p").patience(std::nullopt), Speculation::kUnknown);
  EXPECT_EQ(Speculation::parse("99p").patience(1us), Speculation::kPercentileMin);
  EXPECT_EQ(Speculation::parse("30ms").patience(20ms), 30ms);
  EXPECT_EQ(Speculation::parse("MIN(99p,30ms)").patience(20ms), 20ms);
  EXPECT_EQ(Speculation::parse("MAX(99p,30ms)").patience(20ms), 30ms);
  EXPECT_EQ(Speculation::parse("ALWAYS").patience(20ms), 0ms);
  EXPECT_EQ(Speculation::parse("NEVER").patience(20ms), std::nullopt);
}

}  // namespace
}  // namespace helenus::replication
