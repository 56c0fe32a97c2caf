#include "filters/lane_table.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace helenus::filters {
namespace {

// The same tables, one beside the other.
using Plain = std::vector<std::vector<bool>>;

struct Pair {
  LaneTable table;
  Plain plain;

  static Pair filled(std::uint64_t positions, unsigned lanes) {
    Pair pair{*LaneTable::zeroed(positions, lanes),
              Plain(lanes, std::vector<bool>(positions, false))};
    base::Prng prng(positions * lanes);
    for (std::uint64_t i = 0; i < positions; ++i) {
      const KeyHash key(prng.next());
      const Lanes into = prng.next() & prng.next() & pair.table.all();
      unsigned added = 0;
      MixedProbes walk(key);
      for (unsigned probe = 0; probe < 2; ++probe) {
        const std::uint64_t position = walk.next(positions);
        for (unsigned lane = 0; lane < lanes; ++lane) {
          if (((into >> lane) & 1) == 0 || pair.plain[lane][position]) continue;
          pair.plain[lane][position] = true;
          ++added;
        }
      }
      EXPECT_EQ(pair.table.add(key, 2, into), added);
    }
    return pair;
  }

  void expect_equal() const {
    const auto counts = table.count();
    std::vector<std::uint64_t> expected(table.lanes(), 0);
    for (std::uint64_t position = 0; position < table.positions(); ++position) {
      Lanes set = 0;
      for (unsigned lane = 0; lane < table.lanes(); ++lane) {
        if (!plain[lane][position]) continue;
        set |= Lanes{1} << lane;
        ++expected[lane];
      }
      ASSERT_EQ(table.at(position), set) << position << " of " << table.positions();
    }
    for (unsigned lane = 0; lane < table.lanes(); ++lane) EXPECT_EQ(counts[lane], expected[lane]);
    EXPECT_TRUE(table.ends_clean());
  }
};

TEST(LaneTable, HoldsAsManyTablesAsItHasLanes) {
  for (const unsigned lanes : {1U, 2U, 3U, 7U, 8U, 9U, 16U, 31U, 55U, 56U}) {
    for (const std::uint64_t positions : {1UL, 2UL, 63UL, 64UL, 65UL, 1000UL}) {
      Pair::filled(positions, lanes).expect_equal();
    }
  }
}

TEST(LaneTable, ClearsTheLanesItIsToldAndNoOthers) {
  for (const unsigned lanes : {1U, 3U, 16U, 56U}) {
    Pair pair = Pair::filled(200, lanes);
    const Lanes cleared = 0x5555'5555'5555'5555 & pair.table.all();
    pair.table.clear(cleared, 1, 2);
    for (unsigned lane = 0; lane < lanes; lane += 2) {
      for (std::uint64_t position = 64; position < 192; ++position) {
        pair.plain[lane][position] = false;
      }
    }
    pair.expect_equal();
    EXPECT_DEATH(pair.table.clear(cleared, 3, 2), "assertion failed");
  }
}

TEST(LaneTable, ACopyKeepsOnlyTheLanesItIsTold) {
  Pair pair = Pair::filled(130, 5);
  base::Buffer out;
  pair.table.append_to(out, 0b00110);
  const auto copy = LaneTable::viewing(std::move(out).freeze(), 130, 5);
  for (std::uint64_t position = 0; position < 130; ++position) {
    EXPECT_EQ(copy.at(position), pair.table.at(position) & 0b00110);
  }
}

TEST(LaneTable, SeesBitsAfterTheLastPosition) {
  for (const unsigned lanes : {1U, 3U, 8U}) {
    const auto table = *LaneTable::zeroed(70, lanes);
    for (std::uint64_t bit = 70UL * lanes; bit < 8 * table.memory_bytes(); ++bit) {
      base::Buffer bytes;
      bytes.append(table.view());
      bytes.data()[bit / 8] |= std::byte{1} << (bit % 8);
      EXPECT_FALSE(LaneTable::viewing(std::move(bytes).freeze(), 70, lanes).ends_clean()) << bit;
    }
  }
}

TEST(LaneTable, LooksAndAddsInOnePass) {
  auto table = *LaneTable::zeroed(10'000, 5);
  const KeyHash key("key");
  const auto never = [](Lanes) { return false; };
  EXPECT_EQ(table.add_unless(key, 6, table.all(), 0b00100, never).bits, 6U);
  EXPECT_EQ(table.holders(key, 6, table.all()), 0b00100U);
  EXPECT_EQ(table.holders(key, 6, 0b11011), 0U);
  Lanes told = 0;
  const auto added = table.add_unless(key, 6, table.all(), 0b00001, [&](Lanes holders) {
    told = holders;
    return true;
  });
  EXPECT_TRUE(added.present);
  EXPECT_EQ(told, 0b00100U);
  EXPECT_EQ(table.holders(key, 6, table.all()), 0b00100U) << "it was present and is added anyway";
}

}  // namespace
}  // namespace helenus::filters
