// Statements from the whole grammar, most of them nonsense: whatever they say, they are answered,
// and never by an error of the server's own.
//
//   HELENUS_STATEMENTS=100000 cql_query_test --gtest_filter='Seeds/AnyStatement*'
//
// asks as many instead of a few thousand, each seed its share of them.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/test_scale.h"
#include "cql/execute/query_story_test_support.h"
#include "cql/parser/parser.h"
#include "cql/parser/random_statements_test_support.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::testing {
namespace {

using runtime::Task;
using storage::testing::LogWorld;

constexpr int kSeeds = 4;

constexpr std::uint64_t kStatementsDefault = base::kSanitized ? 800 : 6000;

int statements_per_seed() {
  return static_cast<int>(base::count_from_environment("HELENUS_STATEMENTS", kStatementsDefault)) /
         kSeeds;
}

// Names that are there: else nearly everything would end with one that is not.
parser::testing::Vocabulary vocabulary() {
  parser::testing::Vocabulary words;
  words.keyspaces = {"ks", "ks", "ks", "other", "system"};
  words.tables = {"t", "u", "n", "local"};
  words.columns = {"k", "c", "d", "s", "v", "w", "m", "l"};
  words.functions = {"token", "count", "max", "ttl", "writetime", "now", "mintimeuuid", "toDate"};
  words.user_types = {"address", "pair"};
  words.fields = {"street", "zip"};
  words.strings = {"", "x", "it's", "2020-01-01", "127.0.0.1"};
  return words;
}

Task<void> make_tables(QueryStory& story) {
  for (const char* text : {
           "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', "
           "'replication_factor': 1}",
           "USE ks",
           "CREATE TYPE IF NOT EXISTS address (street text, zip int)",
           "CREATE TABLE IF NOT EXISTS t (k int, c int, d text, s int static, v int, w text, "
           "m map<text, int>, l list<int>, PRIMARY KEY (k, c, d))",
           "CREATE TABLE IF NOT EXISTS u (k text, d blob, v bigint, w frozen<address>, "
           "PRIMARY KEY ((k, d)))",
           "CREATE TABLE IF NOT EXISTS n (k int PRIMARY KEY, v counter)",
       }) {
    std::ignore = co_await story.run(text);
  }
}

Task<Told> send(QueryStory& story, const parser::Statement& statement, base::Prng& prng) {
  const std::string text = parser::to_text(statement);
  How how;
  if (prng.chance(0.3)) how.page_size = static_cast<std::int32_t>(prng.between(1, 3));
  if (statement.markers.empty()) co_return co_await story.run(text, how);
  const Told prepared = co_await story.prepare(text);
  if (prepared.error) co_return prepared;
  std::vector<std::string> bytes;
  for (std::size_t i = 0; i < statement.markers.size(); ++i) {
    std::string value(prng.below(2) == 0 ? 4 : prng.below(20), '\0');
    for (char& byte : value) byte = static_cast<char>(prng.below(4));
    bytes.push_back(std::move(value));
  }
  std::vector<protocol::Value> values;
  for (const std::string& value : bytes) {
    const std::uint64_t kind = prng.below(8);
    values.push_back(kind == 0 ? protocol::Value::null()
                     : kind == 1
                         ? protocol::Value{.kind = protocol::Value::Kind::unset, .bytes = {}}
                         : protocol::Value::of(base::as_bytes(value)));
  }
  const auto& id = std::get<protocol::PreparedResult>(prepared.message).id;
  co_return co_await story.execute(id, std::move(values), how);
}

Task<void> answer_anything(QueryStory& story, std::uint64_t seed) {
  base::Prng prng(seed);
  parser::testing::RandomStatements statements(
      [&](std::size_t bound) { return static_cast<std::size_t>(prng.below(bound)); }, vocabulary());
  int succeeded = 0;
  const int statements_wanted = statements_per_seed();
  for (int i = 0; i < statements_wanted; ++i) {
    if (i % 50 == 0) co_await make_tables(story);
    const parser::Statement statement = prng.chance(0.8) ? statements.data() : statements.any();
    const Told told = co_await send(story, statement, prng);
    if (!told.error) {
      ++succeeded;
      continue;
    }
    EXPECT_NE(told.error->code, protocol::ErrorCode::server_error)
        << "seed " << seed << ": " << parser::to_text(statement) << "\n  " << told.text();
  }
  EXPECT_GT(succeeded, statements_wanted / 100);
}

class AnyStatementTest : public ::testing::TestWithParam<int> {};

TEST_P(AnyStatementTest, IsAnswered) {
  const auto seed = static_cast<std::uint64_t>(GetParam());
  LogWorld world(seed);
  QueryStory::tell(world, [&](QueryStory& story) { return answer_anything(story, seed); });
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyStatementTest, ::testing::Range(1, kSeeds + 1));

}  // namespace
}  // namespace helenus::cql::testing
