// Files of format version 1, which must decode for ever, and be written as they were.
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "filters/adaptive_cuckoo.h"
#include "filters/adaptive_forgetful.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/dynamic_cuckoo.h"
#include "filters/forgetful_bloom.h"
#include "filters/recyclable_bloom.h"
#include "filters/sliced_forgetful.h"

namespace helenus::filters {
namespace {

base::Bytes golden(std::string_view name) {
  std::ifstream file(std::string(HELENUS_TESTDATA) + "/" + std::string(name), std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return base::Bytes::copy_of(bytes);
}

const std::vector<std::string> kKeys = {"key-0", "key-1", "key-2", "key-3", "key-4", "key-5"};

// The filter has all keys.
template <class F>
void expect_golden_bytes(std::string_view name, const F& filter) {
  EXPECT_EQ(base::to_hex(filter.encode()), base::to_hex(golden(name))) << name;
  const auto decoded = F::decode(golden(name));
  ASSERT_TRUE(decoded.has_value()) << name << ": " << decoded.error().to_string();
  EXPECT_EQ(decoded->size(), kKeys.size());
  for (const std::string& key : kKeys) EXPECT_TRUE(decoded->contains(key)) << name << ", " << key;
}

template <class F>
void expect_golden(std::string_view name, F filter) {
  for (const std::string& key : kKeys) ASSERT_TRUE(filter.insert(key));
  expect_golden_bytes(name, filter);
}

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

TEST(FilterFormat, VersionOneOfDynamicCuckoo) {
  expect_golden("dynamic_cuckoo-v1",
                *DynamicCuckoo::with_options({.capacity = 8, .slots = 2, .member_buckets = 2}));
}

TEST(FilterFormat, VersionOneOfConsistentCuckoo) {
  expect_golden("consistent_cuckoo-v1",
                *ConsistentCuckoo::with_options({.capacity = 8, .shape = {.slots = 2}}));
}

TEST(FilterFormat, ARecyclableBloomIsABloom) {
  EXPECT_EQ(RecyclableBloom::decode(golden("bloom-v1"))->encode(), golden("bloom-v1"));
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

// A key a tick, and a refresh after the third.
TEST(FilterFormat, VersionOneOfAdaptiveForgetful) {
  auto filter = *AdaptiveForgetful::with_options(
      {.bits = 61, .probes = 3, .filters = 3, .period = 3, .rate_max = 0.5, .filters_max = 5});
  for (const std::string& key : kKeys) {
    if (filter.size() > 0) ASSERT_TRUE(filter.tick().has_value());
    ASSERT_TRUE(filter.insert(key));
  }
  expect_golden_bytes("adaptive_forgetful-v1", filter);
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
