#include "base/result.h"

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace helenus::base {
namespace {

constexpr Errc kAllCodes[] = {
    Errc::cancelled,   Errc::timeout,         Errc::overloaded,        Errc::unavailable,
    Errc::closed,      Errc::connection_lost, Errc::refused,           Errc::address_in_use,
    Errc::not_found,   Errc::already_exists,  Errc::permission_denied, Errc::invalid_argument,
    Errc::unsupported, Errc::corrupt,         Errc::no_space,          Errc::io_error,
    Errc::locked,      Errc::internal,
};

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error(Errc::invalid_argument, "{} is odd", number);
  return number / 2;
}

Result<int> quarter_of(int number) {
  TRY(const int half, half_of(number));
  TRY(const int quarter, half_of(half));
  return quarter;
}

Result<void> must_be_even(int number) {
  TRY_VOID(half_of(number));
  return {};
}

Result<std::string> text_of_quarter(int number) {
  TRY_VOID(must_be_even(number));
  TRY(auto quarter, quarter_of(number));
  return std::to_string(quarter);
}

Result<std::unique_ptr<int>> owned(int number) {
  TRY(auto quarter, quarter_of(number));
  return std::make_unique<int>(quarter);
}

Result<int> unwrapped(int number) {
  TRY(const std::unique_ptr<int> owner, owned(number));
  return *owner;
}

TEST(Error, NamesItsCodeAndItsContext) {
  EXPECT_EQ(Error(Errc::timeout).to_string(), "timeout");
  EXPECT_EQ(Error(Errc::timeout).context(), "");
  const Error error(Errc::timeout, "waited {} s for {}", 3, "10.0.0.2");
  EXPECT_EQ(error.code(), Errc::timeout);
  EXPECT_EQ(error.context(), "waited 3 s for 10.0.0.2");
  EXPECT_EQ(error.to_string(), "timeout: waited 3 s for 10.0.0.2");
  EXPECT_EQ(fmt::format("{} / {}", error, Errc::io_error),
            "timeout: waited 3 s for 10.0.0.2 / I/O error");
}

TEST(Error, AContextWithoutArgumentsIsNotAFormat) {
  EXPECT_EQ(Error(Errc::corrupt, "unexpected {}").context(), "unexpected {}");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (const Errc code : kAllCodes) {
    for (const std::string_view other : names) EXPECT_NE(name_of(code), other);
    names.push_back(name_of(code));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Errc::internal) + 1);
}

TEST(Error, CallersPutWhatTheyWereDoingInFront) {
  EXPECT_EQ(Error(Errc::not_found).within("opening data/x").to_string(),
            "not found: opening data/x");
  EXPECT_EQ(Error(Errc::io_error, "EIO").within("reading").within("replaying").to_string(),
            "I/O error: replaying: reading: EIO");
}

TEST(Error, CopiesAreEqualAndIndependent) {
  const Error original(Errc::locked, "by {}", "another");
  Error copy = original;
  EXPECT_EQ(copy, original);
  copy = std::move(copy).within("starting");
  EXPECT_EQ(original.context(), "by another");
  EXPECT_NE(copy, original);
  copy = original;
  EXPECT_EQ(copy, original);
  EXPECT_NE(Error(Errc::locked), Error(Errc::closed));
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(*half_of(8), 4);
  EXPECT_FALSE(half_of(8).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(half_of(7).failed_with(Errc::invalid_argument));
  EXPECT_FALSE(half_of(7).failed_with(Errc::timeout));
}

TEST(Result, TryHandsOnTheFirstError) {
  EXPECT_EQ(*quarter_of(8), 2);
  EXPECT_EQ(quarter_of(7).error().context(), "7 is odd");
  EXPECT_EQ(quarter_of(6).error().context(), "3 is odd");
}

TEST(Result, TryConvertsBetweenResultTypes) {
  EXPECT_EQ(*text_of_quarter(8), "2");
  EXPECT_EQ(text_of_quarter(7).error().context(), "7 is odd");
  EXPECT_EQ(text_of_quarter(6).error().context(), "3 is odd");
  EXPECT_TRUE(must_be_even(2));
  EXPECT_FALSE(must_be_even(3));
}

TEST(Result, TryMovesWhatCannotBeCopied) {
  EXPECT_EQ(*unwrapped(8), 2);
  EXPECT_TRUE(unwrapped(6).failed_with(Errc::invalid_argument));
}

TEST(Result, TryWorksInALambdaAndInALoop) {
  const auto sum_of_halves = [](const std::vector<int>& numbers) -> Result<int> {
    int sum = 0;
    for (const int number : numbers) {
      TRY(const int half, half_of(number));
      sum += half;
    }
    return sum;
  };
  EXPECT_EQ(*sum_of_halves({2, 4, 6}), 6);
  EXPECT_EQ(sum_of_halves({2, 5, 7}).error().context(), "5 is odd");
}

TEST(Result, ComparesByValueOrByError) {
  EXPECT_EQ(half_of(8), half_of(8));
  EXPECT_NE(half_of(8), half_of(6));
  EXPECT_NE(half_of(8), half_of(7));
  EXPECT_EQ(half_of(7), half_of(7));
  EXPECT_NE(half_of(7), half_of(5));
  EXPECT_EQ(must_be_even(2), must_be_even(4));
  EXPECT_NE(must_be_even(2), must_be_even(3));
  EXPECT_EQ(half_of(8), 4);
}

TEST(Result, ABooleanOneIsTrueWhenItHoldsFalse) {
  const Result<bool> holds_false(false);
  EXPECT_TRUE(holds_false.has_value());
  EXPECT_FALSE(*holds_false);
}

TEST(Result, CostsOneWordMoreThanTheErrorItHolds) {
  static_assert(sizeof(Result<void>) == 24);
  static_assert(sizeof(Result<void*>) == 24);
  static_assert(std::is_nothrow_move_constructible_v<Result<std::string>>);
  static_assert(!std::is_convertible_v<Errc, Result<int>>, "an error is spelled out");
}

}  // namespace
}  // namespace helenus::base
