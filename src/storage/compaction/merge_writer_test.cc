// What a merge may strip beside files that it cannot look into.
#include "storage/compaction/merge_writer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "causality/codec.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"
#include "storage/sstable/sstable_cursor.h"
#include "storage/sstable/sstable_test_support.h"
#include "storage/verify/sstable_verify.h"

namespace helenus::storage {
namespace {

using causality::actor_of;
using runtime::Runtime;
using runtime::Task;

constexpr TabletId kTablet{1};
constexpr const char* kPartition = "p";
constexpr const char* kRow = "r";

std::string ranges_key() {
  return encode_key({base::as_bytes(kPartition), EntryKind::deleted_ranges, {}});
}

// One row, written by somebody who had seen another mutation.
std::shared_ptr<const Memtable> one_row() {
  causality::Delta delta;
  delta.dot = {actor_of(1, 1), 2};
  delta.context.dots.add(causality::Dot{actor_of(1, 1), 1});
  causality::CellChange cell;
  cell.row = base::Bytes::copy_of(kRow);
  cell.value = base::Bytes::copy_of("v");
  delta.cells.push_back(std::move(cell));
  auto memtable = std::make_shared<Memtable>(causality::Policy::lww);
  memtable->apply(base::as_bytes(kPartition), delta, causality::encoded(delta), 1);
  memtable->freeze();
  return memtable;
}

// A file that could not even be opened, with one key as far as the manifest knows.
std::shared_ptr<const Sstable> unreadable_file(const std::string& key) {
  Sstable file{.record = {.number = FileNumber{1},
                          .keys = 1,
                          .freeze_first = FreezeNumber{1},
                          .freeze_last = FreezeNumber{1},
                          .key_first = base::Bytes::copy_of(key),
                          .key_last = base::Bytes::copy_of(key)},
               .metadata = {},
               .reader = nullptr,
               .damage = base::Error(base::Errc::corrupt, "footer")};
  return std::make_shared<const Sstable>(std::move(file));
}

Task<void> flush_beside(Runtime& runtime, SstableList others, MergeCounts& counts) {
  TabletKnowledge knowledge;
  knowledge.base.add(causality::DotRange{actor_of(1, 1), 1, 2});
  MergePlan plan{.table = TableId{7},
                 .freeze_first = FreezeNumber{2},
                 .freeze_last = FreezeNumber{2},
                 .knowledge = {{kTablet, knowledge}},
                 .tablets = {{.id = kTablet, .range = {}}},
                 .others = std::move(others)};
  const auto writer = co_await SstableWriter::create(runtime, "/out.sst", {});
  CO_ASSERT_OK(writer);
  MergeWriter merge(runtime, std::move(plan));
  const auto source = entries_of(one_row());
  CO_ASSERT_OK(co_await merge.run(*source, **writer, {}));
  CO_ASSERT_OK(co_await (*writer)->finish({}));
  counts = merge.counts();
}

MergeCounts counts_beside(const SstableList& others) {
  MergeCounts counts;
  SimMachine().run([&](Runtime& runtime) { return flush_beside(runtime, others, counts); });
  EXPECT_EQ(counts.keys_read, 1);
  return counts;
}

// The row's key is not in it, but a delete of the row may be: what the row has seen must stay.
TEST(MergeWriter, AFileThatCannotBeReadMayHoldRangesOfThePartition) {
  EXPECT_EQ(counts_beside({unreadable_file(ranges_key())}).keys_whole, 0);
}

TEST(MergeWriter, AFileThatCannotBeReadHoldsNothingOutsideItsKeys) {
  EXPECT_EQ(counts_beside({}).keys_whole, 1);
  EXPECT_EQ(counts_beside({unreadable_file("q")}).keys_whole, 1);
}

// ---- Many ranges

// Disjoint ranges, a row in each second one.
std::shared_ptr<const Memtable> many_ranges(int ranges) {
  auto memtable = std::make_shared<Memtable>(causality::Policy::lww);
  causality::Counter counter = 0;
  for (int i = 0; i < ranges; ++i) {
    causality::Delta delta;
    delta.dot = {actor_of(1, 1), ++counter};
    delta.deleted_ranges.push_back({base::Bytes::copy_of(fmt::format("{:06}", i)),
                                    base::Bytes::copy_of(fmt::format("{:06}", i + 1))});
    memtable->apply(base::as_bytes(kPartition), delta, causality::encoded(delta), counter);
    if (i % 2 != 0) continue;
    causality::Delta put;
    put.dot = {actor_of(1, 1), ++counter};
    put.context.dots.add(causality::DotRange{actor_of(1, 1), 1, counter - 1});
    causality::CellChange cell;
    cell.row = base::Bytes::copy_of(fmt::format("{:06}r", i));
    cell.value = base::Bytes::copy_of("v");
    put.cells.push_back(std::move(cell));
    memtable->apply(base::as_bytes(kPartition), put, causality::encoded(put), counter);
  }
  memtable->freeze();
  return memtable;
}

struct Merged {
  MergeCounts counts;
  std::map<std::string, Entry> entries;
  std::uint64_t steps_in_a_turn_max = 0;  // with ranges, while nobody else ran
};

// Others, whose turn comes whenever the merge waits for something or lets them run.
Task<void> run_beside(Runtime& runtime, const MergeWriter& merge, const bool& over,
                      std::uint64_t& steps_in_a_turn_max) {
  std::uint64_t before = 0;
  while (true) {
    const std::uint64_t steps = merge.counts().range_steps;
    steps_in_a_turn_max = std::max(steps_in_a_turn_max, steps - std::exchange(before, steps));
    if (over) co_return;
    CO_ASSERT_OK(co_await runtime::yield_now(runtime, {}));
  }
}

Task<void> merge_into(MergeWriter& merge, EntrySource& source, SstableWriter& writer, bool& over) {
  CO_ASSERT_OK(co_await merge.run(source, writer, {}));
  over = true;
}

Task<void> flush_ranges(Runtime& runtime, std::shared_ptr<const Memtable> memtable,
                        std::size_t ranges_bytes_max, Merged& merged) {
  TabletKnowledge knowledge;
  knowledge.base.add(causality::DotRange{actor_of(1, 1), 1, 100'000});
  MergePlan plan{.table = TableId{7},
                 .freeze_first = FreezeNumber{2},
                 .freeze_last = FreezeNumber{2},
                 .knowledge = {{kTablet, knowledge}},
                 .tablets = {{.id = kTablet, .range = {}}},
                 .others = {},
                 .ranges_bytes_max = ranges_bytes_max};
  const auto writer = co_await SstableWriter::create(runtime, "/out.sst", {});
  CO_ASSERT_OK(writer);
  MergeWriter merge(runtime, std::move(plan));
  const auto source = entries_of(std::move(memtable));
  bool over = false;
  co_await runtime::when_all(merge_into(merge, *source, **writer, over),
                             run_beside(runtime, merge, over, merged.steps_in_a_turn_max));
  CO_ASSERT_OK(co_await (*writer)->finish(encode(merge.metadata())));
  merged.counts = merge.counts();
  SstableShared shared(1 << 20);
  CO_ASSERT_OK(co_await verify_sstable(runtime, shared, "/out.sst", {}, {}));
  const auto reader = co_await SstableReader::open(runtime, shared, "/out.sst", {}, {});
  CO_ASSERT_OK(reader);
  SstableCursor cursor(*reader, {});
  CO_ASSERT_OK(co_await cursor.seek_first());
  while (cursor.valid()) {
    auto entry = decode_entry(cursor.share_value());
    CO_ASSERT_OK(entry);
    merged.entries[std::string(base::as_text(cursor.key().bytes))] = *std::move(entry);
    CO_ASSERT_OK(co_await cursor.next());
  }
}

Merged flushed(const std::shared_ptr<const Memtable>& memtable, std::size_t ranges_bytes_max) {
  Merged merged;
  SimMachine().run(
      [&](Runtime& runtime) { return flush_ranges(runtime, memtable, ranges_bytes_max, merged); });
  return merged;
}

// A turn of 16 KiB, of ranges of two hundred bytes or so.
constexpr std::uint64_t kStepsInATurnMax = 256;

TEST(MergeWriter, OthersRunWhileManyRangesAreJudged) {
  const Merged merged = flushed(many_ranges(3000), std::size_t{64} << 20);
  EXPECT_EQ(merged.counts.partitions_unsettled, 0);
  EXPECT_EQ(merged.counts.keys_whole, 1501) << "the ranges, and each row";
  EXPECT_GE(merged.counts.range_steps, 4 * 3000) << "gathered, grouped, judged and laid out";
  EXPECT_LE(merged.steps_in_a_turn_max, kStepsInATurnMax);
}

// Deletes of a window that moves on, none of which has seen another, and rows in all of them. A row
// was written by somebody who had seen the deletes before it.
std::shared_ptr<const Memtable> overlapping_ranges(int ranges, int rows) {
  auto memtable = std::make_shared<Memtable>(causality::Policy::lww);
  causality::Counter counter = 0;
  const auto apply = [&](const causality::Delta& delta) {
    memtable->apply(base::as_bytes(kPartition), delta, causality::encoded(delta), counter);
  };
  for (int i = 0; i < std::max(ranges, rows); ++i) {
    if (i < ranges) {
      causality::Delta delta;
      delta.dot = {actor_of(1, 1), ++counter};
      delta.timestamp = causality::Timestamp{i};
      delta.deleted_ranges.push_back({base::Bytes::copy_of(fmt::format("1{:06}", i)),
                                      base::Bytes::copy_of(fmt::format("3{:06}", i))});
      apply(delta);
    }
    if (i < rows) {
      causality::Delta put;
      put.dot = {actor_of(1, 1), ++counter};
      put.timestamp = causality::Timestamp{i};
      put.context.dots.add(causality::DotRange{actor_of(1, 1), 1, counter - 1});
      causality::CellChange cell;
      cell.row = base::Bytes::copy_of(fmt::format("2{:06}", i));
      cell.value = base::Bytes::copy_of("v");
      put.cells.push_back(std::move(cell));
      apply(put);
    }
  }
  memtable->freeze();
  return memtable;
}

// Judging each row by each range, and each range by each, would take hours.
TEST(MergeWriter, ManyRowsInsideVeryManyRangesAreJudged) {
  constexpr int kRanges = 3000;
  const auto memtable = overlapping_ranges(kRanges, kRanges);
  const Merged merged = flushed(memtable, std::size_t{64} << 20);
  EXPECT_EQ(merged.counts.keys_whole, kRanges + 1) << "the ranges, and each row";
  EXPECT_LE(merged.counts.range_steps, 20 * kRanges);
  EXPECT_LE(merged.steps_in_a_turn_max, kStepsInATurnMax) << "others run while they are judged";
  std::size_t ranges = 0;
  for (const auto& [key, entry] : merged.entries) {
    ranges += entry.deleted_ranges().size();
    if (entry.holds_ranges()) continue;
    EXPECT_EQ(entry, memtable->find(base::as_bytes(key))) << "it names more than it is asked for";
  }
  EXPECT_EQ(ranges, kRanges);
}

// Deletes of a window that moves on, and a row between any two: each row lies in other ranges than
// the one before it.
TEST(MergeWriter, TheEffortForARowFollowsTheRangesThatBeginAndEndBeforeIt) {
  constexpr int kRanges = 4000;
  constexpr int kWidth = 1000;
  auto memtable = std::make_shared<Memtable>(causality::Policy::lww);
  causality::Counter counter = 0;
  for (int i = 0; i < kRanges; ++i) {
    causality::Delta delta;
    delta.dot = {actor_of(1, 1), ++counter};
    delta.timestamp = causality::Timestamp{i};
    delta.deleted_ranges.push_back({base::Bytes::copy_of(fmt::format("{:06}", i)),
                                    base::Bytes::copy_of(fmt::format("{:06}", i + kWidth))});
    memtable->apply(base::as_bytes(kPartition), delta, causality::encoded(delta), counter);
    causality::Delta put;
    put.dot = {actor_of(1, 1), ++counter};
    put.timestamp = causality::Timestamp{i - 1};
    causality::CellChange cell;
    cell.row = base::Bytes::copy_of(fmt::format("{:06}r", i));
    cell.value = base::Bytes::copy_of("v");
    put.cells.push_back(std::move(cell));
    memtable->apply(base::as_bytes(kPartition), put, causality::encoded(put), counter);
  }
  memtable->freeze();
  const Merged merged = flushed(memtable, std::size_t{64} << 20);
  EXPECT_EQ(merged.counts.keys_whole, kRanges + 1) << "the ranges, and each row";
  EXPECT_LE(merged.counts.range_steps, 20 * kRanges);
  EXPECT_LE(merged.steps_in_a_turn_max, kStepsInATurnMax);
}

// Nothing is judged, nothing is lost, and nothing lies where it is not found.
TEST(MergeWriter, APartitionWithMoreRangesThanMemoryIsWrittenAsItIs) {
  const auto memtable = many_ranges(300);
  const Merged merged = flushed(memtable, 4096);
  EXPECT_EQ(merged.counts.partitions_unsettled, 1);
  EXPECT_EQ(merged.counts.keys_whole, 0);
  EXPECT_EQ(merged.entries.size(), memtable->key_count());
  for (const auto& [key, entry] : merged.entries) {
    EXPECT_EQ(entry, memtable->find(base::as_bytes(key)));
  }
  const Merged judged = flushed(memtable, std::size_t{64} << 20);
  EXPECT_EQ(judged.counts.keys_whole, 151);
}

}  // namespace
}  // namespace helenus::storage
