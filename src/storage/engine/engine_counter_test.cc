// Stories about counters: increments fold when they are stable, and the counter takes the room of
// one number; deletes before and after, and what is in memory or came late.
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/test_scale.h"
#include "causality/counter.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using causality::CellStore;
using causality::Clock;
using causality::VersionKind;
using causality::Watermark;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr TableId kCounters{77};
constexpr causality::ColumnId kCount{1};
constexpr causality::Epoch kCounterEpoch{1};
constexpr causality::WallTime kWall{1};

causality::CellChange count_change(VersionKind kind, std::int64_t amount = 0) {
  causality::CellChange change;
  change.row = Bytes::copy_of("r");
  change.column = kCount;
  change.kind = kind;
  change.amount = amount;
  return change;
}

class CounterStory {
 public:
  CounterStory(EngineStory& story, bool is_new) : story_(story), is_new_(is_new) {}

  Engine& engine() { return story_.engine(); }

  Task<void> open() {
    if (is_new_) {
      TableOptions options;
      options.policy = causality::Policy::counter;
      CO_ASSERT_OK(co_await engine().create_table(kCounters, options));
    }
  }
  Task<void> write(causality::Mutation mutation) {
    mutation.timestamp = causality::Timestamp{++time_};
    CO_ASSERT_OK(co_await engine().write(kCounters, kTablet, Bytes::copy_of("p"),
                                         std::move(mutation), kCounterEpoch, Until::forever()));
  }
  Task<void> add(std::int64_t amount, int operation = 0) {
    causality::Mutation mutation;
    mutation.cells.push_back(count_change(VersionKind::increment, amount));
    if (operation != 0) mutation.operation = name_of(operation);
    co_await write(std::move(mutation));
  }
  // The same number is always the same operation.
  causality::OperationId name_of(int operation) {
    const auto time =
        story_.runtime().clock.wall_now().since_origin() / std::chrono::milliseconds(1);
    causality::OperationId& id = names_[operation];
    if (id == causality::OperationId{}) {
      base::store_be(id.data(), static_cast<std::uint64_t>(time) << 16 | 0x7000U);
      base::store_be(id.data() + 8, static_cast<std::uint64_t>(operation));
    }
    return id;
  }
  Task<void> remove_cell() {
    causality::Mutation mutation;
    mutation.cells.push_back(count_change(VersionKind::deletion));
    co_await write(std::move(mutation));
  }
  Task<void> remove_rows(causality::RowRange rows) {
    causality::Mutation mutation;
    mutation.deleted_ranges.push_back(std::move(rows));
    co_await write(std::move(mutation));
  }
  Task<void> flush() { CO_ASSERT_OK(co_await engine().flush(kCounters, Until::forever())); }
  Task<void> wait(std::int64_t seconds) {
    CO_ASSERT_OK(co_await runtime::sleep_for(story_.runtime(), std::chrono::seconds(seconds), {}));
  }
  Task<CellStore> read() {
    auto row = co_await engine().read_row(kCounters, kTablet, Bytes::copy_of("p"),
                                          Bytes::copy_of("r"), Until::forever());
    EXPECT_TRUE(row.has_value());
    co_return row ? row->partition.cell(Bytes::copy_of("r"), kCount) : CellStore();
  }
  Task<std::int64_t> value() {
    const CellStore cell = co_await read();
    co_return causality::counter_value(cell);
  }
  // Everybody has seen all there is.
  void all_is_stable() {
    engine().set_watermarks(kTablet, {Watermark{*engine().durable_clock(kTablet), kWall}});
  }
  Task<void> expect_folded(std::int64_t value) {
    const CellStore cell = co_await read();
    EXPECT_EQ(causality::counter_value(cell), value);
    EXPECT_EQ(cell.versions().size(), 1U) << fmt::format("{}", cell);
    EXPECT_EQ(cell.versions().front().kind, VersionKind::total);
    EXPECT_TRUE(cell.context().empty()) << fmt::format("{}", cell);
  }

 private:
  EngineStory& story_;
  const bool is_new_;
  std::int64_t time_ = 1000;
  std::map<int, causality::OperationId> names_;
};

using Tell = std::function<Task<void>(CounterStory&)>;

EngineOptions folding() {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1000;
  options.collection.interval = std::chrono::seconds(10);
  return options;
}

Task<void> counter_life(Runtime& runtime, bool is_new, Tell tell) {
  EngineStory story(runtime, folding());
  CO_ASSERT_OK(co_await story.open());
  CounterStory counters(story, is_new);
  co_await counters.open();
  co_await tell(counters);
  CO_ASSERT_OK(co_await story.stop());
}

void count(const std::vector<Tell>& lives) {
  LogWorld world;
  bool is_new = true;
  for (const Tell& tell : lives) {
    world.run([&](Runtime& runtime) { return counter_life(runtime, is_new, tell); });
    is_new = false;
  }
}

// How many increments a counter has that comes to rest.
int increments_of_a_life() {
  return static_cast<int>(base::count_from_environment("HELENUS_COUNTER_INCREMENTS", 300));
}

Task<void> count_and_rest(CounterStory& story) {
  const int increments = increments_of_a_life();
  for (int i = 0; i < increments; ++i) {
    // Of the first ones every third has a name, each of which comes twice.
    co_await story.add(i, i % 3 == 0 && i < 300 ? 1 + i / 6 : 0);
    if (i % (increments / 3) == 0) co_await story.flush();
  }
  co_await story.flush();
  const std::int64_t value = co_await story.value();
  CellStore cell = co_await story.read();
  EXPECT_EQ(std::ssize(cell.versions()), increments);
  co_await story.wait(100);
  cell = co_await story.read();
  EXPECT_EQ(std::ssize(cell.versions()), increments) << "a peer has not seen them";
  story.all_is_stable();
  co_await story.wait(100);
  co_await story.expect_folded(value);
}

TEST(Counters, IncrementsOfAQuietCounterFoldIntoOneNumber) {
  std::int64_t value = 0;
  count({[&](CounterStory& story) -> Task<void> {
           co_await count_and_rest(story);
           value = co_await story.value();
         },
         [&](CounterStory& story) -> Task<void> {
           co_await story.expect_folded(value);
           co_await story.add(5);
           EXPECT_EQ(co_await story.value(), value + 5);
         },
         [&](CounterStory& story) -> Task<void> {
           EXPECT_EQ(co_await story.value(), value + 5);
           co_await story.flush();
           co_await story.add(7);
           story.all_is_stable();
           co_await story.wait(100);
           EXPECT_EQ(co_await story.value(), value + 12) << "and what is in memory counts, too";
         }});
}

Task<void> fold_one(CounterStory& story) {
  co_await story.add(10);
  co_await story.add(20);
  co_await story.flush();
  story.all_is_stable();
  co_await story.wait(100);
  co_await story.expect_folded(30);
}

// In whatever way: the next increment begins at nothing, before the delete is stable and after.
Task<void> delete_and_count_on(CounterStory& story, std::function<Task<void>()> remove) {
  for (const bool stays_in_memory : {true, false}) {
    co_await fold_one(story);
    co_await story.add(3);
    co_await remove();
    EXPECT_EQ(co_await story.value(), 0);
    const CellStore cell = co_await story.read();
    EXPECT_TRUE(causality::living(cell).empty()) << "nothing is shown, not even a zero";
    co_await story.add(4);
    EXPECT_EQ(co_await story.value(), 4);
    if (!stays_in_memory) co_await story.flush();
    co_await story.wait(100);
    EXPECT_EQ(co_await story.value(), 4) << "the delete is not stable, and stays";
    story.all_is_stable();
    if (stays_in_memory) co_await story.flush();
    co_await story.wait(100);
    EXPECT_EQ(co_await story.value(), 4);
    co_await remove();
    co_await story.flush();
    story.all_is_stable();
    co_await story.wait(100);
    EXPECT_TRUE((co_await story.read()).empty()) << "nothing is left";
  }
}

TEST(Counters, ADeletedCounterBeginsAtNothing) {
  count({[](CounterStory& story) {
    return delete_and_count_on(story, [&story] { return story.remove_cell(); });
  }});
}

TEST(Counters, ADeletedRowBeginsAtNothing) {
  count({[](CounterStory& story) {
    return delete_and_count_on(story, [&story] {
      return story.remove_rows(causality::range_of_row(Bytes::copy_of("r")));
    });
  }});
}

TEST(Counters, ADeletedPartitionBeginsAtNothing) {
  count({[](CounterStory& story) {
    return delete_and_count_on(story, [&story] { return story.remove_rows({}); });
  }});
}

// A delete in one file, an increment that it names in a newer one: as when it came by a peer and
// late. Folding must not count it.
Task<void> name_what_comes_late(CounterStory& story) {
  Clock peer;
  causality::Mutation late;
  late.timestamp = causality::Timestamp{1};
  late.operation = story.name_of(9);
  late.cells.push_back(count_change(VersionKind::increment, 1000));
  const auto mint = [&](causality::Mutation mutation) {
    return causality::mint(peer, causality::actor_of(2, 1), kCounterEpoch,
                           causality::Policy::counter, std::move(mutation),
                           causality::kTimestampMin);
  };
  auto increment = mint(late);
  CO_ASSERT_OK(increment);
  causality::Mutation removal;
  removal.timestamp = causality::Timestamp{2};
  removal.deleted_ranges.push_back({});
  auto removed = mint(removal);
  CO_ASSERT_OK(removed);
  const auto stage = [&](causality::Delta delta) {
    return story.engine().stage(kCounters, kTablet, Bytes::copy_of("p"), std::move(delta));
  };
  co_await story.add(1, 9);  // the same operation under another dot
  CO_ASSERT_OK(stage(*removed));
  EXPECT_EQ(co_await story.value(), 1) << "the delete had not seen it, nor this replica the other";
  co_await story.flush();
  CO_ASSERT_OK(stage(*increment));
  EXPECT_EQ(co_await story.value(), 0) << "one of its dots is dead, so the operation is";
  co_await story.flush();
  EXPECT_EQ(co_await story.value(), 0);
  story.all_is_stable();
  co_await story.wait(100);
  EXPECT_TRUE((co_await story.read()).empty());
}

TEST(Counters, AnAliasThatADeleteHasNotSeenDiesWithItsOperation) {
  count({name_what_comes_late});
}

}  // namespace
}  // namespace helenus::storage::testing
