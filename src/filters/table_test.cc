#include "filters/table.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/cuckoo.h"

namespace helenus::filters {
namespace {

constexpr std::uint64_t kHugePage = 2UL << 20;

std::uint64_t address_of(const Table& table) {
  return std::bit_cast<std::uintptr_t>(table.data());
}

TEST(Table, IsZeroAndBeginsWithACacheLine) {
  for (const std::uint64_t bytes : {1UL, 64UL, 4097UL, 3UL << 20}) {
    Table table = *Table::zeroed(bytes);
    EXPECT_EQ(table.size(), bytes);
    EXPECT_EQ(address_of(table) % 64, 0U);
    EXPECT_EQ(std::ranges::count(table.view(), std::byte{0}), bytes);
    EXPECT_FALSE(table.is_borrowed());
    EXPECT_EQ(table.writable(), table.data());
  }
}

TEST(Table, ALargeOneBeginsWithAHugePageAlsoAfterItIsCopied) {
  constexpr std::uint64_t kLarge = (4UL << 20) + 10;
  const Table table = *Table::zeroed(kLarge);
  EXPECT_EQ(address_of(table) % kHugePage, 0U);
  EXPECT_EQ(std::ranges::count(table.view(), std::byte{0}), kLarge);
  Table copy = Table::viewing(base::Bytes::copy_of(table.view()));
  copy.writable()[kLarge - 1] = std::byte{1};
  EXPECT_EQ(address_of(copy) % kHugePage, 0U);
  EXPECT_EQ(copy.size(), kLarge);
}

// Not under a sanitizer, which keeps its books in address space and ends the process when there is
// none.
#if !defined(__has_feature) || !__has_feature(address_sanitizer)
TEST(Table, MemoryThatThereIsNotIsAnErrorOfEveryFilter) {
  using base::Errc;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit little = before;
  little.rlim_cur = 512UL << 20;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  EXPECT_TRUE(Table::zeroed(1UL << 30).failed_with(Errc::overloaded));
  EXPECT_TRUE(Cuckoo12::with_buckets(Cuckoo12::kBucketsMax).failed_with(Errc::overloaded));
  // More keys than there may be buckets are no error: four fit each.
  EXPECT_TRUE(Cuckoo12::for_capacity(3 * Cuckoo12::kBucketsMax).failed_with(Errc::overloaded));
  EXPECT_TRUE(AdaptiveCuckoo<16>::with_buckets(1UL << 34).failed_with(Errc::overloaded));
  EXPECT_TRUE(AdaptiveCuckoo<16>::for_capacity(1UL << 36).failed_with(Errc::overloaded));
  // The filter fits, its residents do not.
  EXPECT_TRUE(KeyedAdaptiveCuckoo<16>::with_buckets(1UL << 24).failed_with(Errc::overloaded));
  EXPECT_TRUE(ResidentKeys::for_slots(1UL << 32).failed_with(Errc::overloaded));
  EXPECT_TRUE(Bloom::for_rate(1UL << 34, 0.001).failed_with(Errc::overloaded));
  EXPECT_TRUE(BlockedBloom::for_rate(1UL << 31, 1e-6).failed_with(Errc::overloaded));
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}
#endif

TEST(Table, IsBorrowedUntilItIsChangedAndKeepsTheLenderAliveSoLong) {
  Table table = Table::viewing(base::Bytes::copy_of("abc"));
  EXPECT_TRUE(table.is_borrowed());
  Table moved = std::move(table);
  EXPECT_EQ(base::as_text(moved.view()), "abc");
  const std::byte* lent = moved.data();
  moved.writable()[1] = std::byte{'x'};
  EXPECT_FALSE(moved.is_borrowed());
  EXPECT_NE(moved.data(), lent);
  EXPECT_EQ(base::as_text(moved.view()), "axc");
}

TEST(Table, ChangingItLeavesWhatItWasLentAsItWas) {
  const base::Bytes lender = base::Bytes::copy_of("abc");
  Table table = Table::viewing(lender);
  EXPECT_EQ(table.data(), lender.data()) << "it was copied too early";
  table.writable()[0] = std::byte{'x'};
  EXPECT_EQ(lender.text(), "abc");
}

}  // namespace
}  // namespace helenus::filters
