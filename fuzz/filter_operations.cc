// Fuzzes sequences of operations on all filters, in lockstep with the truth. The input is
//
//   which filter: one byte;  its capacity: one byte;  operations: two bytes each, what and key
//
// A CheckedFilter says what must hold. Keys are few and filters small, so that filters are often
// full and keys often in twice. Filters that forget have a truth of their own: what a refresh or a
// flush may have taken, and what not yet.
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/checked_filter.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/forgetful_bloom.h"
#include "filters/lab/adaptive_forgetful.h"
#include "filters/lab/dynamic_cuckoo.h"
#include "filters/lab/recyclable_bloom.h"

namespace helenus::filters {
namespace {

template <Filter F>
void drive(base::Result<F> made, base::Decoder& in) {
  ASSERT(made.has_value());
  CheckedFilter<F> checked(*std::move(made));
  while (in.remaining() >= 2) {
    const std::uint8_t operation = in.u8() % 8;
    const KeyHash key = KeyHash::of_integer(in.u8());
    if (operation < 3) {
      checked.insert(key);
    } else if (operation < 5) {
      if constexpr (ErasableFilter<F>) checked.erase(key);
    } else if (operation < 7) {
      if constexpr (AdaptiveFilter<F>) {
        checked.contains_and_report(key);
      } else {
        checked.contains(key);
      }
    } else {
      checked.reload();
    }
    ASSERT(checked.problem().empty(), "{}", checked.problem());
  }
  checked.contains_all();
  ASSERT(checked.problem().empty(), "{}", checked.problem());
}

template <class F>
void drive_for_capacity(std::uint64_t capacity, base::Decoder& in) {
  drive(F::for_capacity(capacity), in);
}

// Consistent cuckoo filters in the shapes that no table uses: the paper's ring, and members.
template <ConsistentCuckoo::Growth kGrowth>
void drive_hashed(std::uint64_t capacity, base::Decoder& in) {
  drive(ConsistentCuckoo::with_options(
            {.capacity = capacity,
             .fingerprint_bits = 12,
             .shape = {.candidates = 3,
                       .slots = 2,
                       .ring = IndexIndependentCuckoo::Ring::hashed,
                       .places = 3,
                       .searched_max = 16},
             .member_buckets = kGrowth == ConsistentCuckoo::Growth::by_buckets ? 1U : 4U,
             .members_max = 6,
             .growth = kGrowth,
             .grow_above_percent = 95,
             .shrink_below_percent = 80}),
        in);
}

// The paper's forgetful filter: a key is in for N + 1 refreshes at least, and with the check as
// printed for one less where N > 1. Gone it is after N + 2.
template <ForgetfulCheck kCheck>
void drive_forgetful(std::uint64_t capacity, base::Decoder& in) {
  const auto past = static_cast<unsigned>(1 + capacity % 6);
  auto filter = ForgetfulBloom::with_shape({.bits = 64 + 8 * capacity,
                                            .probes = 3,
                                            .past = past,
                                            .capacity = capacity,
                                            .check = kCheck});
  ASSERT(filter.has_value());
  const bool forgets_early = kCheck == ForgetfulCheck::optimised_as_printed && past > 1;
  const unsigned survived = forgets_early ? past : past + 1;
  std::vector<std::multiset<std::uint8_t>> periods(past + 2);  // the current one first
  while (in.remaining() >= 2) {
    const std::uint8_t operation = in.u8() % 8;
    const std::uint8_t number = in.u8();
    const KeyHash key = KeyHash::of_integer(number);
    if (operation < 2) {
      ASSERT(filter->insert(key) && filter->contains(key));
      periods.front().insert(number);
    } else if (operation < 4) {
      const bool was_in = filter->contains(key);
      ASSERT(filter->insert_if_absent(key) != was_in && filter->contains(key));
      if (!was_in) periods.front().insert(number);
    } else if (operation < 6) {
      filter->refresh();
      periods.pop_back();
      periods.emplace(periods.begin());
    } else {
      const char* problem = problem_of_reload(*filter);
      ASSERT(problem == nullptr, "{}", problem);
    }
    std::uint64_t size = 0;
    for (unsigned ago = 0; ago < periods.size(); ++ago) {
      size += periods[ago].size();
      ASSERT(filter->keys_of_period(ago) == periods[ago].size());
      if (ago > survived) continue;
      for (const std::uint8_t each : periods[ago]) {
        ASSERT(filter->contains(KeyHash::of_integer(each)), "{} of {} refreshes ago", each, ago);
      }
    }
    ASSERT(filter->size() == size);
  }
}

// The paper's filter that resizes. Mended it denies no key inside the window; as printed it
// promises nothing but to hold together. Neither has more filters than allowed.
template <AdaptiveForgetful::Resizing kResizing>
void drive_resizing(std::uint64_t capacity, base::Decoder& in) {
  constexpr bool kIsMended = kResizing == AdaptiveForgetful::Resizing::mended;
  const AdaptiveForgetful::Options options{.bits = 32 + 4 * capacity,
                                           .probes = 3,
                                           .filters = static_cast<unsigned>(3 + capacity % 4),
                                           .period = 1 + capacity % 9,
                                           .rate_max = 0.05,
                                           .resizing = kResizing,
                                           .filters_max = 24};
  auto filter = AdaptiveForgetful::with_options(options);
  ASSERT(filter.has_value());
  std::vector<std::pair<Ticks, KeyHash>> inserted;
  while (in.remaining() >= 2) {
    const std::uint8_t operation = in.u8() % 8;
    const std::uint8_t number = in.u8();
    const KeyHash key = KeyHash::of_integer(number);
    if (operation < 4) {
      const bool was_in = filter->contains(key);
      const Admission admission = filter->insert_if_absent(key);
      ASSERT(was_in == (admission == Admission::present));
      ASSERT(filter->contains(key) == (admission != Admission::shed));
      if (admission == Admission::inserted) inserted.emplace_back(filter->now(), key);
    } else if (operation < 7) {
      for (unsigned i = 0; i <= number % 4U; ++i) ASSERT(filter->tick().has_value());
    } else {
      const char* problem = problem_of_reload(*filter);
      ASSERT(problem == nullptr, "{}", problem);
    }
    ASSERT(filter->filter_count() <= options.filters_max);
    if (!kIsMended) continue;
    std::erase_if(inserted,
                  [&](const auto& each) { return filter->now() - each.first > filter->window(); });
    for (const auto& [at, each] : inserted) ASSERT(filter->contains(each));
  }
}

// A recyclable filter forgets all at once, and says so.
void drive_recycling(std::uint64_t capacity, base::Decoder& in) {
  auto filter = RecyclableBloom::for_rate(capacity, 0.02);
  ASSERT(filter.has_value());
  std::vector<KeyHash> keys;
  while (in.remaining() >= 2) {
    const std::uint8_t operation = in.u8() % 8;
    const KeyHash key = KeyHash::of_integer(in.u8());
    if (operation < 6) {
      const bool was_full = filter->size() == filter->capacity();
      ASSERT(filter->insert_recycling(key) == was_full);
      if (was_full) keys.clear();
      keys.push_back(key);
    } else if (operation < 7) {
      filter->flush();
      keys.clear();
    } else {
      const char* problem = problem_of_reload(*filter);
      ASSERT(problem == nullptr, "{}", problem);
    }
    ASSERT(filter->size() == keys.size());
    for (const KeyHash each : keys) ASSERT(filter->contains(each));
  }
}

template <class F>
void drive_for_rate(std::uint64_t capacity, base::Decoder& in) {
  drive(F::for_rate(capacity, 0.02), in);
}

}  // namespace
}  // namespace helenus::filters

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::filters;
  helenus::base::Decoder in(std::as_bytes(std::span(data, size)));
  constexpr std::array kDrivers = {
      &drive_for_rate<Bloom>,
      &drive_for_rate<BlockedBloom>,
      &drive_for_capacity<Cuckoo8>,
      &drive_for_capacity<Cuckoo12>,
      &drive_for_capacity<Cuckoo16>,
      &drive_for_capacity<Cuckoo32>,
      &drive_for_capacity<KeyedAdaptiveCuckoo<16>>,
      &drive_for_capacity<KeyedAdaptiveCuckoo<32>>,
      &drive_for_capacity<DynamicCuckoo>,
      &drive_for_capacity<ConsistentCuckoo>,
      &drive_hashed<ConsistentCuckoo::Growth::by_buckets>,
      &drive_hashed<ConsistentCuckoo::Growth::by_members>,
      &drive_hashed<ConsistentCuckoo::Growth::by_members_as_printed>,
      &drive_for_rate<RecyclableBloom>,
      &drive_forgetful<ForgetfulCheck::simple>,
      &drive_forgetful<ForgetfulCheck::optimised>,
      &drive_forgetful<ForgetfulCheck::optimised_as_printed>,
      &drive_recycling,
      &drive_resizing<AdaptiveForgetful::Resizing::mended>,
      &drive_resizing<AdaptiveForgetful::Resizing::as_printed>,
  };
  const auto driver = kDrivers[in.u8() % kDrivers.size()];
  driver(std::uint64_t{1} + in.u8(), in);
  return 0;
}
