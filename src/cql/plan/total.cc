#include "cql/plan/total.h"

#include <cmath>
#include <utility>

#include "cql/plan/numbers.h"
#include "model/big_number.h"
#include "model/value.h"

namespace helenus::cql {

using base::Bytes;
using base::Result;
using model::NumberOperation;
using model::TypeKind;

namespace {

Bytes zero_of(TypeKind kind) {
  const Bytes zero = model::varint_value(0);
  return kind == TypeKind::varint ? zero : model::varint_to_decimal(zero);
}

}  // namespace

void Total::add_floating(double number) {
  simple_sum_ += number;
  wide_ += number;
  const double corrected = number - compensation_;
  const double rounded = sum_ + corrected;
  compensation_ = (rounded - sum_) - corrected;
  sum_ = rounded;
}

Result<void> Total::add(TypeKind kind, const Bytes& number) {
  if (number.empty()) return {};
  if (is_floating(kind)) {
    TRY(const double value, read_floating(kind, number));
    add_floating(value);
  } else if (is_integer(kind)) {
    TRY(const std::int64_t value, read_integer(kind, number));
    integer_ += value;
  } else {
    if (exact_.empty()) exact_ = mean_ = zero_of(kind);
    if (kind == TypeKind::varint) {
      TRY(exact_, model::calculate_varint(NumberOperation::add, exact_, number));
    } else {
      TRY(exact_, model::calculate_decimal(NumberOperation::add, exact_, number));
      TRY(mean_, model::next_mean(mean_, number, count_ + 1));
    }
  }
  ++count_;
  return {};
}

double Total::floating_sum() const {
  const double sum = sum_ + compensation_;
  return std::isnan(sum) && std::isinf(simple_sum_) ? simple_sum_ : sum;
}

Result<Bytes> Total::sum(TypeKind kind) const {
  if (is_floating(kind)) return floating_value(kind, floating_sum());
  if (is_integer(kind)) return integer_value(kind, static_cast<std::int64_t>(integer_));
  return exact_.empty() ? zero_of(kind) : exact_;
}

Result<Bytes> Total::average(TypeKind kind) const {
  if (is_floating(kind)) {
    if (count_ == 0) return floating_value(kind, 0);
    const double sum = floating_sum();
    const bool has_room = std::isfinite(sum) || !std::isfinite(wide_);
    const double mean = has_room ? sum / static_cast<double>(count_)
                                 : static_cast<double>(wide_ / static_cast<long double>(count_));
    return floating_value(kind, mean);
  }
  if (is_integer(kind)) {
    const __int128 mean = count_ == 0 ? 0 : integer_ / static_cast<__int128>(count_);
    return integer_value(kind, static_cast<std::int64_t>(mean));
  }
  if (exact_.empty()) return zero_of(kind);
  if (kind == TypeKind::decimal) return mean_;
  return model::calculate_varint(NumberOperation::divide, exact_,
                                 model::varint_value(static_cast<std::int64_t>(count_)));
}

}  // namespace helenus::cql
