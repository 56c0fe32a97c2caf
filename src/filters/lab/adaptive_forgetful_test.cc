#include "filters/lab/adaptive_forgetful.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "filters/envelope.h"
#include "filters/filter_contract.h"
#include "filters/forgetful_bloom.h"
#include "filters/hostile_bytes_test_support.h"
#include "filters/lab/forgetful_analysis.h"

namespace helenus::filters {
namespace {

using base::Errc;
using Resizing = AdaptiveForgetful::Resizing;

AdaptiveForgetful::Options adaptive_options(Resizing resizing) {
  return {.bits = 6250,
          .probes = 5,
          .filters = 3,
          .period = 11,
          .rate_max = 0.05,
          .resizing = resizing,
          .filters_max = AdaptiveForgetful::kFiltersMax};
}

// Steady at 20 keys a second for 22 seconds, then ten times that.
struct Burst {
  explicit Burst(Resizing resizing)
      : filter(*AdaptiveForgetful::with_options(adaptive_options(resizing))) {}

  void run(Ticks seconds) {
    while (filter.now() < seconds) {
      const std::uint64_t keys = filter.now() < 22 ? 20 : 200;
      for (std::uint64_t i = 0; i < keys; ++i) {
        const KeyHash key = KeyHash::of_integer(next++);
        const Admission admission = filter.insert_if_absent(key);
        if (admission == Admission::inserted) inserted.emplace_back(filter.now(), key);
        if (admission == Admission::shed) ++shed;
      }
      ASSERT_TRUE(filter.tick().has_value());
      for (const auto& [at, key] : inserted) {
        const bool is_inside = filter.now() - at <= filter.window();
        if (is_inside && !filter.contains(key)) ++lost;
      }
      filters_most = std::max(filters_most, filter.filter_count());
      rate_most = std::max(rate_most, filter.rate_by_equation());
    }
  }

  AdaptiveForgetful filter;
  std::vector<std::pair<Ticks, KeyHash>> inserted;
  std::uint64_t next = 0;
  std::uint64_t shed = 0;
  std::uint64_t lost = 0;  // denied inside the window
  unsigned filters_most = 0;
  double rate_most = 0;
};

TEST(AdaptiveForgetful, AsPrintedABurstEndsInThousandsOfFiltersAndMissesTheTarget) {
  Burst burst(Resizing::as_printed);
  burst.run(36);
  EXPECT_GE(burst.filters_most, 6144U) << "eleven seconds, each of which doubled them";
  EXPECT_GT(burst.rate_most, 0.25) << "five times the target";
}

std::uint64_t yes_count_of(const AdaptiveForgetful& filter, const std::vector<KeyHash>& keys) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(keys, [&](KeyHash key) { return filter.contains(key); }));
}

// The keys of twelve seconds ago are in the oldest filter alone, which then is not the oldest.
std::uint64_t lost_by_scaling_up(Resizing resizing) {
  auto filter = *AdaptiveForgetful::with_options(adaptive_options(resizing));
  EXPECT_EQ(filter.window(), 22U);
  const auto insert = [&](std::uint64_t from, std::uint64_t count) {
    for (const KeyHash key : keys_from(from, count)) filter.insert_if_absent(key);
  };
  insert(0, 550);
  std::vector<KeyHash> recent;
  while (filter.now() < 23) {
    if (filter.now() == 10) {
      for (const KeyHash key : keys_from(1000, 100)) {
        if (filter.insert_if_absent(key) == Admission::inserted) recent.push_back(key);
      }
    }
    if (filter.now() == 22) insert(2000, 1500);
    EXPECT_TRUE(filter.tick().has_value());
  }
  EXPECT_GE(recent.size(), 80U);
  return recent.size() - yes_count_of(filter, recent);
}

TEST(AdaptiveForgetful, AsPrintedScalingUpForgetsKeysInsideTheWindow) {
  EXPECT_GE(lost_by_scaling_up(Resizing::as_printed), 40U);
  EXPECT_EQ(lost_by_scaling_up(Resizing::mended), 0U);
}

TEST(AdaptiveForgetful, MendedABurstKeepsWindowAndTargetAndSaysWhatItShed) {
  Burst burst(Resizing::mended);
  burst.run(44);
  EXPECT_EQ(burst.lost, 0U);
  EXPECT_LE(burst.filters_most, 24U) << "one a tick of the window, and two";
  EXPECT_LE(burst.rate_most, 0.05);
  EXPECT_GT(burst.shed, 0U) << "filters of this size cannot hold ten times the load";
}

TEST(AdaptiveForgetful, WithoutResizingItIsTheFilterOfFixedSize) {
  auto list = *AdaptiveForgetful::with_options(adaptive_options(Resizing::off));
  auto woven = *ForgetfulBloom::with_shape({.bits = 6250, .probes = 5, .past = 1, .capacity = 1});
  for (std::uint64_t second = 1; second <= 60; ++second) {
    for (const KeyHash key : keys_from(2 * second, 2)) {
      EXPECT_EQ(list.insert_if_absent(key), Admission::inserted);
      EXPECT_TRUE(woven.insert_if_absent(key));
    }
    ASSERT_TRUE(list.tick().has_value());
    if (second % 11 == 0) woven.refresh();
    EXPECT_NEAR(list.rate_as_printed(), rate_as_printed(woven), 1e-12);
    EXPECT_NEAR(list.rate_by_equation(), woven.rate_by_equation(), 1e-12);
  }
  for (const KeyHash key : keys_from(0, 200)) EXPECT_EQ(list.contains(key), woven.contains(key));
  EXPECT_EQ(list.filter_count(), 3U);
  EXPECT_EQ(list.memory_bytes(), 3U * 782);
}

TEST(AdaptiveForgetful, AsTheLoadSubsidesThePeriodGrowsAgain) {
  Burst burst(Resizing::mended);
  burst.run(30);
  EXPECT_LT(burst.filter.period(), 11U);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(burst.filter.tick().has_value());
  EXPECT_EQ(burst.filter.period(), 11U);
  EXPECT_EQ(burst.filter.filter_count(), 3U);
}

TEST(AdaptiveForgetful, OptionsThatCannotBeAreErrors) {
  const auto refused = [](auto change) {
    AdaptiveForgetful::Options options = adaptive_options(Resizing::mended);
    change(options);
    return AdaptiveForgetful::with_options(options).failed_with(Errc::invalid_argument);
  };
  EXPECT_TRUE(refused([](auto& options) { options.bits = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.probes = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.filters = 2; }));
  EXPECT_TRUE(refused([](auto& options) { options.filters_max = 2; }));
  EXPECT_TRUE(refused([](auto& options) { options.filters_max = 8193; }));
  EXPECT_TRUE(refused([](auto& options) { options.period = 0; }));
  EXPECT_TRUE(refused([](auto& options) { options.rate_max = 0; }));
}

// A window of as many ticks as there are filters allowed, and a burst in which each would begin
// one.
TEST(AdaptiveForgetful, MendedItHasNoMoreFiltersThanAllowedAndStillLosesNothing) {
  AdaptiveForgetful::Options options = adaptive_options(Resizing::mended);
  options.filters_max = 5;
  auto filter = *AdaptiveForgetful::with_options(options);
  std::vector<std::pair<Ticks, KeyHash>> inserted;
  std::uint64_t next = 0;
  std::uint64_t shed = 0;
  for (Ticks second = 0; second < 60; ++second) {
    for (int i = 0; i < 200; ++i) {
      const KeyHash key = KeyHash::of_integer(next++);
      const Admission admission = filter.insert_if_absent(key);
      if (admission == Admission::inserted) inserted.emplace_back(filter.now(), key);
      if (admission == Admission::shed) ++shed;
    }
    ASSERT_TRUE(filter.tick().has_value());
    ASSERT_LE(filter.filter_count(), 5U);
    ASSERT_LE(filter.rate_by_equation(), options.rate_max);
    for (const auto& [at, key] : inserted) {
      if (filter.now() - at <= filter.window()) ASSERT_TRUE(filter.contains(key));
    }
  }
  EXPECT_GT(shed, 0U);
  EXPECT_GT(inserted.size(), 0U);
}

TEST(AdaptiveForgetful, GoesOnFromItsBytesAsItWouldHave) {
  for (const Resizing resizing : {Resizing::mended, Resizing::as_printed, Resizing::off}) {
    auto options = adaptive_options(resizing);
    options.filters_max = 64;
    auto filter = *AdaptiveForgetful::with_options(options);
    auto reloaded = *AdaptiveForgetful::with_options(options);
    std::uint64_t next = 0;
    for (Ticks second = 0; second < 80; ++second) {
      const bool is_burst = second >= 22 && second < 40;
      for (int i = is_burst ? 100 : 5; i > 0; --i) {
        const KeyHash key = KeyHash::of_integer(next++);
        ASSERT_EQ(filter.insert_if_absent(key), reloaded.insert_if_absent(key));
      }
      ASSERT_TRUE(filter.tick().has_value() && reloaded.tick().has_value());
      auto decoded = AdaptiveForgetful::decode(reloaded.encode());
      ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
      reloaded = *std::move(decoded);
      ASSERT_EQ(reloaded.encode(), filter.encode()) << second;
    }
  }
}

// What its first filters hold at the target.
TEST(AdaptiveForgetful, ItsCapacityMeetsTheTarget) {
  const auto options = adaptive_options(Resizing::off);
  auto filter = *AdaptiveForgetful::with_options(options);
  for (std::uint64_t i = 0; i < filter.capacity(); ++i) {
    if (i > 0 && i % (filter.capacity() / 3) == 0) {
      for (Ticks tick = 0; tick < options.period; ++tick) ASSERT_TRUE(filter.tick().has_value());
    }
    ASSERT_TRUE(filter.insert(KeyHash::of_integer(i)));
  }
  EXPECT_EQ(filter.size(), filter.capacity());
  EXPECT_NEAR(filter.rate_by_equation() / options.rate_max, 1, 0.02);
}

// Bytes with sound checksums that describe no filter: four filters, refreshed once.
class HostileAdaptive : public HostileBytes<AdaptiveForgetful> {
 protected:
  static constexpr std::size_t kFilters = 64;
  static constexpr std::size_t kFilterBytes = 16 + kEnvelopeBytes + 13;  // of 100 bits

  HostileAdaptive() : HostileBytes(refreshed_once()) {
    EXPECT_EQ(body_.size(), kFilters + 4 * kFilterBytes);
  }

  static AdaptiveForgetful refreshed_once() {
    auto filter = *AdaptiveForgetful::with_options(
        {.bits = 100, .probes = 3, .filters = 3, .period = 2, .rate_max = 0.25, .filters_max = 9});
    for (std::uint64_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(filter.insert(KeyHash::of_integer(i)));
      EXPECT_TRUE(filter.tick().has_value());
    }
    return filter;
  }
};

TEST_F(HostileAdaptive, TheUnchangedBytesDecode) {
  EXPECT_TRUE(decode().has_value());
}
TEST_F(HostileAdaptive, OptionsThatCannotBeAreCorrupt) {
  EXPECT_TRUE(is_corrupt_with(24, 0)) << "no period at first";
  EXPECT_TRUE(is_corrupt_with(31, 1)) << "a period too long";
  EXPECT_TRUE(is_corrupt_with(39, 0x7f)) << "a rate above one";
  EXPECT_TRUE(is_corrupt_with(39, 0xbf)) << "a rate below zero";
  EXPECT_TRUE(is_corrupt_with(40, 2)) << "two filters at first";
  EXPECT_TRUE(is_corrupt_with(40, 10)) << "more filters at first than allowed";
  EXPECT_TRUE(is_corrupt_with(45, 0x80)) << "more filters than any may have";
  EXPECT_TRUE(is_corrupt_with(52, 3)) << "a resizing that there is not";
  EXPECT_TRUE(is_corrupt_with(53, 1)) << "padding";
  EXPECT_TRUE(is_corrupt_with(63, 1)) << "padding";
}
TEST_F(HostileAdaptive, TimesThatCannotBeAreCorrupt) {
  EXPECT_TRUE(is_corrupt_with(7, 0x80)) << "later than any clock";
  EXPECT_TRUE(is_corrupt_with(0, 1)) << "refreshed in the future";
  EXPECT_TRUE(is_corrupt_with(8, 9)) << "refreshed in the future";
  EXPECT_TRUE(is_corrupt_with(16, 0)) << "no period";
  EXPECT_TRUE(is_corrupt_with(16, 3)) << "a period longer than at first";
  EXPECT_TRUE(is_corrupt_with(kFilters + kFilterBytes + 8, 9)) << "a future that ended later";
}
TEST_F(HostileAdaptive, FiltersThatContradictOneAnotherAreCorrupt) {
  EXPECT_TRUE(is_corrupt_with(48, 3)) << "fewer filters than the header has";
  EXPECT_TRUE(is_corrupt_with(48, 5)) << "more filters than the header has";
  EXPECT_TRUE(is_corrupt_with(kFilters, 0)) << "keys of nobody's time";
  EXPECT_TRUE(is_corrupt_with(kFilters, 2)) << "more keys than it has";
  EXPECT_TRUE(is_corrupt_with(kFilters + 16, 0)) << "no filter";
  EXPECT_TRUE(is_corrupt_with(kFilters + 16 + 5, 3)) << "a filter of another kind";
  EXPECT_TRUE(is_corrupt_with(kFilters + 16 + kEnvelopeBytes, 0xa5)) << "damaged bits";
  for (const std::uint32_t count : {2U, 3U, 5U}) {
    envelope_.population = count;
    base::store_le(body_.data() + 48, count);
    EXPECT_TRUE(decode().failed_with(Errc::corrupt)) << count;
  }
}
TEST_F(HostileAdaptive, AFilterOfAnotherSizeAmongThemIsCorrupt) {
  const auto other = *Bloom::with_shape({.bits = 101, .probes = 3, .capacity = Bloom::kBitsMax});
  const base::Bytes bytes = other.encode();
  ASSERT_EQ(bytes.size() + 16, kFilterBytes);
  std::ranges::copy(bytes.view(), body_.data() + kFilters + 2 * kFilterBytes + 16);
  EXPECT_TRUE(decode().failed_with(Errc::corrupt));
}
TEST_F(HostileAdaptive, AHeaderThatContradictsTheBodyIsCorrupt) {
  const Envelope sound = envelope_;
  for (std::uint64_t Envelope::* field :
       {&Envelope::size, &Envelope::capacity, &Envelope::units, &Envelope::population}) {
    envelope_ = sound;
    envelope_.*field += 1;
    EXPECT_TRUE(decode().failed_with(Errc::corrupt));
  }
  envelope_ = sound;
  envelope_.width = 4;
  EXPECT_TRUE(decode().failed_with(Errc::corrupt));
}
TEST_F(HostileAdaptive, ABodyThatIsCutOrGoesOnIsCorrupt) {
  body_.push_back(std::byte{0});
  EXPECT_TRUE(decode().failed_with(Errc::corrupt));
  body_.truncate(body_.size() - 1);
  while (!body_.empty()) {
    body_.truncate(body_.size() - 1);
    ASSERT_TRUE(decode().failed_with(Errc::corrupt)) << body_.size();
  }
}
// More keys than a filter counts: it sheds instead.
TEST_F(HostileAdaptive, AFilterThatIsSaidToHaveAllKeysThatCanBeTakesNoMore) {
  auto options = adaptive_options(Resizing::off);
  options.bits = 8;
  options.probes = 1;
  auto filter = *AdaptiveForgetful::with_options(options);
  EXPECT_TRUE(filter.insert(KeyHash::of_integer(0)));
  auto opened = *unseal(filter.encode());
  base::Buffer body;
  body.append(opened.body);
  // The future and the present filter are said to have been given so many by one key's bits.
  constexpr std::size_t kBytes = 16 + kEnvelopeBytes + 1;
  for (const std::size_t at : {kFilters, kFilters + kBytes}) {
    auto inner = *unseal(opened.body.slice(at + 16, kEnvelopeBytes + 1));
    inner.envelope.size = Bloom::kBitsMax;
    std::ranges::copy(seal(inner.envelope, inner.body).view(), body.data() + at + 16);
  }
  base::store_le(body.data() + kFilters, Bloom::kBitsMax);
  opened.envelope.size = Bloom::kBitsMax;
  auto decoded = AdaptiveForgetful::decode(seal(opened.envelope, body.view()));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
  EXPECT_FALSE(decoded->insert(KeyHash::of_integer(1)));
  EXPECT_EQ(decoded->size(), Bloom::kBitsMax);
}

}  // namespace
}  // namespace helenus::filters
