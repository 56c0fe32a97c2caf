// Files of format version 1, which must decode for ever, and be written as they were.
#include <string>

#include <gtest/gtest.h>

#include "filters/bloom.h"
#include "filters/golden_test_support.h"
#include "filters/lab/adaptive_forgetful.h"
#include "filters/lab/dynamic_cuckoo.h"
#include "filters/lab/recyclable_bloom.h"

namespace helenus::filters {
namespace {

TEST(FilterFormat, VersionOneOfDynamicCuckoo) {
  expect_golden("dynamic_cuckoo-v1",
                *DynamicCuckoo::with_options({.capacity = 8, .slots = 2, .member_buckets = 2}));
}

TEST(FilterFormat, ARecyclableBloomIsABloom) {
  Bloom filter = *Bloom::with_shape({.bits = 61, .probes = 3, .capacity = 8});
  for (const std::string& key : kKeys) ASSERT_TRUE(filter.insert(key));
  const base::Bytes bloom = filter.encode();
  EXPECT_EQ(RecyclableBloom::decode(bloom)->encode(), bloom);
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

}  // namespace
}  // namespace helenus::filters
