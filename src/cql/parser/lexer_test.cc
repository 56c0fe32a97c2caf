#include "cql/parser/lexer.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace helenus::cql::parser {
namespace {

using ::testing::ElementsAre;

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  Lexer lexer(text);
  for (Token token = lexer.next();; token = lexer.next()) {
    if (token.kind == TokenKind::end) return tokens;
    tokens.push_back(token);
    if (token.kind == TokenKind::invalid) return tokens;
  }
}

std::vector<std::string> texts_of(std::string_view text) {
  std::vector<std::string> texts;
  for (const Token& token : tokens_of(text)) texts.emplace_back(token.text);
  return texts;
}

struct OneToken {
  std::string_view text;
  TokenKind kind;
};

template <std::size_t Size>
void expect_one_token_each(const OneToken (&cases)[Size]) {
  for (const OneToken& expected : cases) {
    const std::vector<Token> tokens = tokens_of(expected.text);
    ASSERT_EQ(tokens.size(), 1u) << expected.text;
    EXPECT_EQ(tokens[0].kind, expected.kind) << expected.text;
    EXPECT_EQ(tokens[0].text, expected.text);
  }
}

TEST(Lexer, KnowsEachKindOfNameAndLiteral) {
  expect_one_token_each({
      {"abc", TokenKind::word},
      {"a_1", TokenKind::word},
      {"SELECT", TokenKind::word},
      {"\"a b\"", TokenKind::quoted},
      {"\"a\"\"b\"", TokenKind::quoted},
      {"\"\"\"\"", TokenKind::quoted},
      {"\"\"", TokenKind::empty_name},
      {"'it''s'", TokenKind::string},
      {"''", TokenKind::string},
      {"$$it's $ 5$$", TokenKind::string},
      {"$$$$", TokenKind::string},
      {"0", TokenKind::integer},
      {"-12", TokenKind::integer},
      {"1.5", TokenKind::floating},
      {"1.", TokenKind::floating},
      {"-1.e5", TokenKind::floating},
      {"1e-5", TokenKind::floating},
      {"1E+5", TokenKind::floating},
      {"NaN", TokenKind::floating},
      {"-nan", TokenKind::floating},
      {"INFINITY", TokenKind::floating},
      {"-Infinity", TokenKind::floating},
      {"True", TokenKind::boolean},
      {"FALSE", TokenKind::boolean},
      {"1y2mo3w4d5h6m7s8ms9us10ns", TokenKind::duration},
      {"-1H", TokenKind::duration},
      {"5\xc2\xb5s", TokenKind::duration},
      {"P1Y2M3D", TokenKind::duration},
      {"P1YT5H6M7S", TokenKind::duration},
      {"-PT5S", TokenKind::duration},
      {"P12W", TokenKind::duration},
      {"P2024-01-02T03:04:05", TokenKind::duration},
      {"01234567-89ab-CDEF-0123-456789abcdef", TokenKind::uuid},
      {"abcdefab-89ab-cdef-0123-456789abcdef", TokenKind::uuid},
      {"0x", TokenKind::blob},
      {"0XcafE", TokenKind::blob},
  });
}

TEST(Lexer, KnowsEachSymbol) {
  expect_one_token_each({
      {"(", TokenKind::left_parenthesis},
      {")", TokenKind::right_parenthesis},
      {"[", TokenKind::left_bracket},
      {"]", TokenKind::right_bracket},
      {"{", TokenKind::left_brace},
      {"}", TokenKind::right_brace},
      {",", TokenKind::comma},
      {";", TokenKind::semicolon},
      {":", TokenKind::colon},
      {".", TokenKind::dot},
      {"..", TokenKind::range},
      {"?", TokenKind::question_mark},
      {"+", TokenKind::plus},
      {"-", TokenKind::minus},
      {"*", TokenKind::star},
      {"/", TokenKind::slash},
      {"%", TokenKind::percent},
      {"+=", TokenKind::plus_equal},
      {"-=", TokenKind::minus_equal},
      {"=", TokenKind::equal},
      {"!=", TokenKind::not_equal},
      {"<", TokenKind::less},
      {"<=", TokenKind::less_or_equal},
      {">", TokenKind::greater},
      {">=", TokenKind::greater_or_equal},
  });
}

TEST(Lexer, SplitsWhereCassandraDoes) {
  EXPECT_THAT(texts_of("a-1"), ElementsAre("a", "-1"));
  EXPECT_THAT(texts_of("a - 1"), ElementsAre("a", "-", "1"));
  EXPECT_THAT(texts_of("1..2"), ElementsAre("1", "..", "2"));
  EXPECT_THAT(texts_of("1...2"), ElementsAre("1.", "..", "2"));
  EXPECT_THAT(texts_of("a.b"), ElementsAre("a", ".", "b"));
  EXPECT_THAT(texts_of("1e"), ElementsAre("1", "e"));
  EXPECT_THAT(texts_of("1h30"), ElementsAre("1h", "30"));
  EXPECT_THAT(texts_of("5abc"), ElementsAre("5", "abc"));
  EXPECT_THAT(texts_of("-P"), ElementsAre("-", "P"));
  EXPECT_THAT(texts_of("-abc"), ElementsAre("-", "abc"));
  EXPECT_THAT(texts_of("a<=?"), ElementsAre("a", "<=", "?"));
  EXPECT_THAT(texts_of("a=-1"), ElementsAre("a", "=", "-1"));
}

TEST(Lexer, TakesWordsThatLookLikeDurationsForNames) {
  for (const std::string_view text : {"p1y", "P", "PT", "P1Yx", "P1", "P1W2", "P1YT", "Px"}) {
    const std::vector<Token> tokens = tokens_of(text);
    ASSERT_EQ(tokens.size(), 1u) << text;
    EXPECT_EQ(tokens[0].kind, TokenKind::word) << text;
  }
}

TEST(Lexer, SkipsBlanksAndComments) {
  EXPECT_THAT(texts_of(" a\t-- b\n//c\r/* d\n * e */f--"), ElementsAre("a", "f"));
  EXPECT_THAT(texts_of("/**/"), ElementsAre());
  EXPECT_THAT(texts_of("a//"), ElementsAre("a"));
}

TEST(Lexer, CountsLinesFromOneAndColumnsFromZero) {
  const std::vector<Token> tokens = tokens_of("a 'x\ny' b\n  /*\n*/c $$\n$$ \"\n\"d");
  std::vector<std::pair<std::uint32_t, std::uint32_t>> positions;
  for (const Token& token : tokens) {
    positions.emplace_back(token.position.line, token.position.column);
  }
  using P = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_THAT(positions,
              ElementsAre(P(1, 0), P(1, 2), P(2, 3), P(4, 2), P(4, 4), P(5, 3), P(6, 1)));
}

TEST(Lexer, StaysAtWhatIsNoToken) {
  for (const std::string_view text : {"'abc", "\"abc", "$$abc$", "$", "/* abc", "#", "!", "\xff"}) {
    Lexer lexer(text);
    const Token token = lexer.next();
    EXPECT_EQ(token.kind, TokenKind::invalid) << text;
    EXPECT_EQ(lexer.next(), token) << text;
  }
}

TEST(Lexer, SaysWhyThereIsNoToken) {
  const auto why = [](std::string_view text) { return describe_invalid(text, Lexer(text).next()); };
  EXPECT_EQ(why("'abc"), "mismatched character '<EOF>' expecting '''");
  EXPECT_EQ(why("\"abc"), "mismatched character '<EOF>' expecting '\"'");
  EXPECT_EQ(why("$$abc"), "mismatched character '<EOF>' expecting '$'");
  EXPECT_EQ(why("/* abc"), "mismatched character '<EOF>' expecting '*'");
  EXPECT_EQ(why("$a"), "no viable alternative at character '$'");
  EXPECT_EQ(why("#a"), "no viable alternative at character '#'");
  EXPECT_EQ(why("ß"), "no viable alternative at character 'ß'");
}

TEST(Lexer, TakesQuotesAway) {
  const auto inner = [](std::string_view text) { return unquoted(Lexer(text).next()); };
  EXPECT_EQ(inner("'it''s'"), "it's");
  EXPECT_EQ(inner("''"), "");
  EXPECT_EQ(inner("''''"), "'");
  EXPECT_EQ(inner("\"a\"\"b\""), "a\"b");
  EXPECT_EQ(inner("\"\""), "");
  EXPECT_EQ(inner("$$it''s$$"), "it''s");
  EXPECT_EQ(inner("$$$$"), "");
}

TEST(Lexer, GoesOnFromACopy) {
  Lexer lexer("a b c");
  lexer.next();
  Lexer copy = lexer;
  EXPECT_EQ(copy.next().text, "b");
  EXPECT_EQ(copy.next().text, "c");
  EXPECT_EQ(lexer.next().text, "b");
}

}  // namespace
}  // namespace helenus::cql::parser
