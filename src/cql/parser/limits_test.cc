// What one statement may ask for: length, depth, markers. At each limit and one beyond.
#include "cql/parser/limits.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/parser/parser.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (; times > 0; --times) result += text;
  return result;
}

TEST(Limits, AStatementMayHaveAMegabyte) {
  const std::string fits = "USE a" + std::string(kStatementBytesMax - 5, ' ');
  EXPECT_TRUE(parse(fits).has_value());
  const auto too_long = parse(fits + " ");
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().context(), "a statement of 1048577 bytes, of at most 1048576");
}

// Nested `levels` deep between `open` and `close`.
base::Result<Statement> parse_nested(std::string_view before, std::string_view open,
                                     std::string_view inner, std::string_view close,
                                     std::string_view after, std::size_t levels) {
  return parse(std::string(before) + repeated(open, levels) + std::string(inner) +
               repeated(close, levels) + std::string(after));
}

struct Nesting {
  std::string_view before;
  std::string_view open;
  std::string_view inner;
  std::string_view close;
  std::string_view after;
};

constexpr Nesting kNestings[] = {
    {"INSERT INTO t (a) VALUES (", "[", "1", "]", ")"},
    {"INSERT INTO t (a) VALUES (", "(", "1", ")", ")"},
    {"INSERT INTO t (a) VALUES (", "{", "1", "}", ")"},
    {"INSERT INTO t (a) VALUES (", "{1: ", "1", "}", ")"},
    {"INSERT INTO t (a) VALUES (", "{a: ", "1", "}", ")"},
    {"INSERT INTO t (a) VALUES (", "f(", "1", ")", ")"},
    {"INSERT INTO t (a) VALUES (", "(int) ", "1", "", ")"},
    {"INSERT INTO t (a) VALUES (", "cast(", "1", " AS int)", ")"},
    {"SELECT ", "(", "a + 1", ")", " FROM t"},
    {"SELECT ", "- ", "a", "", " FROM t"},
    {"SELECT ", "cast(", "a", " AS int)", " FROM t"},
    {"SELECT a[", "[", "1", "]", "] FROM t"},
    {"SELECT * FROM t WHERE ", "(", "a = 1", ")", ""},
    {"SELECT * FROM t WHERE (a, b) IN (", "(", "1", ")", ")"},
    {"CREATE TABLE t (a ", "list<", "int", ">", ")"},
    {"CREATE TABLE t (a ", "frozen<set<", "int", ">>", ")"},
    {"DROP FUNCTION f (", "tuple<", "int", ">", ")"},
};

TEST(Limits, NothingNestsDeeperThanAllowed) {
  for (const auto& [before, open, inner, close, after] : kNestings) {
    EXPECT_TRUE(parse_nested(before, open, inner, close, after, 20).has_value()) << open;
    for (const std::size_t levels : {kNestingDepthMax + 1, std::size_t{70'000}}) {
      const auto deep = parse_nested(before, open, inner, close, after, levels);
      ASSERT_FALSE(deep.has_value()) << open;
      EXPECT_THAT(std::string(deep.error().context()), EndsWith("nested more than 64 levels deep"))
          << open;
    }
  }
}

TEST(Limits, TheDepthIsThatOfTheDeepestPlaceAndNotTheSum) {
  const std::string deep = repeated("[", 60) + "1" + repeated("]", 60);
  EXPECT_TRUE(parse("INSERT INTO t (a, b) VALUES (" + deep + ", " + deep + ")").has_value());
}

TEST(Limits, ChainsAreNoNesting) {
  const std::size_t times = 50'000;
  EXPECT_TRUE(parse("INSERT INTO t (a) VALUES (1" + repeated(" + 1", times) + ")").has_value());
  EXPECT_TRUE(parse("INSERT INTO t (a) VALUES (1" + repeated(" * 1", times) + ")").has_value());
  EXPECT_TRUE(parse("SELECT a" + repeated(".b", times) + " FROM t").has_value());
  EXPECT_TRUE(parse("SELECT a" + repeated("[1]", times) + " FROM t").has_value());
  EXPECT_TRUE(parse("SELECT * FROM t WHERE a = 1" + repeated(" AND a = 1", times)).has_value());
}

TEST(Limits, AStatementMayHave65535Markers) {
  const auto with_markers = [](std::size_t count) {
    return parse("SELECT * FROM t WHERE a IN (?" + repeated(",?", count - 1) + ")");
  };
  const auto most = with_markers(kMarkersMax);
  ASSERT_TRUE(most.has_value());
  EXPECT_EQ(most->markers.size(), kMarkersMax);
  const auto more = with_markers(kMarkersMax + 1);
  ASSERT_FALSE(more.has_value());
  EXPECT_THAT(std::string(more.error().context()), HasSubstr("more than 65535 bind markers"));
}

// For each of these a careless parser takes quadratic time, or a stack frame a byte.
TEST(Limits, LongHostileTextsAreRefusedOrParsedInLittleTime) {
  const std::size_t most = kStatementBytesMax / 8;
  for (const std::string_view part :
       {"(",  "[",  "{",  "-",  "- ", "a.", "(a<", "(a)", "'",   "\"", "/*",    "--\n", "$$",
        "P1", "1h", "a,", "?,", ";",  "a<", "((a", "0-",  "{a:", "f(", "cast(", "not "}) {
    const std::string text = repeated(part, most / part.size());
    for (const std::string_view before :
         {"SELECT ", "SELECT * FROM t WHERE ", "INSERT INTO t (a) VALUES (", "USE a",
          "CREATE TABLE t (a ", "UPDATE t SET a = ", "BEGIN BATCH "}) {
      const auto statement = parse(std::string(before) + text);
      if (!statement) {
        EXPECT_LE(statement.error().context().size(), 1100u);
      }
    }
  }
}

}  // namespace
}  // namespace helenus::cql::parser
