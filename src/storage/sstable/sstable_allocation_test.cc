// What is in memory is read without allocating.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "storage/log/allocation_count_test_support.h"
#include "storage/sstable/sstable_cursor.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/sstable/sstable_test_support.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

const std::string kPath = "/table.sst";

Rows some_rows() {
  Rows rows;
  for (int i = 0; i < 20'000; ++i) {
    rows[fmt::format("key{:06}", 2 * i)] = {.value = std::string(100, 'v'), .partition_size = 5};
  }
  return rows;
}

// Looks up present and absent keys and walks about; everything must be ready at once.
void use(SstableReader& reader, Cursor& cursor) {
  base::Prng prng(1);
  char key[10] = {};
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t number = prng.below(40'000);
    fmt::format_to_n(key, 9, "key{:06}", number);
    const base::ByteView bytes = as_bytes(std::string_view(key, 9));
    auto lookup = reader.get(bytes, key_hash(bytes), Until::forever());
    ASSERT_TRUE(lookup.ready());
    ASSERT_EQ(std::move(lookup).take()->found.has_value(), number % 2 == 0);
    auto sought = cursor.seek(bytes);
    ASSERT_TRUE(sought.ready());
    for (int step = 0; step < 200 && cursor.valid(); ++step) {
      auto moved = number % 3 == 0 ? cursor.previous() : cursor.next();
      ASSERT_TRUE(moved.ready());
    }
  }
}

Task<void> count(Runtime& runtime) {
  SstableShared shared(std::size_t{64} << 20);
  const Rows rows = some_rows();
  const auto written = co_await write_sstable(runtime, kPath, rows, {});
  CO_ASSERT_OK(written);
  const auto reader = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(reader);
  const auto scanned = co_await scan(*reader);
  CO_ASSERT_OK(scanned);
  const auto cursor = (*reader)->cursor({});
  use(**reader, *cursor);  // the cursor's own memory grows to what it needs
  const std::uint64_t before = allocations();
  use(**reader, *cursor);
  EXPECT_EQ(allocations() - before, 0u);
}

TEST(SstableAllocation, ReadingWhatIsInMemoryAllocatesNothing) {
  SimMachine().run(count);
  EXPECT_GT(allocations(), 0u) << "the operators of this program are not in use";
}

}  // namespace
}  // namespace helenus::storage
