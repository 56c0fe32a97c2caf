// Random statements, judged by a reference that is too simple to be wrong.
//
//   HELENUS_STATEMENTS=1000000 cql_query_test --gtest_filter='Seeds/Reference*'
//
// runs as many statements instead of a hundred thousand (two thousand under a sanitizer): each seed
// its share of them, most on one core and some on three. Now and then the node is stopped and
// started, or its process or its machine dies; what was acknowledged is there ever after.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/test_scale.h"
#include "cql/execute/query_story_test_support.h"
#include "cql/execute/reference_executor_test_support.h"
#include "cql/execute/reference_statements_test_support.h"
#include "runtime/event.h"

namespace helenus::cql::testing {
namespace {

using runtime::Task;
using storage::testing::LogWorld;
using namespace std::chrono_literals;

constexpr int kSeeds = 10;
constexpr std::size_t kHistoryShown = 60;
// Then a new world begins: time passes in it, and one has an hour.
constexpr std::uint64_t kStatementsPerWorld = 10'000;

constexpr std::uint64_t kStatementsDefault = base::kSanitized ? 2'000 : 100'000;

// How often a node is stopped, and how often it dies: once in so many statements.
constexpr std::uint64_t kStatementsPerRestart = base::kSanitized ? 200 : 2'000;
// Of a death that comes while files are written.
constexpr std::uint64_t kDeathDelayMaxUs = 20'000;

std::uint64_t statements_per_seed() {
  return base::count_from_environment("HELENUS_STATEMENTS", kStatementsDefault) / kSeeds;
}

// One seed's world: the node, through all its lives, and the reference beside it.
class Comparison {
 public:
  // How a life ends before its time.
  struct Death {
    runtime::Duration delay{0};
    bool of_the_machine = false;  // what was not synced is lost or torn
  };

  Comparison(std::uint64_t seed, std::uint64_t count)
      : seed_(seed),
        statements_left_(count),
        reference_(ReferenceStatements::tables(seed)),
        statements_(seed, reference_) {}

  // One life: until all statements are done, or until it waits for its death.
  Task<void> live(QueryStory& story) {
    story_ = &story;
    if (!std::exchange(has_tables_, true)) {
      co_await begin(story);
      for (const ReferenceTable& table : reference_.tables()) co_await story.must(table.create());
    } else {
      co_await story.must("USE ks");
    }
    for (; statements_left_ > 0 && !::testing::Test::HasFailure(); --statements_left_) {
      co_await disturb();
      if (statements_.prng().below(2) == 0) {
        co_await write();
      } else {
        co_await read();
      }
    }
  }

  // The death it waits for.
  const std::optional<Death>& death() const { return death_; }
  void forget_death() { death_.reset(); }

 private:
  std::int64_t seconds() {
    return std::chrono::floor<std::chrono::seconds>(
               story_->runtime().clock.wall_now().since_origin())
        .count();
  }

  // What no statement may notice: time that passes, memory that goes to files, files that are
  // merged, a node that is stopped and started, or dies.
  Task<void> disturb() {
    base::Prng& prng = statements_.prng();
    if (prng.below(kStatementsPerRestart) == 0) {
      history_.push_back("(restart)");
      co_await story_->restart();
    }
    if (prng.below(kStatementsPerRestart) == 0) co_await die();
    const std::uint64_t what = prng.below(400);
    if (what < 6) {
      const auto pause = std::chrono::milliseconds(prng.between(1, 20'000));
      std::ignore = co_await runtime::sleep_for(story_->runtime(), pause, {});
      history_.push_back(fmt::format("(it is {})", seconds()));
    }
    if (what == 6 || what == 7) co_await tidy_up(Tidying::flush);
    if (what == 8) co_await tidy_up(Tidying::compact);
  }

  enum class Tidying : std::uint8_t { flush, compact };

  Task<void> tidy_up(Tidying how) {
    const auto& tables = reference_.tables();
    const ReferenceTable& table = tables[statements_.prng().below(tables.size())];
    const auto snapshot = story_->catalog().snapshot();
    const auto storage = snapshot->storage_of(snapshot->schema().find_table("ks", table.name)->id);
    const bool flushes = how == Tidying::flush;
    history_.push_back(fmt::format("({} {})", flushes ? "flush" : "compact", table.name));
    const auto done =
        flushes ? co_await story_->coordinator().flush(*storage, runtime::Until::forever())
                : co_await story_->coordinator().compact(*storage, runtime::Until::forever());
    EXPECT_TRUE(done.has_value()) << done.error().to_string();
  }

  // At once, or while files are written.
  Task<void> die() {
    base::Prng& prng = statements_.prng();
    const std::uint64_t delay_us = prng.below(kDeathDelayMaxUs);
    death_ = {.delay = std::chrono::microseconds(delay_us), .of_the_machine = prng.chance(0.5)};
    history_.push_back(death_->of_the_machine ? "(power loss)" : "(kill)");
    if (prng.chance(0.7)) {
      co_await tidy_up(prng.chance(0.5) ? Tidying::flush : Tidying::compact);
    }
    runtime::Event never(story_->runtime());
    std::ignore = co_await never.wait(runtime::Until::forever());
  }

  Task<Told> send(const ReferenceStatement& statement, How how) {
    how.timestamp_us = statement.timestamp;
    if (!statement.has_markers) co_return co_await story_->run(statement.text, how);
    const Told prepared = co_await story_->prepare(statement.text);
    if (prepared.error) co_return prepared;
    std::vector<protocol::Value> values;
    for (const auto& value : statement.values) {
      if (value) {
        values.push_back({.kind = protocol::Value::Kind::bytes, .bytes = base::as_bytes(*value)});
      } else {
        values.push_back({.kind = protocol::Value::Kind::null, .bytes = {}});
      }
    }
    const auto& id = std::get<protocol::PreparedResult>(prepared.message).id;
    co_return co_await story_->execute(id, std::move(values), how);
  }

  static std::string text_of(const ReferenceStatement& statement) {
    std::vector<std::string> values;
    for (const auto& value : statement.values) {
      values.push_back(value ? "0x" + base::to_hex(base::as_bytes(*value)) : "null");
    }
    return fmt::format("{} at {} with [{}]", statement.text, statement.timestamp,
                       fmt::join(values, ", "));
  }

  Task<void> write() {
    const ReferenceStatement statement = statements_.write(seconds());
    history_.push_back(text_of(statement));
    const Told told = co_await send(statement, {});
    EXPECT_FALSE(told.error.has_value()) << told_after(statement, told.text());
    reference_.apply(statement.changes, statement.timestamp);
  }

  Task<void> read() {
    const ReferenceStatement statement = statements_.read();
    // What expires while pages are read is there in some of them: such a read is done again.
    for (std::int64_t began = -1; began != seconds();) {
      began = seconds();
      std::vector<std::string> rows;
      How how;
      how.page_size = statement.page_size;
      do {
        const Told told = co_await send(statement, how);
        EXPECT_EQ(told.error.has_value(), statement.is_refused)
            << told_after(statement, told.text());
        if (told.error) {
          EXPECT_EQ(told.error->code, protocol::ErrorCode::invalid)
              << told_after(statement, told.text());
          co_return;
        }
        EXPECT_FALSE(told.rows.empty() && told.paging_state)
            << told_after(statement, "an empty page that is not the last");
        for (const auto& row : told.rows) rows.push_back(fmt::format("{}", fmt::join(row, ", ")));
        how.paging_state = told.paging_state;
      } while (how.paging_state);
      if (began != seconds()) continue;
      const std::vector<std::string> expected = reference_.select(*statement.query, began);
      if (rows == expected) co_return;
      ADD_FAILURE() << told_after(
          statement, fmt::format("gave\n    {}\n  and not\n    {}", fmt::join(rows, "\n    "),
                                 fmt::join(expected, "\n    ")));
      co_return;
    }
  }

  // The end of what happened to the tables that the statement is about.
  std::string told_after(const ReferenceStatement& statement, const std::string& what) const {
    std::vector<std::string> shown;
    const std::string* const table =
        statement.query ? &reference_.tables()[statement.query->table].name : nullptr;
    for (const std::string& event : history_) {
      const bool is_of_all = event.starts_with("(it is") || event == "(restart)" ||
                             event == "(kill)" || event == "(power loss)";
      if (table == nullptr || is_of_all || event.contains(*table)) {
        shown.push_back(event);
      }
    }
    if (shown.size() > kHistoryShown) shown.erase(shown.begin(), shown.end() - kHistoryShown);
    return fmt::format("seed {}, pages of {}: {}\n  {}\n  after\n  {}", seed_,
                       statement.page_size.value_or(0), text_of(statement), what,
                       fmt::join(shown, "\n  "));
  }

  QueryStory* story_ = nullptr;  // of this life
  const std::uint64_t seed_;
  std::uint64_t statements_left_;
  bool has_tables_ = false;
  std::optional<Death> death_;
  ReferenceExecutor reference_;
  ReferenceStatements statements_;
  std::vector<std::string> history_;
};

// All lives of one world.
void compare_in(LogWorld& world, Comparison& comparison) {
  const QueryStory::Body body = [&](QueryStory& story) { return comparison.live(story); };
  for (;;) {
    QueryStory::begin_life(world, body);
    const bool ended = world.world().run_until(
        [&] { return !world.machine().is_up() || comparison.death(); }, std::chrono::hours(12));
    ASSERT_TRUE(ended) << "waits for something that never happens";
    const auto death = comparison.death();
    if (!death) return world.machine().kill();
    world.world().run_for(death->delay);
    if (death->of_the_machine) {
      world.machine().power_loss();
    } else {
      world.machine().kill();
    }
    comparison.forget_death();
  }
}

void compare_on(std::uint16_t cores, std::uint64_t seed, std::uint64_t statements) {
  while (statements > 0 && !::testing::Test::HasFailure()) {
    const std::uint64_t now = std::min(statements, kStatementsPerWorld);
    Comparison comparison(seed, now);
    LogWorld world(seed, cores);
    compare_in(world, comparison);
    statements -= now;
    seed += 1000;
  }
}

class ReferenceTest : public ::testing::TestWithParam<int> {};

TEST_P(ReferenceTest, StatementsGiveWhatMapsGive) {
  compare_on(1, static_cast<std::uint64_t>(GetParam()), statements_per_seed() * 4 / 5);
}

TEST_P(ReferenceTest, StatementsGiveWhatMapsGiveOnThreeCores) {
  compare_on(3, static_cast<std::uint64_t>(GetParam()) + 100, statements_per_seed() / 5);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReferenceTest, ::testing::Range(1, kSeeds + 1));

}  // namespace
}  // namespace helenus::cql::testing
