// Stories about the filters of a table's files: they are the table's, they change with it, and they
// are as large as what is left.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "storage/engine/engine_test_support.h"
#include "storage/engine/file_filters_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr causality::Epoch kEpoch{1};

EngineOptions one_folder() {
  EngineOptions options = small_engine();
  options.data_directories.resize(1);
  options.memtable_keys_flush = 100'000;
  options.memtable_bytes_flush = 8 << 20;
  options.memtable_bytes_max = 32 << 20;
  options.block_bytes = 4096;
  return options;
}

TableOptions with(FilterKind kind) {
  return {.filter = TableFilter{.kind = kind}};
}

void live(LogWorld& world, const std::function<Task<void>(EngineStory&)>& tell) {
  world.run([&](Runtime& runtime) -> Task<void> {
    EngineStory story(runtime, one_folder());
    CO_ASSERT_OK(co_await story.open());
    co_await tell(story);
    CO_ASSERT_OK(co_await story.stop());
  });
}

// In the order of their numbers.
Task<std::vector<FileFilters>> files_of(EngineStory& story) {
  const auto found =
      co_await filters_in(story.runtime(), {std::string(kEngineFolder) + "/a/shard-0000"});
  EXPECT_TRUE(found.has_value()) << found.error().to_string();
  std::vector<FileFilters> files;
  for (const auto& [path, file] : *found) files.push_back(file);
  co_return files;
}

Task<std::vector<FilterKind>> kinds_of(EngineStory& story) {
  std::vector<FilterKind> kinds;
  for (const FileFilters& file : co_await files_of(story)) kinds.push_back(file.kind);
  co_return kinds;
}

Task<void> put_and_flush(EngineStory& story, TableId table, std::string row) {
  CO_ASSERT_OK(co_await story.engine().write(table, kTablet, Bytes::copy_of("p"),
                                             put_of(row, "v", 1), kEpoch, Until::forever()));
  CO_ASSERT_OK(co_await story.engine().flush(table, Until::forever()));
}

Task<void> make_tables_with_filters(EngineStory& story) {
  std::uint64_t id = 100;
  for (const FilterKind kind : kFilterKinds) {
    CO_ASSERT_OK(co_await story.engine().create_table(TableId{id}, with(kind)));
    co_await put_and_flush(story, TableId{id}, "r");
    ++id;
  }
  co_await put_and_flush(story, kTable, "r");
  EXPECT_THAT(co_await kinds_of(story),
              UnorderedElementsAre(FilterKind::none, FilterKind::cuckoo, FilterKind::bloom,
                                   FilterKind::consistent_cuckoo, FilterKind::cuckoo))
      << "each its own, and one the node's";
}

TEST(TableFilters, FilesHaveTheFiltersOfTheirTable) {
  LogWorld world;
  live(world, make_tables_with_filters);
}

Task<void> alter_between_files(EngineStory& story) {
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  co_await put_and_flush(story, kTable, "1");
  CO_ASSERT_OK(co_await engine.alter_table(kTable, with(FilterKind::consistent_cuckoo)));
  EXPECT_THAT(co_await kinds_of(story), ElementsAre(FilterKind::cuckoo))
      << "files stay as they are";
  co_await put_and_flush(story, kTable, "2");
  EXPECT_THAT(co_await kinds_of(story),
              ElementsAre(FilterKind::cuckoo, FilterKind::consistent_cuckoo));
  CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  EXPECT_THAT(co_await kinds_of(story), ElementsAre(FilterKind::consistent_cuckoo))
      << "a merge writes what the table has now";
  TableOptions other = with(FilterKind::bloom);
  other.compression = Compression::zstd;
  CO_ASSERT_OK(co_await engine.alter_table(kTable, other));
}

Task<void> go_on_after_a_start(EngineStory& story) {
  co_await put_and_flush(story, kTable, "3");
  const std::vector<FileFilters> files = co_await files_of(story);
  EXPECT_EQ(files.size(), 2);
  EXPECT_EQ(files.back().kind, FilterKind::bloom);
  EXPECT_EQ(files.back().compression, Compression::zstd);
  EXPECT_EQ(*co_await story.get("p", "1"), "v");
}

TEST(TableFilters, AnAlteredTableGivesLaterFilesItsNewFiltersAlsoAfterAStart) {
  LogWorld world;
  live(world, alter_between_files);
  live(world, go_on_after_a_start);
  world.machine().power_loss();
  live(world, [](EngineStory& story) -> Task<void> {
    co_await put_and_flush(story, kTable, "4");
    const std::vector<FilterKind> kinds = co_await kinds_of(story);
    EXPECT_EQ(kinds.back(), FilterKind::bloom);
  });
}

Task<void> alter_in_vain(EngineStory& story) {
  Engine& engine = story.engine();
  EXPECT_TRUE((co_await engine.alter_table(TableId{99}, {})).failed_with(Errc::not_found));
  TableOptions impossible = with(FilterKind::consistent_cuckoo);
  impossible.filter->bits_per_hash = 8;
  const auto altered = co_await engine.alter_table(kTable, impossible);
  EXPECT_TRUE(altered.failed_with(Errc::invalid_argument));
  const auto made = co_await engine.create_table(TableId{99}, impossible);
  EXPECT_TRUE(made.failed_with(Errc::invalid_argument));
  // The policy is not for altering.
  CO_ASSERT_OK(co_await engine.alter_table(kTable, {.policy = causality::Policy::siblings}));
  co_await put_and_flush(story, kTable, "1");
  EXPECT_THAT(co_await kinds_of(story), ElementsAre(FilterKind::cuckoo));
}

TEST(TableFilters, WhatATableCannotHaveIsRefused) {
  LogWorld world;
  live(world, alter_in_vain);
}

TEST(TableFilters, ATablesWordGoesBeforeTheNodes) {
  const FilterOptions node{.kind = FilterKind::bloom, .bits_per_hash = 12, .hashes_max = 77};
  EXPECT_EQ(chosen(node, std::nullopt).kind, FilterKind::bloom);
  const FilterOptions kind_alone = chosen(node, TableFilter{.kind = FilterKind::cuckoo});
  EXPECT_EQ(kind_alone.kind, FilterKind::cuckoo);
  EXPECT_EQ(kind_alone.bits_per_hash, 12);
  EXPECT_EQ(kind_alone.hashes_max, 77);
  const FilterOptions by_rate =
      chosen(node, TableFilter{.kind = FilterKind::cuckoo, .false_positive_rate = 0.1});
  EXPECT_EQ(by_rate.false_positive_rate, 0.1);
  EXPECT_EQ(by_rate.bits_per_hash, std::nullopt) << "the node's bits would win over the rate";
  EXPECT_EQ(chosen(node, TableFilter{.kind = FilterKind::bloom, .bits_per_hash = 8}).bits_per_hash,
            8);
}

// ---- Forgetting ----

std::string row_of(int row) {
  return fmt::format("{:05}", row);
}

Task<void> remove_row(EngineStory& story, std::string row) {
  causality::Mutation mutation;
  mutation.timestamp = causality::Timestamp{1'000'000};
  mutation.deleted_ranges.push_back(causality::range_of_row(Bytes::copy_of(row)));
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, Bytes::copy_of("p"),
                                             std::move(mutation), kEpoch, Until::forever()));
}

constexpr int kRows = 2000;
constexpr int kSteps = 4;

// What it costs to ask for every row that steps from `first` to `last` take away: nothing is found.
Task<SstableCounters> ask_for_rows_of_steps(EngineStory& story, int first, int last) {
  const SstableCounters before = story.engine().statistics().sstable_counters;
  for (int row = 0; row < kRows; ++row) {
    const int step = row % (kSteps + 1) + 1;
    if (step < first || step > last) continue;
    EXPECT_EQ(*co_await story.get("p", row_of(row)), "");
  }
  SstableCounters spent = story.engine().statistics().sstable_counters;
  spent.data_blocks_read -= before.data_blocks_read;
  spent.filter_negatives -= before.filter_negatives;
  spent.filter_positives -= before.filter_positives;
  spent.filter_false_positives -= before.filter_false_positives;
  co_return spent;
}

// Files never change, and neither do their filters: a row that is deleted is let through until a
// merge has collected it, and then there is no trace of it, neither in the file nor in the filter.
Task<void> forget_most_rows(EngineStory& story) {
  constexpr int kRounding = 512;  // bytes: a table has room for a few buckets more
  constexpr int kRowsAStep = kRows / (kSteps + 1);
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  CO_ASSERT_OK(co_await engine.alter_table(kTable, with(FilterKind::consistent_cuckoo)));
  for (int row = 0; row < kRows; ++row) CO_ASSERT_OK(co_await story.put("p", row_of(row), "v"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  const std::vector<FileFilters> full = co_await files_of(story);
  EXPECT_EQ(full.size(), 1);
  EXPECT_EQ(full.front().kind, FilterKind::consistent_cuckoo);
  // A fifth of the rows goes in every step, and the memory of their fingerprints with them.
  for (int step = 1; step <= kSteps; ++step) {
    for (int row = step - 1; row < kRows; row += kSteps + 1) {
      co_await remove_row(story, row_of(row));
    }
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
    const SstableCounters deleted = co_await ask_for_rows_of_steps(story, step, step);
    EXPECT_EQ(deleted.filter_positives, kRowsAStep)
        << "in the file of deletes, which have seen all of that of the rows";
    EXPECT_GT(deleted.data_blocks_read, 0);
    CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
    const std::vector<FileFilters> now = co_await files_of(story);
    EXPECT_EQ(now.size(), 1);
    const double left = 1 - static_cast<double>(step) / (kSteps + 1);
    EXPECT_LE(static_cast<double>(now.front().keys), left * kRows + 1);
    EXPECT_LE(static_cast<double>(now.front().bytes),
              left * static_cast<double>(full.front().bytes) * 1.1 + kRounding);
  }
  // Where nothing is any more, nothing is read.
  const SstableCounters forgotten = co_await ask_for_rows_of_steps(story, 1, kSteps);
  EXPECT_EQ(forgotten.data_blocks_read, 0);
  EXPECT_EQ(forgotten.filter_positives, 0);
  EXPECT_EQ(forgotten.filter_false_positives, 0);
  // All but those before the first row that is left, which need no filter.
  EXPECT_EQ(forgotten.filter_negatives, kSteps * kRowsAStep - kSteps);
  EXPECT_EQ(*co_await story.get("p", row_of(kSteps)), "v");
}

TEST(TableFilters, AConsistentCuckooShrinksAsRowsAreForgottenAndSparesLookupsOfThem) {
  LogWorld world;
  live(world, forget_most_rows);
}

}  // namespace
}  // namespace helenus::storage::testing
