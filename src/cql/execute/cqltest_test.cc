// Runs tests/cql/*.cqltest: language behaviour as data. The format is in tests/cql/README.md.
#include "cql/execute/cqltest_test_support.h"

namespace helenus::cql::testing {

using runtime::Task;
using storage::testing::LogWorld;

namespace {

storage::TableId storage_of(QueryStory& story, const std::string& name) {
  const CatalogPtr catalog = story.catalog().snapshot();
  const model::TablePtr table = catalog->schema().find_keyspace("ks")->find_table(name);
  EXPECT_NE(table, nullptr) << name;
  return table == nullptr ? storage::TableId{} : *catalog->storage_of(table->id);
}

}  // namespace

// Found by run_steps().
static Task<void> flush_table(QueryStory& story, std::string table) {
  const auto forever = runtime::Until::forever();
  const auto flushed = co_await story.coordinator().flush(storage_of(story, table), forever);
  EXPECT_TRUE(flushed.has_value()) << table;
}

static Task<void> compact_table(QueryStory& story, std::string table) {
  const auto forever = runtime::Until::forever();
  const auto compacted = co_await story.coordinator().compact(storage_of(story, table), forever);
  EXPECT_TRUE(compacted.has_value()) << table;
}

namespace {

void run_on_cores(std::uint16_t cores, const std::vector<cqltest::Step>& steps) {
  LogWorld world(1, cores);
  QueryStory::tell(world, [&](QueryStory& story) { return cqltest::run_steps(story, steps); });
}

class CqlTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CqlTest, BehavesAsWritten) {
  run_on_cores(1, cqltest::steps_of(GetParam()));
}

// Every statement is prepared and executed: those of one row by its key are answered by a way of
// their own then.
TEST_P(CqlTest, BehavesAsWrittenWhenPrepared) {
  run_on_cores(1, cqltest::prepared(cqltest::steps_of(GetParam())));
}

// Each statement is asked of the next core, and finds its rows on any; each is prepared on one core
// and executed on the next.
TEST_P(CqlTest, BehavesTheSameOnThreeCores) {
  run_on_cores(3, cqltest::steps_of(GetParam()));
  run_on_cores(3, cqltest::prepared(cqltest::steps_of(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Files, CqlTest, ::testing::ValuesIn(cqltest::all_files()),
                         [](const auto& file) { return file.param; });

}  // namespace
}  // namespace helenus::cql::testing
