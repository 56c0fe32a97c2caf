#include "filters/lab/adaptive_forgetful.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "base/assert.h"
#include "base/codec.h"
#include "filters/envelope.h"
#include "filters/forgetful_rates.h"
#include "filters/lab/forgetful_analysis.h"
#include "filters/overlap.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

// Where resizing begins, as parts of the target.
constexpr double kHigh = 0.9;
constexpr double kLow = 0.1;

constexpr std::size_t kHeadBytes = 64;
// Before the bytes of each filter.
constexpr std::size_t kFilterHeadBytes = 16;
// No clock of ours comes that far, and sums of times stay what they are.
constexpr Ticks kNowMax = Ticks{1} << 62;

}  // namespace

base::Result<void> AdaptiveForgetful::check(const Options& options) {
  const bool sound = options.filters >= kFiltersMin && options.filters <= options.filters_max &&
                     options.filters_max <= kFiltersMax && options.period > 0 &&
                     options.period <= kPeriodMax && options.rate_max > 0 && options.rate_max < 1 &&
                     options.resizing <= Resizing::off;
  if (sound) return {};
  return Error(Errc::invalid_argument, "{} filters of at most {}, period {}, rate {}",
               options.filters, options.filters_max, options.period, options.rate_max);
}

base::Result<AdaptiveForgetful> AdaptiveForgetful::with_options(const Options& options) {
  TRY_VOID(check(options));
  AdaptiveForgetful filter(options);
  for (unsigned i = 0; i < options.filters; ++i) {
    TRY(Constituent constituent, filter.make());
    filter.filters_.push_back(std::move(constituent));
  }
  return filter;
}

base::Result<AdaptiveForgetful::Constituent> AdaptiveForgetful::make() const {
  TRY(Bloom bloom,
      Bloom::with_shape(
          {.bits = options_.bits, .probes = options_.probes, .capacity = Bloom::kBitsMax}));
  return Constituent{std::move(bloom), 0, 0};
}

base::Result<void> AdaptiveForgetful::tick() {
  ++now_;
  if (now_ - refreshed_ >= period_) TRY_VOID(refresh());
  switch (options_.resizing) {
    case Resizing::mended:
      return resize_mended();
    case Resizing::as_printed:
      return resize_as_printed();
    case Resizing::off:
      return {};
  }
  UNREACHABLE();
}

base::Result<void> AdaptiveForgetful::refresh() {
  TRY(Constituent future, make());
  if (options_.resizing == Resizing::mended) {
    drop_old();
    if (filters_.size() >= options_.filters_max) return {};
  } else {
    filters_.pop_back();
  }
  filters_.front().future_until = now_;
  filters_.push_front(std::move(future));
  refreshed_ = now_;
  return {};
}

// The keys that only the oldest filter has came before it ceased to be the future one.
void AdaptiveForgetful::drop_old() {
  while (filters_.size() >= kFiltersMin && now_ - filters_.back().future_until >= window()) {
    filters_.pop_back();
  }
}

base::Result<void> AdaptiveForgetful::resize_as_printed() {
  const double rate = rate_as_printed();
  if (rate >= kHigh * options_.rate_max) {
    const std::size_t wanted = std::min<std::size_t>(2 * filters_.size(), options_.filters_max);
    while (filters_.size() < wanted) {
      TRY(Constituent empty, make());
      filters_.push_back(std::move(empty));
    }
    if (period_ > 0) --period_;
  } else if (rate <= kLow * options_.rate_max) {
    if (filters_.size() > kFiltersMin) filters_.pop_back();
    ++period_;
  }
  return {};
}

base::Result<void> AdaptiveForgetful::resize_mended() {
  const double rate = rate_ahead();
  if (rate >= kHigh * options_.rate_max) {
    if (period_ > 1) period_ /= 2;
    if (refreshed_ < now_ && filters_.size() < options_.filters_max) return refresh();
  } else if (rate <= kLow * options_.rate_max && period_ < options_.period) {
    ++period_;
  }
  return {};
}

bool AdaptiveForgetful::contains(KeyHash key) const {
  bool newer = false;
  for (std::size_t i = 0; i < filters_.size(); ++i) {
    const bool here = filters_[i].bloom.contains(key);
    const bool is_end = i == 0 || i + 1 == filters_.size();
    if (here && (newer || is_end)) return true;
    newer = here;
  }
  return false;
}

void AdaptiveForgetful::contains_batch(std::span<const KeyHash> keys,
                                       std::span<bool> answers) const {
  overlap_lookups(*this, keys, answers);
}

void AdaptiveForgetful::prefetch(KeyHash key) const {
  for (const Constituent& filter : filters_) filter.bloom.prefetch(key);
}

bool AdaptiveForgetful::has_room() const {
  if (options_.resizing == Resizing::mended && rate_ahead() >= options_.rate_max) return false;
  // Only bytes that say so have as many keys as cannot be counted on.
  return filters_[0].bloom.size() < Bloom::kBitsMax && filters_[1].bloom.size() < Bloom::kBitsMax;
}

bool AdaptiveForgetful::insert(KeyHash key) {
  if (!has_room()) return false;
  for (std::size_t i = 0; i < 2; ++i) ASSERT(filters_[i].bloom.insert(key));
  ++filters_.front().keys_as_future;
  return true;
}

Admission AdaptiveForgetful::insert_if_absent(KeyHash key) {
  if (contains(key)) return Admission::present;
  return insert(key) ? Admission::inserted : Admission::shed;
}

std::uint64_t AdaptiveForgetful::size() const {
  std::uint64_t keys = 0;
  for (const Constituent& filter : filters_) keys += filter.keys_as_future;
  return keys;
}

std::uint64_t AdaptiveForgetful::capacity() const {
  const auto keeps = [this](std::uint64_t keys_per_period) {
    const double fill = bloom_fill(options_.bits, options_.probes, keys_per_period);
    return forgetful_rate(std::vector<double>(options_.filters, fill), options_.probes) <=
           options_.rate_max;
  };
  std::uint64_t fits = 0;
  std::uint64_t too_many = Bloom::kBitsMax;
  while (too_many - fits > 1) {
    const std::uint64_t middle = fits + (too_many - fits) / 2;
    (keeps(middle) ? fits : too_many) = middle;
  }
  return std::max<std::uint64_t>(1, fits * options_.filters);
}

std::uint64_t AdaptiveForgetful::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const Constituent& filter : filters_) bytes += filter.bloom.memory_bytes();
  return bytes;
}

double AdaptiveForgetful::rate_as_printed() const {
  std::vector<double> rates;
  for (const Constituent& filter : filters_) {
    rates.push_back(bloom_rate_approximated(options_.bits, options_.probes, filter.bloom.size()));
  }
  return forgetful_rate_as_printed(rates);
}

double AdaptiveForgetful::rate_ahead() const {
  std::vector<double> fills;
  double largest = 0;
  for (const Constituent& filter : filters_) {
    const double older = bloom_fill(options_.bits, options_.probes, filter.keys_as_future);
    const double newer = fills.empty() ? 0 : fills.back();
    largest = std::max(largest, 1 - (1 - older) * (1 - newer));
    fills.push_back(older);
  }
  // With two empty filters behind, every pair counts and no filter alone.
  fills.resize(fills.size() + 2);
  return forgetful_rate(fills, options_.probes) + std::pow(largest, options_.probes);
}

double AdaptiveForgetful::rate_by_equation() const {
  std::vector<double> fills;
  for (const Constituent& filter : filters_) {
    fills.push_back(bloom_fill(options_.bits, options_.probes, filter.keys_as_future));
  }
  return forgetful_rate(fills, options_.probes);
}

// --- Bytes ---

base::Bytes AdaptiveForgetful::encode() const {
  base::Buffer body;
  base::Encoder out(body);
  out.u64_le(now_);
  out.u64_le(refreshed_);
  out.u64_le(period_);
  out.u64_le(options_.period);
  out.u64_le(std::bit_cast<std::uint64_t>(options_.rate_max));
  out.u32_le(options_.filters);
  out.u32_le(options_.filters_max);
  out.u32_le(filter_count());
  out.u8(static_cast<std::uint8_t>(options_.resizing));
  while (body.size() < kHeadBytes) out.u8(0);
  for (const Constituent& filter : filters_) {
    out.u64_le(filter.keys_as_future);
    out.u64_le(filter.future_until);
    out.raw(filter.bloom.encode());
  }
  return seal({.kind = Kind::adaptive_forgetful,
               .width = static_cast<std::uint8_t>(options_.probes),
               .size = size(),
               .capacity = capacity(),
               .units = options_.bits,
               .population = filter_count()},
              body.view());
}

base::Result<AdaptiveForgetful> AdaptiveForgetful::decode(const base::Bytes& encoded) {
  TRY(const Opened opened, unseal(encoded, Kind::adaptive_forgetful));
  const Envelope& envelope = opened.envelope;
  if (opened.body.size() < kHeadBytes) {
    return Error(Errc::corrupt, "{} bytes of an adaptive FBF", opened.body.size());
  }
  base::Decoder in(opened.body.view().first(kHeadBytes));
  const Ticks now = in.u64_le();
  const Ticks refreshed = in.u64_le();
  const Ticks period = in.u64_le();
  Options options{.bits = envelope.units, .probes = envelope.width, .period = in.u64_le()};
  options.rate_max = std::bit_cast<double>(in.u64_le());
  options.filters = in.u32_le();
  options.filters_max = in.u32_le();
  const std::uint32_t count = in.u32_le();
  options.resizing = Resizing{in.u8()};
  std::uint64_t zeros = 0;
  while (in.remaining() > 0) zeros |= in.u8();
  if (zeros != 0 || !check(options) || count != envelope.population) {
    return Error(Errc::corrupt, std::string("an adaptive FBF of no such options"));
  }
  AdaptiveForgetful filter(options);
  filter.now_ = now;
  filter.refreshed_ = refreshed;
  filter.period_ = period;
  TRY_VOID(filter.decode_filters(opened.body, count));
  TRY_VOID(filter.validate());
  if (filter.size() != envelope.size || filter.capacity() != envelope.capacity) {
    return Error(Errc::corrupt, std::string("an adaptive FBF whose header contradicts it"));
  }
  return filter;
}

base::Result<void> AdaptiveForgetful::decode_filters(const base::Bytes& body, std::uint32_t count) {
  std::size_t offset = kHeadBytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (body.size() - offset < kFilterHeadBytes) {
      return Error(Errc::corrupt, "{} of {} filters", i, count);
    }
    base::Decoder in(body.view().subspan(offset, kFilterHeadBytes));
    const std::uint64_t keys_as_future = in.u64_le();
    const Ticks future_until = in.u64_le();
    offset += kFilterHeadBytes;
    TRY(const std::size_t bytes, sealed_bytes(body.view().subspan(offset)));
    auto bloom = Bloom::decode(body.slice(offset, bytes));
    if (!bloom) return Error(Errc::corrupt, "{}", bloom.error().context());
    offset += bytes;
    const Bloom::Shape& shape = bloom->shape();
    if (shape.bits != options_.bits || shape.probes != options_.probes ||
        shape.capacity != Bloom::kBitsMax) {
      return Error(Errc::corrupt, "a filter of {} bits among those of {}", shape.bits,
                   options_.bits);
    }
    filters_.push_back({*std::move(bloom), keys_as_future, future_until});
  }
  if (offset != body.size()) return Error(Errc::corrupt, std::string("an adaptive FBF goes on"));
  return {};
}

base::Result<void> AdaptiveForgetful::validate() const {
  const bool is_mended = options_.resizing == Resizing::mended;
  // As printed the period grows by a tick at most with every tick, and may become zero.
  const bool period_sound =
      is_mended ? period_ > 0 && period_ <= options_.period : period_ <= options_.period + now_;
  if (now_ > kNowMax || refreshed_ > now_ || !period_sound || filters_.size() < kFiltersMin ||
      filters_.size() > options_.filters_max) {
    return Error(Errc::corrupt, "{} filters at {}, refreshed at {}, period {}", filters_.size(),
                 now_, refreshed_, period_);
  }
  // A filter has the keys of its time as the future one and, at most, those of the next one's.
  std::uint64_t newer = 0;
  for (const Constituent& filter : filters_) {
    const std::uint64_t own = filter.keys_as_future;
    if (own > filter.bloom.size() || filter.bloom.size() - own > newer ||
        filter.future_until > now_) {
      return Error(Errc::corrupt, "{} keys, of which {} until {}, in a filter at {}",
                   filter.bloom.size(), own, filter.future_until, now_);
    }
    newer = own;
  }
  return {};
}

}  // namespace helenus::filters
