#include "base/histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"

namespace helenus::base {
namespace {

using ::testing::HasSubstr;

// Values of every magnitude, not only the small ones that a plain generator prefers.
rc::Gen<std::uint64_t> any_value() {
  return rc::gen::map(rc::gen::pair(rc::gen::arbitrary<std::uint64_t>(), rc::gen::inRange(0, 64)),
                      [](const auto& pair) { return mix64(pair.first) >> pair.second; });
}
rc::Gen<std::vector<std::uint64_t>> any_values() {
  return rc::gen::container<std::vector<std::uint64_t>>(any_value());
}

Histogram histogram_of(const std::vector<std::uint64_t>& values) {
  Histogram histogram;
  for (const std::uint64_t value : values) histogram.record(value);
  return histogram;
}

Bytes encoded(const Histogram& histogram) {
  Buffer buffer;
  Encoder out(buffer);
  histogram.encode(out);
  return std::move(buffer).freeze();
}

Result<Histogram> decoded(ByteView bytes) {
  Decoder in(bytes);
  TRY(const Histogram histogram, Histogram::decode(in));
  TRY_VOID(in.finish());
  return histogram;
}

// The bytes of a histogram written by hand, varint by varint.
Result<Histogram> decoded_from(std::uint8_t version, const std::vector<std::uint64_t>& varints) {
  Buffer buffer;
  Encoder out(buffer);
  out.u8(version);
  for (const std::uint64_t value : varints) out.varint(value);
  return decoded(buffer.view());
}

bool is_near(std::uint64_t got, std::uint64_t exact) {
  const std::uint64_t difference = got > exact ? got - exact : exact - got;
  return difference <= exact / (2 * Histogram::kBucketsPerDoubling);
}

TEST(Histogram, AnEmptyOneAnswersZero) {
  const Histogram histogram;
  EXPECT_TRUE(histogram.empty());
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.quantile(0), 0u);
  EXPECT_EQ(histogram.quantile(0.5), 0u);
  EXPECT_EQ(histogram.quantile(1), 0u);
}

TEST(Histogram, CountsWhatDoesNotExceedAPowerOfTwo) {
  Histogram histogram;
  EXPECT_EQ(histogram.count_up_to(UINT64_MAX), 0u);
  for (const std::uint64_t value : {0u, 1u, 63u, 64u, 127u, 128u, 1u << 20}) {
    histogram.record(value);
  }
  EXPECT_EQ(histogram.count_up_to(0), 1u);
  EXPECT_EQ(histogram.count_up_to(62), 2u);
  EXPECT_EQ(histogram.count_up_to(63), 3u);
  EXPECT_EQ(histogram.count_up_to(127), 5u);
  EXPECT_EQ(histogram.count_up_to((1 << 20) - 1), 6u);
  EXPECT_EQ(histogram.count_up_to(UINT64_MAX), 7u);
  EXPECT_EQ(histogram.sum(), 0 + 1 + 63 + 64 + 127 + 128 + (1 << 20));
}

TEST(Histogram, BucketsTileAllValuesWithoutGapOrOverlap) {
  EXPECT_EQ(Histogram::bucket_min(0), 0u);
  for (std::size_t bucket = 0; bucket < Histogram::kBucketCount; ++bucket) {
    const std::uint64_t low = Histogram::bucket_min(bucket);
    const std::uint64_t high = Histogram::bucket_max(bucket);
    ASSERT_EQ(Histogram::bucket_of(low), bucket);
    ASSERT_EQ(Histogram::bucket_of(high), bucket);
    ASSERT_LE(high - low, low / Histogram::kBucketsPerDoubling);
    if (bucket + 1 < Histogram::kBucketCount) {
      ASSERT_EQ(Histogram::bucket_min(bucket + 1), high + 1);
    }
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 50; ++value) histogram.record(value);
  for (std::uint64_t percent = 2; percent <= 100; percent += 2) {
    EXPECT_EQ(histogram.quantile(static_cast<double>(percent) / 100), percent / 2) << percent;
  }
}

TEST(Histogram, ARankThatDoublesOvershootIsNotSkipped) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 50; ++value) histogram.record(value, 2);
  ASSERT_GT(0.07 * 100, 7.0) << "the premise: this product is rounded up";
  EXPECT_EQ(histogram.quantile(0.07), 4u);  // the 7th of 1 1 2 2 3 3 4 4
  ASSERT_GT(0.56 * 100, 56.0);
  EXPECT_EQ(histogram.quantile(0.56), 28u);  // the 56th
}

TEST(Histogram, CountsWeighTheMeanAndTheQuantiles) {
  Histogram histogram;
  histogram.record(10, 90);
  histogram.record(1000, 10);
  EXPECT_EQ(histogram.count(), 100u);
  EXPECT_DOUBLE_EQ(histogram.mean(), 109);
  EXPECT_EQ(histogram.quantile(0.9), 10u);
  EXPECT_TRUE(is_near(histogram.quantile(0.91), 1000));
}

TEST(Histogram, TheSumOfGreatValuesDoesNotOverflow) {
  Histogram histogram;
  histogram.record(UINT64_MAX, 1000);
  EXPECT_DOUBLE_EQ(histogram.mean(), 0x1p64);
  EXPECT_EQ(histogram.quantile(0.5), UINT64_MAX);
}

TEST(Histogram, TheGreatestCountsKeepTheirQuantiles) {
  Histogram histogram;
  histogram.record(1, UINT64_MAX - 2);
  histogram.record(2, 2);
  EXPECT_EQ(histogram.quantile(0.999999), 1u);
  EXPECT_EQ(histogram.quantile(1), 2u);
}

TEST(Histogram, ResetForgetsEverything) {
  Histogram histogram;
  histogram.record(5);
  histogram.reset();
  EXPECT_EQ(histogram, Histogram());
}

TEST(Histogram, SummaryIsForPeople) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 40; ++value) histogram.record(value);
  EXPECT_EQ(histogram.summary("us"),
            "count=40 min=1us mean=20.5us p50=20us p90=36us p99=40us p99.9=40us max=40us");
  EXPECT_EQ(fmt::format("{}", Histogram()),
            "count=0 min=0 mean=0.0 p50=0 p90=0 p99=0 p99.9=0 max=0");
}

RC_GTEST_PROP(Histogram, QuantilesAreWithinTheDeclaredErrorOfTheSortedValues, ()) {
  std::vector<std::uint64_t> values = *rc::gen::nonEmpty(any_values());
  const Histogram histogram = histogram_of(values);
  std::ranges::sort(values);
  RC_ASSERT(histogram.count() == values.size());
  RC_ASSERT(histogram.min() == values.front());
  RC_ASSERT(histogram.max() == values.back());
  long double sum = 0;
  for (const std::uint64_t value : values) sum += static_cast<long double>(value);
  const auto mean = static_cast<double>(sum / static_cast<long double>(values.size()));
  RC_ASSERT(std::abs(histogram.mean() - mean) <= mean * 1e-12);
  for (std::size_t rank = 1; rank <= values.size(); ++rank) {
    const double q = static_cast<double>(rank) / static_cast<double>(values.size());
    RC_ASSERT(is_near(histogram.quantile(q), values[rank - 1]));
  }
  RC_ASSERT(histogram.quantile(0) == values.front());
  RC_ASSERT(histogram.quantile(1) == values.back());
}

RC_GTEST_PROP(Histogram, MergingEqualsRecordingBoth, ()) {
  const auto a = *any_values();
  const auto b = *any_values();
  std::vector<std::uint64_t> both = a;
  both.insert(both.end(), b.begin(), b.end());
  Histogram merged = histogram_of(a);
  merged.merge(histogram_of(b));
  RC_ASSERT(merged == histogram_of(both));
}

RC_GTEST_PROP(Histogram, SinceFindsWhatWasAdded, ()) {
  const auto before = *any_values();
  const auto after = *any_values();
  const Histogram earlier = histogram_of(before);
  Histogram later = earlier;
  later.merge(histogram_of(after));
  const auto difference = later.since(earlier);
  RC_ASSERT(difference.has_value());
  const Histogram expected = histogram_of(after);
  RC_ASSERT(difference->count() == expected.count());
  RC_ASSERT(std::abs(difference->mean() - expected.mean()) <= expected.mean() * 1e-12);
  RC_ASSERT(difference->min() <= expected.min() && difference->max() >= expected.max());
  for (const double q : {0.1, 0.5, 0.9}) {
    RC_ASSERT(Histogram::bucket_of(difference->quantile(q)) ==
              Histogram::bucket_of(expected.quantile(q)));
  }
  const auto decoded_difference = decoded(encoded(*difference));
  RC_ASSERT(decoded_difference.has_value() && *decoded_difference == *difference);
}

TEST(Histogram, SinceRefusesWhatIsNoOlderCopy) {
  const Histogram before_restart = histogram_of({5, 700, 90'000});
  EXPECT_TRUE(histogram_of({5, 700}).since(before_restart).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Histogram().since(before_restart).failed_with(Errc::invalid_argument));
  // 992 to 1007 share a bucket: the extremes and the sum tell that these are other values.
  EXPECT_TRUE(histogram_of({1000}).since(histogram_of({999})).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(histogram_of({1000}).since(histogram_of({1001})).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(histogram_of({992, 1000, 1007})
                  .since(histogram_of({992, 1001, 1007}))
                  .failed_with(Errc::invalid_argument));
  EXPECT_TRUE(histogram_of({992, 1000, 1007})
                  .since(histogram_of({992, 999, 1007}))
                  .failed_with(Errc::invalid_argument));
  EXPECT_TRUE(histogram_of({3, 992, 1007})
                  .since(histogram_of({992, 992}))
                  .failed_with(Errc::invalid_argument));
}

RC_GTEST_PROP(Histogram, EncodingRoundTripsAndEveryTruncationFails, ()) {
  const Histogram histogram = histogram_of(*any_values());
  const Bytes bytes = encoded(histogram);
  const auto back = decoded(bytes);
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == histogram);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    RC_ASSERT(decoded(bytes.view().first(size)).failed_with(Errc::corrupt));
  }
}

RC_GTEST_PROP(Histogram, DamagedBytesGiveAnErrorOrACanonicalHistogram, ()) {
  const Bytes bytes = encoded(histogram_of(*rc::gen::nonEmpty(any_values())));
  Buffer damaged;
  damaged.append(bytes);
  const auto at = *rc::gen::inRange<std::size_t>(0, damaged.size());
  damaged.mutable_view()[at] = std::byte{*rc::gen::arbitrary<std::uint8_t>()};
  const auto histogram = decoded(damaged.view());
  if (histogram) RC_ASSERT(equal(encoded(*histogram), damaged.view()));
}

TEST(Histogram, TheFormatNeverChanges) {
  Histogram histogram;
  histogram.record(3, 2);
  histogram.record(1000);
  EXPECT_EQ(to_hex(encoded(Histogram())), "0100");
  EXPECT_EQ(to_hex(encoded(histogram)),
            "0102"
            "0302"
            "ba0101"
            "03e80700ee07");
}

TEST(Histogram, DecodingLeavesWhatFollows) {
  Buffer buffer;
  Encoder out(buffer);
  histogram_of({1, 2, 3}).encode(out);
  out.u8(42);
  Decoder in(buffer.view());
  EXPECT_TRUE(Histogram::decode(in));
  EXPECT_EQ(in.u8(), 42);
  EXPECT_TRUE(in.finish());
}

TEST(Histogram, HostileBytesAreRefused) {
  const auto problem_of = [](const Result<Histogram>& histogram) {
    EXPECT_TRUE(histogram.failed_with(Errc::corrupt));
    return histogram ? std::string() : std::string(histogram.error().context());
  };
  EXPECT_TRUE(decoded_from(1, {1, 7, 1, 7, 7, 0, 7})) << "the pattern that the others break";
  EXPECT_TRUE(decoded_from(2, {0}).failed_with(Errc::unsupported));
  EXPECT_THAT(problem_of(decoded_from(0, {0})), HasSubstr("version is zero"));
  EXPECT_THAT(problem_of(decoded_from(1, {UINT64_MAX})), HasSubstr("counts more elements"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, Histogram::kBucketCount, 1, 7, 7, 0, 7})),
              HasSubstr("a bucket too many"));
  EXPECT_THAT(problem_of(decoded_from(1, {2, Histogram::kBucketCount - 1, 1, 0, 1, 0, 0})),
              HasSubstr("a bucket too many"));
  EXPECT_THAT(problem_of(decoded_from(1, {2, 5, 1, UINT64_MAX, 1, 0, 0})),
              HasSubstr("a bucket too many"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, 7, 0, 7, 7, 0, 0})), HasSubstr("counts none"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, 7, Histogram::kCountDecodedMax + 1, 7, 7, 0, 0})),
              HasSubstr("too many in a bucket"));
  EXPECT_THAT(problem_of(decoded_from(1, {2, 7, Histogram::kCountDecodedMax, 0, 1, 7, 8, 0, 0})),
              HasSubstr("too many in a bucket"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, 7, 1, 6, 7, 0, 7})), HasSubstr("contradicts"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, 7, 1, 7, 8, 0, 7})), HasSubstr("contradicts"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, 7, 1, 7, 7, 0, 8})), HasSubstr("contradicts"));
  EXPECT_THAT(problem_of(decoded_from(1, {1, 7, 1, 7, 7, 1, 7})), HasSubstr("contradicts"));
  // 1000 and 1001 share a bucket, but the minimum may not exceed the maximum.
  const std::size_t bucket = Histogram::bucket_of(1000);
  EXPECT_THAT(problem_of(decoded_from(1, {1, bucket, 2, 1001, 1000, 0, 2001})),
              HasSubstr("contradicts"));
}

TEST(HistogramDeathTest, AQuantileOutsideZeroToOneIsAMistake) {
  Histogram histogram;
  histogram.record(1);
  EXPECT_DEATH(histogram.quantile(1.5), "quantile 1.5");
  EXPECT_DEATH(histogram.quantile(std::nan("")), "quantile nan");
  EXPECT_DEATH(histogram.record(1, 0), "count > 0");
}

TEST(HistogramDeathTest, CountsThatWouldOverflowAreAMistake) {
  Histogram histogram;
  histogram.record(1, UINT64_MAX);
  EXPECT_DEATH(histogram.merge(histogram_of({1})), "assertion failed");
}

}  // namespace
}  // namespace helenus::base
