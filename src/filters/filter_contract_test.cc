// Every filter there is, held to the contract of filter.h.
#include "filters/filter_contract.h"

#include <cstdint>

#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/dynamic_cuckoo.h"

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
template <>
struct FilterSubject<DynamicCuckoo> {
  static DynamicCuckoo make(std::uint64_t capacity) {
    return *DynamicCuckoo::for_capacity(capacity);
  }
};

using Filters = ::testing::Types<Bloom, BlockedBloom, Cuckoo8, Cuckoo12, Cuckoo16, Cuckoo32,
                                 KeyedAdaptiveCuckoo<16>, KeyedAdaptiveCuckoo<32>, DynamicCuckoo,
                                 ConsistentCuckoo>;
using ErasableFilters =
    ::testing::Types<Cuckoo8, Cuckoo12, Cuckoo16, Cuckoo32, KeyedAdaptiveCuckoo<16>,
                     KeyedAdaptiveCuckoo<32>, DynamicCuckoo, ConsistentCuckoo>;
using AdaptiveFilters = ::testing::Types<KeyedAdaptiveCuckoo<16>, KeyedAdaptiveCuckoo<32>>;

INSTANTIATE_TYPED_TEST_SUITE_P(Every, FilterContract, Filters);
INSTANTIATE_TYPED_TEST_SUITE_P(Every, ErasableFilterContract, ErasableFilters);
INSTANTIATE_TYPED_TEST_SUITE_P(Every, AdaptiveFilterContract, AdaptiveFilters);

}  // namespace helenus::filters
