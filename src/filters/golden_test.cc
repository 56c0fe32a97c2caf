// Files of format version 1, which must decode for ever, and be written as they were.
#include <string>

#include <gtest/gtest.h>

#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/forgetful_bloom.h"
#include "filters/golden_test_support.h"
#include "filters/sliced_forgetful.h"

namespace helenus::filters {
namespace {

TEST(FilterFormat, VersionOneOfBloom) {
  expect_golden("bloom-v1", *Bloom::with_shape({.bits = 61, .probes = 3, .capacity = 8}));
}

TEST(FilterFormat, VersionOneOfBlockedBloom) {
  expect_golden("blocked_bloom-v1", *BlockedBloom::with_blocks(2, 8));
}

TEST(FilterFormat, VersionOneOfCuckoo) {
  expect_golden("cuckoo8-v1", *Cuckoo8::with_buckets(3));
  expect_golden("cuckoo12-v1", *Cuckoo12::with_buckets(3));
  expect_golden("cuckoo16-v1", *Cuckoo16::with_buckets(3));
  expect_golden("cuckoo32-v1", *Cuckoo32::with_buckets(3));
}

TEST(FilterFormat, VersionOneOfAdaptiveCuckooAndItsResidents) {
  expect_golden("keyed_adaptive_cuckoo16-v1", *KeyedAdaptiveCuckoo<16>::with_buckets(3));
  expect_golden("keyed_adaptive_cuckoo32-v1", *KeyedAdaptiveCuckoo<32>::with_buckets(3));
}

TEST(FilterFormat, VersionOneOfConsistentCuckoo) {
  expect_golden("consistent_cuckoo-v1",
                *ConsistentCuckoo::with_options({.capacity = 8, .shape = {.slots = 2}}));
}

// Two keys in each of three periods.
TEST(FilterFormat, VersionOneOfForgetfulBloom) {
  auto filter = *ForgetfulBloom::with_shape({.bits = 61, .probes = 3, .past = 2, .capacity = 8});
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    if (i > 0 && i % 2 == 0) filter.refresh();
    filter.insert(kKeys[i]);
  }
  expect_golden_bytes("forgetful_bloom-v1", filter);
}

// A key a tick, from tick 100 on; the fourth does not fit the first table.
TEST(FilterFormat, VersionOneOfSlicedForgetful) {
  auto filter = *SlicedForgetful::with_options(
      {.window = 50, .rate_max = 0.1, .capacity = 3, .slices = 3, .memory_bytes_max = 1 << 20});
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    filter.advance_to(100 + i);
    ASSERT_TRUE(filter.insert(kKeys[i]));
  }
  ASSERT_EQ(filter.table_count(), 2U);
  expect_golden_bytes("sliced_forgetful-v1", filter);
}

// The hash of a key is part of the format.
TEST(FilterFormat, KeysAreHashedWithXxh3) {
  EXPECT_EQ(KeyHash("").value(), 0x2d06800538d394c2U);
  EXPECT_EQ(KeyHash("key-0"), KeyHash(base::hash64(base::as_bytes("key-0"))));
  EXPECT_EQ(KeyHash(std::string("key-0")), KeyHash(base::Bytes::copy_of("key-0")));
  EXPECT_EQ(KeyHash::of_integer(0).value(), 0xe220a8397b1dcdafU);
}

}  // namespace
}  // namespace helenus::filters
