// What is particular to the two Bloom filters; the rest is in filter_contract.h.
#include "filters/bloom.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "filters/blocked_bloom.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"
#include "filters/forgetful_rates.h"

namespace helenus::filters {
namespace {

using base::Errc;

TEST(Bloom, KeepsItsRateForEveryNumberOfProbes) {
  constexpr std::uint64_t kKeys = 10'000;
  constexpr std::uint64_t kTrials = 100'000;
  const std::vector<KeyHash> strangers = keys_from(kStrangers, kTrials);
  for (const unsigned probes : {1U, 2U, 3U, 5U, 8U, 13U, 20U, 32U}) {
    auto filter = *Bloom::with_shape({.bits = 10 * kKeys + 7, .probes = probes, .capacity = kKeys});
    for (const KeyHash key : keys_from(0, kKeys)) ASSERT_TRUE(filter.insert(key));
    const double rate = filter.false_positive_rate_max();
    const double hits = static_cast<double>(yes_count(filter, strangers));
    // The bits these keys set are a draw, too; many probes feel it in proportion.
    const double bits = static_cast<double>(filter.shape().bits);
    const double fill = std::pow(rate, 1.0 / probes);
    const double spread = probes * std::sqrt((1 - fill) * bits) / (fill * bits);
    EXPECT_NEAR(hits / kTrials, rate, 4.4 * (std::sqrt(rate / kTrials) + spread * rate)) << probes;
  }
}

TEST(Bloom, IsNoLargerThanTheRateNeeds) {
  for (const double rate : {0.5, 0.1, 0.01, 0.001, 1e-6, 1e-9}) {
    const auto filter = *Bloom::for_rate(100'000, rate);
    EXPECT_LE(filter.false_positive_rate_max(), rate);
    EXPECT_GE(filter.false_positive_rate_max(), 0.999 * rate);
  }
  // The textbook's 1.44 log2(1 / rate) bits a key.
  EXPECT_NEAR(8e-6 * static_cast<double>(Bloom::for_rate(1'000'000, 0.01)->memory_bytes()), 9.59,
              0.02);
}

// Few keys and a low rate, where most yeses come from probes that lie in one line with a key's.
TEST(Bloom, DeclaresWhatItCostsSmallTablesThatProbesLieInALine) {
  constexpr std::uint64_t kKeys = 300;
  constexpr std::uint64_t kDraws = 10;
  constexpr std::uint64_t kTrials = 400'000;
  const auto hits_of = [](const Bloom::Shape& shape) {
    std::uint64_t hits = 0;
    for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
      auto filter = *Bloom::with_shape(shape);
      for (const KeyHash key : keys_from(draw * kKeys, kKeys)) EXPECT_TRUE(filter.insert(key));
      hits += yes_count(filter, keys_from(kStrangers + draw * kTrials, kTrials));
    }
    return static_cast<double>(hits);
  };
  const Bloom::Shape small{.bits = 7200, .probes = 17, .capacity = kKeys};
  const double declared = Bloom::with_shape(small)->false_positive_rate_max() * kDraws * kTrials;
  const double by_textbook = bloom_rate(small.bits, small.probes, kKeys) * kDraws * kTrials;
  const double hits = hits_of(small);
  EXPECT_GT(hits, 2 * by_textbook);
  EXPECT_LE(hits, declared + 4.4 * std::sqrt(declared));
  EXPECT_GE(hits, 0.6 * declared);
  constexpr double kRate = 1e-5;
  const double allowed = kRate * kDraws * kTrials;
  EXPECT_LE(hits_of(Bloom::for_rate(kKeys, kRate)->shape()), allowed + 4.4 * std::sqrt(allowed));
}

TEST(Bloom, WorksWithASingleBit) {
  auto filter = *Bloom::with_shape({.bits = 1, .probes = 3, .capacity = 2});
  EXPECT_EQ(filter.false_positive_rate(), 0.0);
  EXPECT_FALSE(filter.contains("a"));
  EXPECT_TRUE(filter.insert("a"));
  EXPECT_TRUE(filter.contains("a"));
  EXPECT_TRUE(filter.contains("b"));
  EXPECT_EQ(filter.false_positive_rate(), 1.0);
}

TEST(Bloom, ShapesThatCannotBeAreErrors) {
  for (const Bloom::Shape shape : {Bloom::Shape{.bits = 0, .probes = 1, .capacity = 1},
                                   Bloom::Shape{.bits = 1, .probes = 0, .capacity = 1},
                                   Bloom::Shape{.bits = 1, .probes = 33, .capacity = 1},
                                   Bloom::Shape{.bits = 1, .probes = 1, .capacity = 0},
                                   Bloom::Shape{.bits = ~0UL, .probes = 1, .capacity = 1},
                                   Bloom::Shape{.bits = 1, .probes = 1, .capacity = ~0UL}}) {
    EXPECT_TRUE(Bloom::with_shape(shape).failed_with(Errc::invalid_argument));
  }
  EXPECT_TRUE(Bloom::for_rate(0, 0.01).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Bloom::for_rate(~0UL, 0.01).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Bloom::for_rate(10, 0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Bloom::for_rate(10, 0.6).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(Bloom::for_rate(10, std::nan("")).failed_with(Errc::invalid_argument));
}

TEST(BlockedBloom, KeepsItsRateAtEveryDensity) {
  constexpr std::uint64_t kKeys = 20'000;
  constexpr std::uint64_t kTrials = 200'000;
  const std::vector<KeyHash> strangers = keys_from(kStrangers, kTrials);
  for (const double bits_per_key : {4.0, 8.0, 10.0, 12.0, 16.0, 20.0}) {
    auto filter = *BlockedBloom::with_bits_per_key(kKeys, bits_per_key);
    for (const KeyHash key : keys_from(0, kKeys)) ASSERT_TRUE(filter.insert(key));
    // How unevenly these keys fall on the blocks adds to the spread of the count itself.
    const double hits = static_cast<double>(yes_count(filter, strangers));
    EXPECT_NEAR(hits / kTrials, filter.false_positive_rate_max(),
                0.06 * filter.false_positive_rate_max() +
                    4.4 * std::sqrt(filter.false_positive_rate_max() / kTrials));
  }
}

TEST(BlockedBloom, DeclaresTheRatesItsHeaderPromises) {
  const auto rate_at = [](double bits_per_key) {
    return BlockedBloom::with_bits_per_key(1'000'000, bits_per_key)->false_positive_rate_max();
  };
  EXPECT_NEAR(rate_at(8), 0.029, 0.0005);
  EXPECT_NEAR(rate_at(10), 0.0105, 0.0001);
  EXPECT_NEAR(rate_at(12), 0.0042, 0.0001);
  EXPECT_NEAR(rate_at(16), 0.00091, 0.00001);
  EXPECT_NEAR(rate_at(20), 0.00026, 0.00001);
}

TEST(BlockedBloom, IsNoLargerThanTheRateNeeds) {
  for (const double rate : {0.5, 0.1, 0.01, 0.001, 1e-6}) {
    const auto filter = *BlockedBloom::for_rate(1'000'000, rate);
    EXPECT_LE(filter.false_positive_rate_max(), rate);
    EXPECT_GE(filter.false_positive_rate_max(), 0.99 * rate);
  }
}

TEST(BlockedBloom, ShapesThatCannotBeAreErrors) {
  EXPECT_TRUE(BlockedBloom::with_blocks(0, 1).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_blocks(1, 0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_blocks(1, 257).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_blocks(~0UL, 1).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_bits_per_key(1, 0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_bits_per_key(1, 513).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_bits_per_key(1, std::nan("")).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::with_bits_per_key(~0UL, 8).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::for_rate(1, 0).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::for_rate(1, 0.6).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(BlockedBloom::for_rate(0, 0.01).failed_with(Errc::invalid_argument));
}

// Bytes with sound checksums that describe no filter, for both kinds.
template <class F>
class HostileBloom : public ::testing::Test {
 protected:
  HostileBloom() {
    F filter = *F::for_rate(20, 0.01);
    for (const KeyHash key : keys_from(0, 10)) EXPECT_TRUE(filter.insert(key));
    auto opened = *unseal(filter.encode());
    envelope_ = opened.envelope;
    body_.append(opened.body);
  }

  base::Result<F> decode() { return F::decode(seal(envelope_, body_.view())); }

  Envelope envelope_;
  base::Buffer body_;
};

using Blooms = ::testing::Types<Bloom, BlockedBloom>;
TYPED_TEST_SUITE(HostileBloom, Blooms);

TYPED_TEST(HostileBloom, TheUnchangedBytesDecode) {
  EXPECT_TRUE(this->decode().has_value());
}
TYPED_TEST(HostileBloom, BitsThatAreMissingWouldDenyKeys) {
  std::ranges::fill(this->body_.mutable_view(), std::byte{0});
  EXPECT_TRUE(this->decode().failed_with(Errc::corrupt));
  this->envelope_.population = 0;
  EXPECT_TRUE(this->decode().failed_with(Errc::corrupt)) << "keys without a bit";
}
TYPED_TEST(HostileBloom, MoreBitsThanTheKeysCanHaveSetAreAnError) {
  this->envelope_.size = 1;
  EXPECT_TRUE(this->decode().failed_with(Errc::corrupt));
  this->envelope_.size = 0;
  EXPECT_TRUE(this->decode().failed_with(Errc::corrupt));
}
TYPED_TEST(HostileBloom, MoreKeysThanItTakesAreAnError) {
  this->envelope_.size = 21;
  EXPECT_TRUE(this->decode().failed_with(Errc::corrupt));
}
TYPED_TEST(HostileBloom, UnitsThatTheBodyDoesNotHaveAreAnError) {
  for (const std::uint64_t units : {0UL, 1UL << 20, 1UL << 63, ~0UL}) {
    this->envelope_.units = units;
    EXPECT_TRUE(this->decode().failed_with(Errc::corrupt)) << units;
  }
}
TYPED_TEST(HostileBloom, ProbesThatCannotBeAreAnError) {
  for (const std::uint8_t probes : {std::uint8_t{0}, std::uint8_t{255}}) {
    this->envelope_.width = probes;
    EXPECT_TRUE(this->decode().failed_with(Errc::corrupt));
  }
}
TYPED_TEST(HostileBloom, ACapacityThatCannotBeIsAnError) {
  for (const std::uint64_t capacity : {0UL, ~0UL}) {
    this->envelope_.capacity = capacity;
    EXPECT_TRUE(this->decode().failed_with(Errc::corrupt));
  }
}
TYPED_TEST(HostileBloom, AnotherKindIsRefusedByName) {
  this->envelope_.kind = Kind::cuckoo;
  EXPECT_TRUE(this->decode().failed_with(Errc::invalid_argument));
}

TEST(Bloom, BitsBeyondTheLastAreAnError) {
  auto filter = *Bloom::with_shape({.bits = 13, .probes = 1, .capacity = 5});
  ASSERT_TRUE(filter.insert("a"));
  auto opened = *unseal(filter.encode());
  base::Buffer body;
  body.append(opened.body);
  body.mutable_view()[1] |= std::byte{0x20};
  ++opened.envelope.population;
  ++opened.envelope.size;
  EXPECT_TRUE(Bloom::decode(seal(opened.envelope, body.view())).failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::filters
