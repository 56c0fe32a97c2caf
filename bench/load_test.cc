// The pure parts of the load generator: keys, schedule, RESP, replies of both dialects.
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bench/cql_dialect.h"
#include "bench/keys.h"
#include "bench/redis_dialect.h"
#include "bench/resp.h"
#include "bench/schedule.h"
#include "cql/protocol/response.h"

namespace helenus::bench {
namespace {

using base::Errc;

constexpr int kDraws = 200'000;

TEST(ZipfianRanks, FirstRanksComeAsOftenAsTheLawSays) {
  const ZipfianRanks ranks(1000);
  base::Prng random(1);
  std::vector<int> counts(1000);
  for (int i = 0; i < kDraws; ++i) ++counts.at(ranks.next(random));
  for (const std::uint64_t rank : {0U, 1U}) {
    EXPECT_NEAR(counts[rank] / double{kDraws}, ranks.probability(rank), 0.005) << rank;
  }
  EXPECT_GT(counts[0], counts[10]);
  EXPECT_GT(counts[10], counts[500]);
}

TEST(ZipfianRanks, EveryRankIsBelowTheCount) {
  base::Prng random(2);
  for (const std::uint64_t count : {2U, 3U, 1000U}) {
    const ZipfianRanks ranks(count);
    for (int i = 0; i < 10'000; ++i) ASSERT_LT(ranks.next(random), count);
  }
}

TEST(ZipfianRanks, RefusesAnExponentTheMethodDoesNotKnow) {
  EXPECT_DEATH(ZipfianRanks(10, 1.0), "assertion failed");
}

TEST(KeyChooser, UniformKeysComeAlikeAndZipfianOnesDoNot) {
  const auto most_frequent = [](Distribution distribution) {
    const KeyChooser keys(distribution, 100);
    base::Prng random(3);
    std::vector<int> counts(100);
    for (int i = 0; i < kDraws; ++i) ++counts.at(keys.next(random));
    return *std::ranges::max_element(counts) / double{kDraws};
  };
  EXPECT_LT(most_frequent(Distribution::uniform), 0.012);
  EXPECT_GT(most_frequent(Distribution::zipfian), 0.15);
}

TEST(Schedule, RequestsAreDueEvenlyWhateverWasTaken) {
  Schedule schedule(1000, 3'500'000);
  EXPECT_TRUE(schedule.due(0));
  EXPECT_EQ(schedule.take(), 0);
  EXPECT_FALSE(schedule.due(999'999));
  // The caller was late: those that were due meanwhile keep their times.
  EXPECT_TRUE(schedule.due(10'000'000));
  EXPECT_EQ(schedule.take(), 1'000'000);
  EXPECT_EQ(schedule.take(), 2'000'000);
  EXPECT_EQ(schedule.take(), 3'000'000);
  EXPECT_TRUE(schedule.done());
  EXPECT_FALSE(schedule.due(10'000'000));
  EXPECT_EQ(schedule.taken(), 4U);
}

std::string command(std::initializer_list<std::string_view> words) {
  base::Buffer out;
  encode_resp_command(words, out);
  return std::string(base::as_text(out.view()));
}

auto reply_of(std::string_view text) {
  return decode_resp_reply(base::as_bytes(text));
}

TEST(Resp, CommandsAreArraysOfBulkStrings) {
  EXPECT_EQ(command({"SET", "k", ""}), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

TEST(Resp, RepliesOfEveryKind) {
  using Kind = RespReply::Kind;
  const auto expect = [](std::string_view text, Kind kind, std::string_view content) {
    const std::string with_next = std::string(text) + "+next\r\n";
    const auto reply = reply_of(with_next);
    ASSERT_TRUE(reply && *reply) << text;
    EXPECT_EQ(**reply, (RespReply{.kind = kind, .text = content, .size = text.size()})) << text;
  };
  expect("+OK\r\n", Kind::simple, "OK");
  expect("-ERR no\r\n", Kind::error, "ERR no");
  expect(":-12\r\n", Kind::integer, "-12");
  expect("$5\r\na\r\nbc\r\n", Kind::bulk, "a\r\nbc");
  expect("$0\r\n\r\n", Kind::bulk, "");
  expect("$-1\r\n", Kind::null, "");
}

TEST(Resp, EveryBeginningOfAReplyWaitsForMore) {
  const std::string whole = "$5\r\nhello\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto reply = reply_of(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(reply);
    EXPECT_FALSE(*reply) << size;
  }
}

TEST(Resp, WhatIsNoReplyIsRefused) {
  for (const std::string_view text : {"hello\r\n", "\r\n", "$x\r\n", "$-2\r\n", "$\r\n",
                                      "$999999999999\r\n", "$1\r\nabc\r\n", ":\r\n"}) {
    EXPECT_TRUE(reply_of(text).failed_with(Errc::corrupt)) << text;
  }
  EXPECT_TRUE(reply_of("*0\r\n").failed_with(Errc::unsupported));
  EXPECT_TRUE(reply_of(std::string(kRespLineSizeMax, '+')).failed_with(Errc::corrupt));
}

RC_GTEST_PROP(Resp, HostileBytesGiveErrorsOrRepliesWithinThem, (const std::string& text)) {
  const auto reply = reply_of(text);
  if (reply && *reply) RC_ASSERT((*reply)->size <= text.size());
}

TEST(RedisDialect, ARefusalAndAMissingKeyAreErrors) {
  RedisDialect dialect;
  EXPECT_TRUE(dialect.first_reply(base::as_bytes("-ERR no\r\n")).failed_with(Errc::refused));
  EXPECT_TRUE(dialect.first_reply(base::as_bytes("$-1\r\n")).failed_with(Errc::not_found));
  EXPECT_EQ((*dialect.first_reply(base::as_bytes("$1\r\na\r\n")))->size, 7U);
}

base::Buffer frame_of(const cql::protocol::ResponseMessage& message, std::int16_t stream) {
  base::Buffer out;
  cql::protocol::encode_frame(cql::protocol::Response::of(message), stream,
                              cql::protocol::Compression::none, out);
  return out;
}

TEST(CqlDialect, FindsTheReplyAndWhatItAnswers) {
  CqlDialect dialect;
  const base::Buffer frame = frame_of(cql::protocol::VoidResult{}, 7);
  const auto reply = dialect.first_reply(frame.view());
  ASSERT_TRUE(reply && *reply);
  EXPECT_EQ((*reply)->size, frame.size());
  EXPECT_EQ((*reply)->slot, 7);
  for (std::size_t size = 0; size < frame.size(); ++size) {
    EXPECT_FALSE(*dialect.first_reply(frame.view().first(size)));
  }
}

TEST(CqlDialect, ARefusalAndAMissingRowAreErrors) {
  CqlDialect dialect;
  const cql::protocol::ErrorMessage refusal(cql::protocol::ErrorCode::overloaded, "too much");
  EXPECT_TRUE(dialect.first_reply(frame_of(refusal, 0).view()).failed_with(Errc::refused));
  cql::protocol::RowsResult nothing;
  nothing.column_count = 1;
  EXPECT_TRUE(dialect.first_reply(frame_of(nothing, 0).view()).failed_with(Errc::not_found));
}

TEST(Operations, KeysAndValuesHaveTheirSizesAndDiffer) {
  const auto key = key_text(42);
  EXPECT_EQ(std::string_view(key.data(), key.size()), "user000000000042");
  EXPECT_NE(value_text(1, 0), value_text(1, 1));
  EXPECT_NE(value_text(1, 0), value_text(2, 0));
}

}  // namespace
}  // namespace helenus::bench
