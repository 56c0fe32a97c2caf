#include "filters/adaptive_forgetful.h"

#include <algorithm>
#include <cmath>

#include "filters/forgetful_analysis.h"

namespace helenus::filters {

using base::Errc;
using base::Error;

namespace {

// Where resizing begins, as parts of the target.
constexpr double kHigh = 0.9;
constexpr double kLow = 0.1;

}  // namespace

base::Result<AdaptiveForgetful> AdaptiveForgetful::with_options(const Options& options) {
  const bool sound = options.filters >= kFiltersMin && options.filters <= options.filters_max &&
                     options.filters_max <= kFiltersMax && options.period > 0 &&
                     options.period <= Ticks{1} << 32 && options.rate_max > 0 &&
                     options.rate_max < 1;
  if (!sound) {
    return Error(Errc::invalid_argument, "{} filters of at most {}, period {}, rate {}",
                 options.filters, options.filters_max, options.period, options.rate_max);
  }
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
  filters_.front().future_until = now_;
  filters_.push_front(std::move(future));
  refreshed_ = now_;
  if (options_.resizing != Resizing::mended) {
    filters_.pop_back();
    return {};
  }
  // The keys that only the oldest filter has came before it ceased to be the future one.
  while (filters_.size() > kFiltersMin && now_ - filters_.back().future_until >= window()) {
    filters_.pop_back();
  }
  return {};
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

Admission AdaptiveForgetful::insert_if_absent(KeyHash key) {
  if (contains(key)) return Admission::present;
  const bool sheds = options_.resizing == Resizing::mended && rate_ahead() >= options_.rate_max;
  if (sheds) return Admission::shed;
  for (std::size_t i = 0; i < 2; ++i) ASSERT(filters_[i].bloom.insert(key));
  ++filters_.front().keys_as_future;
  return Admission::inserted;
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

}  // namespace helenus::filters
