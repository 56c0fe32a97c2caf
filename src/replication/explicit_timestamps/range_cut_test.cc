#include "replication/explicit_timestamps/range_cut.h"

#include <string>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::replication {
namespace {

using causality::RowKey;
using causality::Scope;

RowKey key(int number) {
  return base::Bytes::copy_of(std::string(1, static_cast<char>('a' + number)));
}

std::optional<RowKey> random_bound(base::Prng& prng) {
  if (prng.chance(0.2)) return std::nullopt;
  return key(static_cast<int>(prng.below(12)));
}

Scope random_scope(base::Prng& prng) {
  for (;;) {
    Scope scope{.from = random_bound(prng), .to = random_bound(prng)};
    if (!scope.from || !scope.to || *scope.from < *scope.to) return scope;
  }
}

TEST(ScopeCut, LeavesExactlyWhatIsInNoHole) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Prng prng(seed);
    const Scope scope = random_scope(prng);
    std::vector<Scope> holes;
    while (prng.chance(0.7)) holes.push_back(random_scope(prng));
    const std::vector<Scope> left = cut(scope, holes);
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_TRUE(!left[i].from || !left[i].to || *left[i].from < *left[i].to) << seed;
      if (i > 0) EXPECT_TRUE(left[i - 1].to && *left[i - 1].to <= *left[i].from) << seed;
    }
    for (int number = -1; number < 13; ++number) {
      const RowKey row = number < 0 ? RowKey() : key(number);
      const auto holds = [&](const Scope& range) { return range.contains(row); };
      const bool wanted = scope.contains(row) && std::ranges::none_of(holes, holds);
      EXPECT_EQ(std::ranges::count_if(left, holds), wanted ? 1 : 0) << seed;
    }
  }
}

TEST(ScopeCut, AScopeWithoutHolesStaysAsItIs) {
  EXPECT_EQ(cut(Scope{}, {}), std::vector{Scope{}});
  EXPECT_EQ(cut(causality::row_scope(key(1)), {Scope{.from = key(5), .to = {}}}),
            std::vector{causality::row_scope(key(1))});
  EXPECT_TRUE(cut(causality::row_scope(key(1)), {Scope{}}).empty());
}

TEST(ScopeCut, JoinedScopesHoldWhatAnyOfThemHolds) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    base::Prng prng(seed);
    std::vector<Scope> scopes;
    while (prng.chance(0.8)) scopes.push_back(random_scope(prng));
    const std::vector<Scope> apart = joined(scopes);
    for (std::size_t i = 1; i < apart.size(); ++i) {
      EXPECT_TRUE(apart[i - 1].to && apart[i].from && *apart[i - 1].to < *apart[i].from) << seed;
    }
    for (int number = -1; number < 13; ++number) {
      const RowKey row = number < 0 ? RowKey() : key(number);
      const auto holds = [&](const Scope& range) { return range.contains(row); };
      EXPECT_EQ(std::ranges::any_of(apart, holds), std::ranges::any_of(scopes, holds)) << seed;
    }
    const Scope other = random_scope(prng);
    const auto overlaps = [&](const Scope& range) { return range.overlaps(other); };
    EXPECT_EQ(overlaps_any(other, apart), std::ranges::any_of(scopes, overlaps)) << seed;
  }
}

}  // namespace
}  // namespace helenus::replication
