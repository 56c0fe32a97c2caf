// What the trees hold where their text does not show it: markers, positions, values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/parser/parser.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

template <class T>
T parsed(std::string_view text) {
  const auto statement = parse(text);
  EXPECT_TRUE(statement.has_value()) << statement.error().to_string();
  return std::get<T>(statement->node);
}

TEST(Tree, MarkersAreNumberedAsTheTextHasThem) {
  const auto statement = parse(
      "UPDATE t USING TTL :ttl SET a = ?, m[:k] = :\"V\" WHERE k = ? AND c IN :c IF a = :ttl");
  ASSERT_TRUE(statement.has_value());
  EXPECT_THAT(
      statement->markers,
      ElementsAre(Optional(Eq("ttl")), Eq(std::nullopt), Optional(Eq("k")), Optional(Eq("V")),
                  Eq(std::nullopt), Optional(Eq("c")), Optional(Eq("ttl"))));
  const auto& update = std::get<Update>(statement->node);
  EXPECT_EQ(std::get<Marker>(update.attributes.time_to_live->node).index, 0);
  EXPECT_EQ(std::get<Marker>(update.assignments[0].value.node).index, 1);
  EXPECT_EQ(std::get<Marker>(update.assignments[1].target.element->node).index, 2);
  EXPECT_EQ(std::get<Marker>(update.where[1].operand.values[0].node).index, 5);
  EXPECT_TRUE(update.where[1].operand.is_list_marker);
}

TEST(Tree, MarkersOfABatchAreNumberedThroughAllItsStatements) {
  const auto statement = parse(
      "BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (a) VALUES (?); DELETE FROM t WHERE a = ? "
      "APPLY BATCH");
  ASSERT_TRUE(statement.has_value());
  EXPECT_EQ(statement->markers.size(), 3u);
  const auto& batch = std::get<Batch>(statement->node);
  EXPECT_EQ(
      std::get<Marker>(std::get<Delete>(batch.statements[1]).where[0].operand.values[0].node).index,
      2);
}

TEST(Tree, PositionsPointToWhereThingsBegin) {
  const auto select = parsed<Select>("SELECT a,\n  f(b) FROM ks.t WHERE c = 'x'");
  EXPECT_EQ(select.selectors[1].expression.position.line, 2u);
  EXPECT_EQ(select.selectors[1].expression.position.column, 2u);
  EXPECT_EQ(select.table.name.position.column, 15u);
  EXPECT_EQ(select.where[0].position.column, 23u);
  EXPECT_EQ(select.where[0].operand.values[0].position.column, 27u);
}

TEST(Tree, PositionsDoNotMakeTreesDifferent) {
  EXPECT_EQ(parse("SELECT a FROM t"), *parse("SELECT\n\n  a FROM t;"));
}

TEST(Tree, LiteralsAreKindAndText) {
  const auto insert =
      parsed<Insert>("INSERT INTO t (a) VALUES (-007, 1.50, 'it''s', TRUE, 0xAb, 1H, null, -nan)");
  std::vector<std::pair<LiteralKind, std::string>> literals;
  for (const Expression& value : insert.values) {
    const auto& literal = std::get<Literal>(value.node);
    literals.emplace_back(literal.kind, literal.text);
  }
  EXPECT_THAT(
      literals,
      ElementsAre(std::pair(LiteralKind::integer, "-007"), std::pair(LiteralKind::floating, "1.50"),
                  std::pair(LiteralKind::string, "it's"), std::pair(LiteralKind::boolean, "true"),
                  std::pair(LiteralKind::blob, "0xAb"), std::pair(LiteralKind::duration, "1H"),
                  std::pair(LiteralKind::null, ""), std::pair(LiteralKind::floating, "NaN")));
}

TEST(Tree, ArithmeticIsAChainOfEachPrecedence) {
  const auto select = parsed<Select>("SELECT a - b * c + d FROM t");
  const auto& sum = std::get<Arithmetic>(select.selectors[0].expression.node);
  EXPECT_THAT(sum.operators, ElementsAre(ArithmeticOperator::subtract, ArithmeticOperator::add));
  EXPECT_THAT(std::get<Arithmetic>(sum.operands[1].node).operators,
              ElementsAre(ArithmeticOperator::multiply));
}

TEST(Tree, BracesInATermAreFieldsAndInASelectorAMap) {
  const auto insert = parsed<Insert>("INSERT INTO t (a) VALUES ({b: 1})");
  EXPECT_TRUE(std::holds_alternative<UserTypeLiteral>(insert.values[0].node));
  const auto select = parsed<Select>("SELECT {b: 1} FROM t");
  EXPECT_TRUE(std::holds_alternative<MapLiteral>(select.selectors[0].expression.node));
}

TEST(Tree, AParenthesisIsATypeOnlyInFrontOfAValue) {
  const auto node = [](std::string_view selector) {
    const auto select = parsed<Select>("SELECT " + std::string(selector) + " FROM t");
    return select.selectors[0].expression.node;
  };
  EXPECT_TRUE(std::holds_alternative<TypeHint>(node("(a) 1")));
  EXPECT_TRUE(std::holds_alternative<TypeHint>(node("(a) b")));
  EXPECT_TRUE(std::holds_alternative<TypeHint>(node("(a) f(b)")));
  EXPECT_TRUE(std::holds_alternative<TypeHint>(node("(a) -1")));
  EXPECT_TRUE(std::holds_alternative<TupleLiteral>(node("(a)")));
  EXPECT_TRUE(std::holds_alternative<TupleLiteral>(node("(a, b)")));
  EXPECT_TRUE(std::holds_alternative<Arithmetic>(node("(a) - 1")));
  EXPECT_TRUE(std::holds_alternative<Selection>(node("(a).b")));
  EXPECT_TRUE(std::holds_alternative<MapLiteral>(node("{(a): 1}")));
  EXPECT_TRUE(std::holds_alternative<SetLiteral>(node("{(a) :b}")));
}

TEST(Tree, UsersAreRolesThatMayLogIn) {
  const auto user = parsed<CreateRole>("CREATE USER Bob WITH PASSWORD 'x'");
  EXPECT_EQ(user.role.text, "Bob");
  EXPECT_THAT(user.options.login, Optional(true));
  EXPECT_THAT(user.options.superuser, Optional(false));
  const auto role = parsed<CreateRole>("CREATE ROLE Bob");
  EXPECT_EQ(role.role.text, "bob");
  EXPECT_EQ(role.options.login, std::nullopt);
}

TEST(Tree, CopiesAreDeep) {
  const auto original = parse("SELECT cast(a[1] AS int) FROM t");
  ASSERT_TRUE(original.has_value());
  Statement copy = *original;
  auto& cast = std::get<Cast>(std::get<Select>(copy.node).selectors[0].expression.node);
  cast.type->name = "text";
  EXPECT_EQ(to_text(*original), "SELECT cast(a[1] AS int) FROM t");
  EXPECT_EQ(to_text(copy), "SELECT cast(a[1] AS text) FROM t");
  EXPECT_NE(copy, *original);
}

TEST(Tree, PartsPrintOnTheirOwn) {
  const auto statement = parse("SELECT (frozen<map<int, ks.\"U\">>) :x FROM t");
  ASSERT_TRUE(statement.has_value());
  const Expression& selected = std::get<Select>(statement->node).selectors[0].expression;
  EXPECT_EQ(to_text(selected, statement->markers), "(frozen<map<int, ks.\"U\">>) :x");
  EXPECT_EQ(to_text(*std::get<TypeHint>(selected.node).type), "frozen<map<int, ks.\"U\">>");
}

}  // namespace
}  // namespace helenus::cql::parser
