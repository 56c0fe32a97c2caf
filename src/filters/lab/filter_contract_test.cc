// The lab's filters, held to the contract of filter.h.
#include "filters/filter_contract.h"

#include <cstdint>
#include <span>
#include <utility>

#include "filters/bloom.h"
#include "filters/lab/adaptive_forgetful.h"
#include "filters/lab/dynamic_cuckoo.h"
#include "filters/lab/recyclable_bloom.h"

namespace helenus::filters {

template <>
struct FilterSubject<DynamicCuckoo> {
  static DynamicCuckoo make(std::uint64_t capacity) {
    return *DynamicCuckoo::for_capacity(capacity);
  }
};
// The paper's resizing filter, mended, whose clock ticks twice with every key: it is refreshed when
// half of them are in, and after all of them the first key is as old as the window and no older.
class PacedAdaptive {
 public:
  explicit PacedAdaptive(AdaptiveForgetful filter) : filter_(std::move(filter)) {}

  bool insert(KeyHash key) {
    if (filter_.size() >= capacity() || !filter_.insert(key)) return false;
    while (filter_.now() < 2 * filter_.size()) EXPECT_TRUE(filter_.tick().has_value());
    return true;
  }
  bool contains(KeyHash key) const { return filter_.contains(key); }
  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
    filter_.contains_batch(keys, answers);
  }
  void prefetch(KeyHash key) const { filter_.prefetch(key); }
  std::uint64_t size() const { return filter_.size(); }
  std::uint64_t capacity() const { return filter_.options().period; }
  double false_positive_rate() const { return filter_.false_positive_rate(); }
  double false_positive_rate_max() const { return filter_.false_positive_rate_max(); }
  std::uint64_t memory_bytes() const { return filter_.memory_bytes(); }
  base::Bytes encode() const { return filter_.encode(); }
  static base::Result<PacedAdaptive> decode(const base::Bytes& bytes) {
    TRY(AdaptiveForgetful filter, AdaptiveForgetful::decode(bytes));
    return PacedAdaptive(std::move(filter));
  }

 private:
  AdaptiveForgetful filter_;
};
template <>
struct FilterSubject<PacedAdaptive> {
  // It looks ahead, and sheds before the target is met.
  static constexpr double kTightness = 0.2;
  static PacedAdaptive make(std::uint64_t capacity) {
    const Bloom::Shape shape = Bloom::for_rate(capacity, 0.003)->shape();
    return PacedAdaptive(*AdaptiveForgetful::with_options({.bits = shape.bits,
                                                           .probes = shape.probes,
                                                           .filters = 3,
                                                           .period = capacity,
                                                           .rate_max = 0.01}));
  }
};
template <>
struct FilterSubject<RecyclableBloom> {
  static RecyclableBloom make(std::uint64_t capacity) {
    return *RecyclableBloom::for_rate(capacity, 0.01);
  }
};

using LabFilters = ::testing::Types<DynamicCuckoo, RecyclableBloom, PacedAdaptive>;

INSTANTIATE_TYPED_TEST_SUITE_P(Lab, FilterContract, LabFilters);
INSTANTIATE_TYPED_TEST_SUITE_P(Lab, ErasableFilterContract, DynamicCuckoo);
// None of them adapts.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AdaptiveFilterContract);

}  // namespace helenus::filters
