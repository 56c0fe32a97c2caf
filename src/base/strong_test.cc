#include "base/strong.h"

#include <concepts>
#include <cstdint>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>

namespace helenus::base {
namespace {

using Apples = Strong<struct ApplesTag, std::uint32_t>;
using Pears = Strong<struct PearsTag, std::uint32_t>;
using Name = Strong<struct NameTag, std::string>;

static_assert(!std::convertible_to<std::uint32_t, Apples>);
static_assert(!std::convertible_to<Apples, std::uint32_t>);
static_assert(!std::convertible_to<Apples, Pears>);
static_assert(!std::constructible_from<Apples, Pears>);
static_assert(!std::equality_comparable_with<Apples, Pears>);
static_assert(sizeof(Apples) == sizeof(std::uint32_t));
static_assert(Apples{}.value() == 0);
static_assert(Apples{3}.value() == 3);

TEST(Strong, ComparesByValue) {
  EXPECT_EQ(Apples{3}, Apples{3});
  EXPECT_LT(Apples{3}, Apples{4});
  EXPECT_GE(Name{"b"}, Name{"a"});
}

TEST(Strong, HashesAsItsValue) {
  std::unordered_set<Apples> apples{Apples{1}, Apples{2}, Apples{1}};
  EXPECT_EQ(apples.size(), 2u);
  EXPECT_TRUE(apples.contains(Apples{2}));
}

TEST(Strong, FormatsAsItsValueWithItsSpecification) {
  EXPECT_EQ(fmt::format("{} {:04} {}", Apples{7}, Apples{7}, Name{"ada"}), "7 0007 ada");
}

}  // namespace
}  // namespace helenus::base
