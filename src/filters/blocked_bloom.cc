#include "filters/blocked_bloom.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "filters/bit_count.h"
#include "filters/envelope.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

constexpr double kRateMin = 1e-6;
constexpr double kRateMax = 0.5;
constexpr double kBitsPerBlock = BlockedBloom::kBlockBytes * 8;
constexpr double kBitsPerWord = 64;

// The number of keys in a block is Poisson distributed around its mean. A block of j keys says yes
// to an absent key when all of the eight words have its bit set.
double rate_at(double keys_per_block) {
  if (keys_per_block <= 0) return 0;
  const double spread = std::sqrt(keys_per_block);
  const auto first = static_cast<unsigned>(std::max(0.0, keys_per_block - 12 * spread));
  const auto last = static_cast<unsigned>(keys_per_block + 12 * spread + 24);
  double rate = 0;
  for (unsigned keys = first; keys <= last; ++keys) {
    const double log_probability =
        keys * std::log(keys_per_block) - keys_per_block - std::lgamma(keys + 1.0);
    const double fill = -std::expm1(keys * std::log1p(-1 / kBitsPerWord));
    rate += std::exp(log_probability) * std::pow(fill, BlockedBloom::kProbes);
  }
  return rate;
}

}  // namespace

base::Result<BlockedBloom> BlockedBloom::with_blocks(std::uint64_t block_count,
                                                     std::uint64_t capacity) {
  const bool sound = block_count > 0 && block_count <= kBlocksMax && capacity > 0 &&
                     capacity <= block_count * kKeysPerBlockMax;
  if (!sound) {
    return Error(Errc::invalid_argument, "a blocked Bloom filter of {} blocks for {} keys",
                 block_count, capacity);
  }
  TRY(Table table, Table::zeroed(block_count * kBlockBytes));
  return BlockedBloom(block_count, capacity, 0, std::move(table));
}

base::Result<BlockedBloom> BlockedBloom::with_bits_per_key(std::uint64_t capacity,
                                                           double bits_per_key) {
  const bool sound =
      bits_per_key > 0 && bits_per_key <= kBitsPerBlock && capacity > 0 && capacity <= kBlocksMax;
  if (!sound) {
    return Error(Errc::invalid_argument, "a blocked Bloom filter of {} bits for each of {} keys",
                 bits_per_key, capacity);
  }
  const double blocks = std::ceil(static_cast<double>(capacity) * bits_per_key / kBitsPerBlock);
  return with_blocks(static_cast<std::uint64_t>(blocks), capacity);
}

base::Result<BlockedBloom> BlockedBloom::for_rate(std::uint64_t capacity,
                                                  double false_positive_rate) {
  if (!(false_positive_rate >= kRateMin && false_positive_rate <= kRateMax)) {
    return Error(Errc::invalid_argument, "a blocked Bloom filter with a rate of {}",
                 false_positive_rate);
  }
  double sparse = 1;
  double dense = static_cast<double>(kKeysPerBlockMax);
  constexpr int kHalvings = 50;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (sparse + dense) / 2;
    (rate_at(middle) <= false_positive_rate ? sparse : dense) = middle;
  }
  return with_bits_per_key(capacity, kBitsPerBlock / sparse);
}

void BlockedBloom::contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
  overlap_lookups(*this, keys, answers);
}

double BlockedBloom::rate_with(std::uint64_t keys) const {
  return rate_at(static_cast<double>(keys) / static_cast<double>(block_count_));
}

base::Bytes BlockedBloom::encode() const {
  return seal({.kind = Kind::blocked_bloom,
               .width = kProbes,
               .size = size_,
               .capacity = capacity_,
               .units = block_count_,
               .population = count_bits(table_.view())},
              table_.view());
}

base::Result<BlockedBloom> BlockedBloom::decode(const base::Bytes& encoded) {
  TRY(Opened opened, unseal(encoded, Kind::blocked_bloom));
  const Envelope& envelope = opened.envelope;
  const bool sound = envelope.width == kProbes && envelope.units > 0 &&
                     envelope.units <= kBlocksMax && envelope.capacity > 0 &&
                     envelope.capacity <= envelope.units * kKeysPerBlockMax;
  if (!sound) {
    return Error(Errc::corrupt, "a blocked Bloom filter of {} blocks for {} keys", envelope.units,
                 envelope.capacity);
  }
  if (opened.body.size() != envelope.units * kBlockBytes) {
    return Error(Errc::corrupt, "{} bytes for {} blocks", opened.body.size(), envelope.units);
  }
  TRY_VOID(check_bit_table(envelope, opened.body, kProbes));
  return BlockedBloom(envelope.units, envelope.capacity, envelope.size,
                      Table::viewing(std::move(opened.body)));
}

}  // namespace helenus::filters
