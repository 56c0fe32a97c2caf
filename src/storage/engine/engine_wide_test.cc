// A partition far larger than memory is written, merged and read in bounded memory: counted by the
// operators new of this very program, which is why it is a program of its own. With
//   HELENUS_DELETED_ROWS=200000
// as many rows are deleted in a partition as in a queue of that length. With
//   HELENUS_WIDE_ROWS=3000000
// a partition of as many rows is written, merged and read on real files (TMPDIR says where).
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "base/prng.h"
#include "causality/codec.h"
#include "runtime/contract/world.h"
#include "runtime/native/native_host.h"
#include "runtime/native/temporary_directory.h"
#include "storage/compaction/merge_writer.h"
#include "storage/engine/engine_test_support.h"

namespace {

struct Heap {
  std::atomic<std::size_t> now = 0;
  std::atomic<std::size_t> peak = 0;
};

Heap& heap() {
  static Heap counted;
  return counted;
}

void* taken(void* memory) {
  const std::size_t size = malloc_usable_size(memory);
  const std::size_t now = heap().now.fetch_add(size) + size;
  std::size_t peak = heap().peak;
  while (peak < now && !heap().peak.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void give_back(void* memory) {
  heap().now -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return taken(std::malloc(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  return taken(std::aligned_alloc(align, (size + align - 1) / align * align));
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give_back(memory);
}

namespace helenus::storage::testing {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr int kRows = 200'000;
constexpr int kRowsPerWrite = 200;

EngineOptions wide_options() {
  EngineOptions options = small_engine();
  options.log.segment_size = 1 << 20;
  options.log.record_size_max = 256 << 10;
  options.log.staged_bytes_max = 1 << 20;
  options.log.disk_bytes_max = 16 << 20;
  options.memtable_keys_flush = 1'000'000;
  options.memtable_bytes_flush = 2 << 20;
  options.memtable_bytes_max = 8 << 20;
  options.block_cache_bytes = 1 << 20;
  options.block_bytes = 16 << 10;
  return options;
}

// Rows come in an order that spreads every write over the whole partition. Their values cannot be
// compressed.
Task<void> write_rows(EngineStory& story, int rows, std::size_t value_bytes) {
  base::Prng prng(1);
  for (int batch = 0; batch < rows / kRowsPerWrite; ++batch) {
    causality::Mutation mutation;
    mutation.timestamp = causality::Timestamp{batch + 1};
    for (int index = 0; index < kRowsPerWrite; ++index) {
      causality::CellChange change;
      change.row =
          base::Bytes::copy_of(fmt::format("{:08}", index * (rows / kRowsPerWrite) + batch));
      std::string value(value_bytes, '\0');
      for (char& byte : value) byte = static_cast<char>(prng.next());
      change.value = base::Bytes::copy_of(value);
      mutation.cells.push_back(std::move(change));
    }
    CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of("wide"),
                                               std::move(mutation), causality::Epoch{1},
                                               Until::forever()));
  }
}

Task<void> read_rows(EngineStory& story, int& rows) {
  auto cursor = story.engine().cursor(kTable, kTablet, {});
  CO_ASSERT_OK(cursor);
  CO_ASSERT_OK(co_await (*cursor)->seek_first());
  while ((*cursor)->valid()) {
    if (base::as_text((*cursor)->row_key()) != fmt::format("{:08}", rows)) break;
    CO_ASSERT_OK((*cursor)->read());
    ++rows;
    CO_ASSERT_OK(co_await (*cursor)->next());
  }
}

Task<void> life(Runtime& runtime) {
  EngineStory story(runtime, wide_options());
  CO_ASSERT_OK(co_await story.open());
  co_await write_rows(story, kRows, 40);
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  EXPECT_EQ(story.engine().statistics().sstables, 1);
  const std::size_t data = story.engine().statistics().sstable_bytes;
  const std::size_t before = heap().now;
  heap().peak = before;
  int rows = 0;
  co_await read_rows(story, rows);
  EXPECT_EQ(rows, kRows);
  const std::size_t grown = heap().peak - before;
  EXPECT_LE(grown, wide_options().block_cache_bytes + (std::size_t{1} << 20));
  ::testing::Test::RecordProperty("data_bytes", static_cast<int>(data));
  ::testing::Test::RecordProperty("heap_growth_bytes", static_cast<int>(grown));
  CO_ASSERT_OK(co_await story.stop());
}

TEST(WidePartition, StreamsInBoundedMemory) {
  LogWorld world;
  world.run([](Runtime& runtime) { return life(runtime); });
}

// ---- On real files, of a size that somebody asks for ----

// What the memory is for that a budget of nine mebibytes of memtables and cache stands for: flushes
// and merges hold blocks and what they write, and of each row some bytes of filters and indexes.
std::size_t memory_for(int rows) {
  return (std::size_t{40} << 20) + static_cast<std::size_t>(rows) * 8;
}

std::string resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return line;
  }
  return "unknown";
}

Task<void> write_merge_and_read(EngineStory& story, int rows) {
  CO_ASSERT_OK(co_await story.open());
  co_await write_rows(story, rows, 100);
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  EXPECT_EQ(story.engine().statistics().sstables, 1);
  int read = 0;
  co_await read_rows(story, read);
  EXPECT_EQ(read, rows);
  CO_ASSERT_OK(co_await story.stop());
}

Task<int> native_life(Runtime& runtime, const std::string& directory, int rows) {
  EngineOptions options = wide_options();
  options.data_directories = {directory + "/data"};
  options.log_directory = directory + "/log";
  EngineStory story(runtime, options);
  co_await write_merge_and_read(story, rows);
  co_return 0;
}

TEST(WidePartition, OnRealFilesTakesMemoryByItsBudgetAndNotByItsRows) {
  const char* given = std::getenv("HELENUS_WIDE_ROWS");
  const int rows = (given == nullptr ? 20'000 : std::atoi(given)) / kRowsPerWrite * kRowsPerWrite;
  const runtime::native::TemporaryDirectory directory;
  auto host = runtime::native::NativeHost::open({.cores = 1, .handle_signals = false});
  ASSERT_TRUE(host.has_value()) << host.error().to_string();
  const std::size_t before = heap().now;
  heap().peak = before;
  EXPECT_EQ((*host)->run([&](Runtime& runtime, runtime::StopToken) {
    return native_life(runtime, directory.path(), rows);
  }),
            0);
  const std::size_t grown = heap().peak - before;
  EXPECT_LE(grown, memory_for(rows));
  RecordProperty("heap_growth_bytes", std::to_string(grown));
  RecordProperty("resident_peak", resident_peak());
  if (given != nullptr) {
    fmt::print("{} rows of 108 bytes: the heap grew by {} bytes; {}\n", rows, grown,
               resident_peak());
  }
}

// ---- A partition in which everything is deleted, row by row or range by range ----

enum class Deletes : std::uint8_t { rows, ranges, all_before_a_mark };

std::string name_of(int row) {
  return fmt::format("{:08}", row);
}

Task<void> write_and_delete(EngineStory& story, int rows, Deletes kind) {
  const auto write = [&](causality::Mutation mutation) {
    return story.engine().write(kTable, kTablet, base::Bytes::copy_of("queue"), std::move(mutation),
                                causality::Epoch{1}, Until::forever());
  };
  for (int first = 0; first < rows; first += kRowsPerWrite) {
    causality::Mutation puts;
    causality::Mutation deletes;
    puts.timestamp = causality::Timestamp{first + 1};
    deletes.timestamp = causality::Timestamp{first + 2};
    for (int row = first; row < first + kRowsPerWrite; ++row) {
      causality::CellChange change;
      change.row = base::Bytes::copy_of(name_of(row) + "x");
      change.value = base::Bytes::copy_of("waiting");
      deletes.deleted_ranges.push_back(
          kind == Deletes::rows ? causality::range_of_row(change.row)
                                : causality::RowRange{base::Bytes::copy_of(name_of(row)),
                                                      base::Bytes::copy_of(name_of(row + 1))});
      puts.cells.push_back(std::move(change));
    }
    CO_ASSERT_OK(co_await write(std::move(puts)));
    CO_ASSERT_OK(co_await write(std::move(deletes)));
  }
}

// A row, and then a delete of all rows up to it: each delete has seen those before it, and its
// range holds theirs. Nobody has told the engine that a peer has any of them.
Task<void> delete_before_a_mark(EngineStory& story, int rows) {
  for (int row = 0; row < rows; ++row) {
    CO_ASSERT_OK(co_await story.put("queue", name_of(row) + "x", "waiting"));
    causality::Mutation mutation;
    mutation.timestamp = causality::Timestamp{1'000'000 + row};
    mutation.deleted_ranges.push_back({std::nullopt, base::Bytes::copy_of(name_of(row + 1))});
    CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of("queue"),
                                               std::move(mutation), causality::Epoch{1},
                                               Until::forever()));
  }
}

struct Cost {
  std::size_t read_bytes = 0;  // of memory, beyond what was there before
  std::size_t page_bytes = 0;
  std::uint64_t blocks_max = 0;  // of a read
  std::uint64_t disk_bytes = 0;
};

// Rows here and there, and a page of a hundred in the middle: all of them deleted, by so many.
Task<void> measure(EngineStory& story, int rows, std::size_t deletes_max, Cost& cost) {
  Engine& engine = story.engine();
  for (const int row : {0, rows / 3, rows / 2, rows - 1}) {
    const std::size_t before = heap().now;
    heap().peak = before;
    const auto read = co_await engine.read_row(kTable, kTablet, base::Bytes::copy_of("queue"),
                                               base::Bytes::copy_of(name_of(row) + "x"), {});
    CO_ASSERT_OK(read);
    EXPECT_GE(read->partition.range_deletes().size(), 1U) << "the delete that holds it";
    EXPECT_LE(read->partition.range_deletes().size(), deletes_max);
    cost.read_bytes = std::max(cost.read_bytes, heap().peak - before);
  }
  cost.blocks_max = engine.statistics().blocks_per_read.max();
  const std::size_t before = heap().now;
  heap().peak = before;
  auto cursor = engine.cursor(kTable, kTablet, {.read_ahead_bytes_min = 0});
  CO_ASSERT_OK(cursor);
  CO_ASSERT_OK(co_await (*cursor)->seek(base::Bytes::copy_of("queue"),
                                        base::Bytes::copy_of(name_of(rows / 2))));
  for (int row = 0; row < 100 && (*cursor)->valid(); ++row) {
    const auto read = (*cursor)->read();
    CO_ASSERT_OK(read);
    EXPECT_GE(read->range_deletes().size(), 1U);
    EXPECT_LE(read->range_deletes().size(), deletes_max);
    CO_ASSERT_OK(co_await (*cursor)->next());
  }
  cost.page_bytes = heap().peak - before;
}

// In memory, and in files.
Task<void> queue_life(Runtime& runtime, int rows, Deletes kind, Cost& memtable, Cost& file) {
  EngineOptions options = wide_options();
  options.memtable_bytes_flush = 256 << 20;
  options.memtable_bytes_max = 1 << 30;
  options.log.disk_bytes_max = 1 << 30;
  EngineStory story(runtime, options);
  CO_ASSERT_OK(co_await story.open());
  const bool nested = kind == Deletes::all_before_a_mark;
  co_await (nested ? delete_before_a_mark(story, rows) : write_and_delete(story, rows, kind));
  // Those that were not merged yet, and what those before were merged into.
  co_await measure(story, rows, nested ? Memtable::kFragmentsPerKeyMax + 1 : 1, memtable);
  CO_ASSERT_OK(co_await story.engine().compact(kTable, Until::forever()));
  co_await measure(story, rows, 1, file);
  file.disk_bytes = story.engine().statistics().sstable_bytes;
  CO_ASSERT_OK(co_await story.stop());
}

void expect_bounded_reads(Deletes kind) {
  const char* given = std::getenv("HELENUS_DELETED_ROWS");
  const int many = given == nullptr ? 12'000 : std::atoi(given);
  const int few = 2'000;
  for (const bool large : {false, true}) {
    const int rows = (large ? many : few) / kRowsPerWrite * kRowsPerWrite;
    Cost memtable;
    Cost file;
    LogWorld world;
    world.run([&](Runtime& runtime) { return queue_life(runtime, rows, kind, memtable, file); });
    // A block or two, their decoding, and what is kept of them; entries of a few dozen bytes.
    for (const Cost& cost : {memtable, file}) {
      EXPECT_LT(cost.read_bytes, std::size_t{512} << 10) << rows;
      EXPECT_LT(cost.page_bytes, std::size_t{1} << 20) << rows;
    }
    EXPECT_LE(file.blocks_max, kind == Deletes::ranges ? 16U : 2U) << rows;
    if (kind == Deletes::all_before_a_mark) EXPECT_LT(file.disk_bytes, 4096U) << rows;
    const std::string size = large ? "many" : "few";
    ::testing::Test::RecordProperty(size + "_read_bytes", static_cast<int>(file.read_bytes));
    ::testing::Test::RecordProperty(size + "_page_bytes", static_cast<int>(file.page_bytes));
    ::testing::Test::RecordProperty(size + "_blocks", static_cast<int>(file.blocks_max));
    ::testing::Test::RecordProperty(size + "_memtable_read_bytes",
                                    static_cast<int>(memtable.read_bytes));
  }
}

TEST(WidePartition, ReadsDoNotGrowWithItsDeletedRows) {
  expect_bounded_reads(Deletes::rows);
}

TEST(WidePartition, ReadsDoNotGrowWithItsDeletedRanges) {
  expect_bounded_reads(Deletes::ranges);
}

// However many there were, one is left, on disk too.
TEST(WidePartition, DeletesOfAllRowsBeforeAMarkDoNotGather) {
  expect_bounded_reads(Deletes::all_before_a_mark);
}

// ---- What a merge of very many ranges takes ----

// Deletes of a window that moves on, each of which has seen those before it.
std::shared_ptr<const Memtable> windows(int count) {
  auto memtable = std::make_shared<Memtable>(causality::Policy::lww);
  for (int i = 1; i <= count; ++i) {
    const auto counter = static_cast<causality::Counter>(i);
    causality::Delta delta;
    delta.dot = {causality::actor_of(1, 1), counter};
    delta.timestamp = causality::Timestamp{i};
    delta.context.dots.add(causality::actor_of(1, 1), causality::CounterSet::up_to(counter - 1));
    delta.deleted_ranges.push_back(
        {base::Bytes::copy_of(name_of(i)), base::Bytes::copy_of(name_of(i + 500))});
    memtable->apply(base::as_bytes("queue"), delta, causality::encoded(delta), counter);
  }
  memtable->freeze();
  return memtable;
}

struct MergeCost {
  std::size_t grown = 0;
  MergeCounts counts;
};

Task<void> merge_windows(Runtime& runtime, std::shared_ptr<const Memtable> memtable,
                         std::size_t ranges_bytes_max, MergeCost& cost) {
  TabletKnowledge knowledge;
  knowledge.base.add(causality::actor_of(1, 1), causality::CounterSet::up_to(1'000'000));
  MergePlan plan{.table = kTable,
                 .freeze_first = FreezeNumber{2},
                 .freeze_last = FreezeNumber{2},
                 .knowledge = {{kTablet, knowledge}},
                 .tablets = {{.id = kTablet, .range = {}}},
                 .others = {},
                 .ranges_bytes_max = ranges_bytes_max};
  const auto writer = co_await SstableWriter::create(runtime, "/out.sst", {});
  CO_ASSERT_OK(writer);
  const auto source = entries_of(std::move(memtable));
  const std::size_t before = heap().now;
  heap().peak = before;
  MergeWriter merge(runtime, std::move(plan));
  CO_ASSERT_OK(co_await merge.run(*source, **writer, {}));
  cost.grown = heap().peak - before;
  cost.counts = merge.counts();
  co_await (*writer)->discard();
}

// Whatever their number: those that fit are held in several forms, and the others are not gathered.
TEST(WidePartition, AMergeOfItsRangesTakesTheMemoryThatIsCounted) {
  constexpr std::size_t kLimit = std::size_t{8} << 20;
  std::size_t most = 0;
  for (int ranges = 5'000; ranges < 14'000; ranges += ranges / 5) {
    const auto memtable = windows(ranges);
    MergeCost cost;
    LogWorld world;
    world.run([&](Runtime& runtime) { return merge_windows(runtime, memtable, kLimit, cost); });
    EXPECT_LE(cost.grown, kLimit + kLimit / 4) << ranges;
    if (cost.counts.partitions_unsettled == 0) most = std::max(most, cost.grown);
  }
  EXPECT_GE(most, kLimit / 2) << "counted twice";
  RecordProperty("heap_growth_bytes", std::to_string(most));
}

}  // namespace
}  // namespace helenus::storage::testing
