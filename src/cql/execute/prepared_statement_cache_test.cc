// Laws of the cache of prepared statements.
#include "cql/execute/prepared_statement_cache.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::cql {
namespace {

PreparedStatement statement_of(int number) {
  PreparedStatement statement;
  statement.text = std::string(static_cast<std::size_t>(number % 7) * 100, 'x');
  statement.id = protocol::prepared_id("ks", std::to_string(number));
  statement.plan = std::make_shared<StatementPlan>();
  return statement;
}

std::size_t cost_of(const PreparedStatement& statement) {
  return PreparedStatementCache::kStatementBytes +
         (statement.text.size() * PreparedStatementCache::kBytesPerCharacter);
}

// A list of the ids, the newest first, does the same in a way that is easily seen to be right.
TEST(PreparedStatementCache, KeepsThoseUsedLastWithinItsLimits) {
  constexpr PreparedStatementCache::Limits kLimits{.statements_max = 8, .bytes_max = 40'000};
  PreparedStatementCache cache(kLimits);
  std::vector<int> kept;
  std::uint64_t evicted = 0;
  base::Prng dice(1);
  for (int step = 0; step < 20'000; ++step) {
    const int number = static_cast<int>(dice.below(20));
    const PreparedStatement statement = statement_of(number);
    const auto place = std::ranges::find(kept, number);
    if (dice.chance(0.5)) {
      const PreparedStatement* const found = cache.find(base::ByteView(statement.id));
      ASSERT_EQ(found != nullptr, place != kept.end());
      if (found == nullptr) continue;
      ASSERT_EQ(found->text, statement.text);
      std::rotate(kept.begin(), place, place + 1);
      continue;
    }
    cache.put(statement);
    if (place != kept.end()) kept.erase(place);
    kept.insert(kept.begin(), number);
    const auto bytes = [&] {
      std::size_t sum = 0;
      for (const int one : kept) sum += cost_of(statement_of(one));
      return sum;
    };
    while (kept.size() > kLimits.statements_max || bytes() > kLimits.bytes_max) {
      kept.pop_back();
      ++evicted;
    }
    ASSERT_EQ(cache.size(), kept.size());
    ASSERT_EQ(cache.evicted(), evicted);
  }
  EXPECT_GT(evicted, 0U);
}

TEST(PreparedStatementCache, KeepsTheLastOneHoweverLargeAndFindsNoIdOfAnotherSize) {
  PreparedStatementCache cache({.statements_max = 10, .bytes_max = 1});
  const PreparedStatement first = statement_of(1);
  const PreparedStatement second = statement_of(2);
  cache.put(first);
  EXPECT_NE(cache.find(base::ByteView(first.id)), nullptr);
  cache.put(second);
  EXPECT_EQ(cache.find(base::ByteView(first.id)), nullptr);
  EXPECT_NE(cache.find(base::ByteView(second.id)), nullptr);
  EXPECT_EQ(cache.find(base::ByteView(second.id).first(15)), nullptr);
  EXPECT_EQ(cache.find({}), nullptr);
}

TEST(PreparedStatementCache, RemembersThatColumnsHaveChanged) {
  PreparedStatementCache cache({});
  PreparedStatement statement = statement_of(1);
  statement.columns_changed = true;
  cache.put(statement);
  statement.columns_changed = false;
  cache.put(statement);
  EXPECT_TRUE(cache.find(base::ByteView(statement.id))->columns_changed);
}

}  // namespace
}  // namespace helenus::cql
