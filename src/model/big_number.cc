#include "model/big_number.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include <gmp.h>

#include "base/codec.h"
#include "model/number.h"
#include "model/value.h"

namespace helenus::model {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::int64_t kDecimalDigitsMax = static_cast<std::int64_t>(kDigitsMax);
constexpr std::int64_t kQuotientDigits = 32;
constexpr std::int64_t kQuotientScaleMax = 1000;
constexpr std::int64_t kTranscendentalDigitsMax = 200;

// An integer of any size; owns its memory.
class Whole {
 public:
  Whole() { mpz_init(number_); }
  explicit Whole(std::int64_t value) { mpz_init_set_si(number_, value); }
  explicit Whole(ByteView varint) {
    mpz_init(number_);
    mpz_import(number_, varint.size(), 1, 1, 1, 0, varint.data());
    if (std::to_integer<unsigned>(varint[0]) < 0x80) return;
    Whole above;
    mpz_setbit(above.number_, 8 * varint.size());
    mpz_sub(number_, number_, above.number_);
  }
  Whole(const Whole& other) { mpz_init_set(number_, other.number_); }
  Whole& operator=(const Whole& other) {
    mpz_set(number_, other.number_);
    return *this;
  }
  Whole(Whole&& other) noexcept : Whole() { mpz_swap(number_, other.number_); }
  Whole& operator=(Whole&& other) noexcept {
    mpz_swap(number_, other.number_);
    return *this;
  }
  ~Whole() { mpz_clear(number_); }

  mpz_ptr raw() { return number_; }
  mpz_srcptr raw() const { return number_; }
  int sign() const { return mpz_sgn(number_); }

  // Decimal digits without the sign; 1 for zero.
  std::int64_t digits() const {
    const auto guess = static_cast<std::int64_t>(mpz_sizeinbase(number_, 10));
    if (guess == 1) return 1;
    Whole least = power_of_ten(guess - 1);
    return mpz_cmpabs(number_, least.number_) < 0 ? guess - 1 : guess;
  }

  static Whole power_of_ten(std::int64_t exponent) {
    Whole power;
    mpz_ui_pow_ui(power.number_, 10, static_cast<unsigned long>(exponent));
    return power;
  }

  Result<Bytes> varint() const {
    const std::size_t size = mpz_sizeinbase(number_, 2) / 8 + 1;
    if (size > kVarintBytesMax + 1) return too_long();
    Whole positive(*this);
    if (sign() < 0) {
      mpz_set_ui(positive.number_, 0);
      mpz_setbit(positive.number_, 8 * size);
      mpz_add(positive.number_, positive.number_, number_);
    }
    base::Buffer out(size);
    for (std::size_t i = 0; i < size; ++i) out.push_back(std::byte{0});
    const std::size_t used = (mpz_sizeinbase(positive.number_, 2) + 7) / 8;
    if (positive.sign() != 0) {
      mpz_export(out.mutable_view().data() + (size - used), nullptr, 1, 1, 1, 0, positive.number_);
    }
    const ByteView shortest = shortest_varint(out.view());
    if (shortest.size() > kVarintBytesMax) return too_long();
    return Bytes::copy_of(shortest);
  }

  static Error too_long() {
    return {Errc::invalid_argument, "the result has more than {} digits", kDigitsMax};
  }

 private:
  mpz_t number_;
};

Whole product(const Whole& a, const Whole& b) {
  Whole result;
  mpz_mul(result.raw(), a.raw(), b.raw());
  return result;
}

// Cut towards zero. Requires: b is not zero.
Whole quotient(const Whole& a, const Whole& b) {
  Whole result;
  mpz_tdiv_q(result.raw(), a.raw(), b.raw());
  return result;
}

enum class Rounding : std::uint8_t { half_up, half_even };

// Requires: b is not zero.
Whole rounded_quotient(const Whole& a, const Whole& b, Rounding rounding) {
  Whole result;
  Whole rest;
  mpz_tdiv_qr(result.raw(), rest.raw(), a.raw(), b.raw());
  mpz_mul_2exp(rest.raw(), rest.raw(), 1);
  const int half = mpz_cmpabs(rest.raw(), b.raw());
  const bool away =
      half > 0 || (half == 0 && (rounding == Rounding::half_up || mpz_odd_p(result.raw()) != 0));
  if (!away) return result;
  if (a.sign() * b.sign() > 0) {
    mpz_add_ui(result.raw(), result.raw(), 1);
  } else {
    mpz_sub_ui(result.raw(), result.raw(), 1);
  }
  return result;
}

// unscaled / 10^scale.
struct Decimal {
  Whole unscaled;
  std::int64_t scale = 0;

  Decimal() = default;
  Decimal(Whole number, std::int64_t places) : unscaled(std::move(number)), scale(places) {}
  explicit Decimal(ByteView decimal)
      : unscaled(decimal.subspan(4)),
        scale(static_cast<std::int32_t>(base::load_be<std::uint32_t>(decimal.data()))) {}

  Result<Bytes> bytes() const {
    TRY(const Bytes digits, unscaled.varint());
    if (scale < std::numeric_limits<std::int32_t>::min() ||
        scale > std::numeric_limits<std::int32_t>::max()) {
      return Error(Errc::invalid_argument, "the result has an exponent that no decimal has");
    }
    base::Buffer out;
    base::Encoder(out).u32_be(static_cast<std::uint32_t>(static_cast<std::int32_t>(scale)));
    out.append(digits.view());
    return std::move(out).freeze();
  }

  // The same number with more places. Errors: too many digits.
  Result<void> widen(std::int64_t places) {
    if (places <= scale) return {};
    if (unscaled.sign() != 0) {
      if (places - scale > kDecimalDigitsMax) return Whole::too_long();
      unscaled = product(unscaled, Whole::power_of_ten(places - scale));
    }
    scale = places;
    return {};
  }

  // Without the zeros at its end, as long as the scale is above that.
  void strip(std::int64_t scale_min) {
    if (unscaled.sign() == 0) return;
    while (scale > scale_min && mpz_divisible_ui_p(unscaled.raw(), 10) != 0) {
      mpz_divexact_ui(unscaled.raw(), unscaled.raw(), 10);
      --scale;
    }
  }
};

// With `places` behind its point, rounded.
Result<Decimal> decimal_quotient(const Decimal& a, const Decimal& b, std::int64_t places,
                                 Rounding rounding) {
  if (b.unscaled.sign() == 0) return Error(Errc::invalid_argument, "/ by zero");
  const std::int64_t exponent = places - a.scale + b.scale;
  if (std::abs(exponent) > 2 * kDecimalDigitsMax) {
    // Of a quotient with so many zeros before its first digit nothing is left.
    if (exponent < 0 || a.unscaled.sign() == 0) return Decimal(Whole(), places);
    return Whole::too_long();
  }
  const Whole power = Whole::power_of_ten(std::abs(exponent));
  if (exponent >= 0) {
    return Decimal(rounded_quotient(product(a.unscaled, power), b.unscaled, rounding), places);
  }
  return Decimal(rounded_quotient(a.unscaled, product(b.unscaled, power), rounding), places);
}

Result<Decimal> divide(const Decimal& a, const Decimal& b) {
  const std::int64_t first_digit =
      (a.unscaled.digits() - a.scale) - (b.unscaled.digits() - b.scale);
  const std::int64_t places =
      std::min(std::max({kQuotientDigits - first_digit, a.scale, b.scale, kQuotientDigits}),
               kQuotientScaleMax);
  TRY(Decimal result, decimal_quotient(a, b, places, Rounding::half_up));
  if (result.unscaled.sign() == 0) return Decimal();
  result.strip(std::numeric_limits<std::int32_t>::min());
  return result;
}

Result<Decimal> remainder(Decimal a, Decimal b) {
  if (b.unscaled.sign() == 0) return Error(Errc::invalid_argument, "Division by zero");
  const std::int64_t scale_of_a = a.scale;
  const std::int64_t scale_of_b = b.scale;
  const std::int64_t places = std::max(a.scale, b.scale);
  TRY_VOID(a.widen(places));
  TRY_VOID(b.widen(places));
  Decimal times;
  Decimal result(Whole(), places);
  mpz_tdiv_qr(times.unscaled.raw(), result.unscaled.raw(), a.unscaled.raw(), b.unscaled.raw());
  // It has the places of `a`, unless the multiple of `b` that was taken away has more.
  times.strip(scale_of_a - scale_of_b);
  const std::int64_t wanted =
      times.unscaled.sign() == 0 ? scale_of_a : std::max(scale_of_a, times.scale + scale_of_b);
  if (result.unscaled.sign() == 0) {
    result.scale = wanted;
  } else {
    result.strip(wanted);
  }
  return result;
}

Result<Decimal> calculate(NumberOperation operation, Decimal a, Decimal b) {
  switch (operation) {
    case NumberOperation::multiply:
      return Decimal(product(a.unscaled, b.unscaled), a.scale + b.scale);
    case NumberOperation::divide:
      return divide(a, b);
    case NumberOperation::remainder:
      return remainder(std::move(a), std::move(b));
    default:
      break;
  }
  const std::int64_t places = std::max(a.scale, b.scale);
  TRY_VOID(a.widen(places));
  TRY_VOID(b.widen(places));
  Decimal result(Whole(), places);
  if (operation == NumberOperation::add) {
    mpz_add(result.unscaled.raw(), a.unscaled.raw(), b.unscaled.raw());
  } else {
    mpz_sub(result.unscaled.raw(), a.unscaled.raw(), b.unscaled.raw());
  }
  return result;
}

// ---- Exponentials and logarithms, in fixed point: a number is whole / 2^bits ----

class FixedPoint {
 public:
  explicit FixedPoint(std::int64_t bits) : bits_(static_cast<mp_bitcnt_t>(bits)) {
    ln_two_ = twice_artanh(Whole(1), Whole(3));
  }

  const Whole& ln_two() const { return ln_two_; }
  Whole one() const {
    Whole result;
    mpz_setbit(result.raw(), bits_);
    return result;
  }
  Whole times(const Whole& a, const Whole& b) const {
    Whole result = product(a, b);
    mpz_fdiv_q_2exp(result.raw(), result.raw(), bits_);
    return result;
  }
  // 2 artanh(a / b), which is ln((b + a) / (b - a)). Requires: |a / b| at most 1/3.
  Whole twice_artanh(const Whole& a, const Whole& b) const {
    Whole ratio(a);
    mpz_mul_2exp(ratio.raw(), ratio.raw(), bits_);
    ratio = quotient(ratio, b);
    const Whole square = times(ratio, ratio);
    Whole power(ratio);
    Whole sum(ratio);
    for (unsigned long odd = 3; power.sign() != 0; odd += 2) {
      power = times(power, square);
      if (power.sign() == -1 && mpz_cmpabs_ui(power.raw(), 1) == 0) break;
      Whole term;
      mpz_tdiv_q_ui(term.raw(), power.raw(), odd);
      mpz_add(sum.raw(), sum.raw(), term.raw());
    }
    mpz_mul_2exp(sum.raw(), sum.raw(), 1);
    return sum;
  }
  // Of a positive number.
  Whole ln(Whole number) const {
    // To m * 2^k with 2/3 <= m < 4/3, so that (m - 1) / (m + 1) is within a fifth.
    std::int64_t k = static_cast<std::int64_t>(mpz_sizeinbase(number.raw(), 2)) -
                     static_cast<std::int64_t>(bits_);
    Whole scaled(number);
    shift(scaled, -k);
    Whole limit = one();
    mpz_mul_ui(limit.raw(), limit.raw(), 2);
    mpz_tdiv_q_ui(limit.raw(), limit.raw(), 3);
    if (mpz_cmp(scaled.raw(), limit.raw()) < 0) {
      --k;
      scaled = number;
      shift(scaled, -k);
    }
    Whole above(scaled);
    Whole below(scaled);
    mpz_sub(above.raw(), above.raw(), one().raw());
    mpz_add(below.raw(), below.raw(), one().raw());
    Whole result = twice_artanh(above, below);
    Whole twos(ln_two_);
    mpz_mul_si(twos.raw(), twos.raw(), k);
    mpz_add(result.raw(), result.raw(), twos.raw());
    return result;
  }
  // e^r. Requires: |r| at most ln 2.
  Whole exp(Whole r) const {
    constexpr mp_bitcnt_t kHalvings = 8;
    mpz_fdiv_q_2exp(r.raw(), r.raw(), kHalvings);
    Whole sum = one();
    Whole term = one();
    for (unsigned long n = 1; term.sign() != 0; ++n) {
      term = times(term, r);
      if (term.sign() == -1 && mpz_cmpabs_ui(term.raw(), 1) == 0) break;
      mpz_tdiv_q_ui(term.raw(), term.raw(), n);
      mpz_add(sum.raw(), sum.raw(), term.raw());
    }
    for (mp_bitcnt_t i = 0; i < kHalvings; ++i) sum = times(sum, sum);
    return sum;
  }

 private:
  static void shift(Whole& number, std::int64_t bits) {
    if (bits >= 0) {
      mpz_mul_2exp(number.raw(), number.raw(), static_cast<mp_bitcnt_t>(bits));
    } else {
      mpz_fdiv_q_2exp(number.raw(), number.raw(), static_cast<mp_bitcnt_t>(-bits));
    }
  }

  mp_bitcnt_t bits_;
  Whole ln_two_;
};

// Bits that hold so many decimal digits, with some to spare.
std::int64_t bits_for(std::int64_t digits) {
  return digits * 10 / 3 + 96;
}

// number / 2^bits to so many significant digits.
Decimal from_fixed_point(const Whole& number, std::int64_t bits, std::int64_t digits) {
  if (number.sign() == 0) return {};
  // The places that leave a digit or two too many, which are then rounded away.
  const auto size = static_cast<std::int64_t>(mpz_sizeinbase(number.raw(), 2)) - bits;
  std::int64_t places = digits + 2 - size * 3 / 10;
  Whole scaled(number);
  if (places >= 0) scaled = product(scaled, Whole::power_of_ten(places));
  Whole divisor(1);
  if (bits >= 0) mpz_mul_2exp(divisor.raw(), divisor.raw(), static_cast<mp_bitcnt_t>(bits));
  if (bits < 0) mpz_mul_2exp(scaled.raw(), scaled.raw(), static_cast<mp_bitcnt_t>(-bits));
  if (places < 0) divisor = product(divisor, Whole::power_of_ten(-places));
  scaled = quotient(scaled, divisor);
  const std::int64_t spare = std::max<std::int64_t>(scaled.digits() - digits, 0);
  scaled = rounded_quotient(scaled, Whole::power_of_ten(spare), Rounding::half_even);
  return {std::move(scaled), places - spare};
}

// Requires: |a| is at most some hundred thousand.
Decimal exp_of(const Decimal& a, std::int64_t digits) {
  const std::int64_t bits = bits_for(digits + 8);
  const FixedPoint fixed(bits);
  Whole x(a.unscaled);
  mpz_mul_2exp(x.raw(), x.raw(), static_cast<mp_bitcnt_t>(bits));
  x = a.scale >= 0 ? quotient(x, Whole::power_of_ten(a.scale))
                   : product(x, Whole::power_of_ten(-a.scale));
  Whole twos;
  Whole rest;
  mpz_fdiv_qr(twos.raw(), rest.raw(), x.raw(), fixed.ln_two().raw());
  return from_fixed_point(fixed.exp(std::move(rest)), bits - mpz_get_si(twos.raw()), digits);
}

// Requires: positive, its scale within kDecimalDigitsMax.
Decimal log_of(const Decimal& a, std::int64_t digits, bool decimal) {
  // Near 1 the digits of a logarithm begin late.
  const std::int64_t bits = 2 * bits_for(digits + a.unscaled.digits());
  const FixedPoint fixed(bits);
  // ln(unscaled) - scale ln(10), where the first is taken of a number near 1.
  Whole number(a.unscaled);
  mpz_mul_2exp(number.raw(), number.raw(), static_cast<mp_bitcnt_t>(bits));
  Whole ten(10);
  mpz_mul_2exp(ten.raw(), ten.raw(), static_cast<mp_bitcnt_t>(bits));
  const Whole ln_ten = fixed.ln(std::move(ten));
  Whole result = fixed.ln(std::move(number));
  mpz_submul(result.raw(), ln_ten.raw(), Whole(a.scale).raw());
  if (decimal) {
    mpz_mul_2exp(result.raw(), result.raw(), static_cast<mp_bitcnt_t>(bits));
    result = quotient(result, ln_ten);
  }
  return from_fixed_point(result, bits, digits);
}

Result<Decimal> transcendental(Transcendental function, Decimal a, std::int64_t digits) {
  // Zeros at the end say nothing, and cost.
  a.strip(std::numeric_limits<std::int32_t>::min());
  const std::int64_t magnitude = a.unscaled.digits() - a.scale;
  if (function == Transcendental::exp) {
    if (a.unscaled.sign() == 0) return Decimal(Whole(1), 0);
    if (magnitude > 6) {
      return Error(Errc::invalid_argument, "the exponential of so large a number is no decimal");
    }
    // Below that it is 1 to all digits that are wanted.
    if (-magnitude > digits + kQuotientDigits) return Decimal(Whole(1), 0);
    if (a.scale > kDecimalDigitsMax) return Whole::too_long();
    return exp_of(a, digits);
  }
  const std::int64_t exponent = -a.scale;
  if (mpz_cmp_ui(a.unscaled.raw(), 1) == 0) {
    if (exponent == 0) return Decimal();
    if (function == Transcendental::log10) return Decimal(Whole(exponent), 0);
  }
  return log_of(a, digits, function == Transcendental::log10);
}

}  // namespace

Result<Bytes> calculate_varint(NumberOperation operation, ByteView a, ByteView b) {
  const Whole left(a);
  const Whole right(b);
  if (operation >= NumberOperation::divide && right.sign() == 0) {
    return Error(Errc::invalid_argument, "BigInteger divide by zero");
  }
  Whole result;
  switch (operation) {
    case NumberOperation::add:
      mpz_add(result.raw(), left.raw(), right.raw());
      break;
    case NumberOperation::subtract:
      mpz_sub(result.raw(), left.raw(), right.raw());
      break;
    case NumberOperation::multiply:
      mpz_mul(result.raw(), left.raw(), right.raw());
      break;
    case NumberOperation::divide:
      mpz_tdiv_q(result.raw(), left.raw(), right.raw());
      break;
    case NumberOperation::remainder:
      mpz_tdiv_r(result.raw(), left.raw(), right.raw());
      break;
  }
  return result.varint();
}

Result<Bytes> negate_varint(ByteView a) {
  Whole number(a);
  mpz_neg(number.raw(), number.raw());
  return number.varint();
}

Result<Bytes> calculate_decimal(NumberOperation operation, ByteView a, ByteView b) {
  TRY(const Decimal result, calculate(operation, Decimal(a), Decimal(b)));
  return result.bytes();
}

Result<Bytes> negate_decimal(ByteView a) {
  Decimal number(a);
  mpz_neg(number.unscaled.raw(), number.unscaled.raw());
  return number.bytes();
}

Result<Bytes> round_decimal(ByteView a) {
  Decimal number(a);
  TRY_VOID(number.widen(0));
  TRY(const Decimal result, decimal_quotient(number, Decimal(Whole(1), 0), 0, Rounding::half_up));
  return result.bytes();
}

Result<Bytes> next_mean(ByteView mean, ByteView next, std::uint64_t count) {
  const Decimal before(mean);
  TRY(const Decimal step, calculate(NumberOperation::subtract, Decimal(next), before));
  TRY(Decimal part, decimal_quotient(step, Decimal(Whole(static_cast<std::int64_t>(count)), 0),
                                     step.scale, Rounding::half_even));
  TRY(const Decimal result, calculate(NumberOperation::add, before, std::move(part)));
  return result.bytes();
}

Result<Bytes> calculate_decimal(Transcendental function, ByteView a) {
  Decimal number(a);
  if (function != Transcendental::exp && number.unscaled.sign() <= 0) {
    return Error(Errc::invalid_argument, "{} of number zero or less",
                 function == Transcendental::ln ? "Natural log" : "Log10");
  }
  const std::int64_t digits = number.unscaled.digits();
  if (digits > kTranscendentalDigitsMax) {
    return Error(Errc::invalid_argument, "exponentials and logarithms are of up to {} digits",
                 kTranscendentalDigitsMax);
  }
  TRY(const Decimal result,
      transcendental(function, std::move(number), std::max(digits, kQuotientDigits)));
  return result.bytes();
}

Bytes varint_to_decimal(ByteView varint) {
  base::Buffer out;
  base::Encoder(out).u32_be(0);
  out.append(shortest_varint(varint));
  return std::move(out).freeze();
}

Result<Bytes> decimal_to_varint(ByteView decimal) {
  Decimal number(decimal);
  TRY_VOID(number.widen(0));
  if (number.scale == 0) return number.unscaled.varint();
  if (number.scale > 2 * kDecimalDigitsMax) return Whole().varint();
  return quotient(number.unscaled, Whole::power_of_ten(number.scale)).varint();
}

}  // namespace helenus::model
