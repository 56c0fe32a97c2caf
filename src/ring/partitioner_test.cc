// Positions: their order is the ring's, and their text is what drivers read.
#include "ring/partitioner.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "ring/murmur3.h"

namespace helenus::ring {
namespace {

constexpr Partitioner kPartitioners[] = {Partitioner::murmur3, Partitioner::ordered};

RC_GTEST_PROP(Position, TokensLieInTheOrderOfTheirNumbers, (std::int64_t a, std::int64_t b)) {
  const auto first = Position::of_token(model::Token(a));
  const auto second = Position::of_token(model::Token(b));
  RC_ASSERT((first <=> second) == (a <=> b));
  RC_ASSERT((first.token() == model::Token(a)));
}

RC_GTEST_PROP(Position, KeysLieInTheOrderOfTheirBytes, (std::string a, std::string b)) {
  const auto first = position_of(Partitioner::ordered, base::as_bytes(a));
  const auto second = position_of(Partitioner::ordered, base::as_bytes(b));
  RC_ASSERT((first <=> second) == base::compare(base::as_bytes(a), base::as_bytes(b)));
  RC_ASSERT((base::as_text(first.bytes()) == a));
}

TEST(Position, OfAKeyIsItsMurmur3TokenOrTheKey) {
  const std::string key = "\xe2\x82\xac";
  const Position hashed = position_of(Partitioner::murmur3, base::as_bytes(key));
  EXPECT_EQ(hashed.token(), token_of(base::as_bytes(key)));
  EXPECT_EQ(to_text(Partitioner::murmur3, hashed), "8619152265340498936");
  const Position itself = position_of(Partitioner::ordered, base::as_bytes(key));
  EXPECT_EQ(to_text(Partitioner::ordered, itself), "e282ac");
}

TEST(Partitioner, NamesAreThoseOfCassandrasClasses) {
  EXPECT_EQ(parse_partitioner("Murmur3Partitioner"), Partitioner::murmur3);
  EXPECT_EQ(parse_partitioner("ByteOrderedPartitioner"), Partitioner::ordered);
  for (const Partitioner partitioner : kPartitioners) {
    EXPECT_EQ(parse_partitioner(class_name_of(partitioner)), partitioner);
  }
  for (const std::string_view name : {"", "Partitioner", "org.apache.cassandra.dht.", "murmur3"}) {
    EXPECT_TRUE(parse_partitioner(name).failed_with(base::Errc::invalid_argument)) << name;
  }
}

TEST(Tokens, SpreadEvenlyEndWithTheGreatest) {
  EXPECT_EQ(evenly_spread_tokens(1), std::vector{Position::of_token(model::kTokenMax)});
  for (const std::size_t count : {std::size_t{2}, std::size_t{3}, std::size_t{256}, kTokensMax}) {
    const auto tokens = evenly_spread_tokens(count);
    ASSERT_EQ(tokens.size(), count);
    EXPECT_EQ(tokens.back().token(), model::kTokenMax);
    const auto distance = [&](std::size_t index) {
      const auto before = static_cast<std::uint64_t>(
          index == 0 ? tokens.back().token().value() : tokens[index - 1].token().value());
      return static_cast<std::uint64_t>(tokens[index].token().value()) - before;
    };
    std::uint64_t least = distance(0);
    std::uint64_t greatest = distance(0);
    for (std::size_t index = 1; index < count; ++index) {
      least = std::min(least, distance(index));
      greatest = std::max(greatest, distance(index));
    }
    EXPECT_LE(greatest - least, 1U) << count << " tokens";
  }
}

}  // namespace
}  // namespace helenus::ring
