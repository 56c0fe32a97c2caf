// A partition far larger than memory is written, merged and read in bounded memory: counted by the
// operators new of this very program, which is why it is a program of its own.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "runtime/contract/world.h"
#include "storage/engine_test_support.h"

namespace {

struct Heap {
  std::size_t now = 0;
  std::size_t peak = 0;
};

Heap& heap() {
  static Heap counted;
  return counted;
}

void* taken(void* memory) {
  heap().now += malloc_usable_size(memory);
  heap().peak = std::max(heap().peak, heap().now);
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

// Rows come in an order that spreads every write over the whole partition.
Task<void> write_rows(EngineStory& story) {
  for (int batch = 0; batch < kRows / kRowsPerWrite; ++batch) {
    causality::Mutation mutation;
    mutation.timestamp = causality::Timestamp{batch + 1};
    for (int index = 0; index < kRowsPerWrite; ++index) {
      causality::CellChange change;
      change.row =
          base::Bytes::copy_of(fmt::format("{:08}", index * (kRows / kRowsPerWrite) + batch));
      change.value = base::Bytes::copy_of(fmt::format("{:040}", batch * 7919));
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
  co_await write_rows(story);
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

}  // namespace
}  // namespace helenus::storage::testing
