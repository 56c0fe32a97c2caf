// parse(to_text(s)) == s, for statements from the whole grammar.
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "cql/parser/parser.h"
#include "cql/parser/random_statements_test_support.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {
namespace {

RC_GTEST_PROP(RoundTrip, GivesTheSameTree, ()) {
  const Statement statement = *testing::any_statement();
  const std::string text = to_text(statement);
  const auto again = parse(text);
  RC_LOG() << text << "\n";
  if (!again) RC_FAIL(again.error().to_string());
  RC_ASSERT(*again == statement);
  RC_ASSERT(to_text(*again) == text);
}

TEST(RoundTrip, GivesTheSameTreeForManyRandomStatements) {
  base::Prng prng(1);
  testing::RandomStatements statements(
      [&](std::size_t bound) { return static_cast<std::size_t>(prng.below(bound)); });
  std::set<std::size_t> kinds;
  for (int left = 20'000; left > 0; --left) {
    const Statement statement = statements.any();
    kinds.insert(statement.node.index());
    const std::string text = to_text(statement);
    const auto again = parse(text);
    ASSERT_TRUE(again.has_value()) << text << "\n" << again.error().to_string();
    ASSERT_EQ(*again, statement) << text << "\n" << to_text(*again);
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Statement::Node>) << "some kind was never drawn";
}

// Texts one edit away from a statement are mostly wrong: they must be refused or understood, and
// what is understood must print.
TEST(RoundTrip, HoldsForDamagedStatementsThatStillParse) {
  base::Prng prng(2);
  testing::RandomStatements statements(
      [&](std::size_t bound) { return static_cast<std::size_t>(prng.below(bound)); });
  int understood = 0;
  for (int left = 10'000; left > 0; --left) {
    std::string text = to_text(statements.any());
    const std::size_t at = prng.below(text.size());
    switch (prng.below(3)) {
      case 0:
        text.erase(at, 1 + prng.below(3));
        break;
      case 1:
        text[at] = "()[]{},:.?-+*=<>'\" a1"[prng.below(21)];
        break;
      default:
        text.insert(at, 1, "()[]{},:.?-+*=<>'\" a1"[prng.below(21)]);
    }
    const auto statement = parse(text);
    if (!statement) continue;
    ++understood;
    const std::string canonical = to_text(*statement);
    const auto again = parse(canonical);
    ASSERT_TRUE(again.has_value()) << text << "\n"
                                   << canonical << "\n"
                                   << again.error().to_string();
    ASSERT_EQ(*again, *statement) << text << "\n" << canonical;
  }
  EXPECT_GT(understood, 500);
}

}  // namespace
}  // namespace helenus::cql::parser
