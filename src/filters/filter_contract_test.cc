// Every filter of this folder, held to the contract of filter.h.
#include "filters/filter_contract.h"

#include <cstdint>
#include <span>
#include <utility>

#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/forgetful_bloom.h"
#include "filters/sliced_forgetful.h"

namespace helenus::filters {

template <>
struct FilterSubject<Bloom> {
  static Bloom make(std::uint64_t capacity) { return *Bloom::for_rate(capacity, 0.01); }
};
template <>
struct FilterSubject<BlockedBloom> {
  static BlockedBloom make(std::uint64_t capacity) {
    return *BlockedBloom::for_rate(capacity, 0.01);
  }
};
template <unsigned kBits>
struct FilterSubject<Cuckoo<kBits>> {
  static Cuckoo<kBits> make(std::uint64_t capacity) {
    return *Cuckoo<kBits>::for_capacity(capacity);
  }
};
template <unsigned kBits>
struct FilterSubject<KeyedAdaptiveCuckoo<kBits>> {
  static KeyedAdaptiveCuckoo<kBits> make(std::uint64_t capacity) {
    return *KeyedAdaptiveCuckoo<kBits>::for_capacity(capacity);
  }
};

template <>
struct FilterSubject<ConsistentCuckoo> {
  static ConsistentCuckoo make(std::uint64_t capacity) {
    return *ConsistentCuckoo::for_capacity(capacity);
  }
};

// The same on the paper's ring.
class OnHashedRing : public ConsistentCuckoo {
 public:
  explicit OnHashedRing(ConsistentCuckoo filter) : ConsistentCuckoo(std::move(filter)) {}
  static base::Result<OnHashedRing> decode(const base::Bytes& bytes) {
    TRY(ConsistentCuckoo filter, ConsistentCuckoo::decode(bytes));
    return OnHashedRing(std::move(filter));
  }
};
template <>
struct FilterSubject<OnHashedRing> {
  static OnHashedRing make(std::uint64_t capacity) {
    return OnHashedRing(*ConsistentCuckoo::with_options(
        {.capacity = capacity,
         .shape = {.slots = 4, .ring = IndexIndependentCuckoo::Ring::hashed, .places = 10},
         .grow_above_percent = 90,
         .shrink_below_percent = 80}));
  }
};

// A forgetful filter whose periods end when their share of the capacity is in, and which refuses
// when one refresh more would forget: what its owner's clock does, without a clock.
class PacedForgetful {
 public:
  explicit PacedForgetful(ForgetfulBloom filter) : filter_(std::move(filter)) {}

  bool insert(KeyHash key) {
    const unsigned periods = filter_.filter_count();
    if (filter_.keys_of_period(0) >= (filter_.capacity() + periods - 1) / periods) {
      if (filter_.keys_of_period(periods - 1) > 0) return false;
      filter_.refresh();
    }
    return filter_.insert(key);
  }
  bool contains(KeyHash key) const { return filter_.contains(key); }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
    filter_.contains_batch(keys, answers);
  }
  void prefetch(KeyHash key) const { filter_.prefetch(key); }
  std::uint64_t size() const { return filter_.size(); }
  std::uint64_t capacity() const { return filter_.capacity(); }
  double false_positive_rate() const { return filter_.false_positive_rate(); }
  double false_positive_rate_max() const { return filter_.false_positive_rate_max(); }
  std::uint64_t memory_bytes() const { return filter_.memory_bytes(); }
  base::Bytes encode() const { return filter_.encode(); }
  static base::Result<PacedForgetful> decode(const base::Bytes& bytes) {
    TRY(ForgetfulBloom filter, ForgetfulBloom::decode(bytes));
    return PacedForgetful(std::move(filter));
  }

 private:
  ForgetfulBloom filter_;
};
template <>
struct FilterSubject<PacedForgetful> {
  static PacedForgetful make(std::uint64_t capacity) {
    return PacedForgetful(*ForgetfulBloom::for_rate(capacity, 2, 0.01));
  }
};
template <>
struct FilterSubject<SlicedForgetful> {
  static SlicedForgetful make(std::uint64_t capacity) {
    return *SlicedForgetful::with_options({.window = 100,
                                           .rate_max = 0.01,
                                           .capacity = capacity,
                                           .sizing = SlicedForgetful::Sizing::fixed});
  }
};

// A sliced filter that begins with an eighth of the room it will need and grows as keys come. It
// knows no limit but memory, so this owner has one: the window, which no test's time reaches.
class GrowingSliced {
 public:
  explicit GrowingSliced(SlicedForgetful filter) : filter_(std::move(filter)) {}

  bool insert(KeyHash key) { return filter_.size() < capacity() && filter_.insert(key); }
  bool contains(KeyHash key) const { return filter_.contains(key); }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
    filter_.contains_batch(keys, answers);
  }
  void prefetch(KeyHash key) const { filter_.prefetch(key); }
  std::uint64_t size() const { return filter_.size(); }
  std::uint64_t capacity() const { return filter_.options().window; }
  double false_positive_rate() const { return filter_.false_positive_rate(); }
  double false_positive_rate_max() const { return filter_.false_positive_rate_max(); }
  std::uint64_t memory_bytes() const { return filter_.memory_bytes(); }
  base::Bytes encode() const { return filter_.encode(); }
  static base::Result<GrowingSliced> decode(const base::Bytes& bytes) {
    TRY(SlicedForgetful filter, SlicedForgetful::decode(bytes));
    return GrowingSliced(std::move(filter));
  }

 private:
  SlicedForgetful filter_;
};
template <>
struct FilterSubject<GrowingSliced> {
  // Some of the target is always kept for the next table.
  static constexpr double kTightness = 0.25;
  static GrowingSliced make(std::uint64_t capacity) {
    return GrowingSliced(*SlicedForgetful::with_options(
        {.window = capacity, .rate_max = 0.01, .capacity = (capacity + 7) / 8}));
  }
};

using Filters = ::testing::Types<Bloom, BlockedBloom, Cuckoo8, Cuckoo12, Cuckoo16, Cuckoo32,
                                 KeyedAdaptiveCuckoo<16>, KeyedAdaptiveCuckoo<32>, ConsistentCuckoo,
                                 OnHashedRing, PacedForgetful, SlicedForgetful, GrowingSliced>;
using ErasableFilters =
    ::testing::Types<Cuckoo8, Cuckoo12, Cuckoo16, Cuckoo32, KeyedAdaptiveCuckoo<16>,
                     KeyedAdaptiveCuckoo<32>, ConsistentCuckoo, OnHashedRing>;
using AdaptiveFilters = ::testing::Types<KeyedAdaptiveCuckoo<16>, KeyedAdaptiveCuckoo<32>>;

INSTANTIATE_TYPED_TEST_SUITE_P(Every, FilterContract, Filters);
INSTANTIATE_TYPED_TEST_SUITE_P(Every, ErasableFilterContract, ErasableFilters);
INSTANTIATE_TYPED_TEST_SUITE_P(Every, AdaptiveFilterContract, AdaptiveFilters);

}  // namespace helenus::filters
