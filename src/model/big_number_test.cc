#include "model/big_number.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/number.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::Result;
using Operation = NumberOperation;

std::string varint(Operation operation, std::string_view a, std::string_view b) {
  const auto result = calculate_varint(operation, *varint_from_text(a), *varint_from_text(b));
  return result ? varint_to_text(*result) : std::string(result.error().context());
}

std::string shown(const Result<Bytes>& result) {
  return result ? decimal_to_text(*result) : std::string(result.error().context());
}

std::string decimal(Operation operation, std::string_view a, std::string_view b) {
  return shown(calculate_decimal(operation, *decimal_from_text(a), *decimal_from_text(b)));
}

std::string decimal(Transcendental function, std::string_view a) {
  return shown(calculate_decimal(function, *decimal_from_text(a)));
}

TEST(BigNumber, VarintsOfAnySizeAreCalculatedWith) {
  EXPECT_EQ(varint(Operation::add, "18446744073709551615", "1"), "18446744073709551616");
  EXPECT_EQ(varint(Operation::add, "-129", "1"), "-128");
  EXPECT_EQ(varint(Operation::subtract, "-18446744073709551616", "1"), "-18446744073709551617");
  EXPECT_EQ(varint(Operation::multiply, "-123456789012345678901234567890", "1000"),
            "-123456789012345678901234567890000");
  EXPECT_EQ(varint(Operation::divide, "-7", "2"), "-3");
  EXPECT_EQ(varint(Operation::remainder, "-7", "2"), "-1");
  EXPECT_EQ(varint(Operation::divide, "7", "0"), "BigInteger divide by zero");
  const std::string large(9000, '9');
  EXPECT_EQ(varint(Operation::multiply, large, large), "the result has more than 9864 digits");
}

// What Java's BigDecimal gives.
TEST(BigNumber, DecimalsKeepTheScalesOfJava) {
  EXPECT_EQ(decimal(Operation::add, "1.10", "2.2"), "3.30");
  EXPECT_EQ(decimal(Operation::subtract, "1.10", "1.1"), "0.00");
  EXPECT_EQ(decimal(Operation::multiply, "1.50", "-2.0"), "-3.000");
  EXPECT_EQ(decimal(Operation::divide, "1", "3"), "0.33333333333333333333333333333333");
  EXPECT_EQ(decimal(Operation::divide, "2", "-3"), "-0.66666666666666666666666666666667");
  EXPECT_EQ(decimal(Operation::divide, "10", "4"), "2.5");
  EXPECT_EQ(decimal(Operation::divide, "0", "3.5"), "0");
  EXPECT_EQ(decimal(Operation::divide, "1", "0.0"), "/ by zero");
  EXPECT_EQ(decimal(Operation::remainder, "7.5", "2"), "1.5");
  EXPECT_EQ(decimal(Operation::remainder, "-7", "2.5"), "-2.0");
  EXPECT_EQ(decimal(Operation::remainder, "9", "1.5"), "0.0");
  EXPECT_EQ(decimal(Operation::remainder, "1", "0"), "Division by zero");
  EXPECT_EQ(decimal(Operation::add, "1e100000", "1"), "the result has more than 9864 digits");
}

TEST(BigNumber, DecimalsAreRoundedAndNegated) {
  EXPECT_EQ(shown(round_decimal(*decimal_from_text("2.5"))), "3");
  EXPECT_EQ(shown(round_decimal(*decimal_from_text("-2.5"))), "-3");
  EXPECT_EQ(shown(round_decimal(*decimal_from_text("2.49"))), "2");
  EXPECT_EQ(shown(round_decimal(*decimal_from_text("1e-100000"))), "0");
  EXPECT_EQ(shown(negate_decimal(*decimal_from_text("1.50"))), "-1.50");
  EXPECT_EQ(varint_to_text(*negate_varint(*varint_from_text("-128"))), "128");
  EXPECT_EQ(varint_to_text(*decimal_to_varint(*decimal_from_text("-12.99"))), "-12");
  EXPECT_EQ(varint_to_text(*decimal_to_varint(*decimal_from_text("1e3"))), "1000");
}

TEST(BigNumber, AMeanIsRoundedHalfToEven) {
  Bytes mean = *decimal_from_text("0");
  std::uint64_t count = 0;
  for (const std::string_view next : {"1", "2", "2.50"}) {
    mean = *next_mean(mean, *decimal_from_text(next), ++count);
  }
  EXPECT_EQ(decimal_to_text(mean), "1.50");
}

// All digits are known from tables.
TEST(BigNumber, ExponentialsAndLogarithmsHaveThirtyTwoDigits) {
  EXPECT_EQ(decimal(Transcendental::exp, "0"), "1");
  EXPECT_EQ(decimal(Transcendental::exp, "1"), "2.7182818284590452353602874713527");
  EXPECT_EQ(decimal(Transcendental::exp, "-1"), "0.36787944117144232159552377016146");
  EXPECT_EQ(decimal(Transcendental::exp, "1e-80"), "1");
  EXPECT_EQ(decimal(Transcendental::ln, "1"), "0");
  EXPECT_EQ(decimal(Transcendental::ln, "2"), "0.69314718055994530941723212145818");
  EXPECT_EQ(decimal(Transcendental::ln, "10"), "2.3025850929940456840179914546844");
  EXPECT_EQ(decimal(Transcendental::ln, "0.5"), "-0.69314718055994530941723212145818");
  EXPECT_EQ(decimal(Transcendental::log10, "2"), "0.30102999566398119521373889472449");
  EXPECT_EQ(decimal(Transcendental::log10, "1000"), "3");
  EXPECT_EQ(decimal(Transcendental::log10, "0.001"), "-3");
  EXPECT_EQ(decimal(Transcendental::ln, "0"), "Natural log of number zero or less");
  EXPECT_EQ(decimal(Transcendental::log10, "-1"), "Log10 of number zero or less");
  EXPECT_EQ(decimal(Transcendental::exp, "1e10"),
            "the exponential of so large a number is no decimal");
}

RC_GTEST_PROP(BigNumber, QuotientAndRemainderMakeTheNumberAgain, (std::int64_t a, std::int64_t b)) {
  RC_PRE(b != 0);
  const Bytes left = varint_value(a);
  const Bytes right = varint_value(b);
  const Bytes quotient = *calculate_varint(Operation::divide, left, right);
  const Bytes rest = *calculate_varint(Operation::remainder, left, right);
  const Bytes times = *calculate_varint(Operation::multiply, quotient, right);
  RC_ASSERT(*calculate_varint(Operation::add, times, rest) == left);
}

}  // namespace
}  // namespace helenus::model
