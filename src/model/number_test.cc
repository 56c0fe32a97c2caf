#include "model/number.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/generators_test_support.h"

namespace helenus::model {
namespace {

using base::Bytes;

std::string hex(const Bytes& bytes) {
  return base::to_hex(bytes);
}

TEST(Varint, KnownBytes) {
  EXPECT_EQ(hex(*varint_from_text("0")), "00");
  EXPECT_EQ(hex(*varint_from_text("-0")), "00");
  EXPECT_EQ(hex(*varint_from_text("127")), "7f");
  EXPECT_EQ(hex(*varint_from_text("128")), "0080");
  EXPECT_EQ(hex(*varint_from_text("-128")), "80");
  EXPECT_EQ(hex(*varint_from_text("-129")), "ff7f");
  EXPECT_EQ(hex(*varint_from_text("18446744073709551616")), "010000000000000000");
  EXPECT_EQ(hex(*varint_from_text("-18446744073709551616")), "ff0000000000000000");
  EXPECT_EQ(hex(*varint_from_text("+1")), "01");
  for (const std::string_view bad : {"", "-", "+-1", "1.0", "1e3", "0x1", " 1"}) {
    EXPECT_FALSE(varint_from_text(bad)) << bad;
  }
}

TEST(Varint, NumbersHaveALimit) {
  EXPECT_TRUE(varint_from_text(std::string(kDigitsMax - 1, '9')));
  EXPECT_FALSE(varint_from_text(std::string(kDigitsMax, '9')));  // a bit too much
  EXPECT_FALSE(varint_from_text(std::string(kDigitsMax + 1, '1')));
}

RC_GTEST_PROP(Varint, AgreesWithMachineIntegers, (std::int64_t number)) {
  RC_ASSERT(*varint_from_text(std::to_string(number)) == varint_value(number));
  RC_ASSERT(varint_to_text(varint_value(number)) == std::to_string(number));
}

RC_GTEST_PROP(Varint, TextsReadBack, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 40);
  const Bytes number = testing::draw_bytes(size, testing::any_bytes());
  RC_ASSERT(base::equal(*varint_from_text(varint_to_text(number)), shortest_varint(number)));
}

TEST(Varint, TheLargestReadsBack) {
  base::Buffer out;
  out.push_back(std::byte{0x7f});
  for (std::size_t index = 1; index < kVarintBytesMax; ++index) out.push_back(std::byte{0xff});
  const Bytes number = std::move(out).freeze();
  EXPECT_EQ(*varint_from_text(varint_to_text(number)), number);
}

RC_GTEST_PROP(Varint, OrderIsThatOfTheNumbers, ()) {
  const auto a = testing::draw_integer<std::int64_t>();
  const auto b = testing::draw_integer<std::int64_t>();
  RC_ASSERT(compare_varints(varint_value(a), varint_value(b)) == (a <=> b));
  RC_ASSERT(compare_varints(bigint_value(a), varint_value(a)) == std::strong_ordering::equal);
}

TEST(Decimal, KnownBytes) {
  EXPECT_EQ(hex(*decimal_from_text("1.5")), "000000010f");
  EXPECT_EQ(hex(*decimal_from_text("-1.50")), "00000002ff6a");
  EXPECT_EQ(hex(*decimal_from_text("1e3")), "fffffffd01");
  EXPECT_EQ(hex(*decimal_from_text(".5")), "0000000105");
  EXPECT_EQ(hex(*decimal_from_text("5.")), "0000000005");
  EXPECT_EQ(hex(*decimal_from_text("1E-7")), "0000000701");
  for (const std::string_view bad :
       {"", ".", "-", "e5", "1e", "1e+-5", "1.2.3", "NaN", "1e99999999999"}) {
    EXPECT_FALSE(decimal_from_text(bad)) << bad;
  }
}

TEST(Decimal, PrintsPlainlyUnlessThatWouldTakeVeryManyZeros) {
  const auto again = [](std::string_view text) {
    return decimal_to_text(*decimal_from_text(text));
  };
  EXPECT_EQ(again("12.50"), "12.50");
  EXPECT_EQ(again("-0.05"), "-0.05");
  EXPECT_EQ(again("0.00"), "0.00");
  EXPECT_EQ(again("1e3"), "1000");
  EXPECT_EQ(again("1e-7"), "0.0000001");
  EXPECT_EQ(again("125e100000"), "1.25E+100002");
  EXPECT_EQ(again("-125e-100000"), "-1.25E-99998");
}

RC_GTEST_PROP(Decimal, TextsReadBackAsEqualNumbers, ()) {
  const Bytes decimal = testing::draw_decimal();
  const auto again = decimal_from_text(decimal_to_text(decimal));
  RC_ASSERT(again.has_value());
  RC_ASSERT(read_decimal(*again) == read_decimal(decimal));
}

RC_GTEST_PROP(Decimal, OrderIsThatOfTheNumbers, ()) {
  const auto a = *rc::gen::inRange(-2000, 2000);
  const auto b = *rc::gen::inRange(-2000, 2000);
  const auto extra = *rc::gen::inRange(0, 5);
  const auto scaled = [](int number, int zeros) {
    return read_decimal(*decimal_from_text(std::to_string(number) +
                                           std::string(static_cast<std::size_t>(zeros), '0') +
                                           "e-" + std::to_string(zeros)));
  };
  RC_ASSERT(compare(scaled(a, extra), scaled(b, 0)) == std::weak_ordering(a <=> b));
}

RC_GTEST_PROP(Decimal, WorthMakesADecimalOfThatWorth, ()) {
  const DecimalValue value = read_decimal(testing::draw_decimal());
  const auto made = make_decimal(value);
  RC_ASSERT(made.has_value());
  RC_ASSERT(read_decimal(*made) == value);
}

TEST(Float, PrintsAsJavaDoes) {
  EXPECT_EQ(float_to_text(1.0), "1.0");
  EXPECT_EQ(float_to_text(0.0), "0.0");
  EXPECT_EQ(float_to_text(-0.0), "-0.0");
  EXPECT_EQ(float_to_text(0.1), "0.1");
  EXPECT_EQ(float_to_text(0.001), "0.001");
  EXPECT_EQ(float_to_text(0.0001), "1.0E-4");
  EXPECT_EQ(float_to_text(1234567.0), "1234567.0");
  EXPECT_EQ(float_to_text(12345678.0), "1.2345678E7");
  EXPECT_EQ(float_to_text(-1.5e300), "-1.5E300");
  EXPECT_EQ(float_to_text(0.1F), "0.1");
  EXPECT_EQ(float_to_text(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(float_to_text(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(Float, TextsOutOfRangeAreInfiniteOrZero) {
  EXPECT_EQ(double_from_text("1e400"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(double_from_text("-1e400"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(double_from_text("1e-400"), 0.0);
  EXPECT_EQ(float_from_text("1e39"), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(*double_from_text("NaN")));
  for (const std::string_view bad : {"", "x", "1.5f", "inf", "nan", "0x1p3", "1e", "--1"}) {
    EXPECT_FALSE(double_from_text(bad)) << bad;
  }
}

RC_GTEST_PROP(Float, ShortestTextsReadBack, (double number)) {
  RC_ASSERT(*double_from_text(float_to_text(number)) == number);
  const auto narrow = static_cast<float>(number);
  RC_ASSERT(*float_from_text(float_to_text(narrow)) == narrow);
}

}  // namespace
}  // namespace helenus::model
