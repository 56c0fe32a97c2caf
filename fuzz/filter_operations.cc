// Fuzzes sequences of operations on all filters, in lockstep with the truth. The input is
//
//   which filter: one byte;  its capacity: one byte;  operations: two bytes each, what and key
//
// A CheckedFilter says what must hold. Keys are few and filters small, so that filters are often
// full and keys often in twice.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/codec.h"
#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/checked_filter.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/dynamic_cuckoo.h"

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
  };
  const auto driver = kDrivers[in.u8() % kDrivers.size()];
  driver(std::uint64_t{1} + in.u8(), in);
  return 0;
}
