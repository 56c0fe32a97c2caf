#include "filters/forgetful_bloom.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/assert.h"
#include "base/codec.h"
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

// The table begins where a cache line does.
constexpr std::size_t kAlignment = 64;

std::size_t head_bytes(unsigned filter_count) {
  const std::size_t used = 8 + filter_count * sizeof(std::uint64_t);
  return (used + kAlignment - 1) / kAlignment * kAlignment;
}

double rate_of(ForgetfulCheck check, const std::vector<double>& fills, unsigned probes) {
  switch (check) {
    case ForgetfulCheck::optimised:
      return forgetful_rate(fills, probes);
    case ForgetfulCheck::simple:
      return forgetful_rate_simple(fills, probes);
    case ForgetfulCheck::optimised_as_printed:
      return forgetful_rate_of_printed_check(fills, probes);
  }
  UNREACHABLE("check {}", static_cast<int>(check));
}

double rate_when_full(std::uint64_t bits, unsigned probes, unsigned filter_count,
                      std::uint64_t keys_per_period, ForgetfulCheck check) {
  const std::vector<double> fills(filter_count, bloom_fill(bits, probes, keys_per_period));
  return rate_of(check, fills, probes);
}

}  // namespace

base::Result<void> ForgetfulBloom::check(const Shape& shape) {
  const bool sound = shape.bits > 0 && shape.bits <= LaneTable::kPositionsMax && shape.probes > 0 &&
                     shape.probes <= kProbesMax && shape.past > 0 && shape.past <= kPastMax &&
                     shape.capacity > 0 && shape.capacity <= LaneTable::kPositionsMax &&
                     shape.check <= ForgetfulCheck::optimised_as_printed;
  if (sound) return {};
  return Error(Errc::invalid_argument, "a {}-FBF of {} bits a filter, {} probes, for {} keys",
               shape.past, shape.bits, shape.probes, shape.capacity);
}

base::Result<ForgetfulBloom> ForgetfulBloom::with_shape(Shape shape) {
  TRY_VOID(check(shape));
  TRY(LaneTable table, LaneTable::zeroed(shape.bits, shape.past + 2));
  return ForgetfulBloom(shape, std::move(table));
}

base::Result<ForgetfulBloom> ForgetfulBloom::for_rate(std::uint64_t capacity, unsigned past,
                                                      double rate_max) {
  const bool sound = capacity > 0 && capacity <= LaneTable::kPositionsMax / 64 && past > 0 &&
                     past <= kPastMax && rate_max >= kRateMin && rate_max <= kRateMax;
  if (!sound) {
    return Error(Errc::invalid_argument, "a {}-FBF for {} keys at a rate of {}", past, capacity,
                 rate_max);
  }
  const unsigned filters = past + 2;
  const std::uint64_t keys_per_period = (capacity + filters - 1) / filters;
  Shape best{.bits = LaneTable::kPositionsMax, .probes = 1, .past = past, .capacity = capacity};
  for (unsigned probes = 1; probes <= kProbesMax; ++probes) {
    std::uint64_t few = 0;
    std::uint64_t enough = best.bits;
    const auto keeps = [&](std::uint64_t bits) {
      return rate_when_full(bits, probes, filters, keys_per_period, best.check) <= rate_max;
    };
    if (!keeps(enough)) continue;
    while (enough - few > 1) {
      const std::uint64_t middle = few + (enough - few) / 2;
      (keeps(middle) ? enough : few) = middle;
    }
    best.bits = enough;
    best.probes = probes;
  }
  return with_shape(best);
}

Lanes ForgetfulBloom::future_and_present() const {
  const unsigned present = future_ + 1 < filter_count() ? future_ + 1 : 0;
  return (Lanes{1} << future_) | (Lanes{1} << present);
}

bool ForgetfulBloom::says_yes(Lanes holders, ForgetfulCheck check) const {
  if (check == ForgetfulCheck::simple) return true;
  const Lanes roles = by_role(holders);
  const Lanes future = roles & 1;
  const Lanes oldest = roles >> (filter_count() - 1);
  const Lanes pairs = (roles & (roles >> 1)) >> 1;  // bit i: filters i + 1 and i + 2
  const bool asks_oldest = check == ForgetfulCheck::optimised || shape_.past == 1;
  return (future | pairs | (asks_oldest ? oldest : 0)) != 0;
}

bool ForgetfulBloom::insert(KeyHash key) {
  if (periods_[0] == kKeysPerPeriodMax) return false;
  table_.add(key, shape_.probes, future_and_present());
  ++periods_[0];
  return true;
}

bool ForgetfulBloom::insert_if_absent(KeyHash key) {
  const auto added =
      table_.add_unless(key, shape_.probes, table_.all(), future_and_present(),
                        [this](Lanes holders) { return says_yes(holders, shape_.check); });
  if (!added.present && periods_[0] < kKeysPerPeriodMax) ++periods_[0];
  return !added.present;
}

void ForgetfulBloom::refresh() {
  future_ = (future_ == 0 ? filter_count() : future_) - 1;
  table_.clear(Lanes{1} << future_, 0, table_.block_count());
  std::shift_right(periods_.begin(), periods_.begin() + filter_count(), 1);
  periods_[0] = 0;
}

void ForgetfulBloom::contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const {
  overlap_lookups(*this, keys, answers);
}

std::uint64_t ForgetfulBloom::keys_of_period(unsigned ago) const {
  ASSERT(ago < filter_count());
  return periods_[ago];
}

std::uint64_t ForgetfulBloom::size() const {
  std::uint64_t size = 0;
  for (unsigned ago = 0; ago < filter_count(); ++ago) size += periods_[ago];
  return size;
}

double ForgetfulBloom::false_positive_rate() const {
  // In roles: at how many positions a filter, it and the next, it and the next two have a bit.
  const auto roles = [this](Lanes set) { return by_role(set); };
  const auto one = table_.count(roles);
  const auto two = table_.count([&](Lanes set) { return roles(set) & (roles(set) >> 1); });
  const auto three =
      table_.count([&](Lanes set) { return roles(set) & (roles(set) >> 1) & (roles(set) >> 2); });
  const auto rate = [this](std::uint64_t set) {
    return std::pow(static_cast<double>(set) / static_cast<double>(shape_.bits), shape_.probes);
  };
  const unsigned oldest = filter_count() - 1;
  std::vector<double> alone{rate(one[0])};
  std::vector<double> both;
  if (shape_.check == ForgetfulCheck::simple) {
    for (unsigned i = 1; i <= oldest; ++i) {
      alone.push_back(rate(one[i]));
      both.push_back(rate(two[i - 1]));
    }
    return chain_rate(alone, both);
  }
  for (unsigned i = 1; i + 1 < oldest; ++i) {
    alone.push_back(rate(two[i]));
    both.push_back(rate(three[i - 1]));
  }
  // As printed, the oldest filter counts only together with its neighbour.
  const bool alone_counts = shape_.check == ForgetfulCheck::optimised || shape_.past == 1;
  alone.push_back(rate(alone_counts ? one[oldest] : two[oldest - 1]));
  both.push_back(rate(three[oldest - 2]));
  return chain_rate(alone, both);
}

double ForgetfulBloom::rate_by_equation(const Periods& periods) const {
  std::vector<double> fills;
  for (unsigned ago = 0; ago < filter_count(); ++ago) {
    fills.push_back(bloom_fill(shape_.bits, shape_.probes, periods[ago]));
  }
  return rate_of(shape_.check, fills, shape_.probes);
}

double ForgetfulBloom::rate_by_equation() const {
  return rate_by_equation(periods_);
}

double ForgetfulBloom::false_positive_rate_max() const {
  const std::uint64_t keys_per_period = (shape_.capacity + filter_count() - 1) / filter_count();
  return rate_when_full(shape_.bits, shape_.probes, filter_count(), keys_per_period, shape_.check);
}

base::Bytes ForgetfulBloom::encode() const {
  base::Buffer body(head_bytes(filter_count()) + table_.memory_bytes());
  base::Encoder encoder(body);
  encoder.u8(static_cast<std::uint8_t>(shape_.past));
  encoder.u8(static_cast<std::uint8_t>(shape_.check));
  encoder.u8(static_cast<std::uint8_t>(future_));
  while (body.size() < 8) encoder.u8(0);
  for (unsigned ago = 0; ago < filter_count(); ++ago) encoder.u64_le(periods_[ago]);
  while (body.size() < head_bytes(filter_count())) encoder.u8(0);
  table_.append_to(body, table_.all());
  return seal({.kind = Kind::forgetful_bloom,
               .width = static_cast<std::uint8_t>(shape_.probes),
               .size = size(),
               .capacity = shape_.capacity,
               .units = shape_.bits,
               .population = count_bits(table_.view())},
              body.view());
}

base::Result<ForgetfulBloom> ForgetfulBloom::decode(const base::Bytes& encoded) {
  TRY(Opened opened, unseal(encoded, Kind::forgetful_bloom));
  const Envelope& envelope = opened.envelope;
  base::Decoder in(opened.body.view());
  Shape shape{.bits = envelope.units, .probes = envelope.width, .capacity = envelope.capacity};
  shape.past = in.u8();
  shape.check = ForgetfulCheck{in.u8()};
  if (!check(shape)) return Error(Errc::corrupt, std::string("an FBF of no such shape"));
  const unsigned filters = shape.past + 2;
  const std::size_t head = head_bytes(filters);
  if (opened.body.size() != head + LaneTable::bytes_for(shape.bits, filters)) {
    return Error(Errc::corrupt, "{} bytes for {} filters of {} bits", opened.body.size(), filters,
                 shape.bits);
  }
  ForgetfulBloom filter(shape, LaneTable::viewing(opened.body.slice(head), shape.bits, filters));
  filter.future_ = in.u8();
  std::uint64_t zeros = 0;
  while (in.offset() < 8) zeros |= in.u8();
  std::uint64_t size = 0;
  for (unsigned ago = 0; ago < filters; ++ago) {
    filter.periods_[ago] = in.u64_le();
    if (filter.periods_[ago] > kKeysPerPeriodMax) {
      return Error(Errc::corrupt, "{} keys in one period", filter.periods_[ago]);
    }
    size += filter.periods_[ago];
  }
  while (in.offset() < head) zeros |= in.u8();
  if (zeros != 0 || filter.future_ >= filters || size != envelope.size) {
    return Error(Errc::corrupt, std::string("an FBF whose head contradicts itself"));
  }
  TRY_VOID(filter.validate(envelope.population));
  return filter;
}

base::Result<void> ForgetfulBloom::validate(std::uint64_t population) const {
  if (!table_.ends_clean()) return Error(Errc::corrupt, std::string("padding is used"));
  if (count_bits(table_.view()) != population) {
    return Error(Errc::corrupt, "not {} bits are set", population);
  }
  const auto roles = [this](Lanes set) { return by_role(set); };
  const auto one = table_.count(roles);
  const auto two = table_.count([&](Lanes set) { return roles(set) & (roles(set) >> 1); });
  for (unsigned role = 0; role < filter_count(); ++role) {
    // Bits without keys, keys without bits, or more bits than the keys can have set.
    const std::uint64_t keys = periods_[role] + (role == 0 ? 0 : periods_[role - 1]);
    const std::uint64_t keys_min = (one[role] + shape_.probes - 1) / shape_.probes;
    if ((one[role] == 0) != (keys == 0) || keys_min > keys) {
      return Error(Errc::corrupt, "{} bits of {} keys in filter {}", one[role], keys, role);
    }
  }
  if (two[0] != one[0]) {
    return Error(Errc::corrupt, std::string("keys of the future filter are not in the present"));
  }
  return {};
}

}  // namespace helenus::filters
