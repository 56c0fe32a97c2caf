// What a reader sees while others write: each row as it was at one moment, with the deletes of
// ranges that hold it.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "causality/resolve.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr causality::Epoch kEpoch{1};
constexpr int kColumns = 2;

causality::CellChange cell(const std::string& row, int column, const std::string& value) {
  causality::CellChange change;
  change.row = Bytes::copy_of(row);
  change.column = causality::ColumnId{static_cast<std::uint32_t>(column)};
  change.value = Bytes::copy_of(value);
  return change;
}

causality::RowRange range(const std::string& from, const std::string& to) {
  return {Bytes::copy_of(from), Bytes::copy_of(to)};
}

// The values of the row's columns, one after the other.
std::string shown(const causality::PartitionStore& partition, const std::string& row) {
  std::string text;
  for (std::uint32_t column = 0; column < kColumns; ++column) {
    const auto store = partition.cell(Bytes::copy_of(row), causality::ColumnId{column});
    for (const causality::Version* version :
         causality::visible(store, causality::Policy::lww, causality::WallTime{1})) {
      text += version->value.text();
    }
  }
  return text;
}

class Writer {
 public:
  Writer(Engine& engine, Runtime& runtime) : engine_(engine), runtime_(runtime) {}

  Runtime& runtime() { return runtime_; }

  // In this very step, as another request would between two of a reader's.
  causality::Dot put(const std::string& row, int column, const std::string& value) {
    causality::Mutation mutation;
    mutation.cells.push_back(cell(row, column, value));
    return stage(std::move(mutation));
  }
  causality::Dot remove(const std::string& from, const std::string& to) {
    causality::Mutation mutation;
    mutation.deleted_ranges.push_back(range(from, to));
    mutation.remembered_until = remembered_until_;
    return stage(std::move(mutation));
  }
  // What is deleted from now on is in files for good.
  void remember() { remembered_until_ = causality::WallTime{INT64_MAX / 2}; }
  // Deletes the range and writes a row of it, at once.
  causality::Dot replace(const std::string& from, const std::string& to, const std::string& row,
                         int column, const std::string& value) {
    causality::Mutation mutation;
    mutation.deleted_ranges.push_back(range(from, to));
    mutation.cells.push_back(cell(row, column, value));
    return stage(std::move(mutation));
  }

 private:
  causality::Dot stage(causality::Mutation mutation) {
    mutation.timestamp = causality::Timestamp{time_ += 10};
    const auto staged = engine_.stage(kTable, kTablet, base::as_bytes("p"), mutation, kEpoch);
    EXPECT_TRUE(staged.has_value());
    return staged->delta.dot;
  }

  Engine& engine_;
  Runtime& runtime_;
  std::int64_t time_ = 1000;
  std::optional<causality::WallTime> remembered_until_;
};

Task<void> life(Runtime& runtime, std::function<Task<void>(Engine&, Writer&)> tell) {
  // Nothing is frozen but by a flush that is asked for: a cursor sees what is written meanwhile.
  // And every block is read from the disk, so that something can be.
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 100'000;
  options.memtable_bytes_flush = 1 << 20;
  options.memtable_bytes_max = 4 << 20;
  options.block_cache_bytes = 0;
  EngineStory story(runtime, options);
  CO_ASSERT_OK(co_await story.open());
  Writer writer(story.engine(), runtime);
  co_await tell(story.engine(), writer);
  CO_ASSERT_OK(co_await story.stop());
}

void live(const std::function<Task<void>(Engine&, Writer&)>& tell) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return life(runtime, tell); });
}

Task<base::Result<void>> seek(TableCursor& cursor, const std::string& row) {
  return cursor.seek(Bytes::copy_of("p"), Bytes::copy_of(row));
}

Task<base::Result<std::vector<causality::RangeDelete>>> ranges_across(
    Engine& engine, causality::RowRange row_range) {
  CO_TRY(const auto cursor, engine.cursor(kTable, kTablet, {}));
  std::map<causality::RowRange, causality::CellStore> across;
  CO_TRY_VOID(co_await cursor->seek_ranges(Bytes::copy_of("p")));
  while (cursor->at_ranges()) {
    EXPECT_FALSE(cursor->valid());
    CO_TRY(const Entry entry, cursor->ranges());
    for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
      if (range_delete.range.overlaps(row_range))
        across[range_delete.range].absorb(range_delete.store);
    }
    CO_TRY_VOID(co_await cursor->next_ranges());
  }
  // It goes on from wherever it is told to.
  CO_TRY_VOID(co_await seek(*cursor, ""));
  EXPECT_TRUE(cursor->valid());
  EXPECT_FALSE(cursor->at_ranges());
  std::vector<causality::RangeDelete> found;
  for (auto& [range, store] : across) found.push_back({range, std::move(store)});
  co_return found;
}

// A delete of a range and a later write of a row in it: neither alone.
Task<void> write_behind_a_walk(Engine& engine, Writer& writer, bool ranges_before) {
  writer.put("a", 0, "first");
  writer.put("b", 0, "old");
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  if (ranges_before) writer.remove("y", "z");
  const auto cursor = engine.cursor(kTable, kTablet, {});
  CO_ASSERT_OK(cursor);
  CO_ASSERT_OK(co_await seek(**cursor, "a"));
  EXPECT_EQ(shown(*(*cursor)->read(), "a"), "first");
  writer.remove("b", "c");
  writer.put("b", 1, "new");
  CO_ASSERT_OK(co_await (*cursor)->next());
  CO_ASSERT_TRUE((*cursor)->valid());
  EXPECT_EQ(shown(*(*cursor)->read(), "b"), "new");
}

TEST(EngineCursor, ARowIsNotSeenBetweenADeleteAndWhatCameAfterIt) {
  live([](Engine& engine, Writer& writer) { return write_behind_a_walk(engine, writer, true); });
}

TEST(EngineCursor, TheFirstDeleteOfARangeIsSeenByAWalkThatBeganBefore) {
  live([](Engine& engine, Writer& writer) { return write_behind_a_walk(engine, writer, false); });
}

// The cursor stands on the row already, which so far only a file has.
TEST(EngineCursor, ARowIsReadAsItIsAndNotAsItWasFound) {
  live([](Engine& engine, Writer& writer) -> Task<void> {
    writer.put("b", 0, "old");
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
    writer.put("d", 0, "other");
    const auto cursor = engine.cursor(kTable, kTablet, {});
    CO_ASSERT_OK(cursor);
    CO_ASSERT_OK(co_await seek(**cursor, "b"));
    EXPECT_EQ(shown(*(*cursor)->read(), "b"), "old");
    writer.replace("a", "c", "b", 1, "new");
    EXPECT_EQ(shown(*(*cursor)->read(), "b"), "new");
    EXPECT_EQ(shown(*(*cursor)->read(), "b"), "new");
    CO_ASSERT_OK(co_await (*cursor)->next());
    CO_ASSERT_TRUE((*cursor)->valid());
    EXPECT_EQ(shown(*(*cursor)->read(), "d"), "other");
    CO_ASSERT_OK(co_await (*cursor)->previous());
    EXPECT_EQ(shown(*(*cursor)->read(), "b"), "new");
  });
}

// So many ranges that they lie in parts; each part is read anew when something came.
TEST(EngineCursor, RangesThatComeInPartsAreSeenByTheNextRead) {
  live([](Engine& engine, Writer& writer) -> Task<void> {
    for (int row = 0; row < 60; ++row) {
      const std::string name = fmt::format("{:03}", row);
      writer.put(name, 0, "old");
      writer.remove(name + "x", name + "y");
    }
    const auto cursor = engine.cursor(kTable, kTablet, {});
    CO_ASSERT_OK(cursor);
    CO_ASSERT_OK(co_await seek(**cursor, "000"));
    for (int row = 0; row < 60; ++row) {
      const std::string name = fmt::format("{:03}", row);
      CO_ASSERT_TRUE((*cursor)->valid());
      EXPECT_EQ(shown(*(*cursor)->read(), name), "old");
      if (row % 3 == 0) writer.remove(name, name + "x");
      EXPECT_EQ(shown(*(*cursor)->read(), name), row % 3 == 0 ? "" : "old");
      CO_ASSERT_OK(co_await (*cursor)->next());
    }
    EXPECT_GT((*cursor)->trace().range_paths_read, 60U);
  });
}

std::vector<std::string> texts_of(const std::vector<causality::RangeDelete>& ranges) {
  std::vector<std::string> texts;
  for (const causality::RangeDelete& range : ranges) {
    texts.push_back(fmt::format("{}-{}: {}", range.range.from->text(), range.range.to->text(),
                                range.store.versions().size()));
  }
  return texts;
}

// Of memtables and files, few under the partition's own key and many under their paths.
Task<void> find_ranges_across(Engine& engine, Writer& writer) {
  const auto across = [&](std::optional<causality::RowRange> row_range) {
    return ranges_across(engine, row_range.value_or(causality::RowRange{}));
  };
  writer.remember();
  writer.put("m", 0, "a row");
  writer.remove("b", "d");
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  writer.remove("c", "f");
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  writer.remove("p", "q");
  writer.remove("c", "f");
  auto found = co_await across(std::nullopt);
  CO_ASSERT_OK(found);
  EXPECT_EQ(texts_of(*found), (std::vector<std::string>{"b-d: 1", "c-f: 1", "p-q: 1"}));
  found = co_await across(range("d", "p"));
  CO_ASSERT_OK(found);
  EXPECT_EQ(texts_of(*found), (std::vector<std::string>{"c-f: 1"}));
  constexpr int kMany = 300;
  for (int i = 0; i < kMany; ++i) {
    const std::string at = fmt::format("x{:04}", i * 7 % kMany);
    writer.remove(at, at + "z");
    if (i % 100 == 50) CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
    if (i == 200) CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  }
  found = co_await across(range("x0100", "x0200"));
  CO_ASSERT_OK(found);
  CO_ASSERT_TRUE(found->size() == 100);
  for (std::size_t i = 0; i < found->size(); ++i) {
    EXPECT_EQ((*found)[i].range.from->text(), fmt::format("x{:04}", 100 + i));
  }
}

TEST(EngineCursor, AllRangesOfAPartitionAreFoundWithoutRows) {
  live(find_ranges_across);
}

TEST(EngineCursor, WhatCameBetweenArrivingAndReadingIsWaitedForToo) {
  live([](Engine& engine, Writer& writer) -> Task<void> {
    writer.put("a", 0, "old");
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
    for (const bool of_the_row : {true, false}) {
      const auto cursor = engine.cursor(kTable, kTablet, {});
      CO_ASSERT_OK(cursor);
      CO_ASSERT_OK(co_await seek(**cursor, "a"));
      const causality::Dot dot = of_the_row ? writer.put("a", 0, "new") : writer.remove("a", "b");
      EXPECT_EQ(shown(*(*cursor)->read(), "a"), of_the_row ? "new" : "");
      EXPECT_FALSE(engine.durable_clock(kTablet)->contains(dot));
      CO_ASSERT_OK(co_await engine.wait_durable((*cursor)->trace(), Until::forever()));
      EXPECT_TRUE(engine.durable_clock(kTablet)->contains(dot));
    }
  });
}

// The same of a read of one row that has to wait for the disk: whatever it meets, the row has the
// value of one moment, and so has whoever reads all the time.
Task<void> replace_often(Engine& engine, Writer& writer, bool& over) {
  for (int round = 1; round <= 100; ++round) {
    writer.replace("a", "c", "b", round % kColumns, fmt::format("{:03}", round));
    CO_ASSERT_OK(co_await runtime::sleep_for(writer.runtime(), std::chrono::microseconds(50), {}));
    if (round % 5 == 0) CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
    if (round % 20 == 0) CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  }
  over = true;
}

Task<void> read_often(Engine& engine, Runtime& runtime, const bool& over) {
  std::string last = "000";
  int reads = 0;
  while (!over) {
    ++reads;
    const auto read =
        co_await engine.read_row(kTable, kTablet, Bytes::copy_of("p"), Bytes::copy_of("b"), {});
    CO_ASSERT_OK(read);
    const std::string now = shown(read->partition, "b");
    EXPECT_EQ(now.size(), 3U) << now;
    EXPECT_GE(now, last);
    last = now;
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::microseconds(200), {}));
  }
  EXPECT_GT(reads, 20);
}

TEST(EngineCursor, AReadThatWaitsForTheDiskShowsARowOfOneMoment) {
  live([](Engine& engine, Writer& writer) -> Task<void> {
    writer.put("b", 0, "000");
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
    bool over = false;
    co_await runtime::when_all(replace_often(engine, writer, over),
                               read_often(engine, writer.runtime(), over));
  });
}

}  // namespace
}  // namespace helenus::storage::testing
