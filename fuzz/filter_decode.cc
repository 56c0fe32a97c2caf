// Fuzzes the decoders of all filters. The input is
//
//   which filter: one byte;  how: one byte;  the rest
//
// How even: the rest is what is decoded. How odd: the rest is the numbers of a header and a body,
// which are sealed with sound checksums first, so that the search gets behind them.
//
// Bytes either give an error, or a filter that writes the same bytes again, answers, takes keys
// without denying any, and gives back what it took.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/codec.h"
#include "filters/adaptive_cuckoo.h"
#include "filters/blocked_bloom.h"
#include "filters/bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "filters/envelope.h"
#include "filters/forgetful_bloom.h"
#include "filters/lab/adaptive_forgetful.h"
#include "filters/lab/dynamic_cuckoo.h"
#include "filters/lab/recyclable_bloom.h"
#include "filters/sliced_forgetful.h"

namespace helenus::filters {
namespace {

constexpr std::uint64_t kKeys = 16;

// What the owner of a decoded filter would do next.
template <Filter F>
void use(F& filter) {
  std::array<KeyHash, kKeys> keys;
  std::array<bool, kKeys> answers;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys[i] = KeyHash::of_integer(i);
  filter.contains_batch(keys, answers);
  for (std::uint64_t i = 0; i < kKeys; ++i) ASSERT(answers[i] == filter.contains(keys[i]));
  const double rate = filter.false_positive_rate();
  ASSERT(rate >= 0 && rate <= 1);

  const std::uint64_t size = filter.size();
  std::uint64_t inserted = 0;
  while (inserted < kKeys && filter.insert(keys[inserted])) ++inserted;
  ASSERT(filter.size() == size + inserted);
  for (std::uint64_t i = 0; i < inserted; ++i) ASSERT(filter.contains(keys[i]));
  if constexpr (ErasableFilter<F>) {
    for (std::uint64_t i = 0; i < inserted; ++i) ASSERT(filter.erase(keys[i]));
    ASSERT(filter.size() == size);
  }
  if constexpr (AdaptiveFilter<F>) {
    for (const KeyHash key : keys) filter.report_false_positive(key);
  }
}

// Time goes on, and it still takes keys.
void pass_time(ForgetfulBloom& filter) {
  for (unsigned i = 0; i <= filter.filter_count(); ++i) filter.refresh();
  ASSERT(filter.size() == 0 && filter.insert_if_absent(KeyHash::of_integer(0)));
}

void pass_time(SlicedForgetful& filter) {
  filter.advance_to(filter.now() + filter.options().window / 2);
  ASSERT(filter.insert_if_absent(KeyHash::of_integer(kKeys)) != Admission::present ||
         filter.contains(KeyHash::of_integer(kKeys)));
  filter.advance_to(~Ticks{0});
  (void)filter.insert(KeyHash::of_integer(0));
}

// Mended, a key is remembered for the window, whatever resizing does.
void pass_time(AdaptiveForgetful& filter) {
  constexpr Ticks kTicks = 20;
  const KeyHash key = KeyHash::of_integer(kKeys);
  const bool is_in = filter.insert_if_absent(key) == Admission::inserted;
  const bool is_mended = filter.options().resizing == AdaptiveForgetful::Resizing::mended;
  for (Ticks i = 0; i < std::min(kTicks, filter.window()); ++i) {
    ASSERT(filter.tick().has_value());
    if (is_in && is_mended) ASSERT(filter.contains(key));
  }
  ASSERT(AdaptiveForgetful::decode(filter.encode()).has_value());
}

// An adaptive filter whose residents are elsewhere cannot take keys; it can be asked.
template <unsigned kBits>
void use(AdaptiveCuckoo<kBits>& filter) {
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const KeyHash key = KeyHash::of_integer(i);
    const Matches matches = filter.matches(key);
    ASSERT(filter.contains(key) != matches.empty());
    const auto adapted = filter.adapt(key, {});
    ASSERT(matches.empty() ? adapted == Adapted::not_needed
                           : adapted.failed_with(base::Errc::invalid_argument));
  }
}

void use(const ResidentKeys& residents) {
  for (std::uint64_t slot = 0; slot < residents.slot_count(); ++slot) residents.at(slot);
}

template <class F>
void decode_and_use(const base::Bytes& bytes) {
  auto decoded = F::decode(bytes);
  if (!decoded) return;
  ASSERT(decoded->encode() == bytes);
  use(*decoded);
  ASSERT(F::decode(decoded->encode()).has_value());
  if constexpr (requires { pass_time(*decoded); }) pass_time(*decoded);
}

base::Bytes sealed(base::Decoder& in) {
  const Envelope envelope{.kind = Kind{in.u8()},
                          .width = in.u8(),
                          .size = in.varint(),
                          .capacity = in.varint(),
                          .units = in.varint(),
                          .population = in.varint()};
  return seal(envelope, in.raw(in.remaining()));
}

}  // namespace
}  // namespace helenus::filters

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::filters;
  helenus::base::Decoder in(std::as_bytes(std::span(data, size)));
  constexpr std::array kDecoders = {
      &decode_and_use<Bloom>,
      &decode_and_use<BlockedBloom>,
      &decode_and_use<Cuckoo8>,
      &decode_and_use<Cuckoo12>,
      &decode_and_use<Cuckoo16>,
      &decode_and_use<Cuckoo32>,
      &decode_and_use<AdaptiveCuckoo<16>>,
      &decode_and_use<AdaptiveCuckoo<32>>,
      &decode_and_use<KeyedAdaptiveCuckoo<16>>,
      &decode_and_use<KeyedAdaptiveCuckoo<32>>,
      &decode_and_use<ResidentKeys>,
      &decode_and_use<DynamicCuckoo>,
      &decode_and_use<ConsistentCuckoo>,
      &decode_and_use<RecyclableBloom>,
      &decode_and_use<ForgetfulBloom>,
      &decode_and_use<SlicedForgetful>,
      &decode_and_use<AdaptiveForgetful>,
  };
  const auto decoder = kDecoders[in.u8() % kDecoders.size()];
  const bool seals = in.u8() % 2 == 1;
  // A block of their own, so that the sanitizer sees a read past either end.
  decoder(seals ? sealed(in) : helenus::base::Bytes::copy_of(in.raw(in.remaining())));
  return 0;
}
