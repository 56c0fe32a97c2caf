#include "filters/bloom.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "filters/bit_count.h"
#include "filters/envelope.h"
#include "filters/forgetful_rates.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

constexpr double kRateMin = 1e-9;
constexpr double kRateMax = 0.5;

double rate_of(std::uint64_t bits, unsigned probes, std::uint64_t keys) {
  return std::min(1.0, bloom_rate(bits, probes, keys) + rate_of_aligned_probes(bits, keys));
}

}  // namespace

base::Result<void> Bloom::check(const Shape& shape) {
  const bool sound = shape.bits > 0 && shape.bits <= kBitsMax && shape.probes > 0 &&
                     shape.probes <= kProbesMax && shape.capacity > 0 && shape.capacity <= kBitsMax;
  if (sound) return {};
  return Error(Errc::invalid_argument, "a Bloom filter of {} bits, {} probes, for {} keys",
               shape.bits, shape.probes, shape.capacity);
}

base::Result<Bloom> Bloom::with_shape(Shape shape) {
  TRY_VOID(check(shape));
  TRY(Table table, Table::zeroed(table_bytes(shape.bits)));
  return Bloom(shape, 0, std::move(table));
}

base::Result<Bloom> Bloom::for_rate(std::uint64_t capacity, double false_positive_rate) {
  const bool sound = capacity > 0 && capacity <= kBitsMax / 64 && false_positive_rate >= kRateMin &&
                     false_positive_rate <= kRateMax;
  if (!sound) {
    return Error(Errc::invalid_argument, "a Bloom filter for {} keys at a rate of {}", capacity,
                 false_positive_rate);
  }
  // k probes are best at k = bits / key * ln 2; the bits then follow from the rate for that k.
  const unsigned probes = std::clamp(
      static_cast<unsigned>(std::lround(-std::log2(false_positive_rate))), 1U, kProbesMax);
  const double fill = std::pow(false_positive_rate, 1.0 / probes);
  const double bits_per_key = -static_cast<double>(probes) / std::log1p(-fill);
  const auto keeps = [&](std::uint64_t bits) {
    return rate_of(bits, probes, capacity) <= false_positive_rate;
  };
  std::uint64_t few =
      static_cast<std::uint64_t>(std::ceil(bits_per_key * static_cast<double>(capacity)));
  std::uint64_t enough = few + 1;
  while (!keeps(enough) && enough < kBitsMax) enough *= 2;
  while (enough - few > 1) {
    const std::uint64_t middle = few + (enough - few) / 2;
    (keeps(middle) ? enough : few) = middle;
  }
  return with_shape({.bits = enough, .probes = probes, .capacity = capacity});
}

bool Bloom::insert(KeyHash key) {
  if (size_ >= shape_.capacity) return false;
  std::byte* table = table_.writable();
  Probes probes(key);
  for (unsigned i = 0; i < shape_.probes; ++i) {
    const std::uint64_t bit = probes.next(shape_.bits);
    table[bit / 8] |= mask_of(bit);
  }
  ++size_;
  return true;
}

void Bloom::clear() {
  std::memset(table_.writable(), 0, table_.size());
  size_ = 0;
}

void Bloom::prefetch(KeyHash key) const {
  Probes probes(key);
  for (unsigned i = 0; i < shape_.probes; ++i) {
    __builtin_prefetch(table_.data() + probes.next(shape_.bits) / 8);
  }
}

void Bloom::contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
  // Most absent keys fail one of their first probes: only those are worth fetching for all.
  constexpr unsigned kProbesFetched = 3;
  const unsigned fetched = std::min(kProbesFetched, shape_.probes);
  overlap(
      keys, answers,
      [this, fetched](KeyHash key) {
        Probes probes(key);
        for (unsigned i = 0; i < fetched; ++i) {
          __builtin_prefetch(table_.data() + probes.next(shape_.bits) / 8);
        }
        return key;
      },
      [this](KeyHash key) { return contains(key); });
}

double Bloom::rate_with(std::uint64_t keys) const {
  return rate_of(shape_.bits, shape_.probes, keys);
}

base::Bytes Bloom::encode() const {
  return seal({.kind = Kind::bloom,
               .width = static_cast<std::uint8_t>(shape_.probes),
               .size = size_,
               .capacity = shape_.capacity,
               .units = shape_.bits,
               .population = count_bits(table_.view())},
              table_.view());
}

base::Result<Bloom> Bloom::decode(const base::Bytes& encoded) {
  TRY(Opened opened, unseal(encoded, Kind::bloom));
  const Envelope& envelope = opened.envelope;
  const Shape shape{
      .bits = envelope.units, .probes = envelope.width, .capacity = envelope.capacity};
  if (!check(shape)) return Error(Errc::corrupt, std::string("a Bloom filter of no such shape"));
  if (opened.body.size() != table_bytes(shape.bits)) {
    return Error(Errc::corrupt, "{} bytes for {} bits", opened.body.size(), shape.bits);
  }
  const unsigned bits_in_last = static_cast<unsigned>(shape.bits - 1) % 8 + 1;
  const auto last = std::to_integer<unsigned>(opened.body[opened.body.size() - 1]);
  if ((last >> bits_in_last) != 0) return Error(Errc::corrupt, std::string("padding is used"));
  TRY_VOID(check_bit_table(envelope, opened.body, shape.probes));
  return Bloom(shape, envelope.size, Table::viewing(std::move(opened.body)));
}

}  // namespace helenus::filters
