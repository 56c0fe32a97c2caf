#include "causality/codec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "causality/generators.h"

namespace helenus::causality {
namespace {

using testing::any_cell;
using testing::any_clock;
using testing::any_dot;
using testing::delta_of;

base::Bytes from_hex(std::string_view hex) {
  base::Buffer bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(std::byte(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return std::move(bytes).freeze();
}
std::string hex(const base::Bytes& bytes) {
  return base::to_hex(bytes.view());
}

// The worked bytes of docs/formats/causality.md; they decode for ever.
constexpr std::string_view kGoldenClock =
    "01"
    "02"
    "010103"
    "06"
    "0201"
    "04"
    "0100"
    "0100"
    "01"
    "030103";
constexpr std::string_view kGoldenDelta =
    "01"
    "00"
    "010108"
    "0a00000000000000"
    "00"
    "02"
    "01"
    "010103"
    "06"
    "00"
    "01"
    "00"
    "016b"
    "00"
    "0176"
    "00";

Clock golden_clock() {
  Clock clock;
  clock.add(DotRange{actor_of(1, 1), 1, 7});
  clock.add(Dot{actor_of(2, 1), 3});
  clock.add(Dot{actor_of(2, 1), 6});
  clock.close({NodeNumber{3}, Incarnation{1}, Incarnation{4}});
  return clock;
}

TEST(CausalityFormat, GoldenClock) {
  EXPECT_EQ(hex(encoded(golden_clock())), kGoldenClock);
  EXPECT_EQ(decode_clock(from_hex(kGoldenClock)).value(), golden_clock());
}

TEST(CausalityFormat, GoldenDelta) {
  Delta delta;
  delta.dot = {actor_of(1, 1), 8};
  delta.timestamp = Timestamp{10};
  delta.context.epoch = Epoch{2};
  delta.context.dots.add(DotRange{actor_of(1, 1), 1, 7});
  CellChange change;
  change.row = base::Bytes::copy_of("k");
  change.value = base::Bytes::copy_of("v");
  delta.cells.push_back(change);
  EXPECT_EQ(hex(encoded(delta)), kGoldenDelta);
  EXPECT_EQ(decode_delta(from_hex(kGoldenDelta)).value(), delta);
}

TEST(CausalityFormat, DeletesOfManyCellsOfARowComeBack) {
  Delta delta;
  delta.dot = {actor_of(1, 1), 8};
  for (std::uint32_t column = 0; column < 100; ++column) {
    CellChange& change = delta.cells.emplace_back();
    change.column = ColumnId{column};
    change.kind = VersionKind::deletion;
  }
  EXPECT_EQ(decode_delta(encoded(delta)).value(), delta);
}

TEST(CausalityFormat, ALaterVersionIsUnsupported) {
  EXPECT_TRUE(decode_clock(from_hex("020000")).failed_with(base::Errc::unsupported));
}

TEST(CausalityFormat, RefusesAClockThatNoEncoderWrites) {
  const auto corrupt = [](std::string_view bytes) {
    return decode_clock(from_hex(bytes)).failed_with(base::Errc::corrupt);
  };
  EXPECT_TRUE(corrupt(""));
  EXPECT_TRUE(corrupt("0100")) << "ends early";
  EXPECT_TRUE(corrupt("01000000")) << "a byte left over";
  EXPECT_TRUE(
      corrupt("0102"
              "0201"
              "0306"
              "0101"
              "0306"
              "00"))
      << "actors out of order";
  EXPECT_TRUE(
      corrupt("0101"
              "0101"
              "00"
              "06"
              "00"))
      << "an actor without ranges";
  EXPECT_TRUE(
      corrupt("0101"
              "0101"
              "03"
              "ffffffffffffffffff01"
              "00"))
      << "beyond the counters";
  EXPECT_TRUE(
      corrupt("0101"
              "0101"
              "03"
              "fdffffffffffffffff01"
              "00"))
      << "closed as a range";
  EXPECT_TRUE(
      corrupt("0101"
              "0101"
              "0306"
              "01"
              "010100"))
      << "closed and not";
  EXPECT_TRUE(
      corrupt("0100"
              "02"
              "010100"
              "010200"))
      << "closed marks that should have melted";
  EXPECT_TRUE(corrupt("01ffffffff0f")) << "more actors than bytes";
  EXPECT_TRUE(
      corrupt("0101"
              "0101"
              "08"
              "0000"
              "0000"
              "00"))
      << "more ranges than bytes";
}

TEST(CausalityFormat, RefusesADeltaThatNoEncoderWrites) {
  EXPECT_TRUE(decode_delta(from_hex("01"
                                    "00"
                                    "010108"
                                    "0a00000000000000"
                                    "00"
                                    "02"
                                    "01"
                                    "010103"
                                    "07"
                                    "00"
                                    "01"
                                    "00"
                                    "016b"
                                    "00"
                                    "0176"
                                    "00"))
                  .failed_with(base::Errc::corrupt))
      << "the dot is in its own context";
  EXPECT_TRUE(decode_delta(from_hex("01"
                                    "00"
                                    "010108"
                                    "0a00000000000000"
                                    "00"
                                    "02"
                                    "00"
                                    "00"
                                    "00"
                                    "00"))
                  .failed_with(base::Errc::corrupt))
      << "nothing is changed";
}

TEST(CausalityFormat, RefusesIncrementsBesideSomethingElse) {
  Delta delta;
  delta.dot = {actor_of(1, 1), 8};
  delta.cells.emplace_back().kind = VersionKind::increment;
  delta.cells.back().amount = -7;
  EXPECT_EQ(decode_delta(encoded(delta)).value(), delta);
  const auto refused = [](const Delta& mixed) {
    return decode_delta(encoded(mixed)).failed_with(base::Errc::corrupt);
  };
  Delta with_context = delta;
  with_context.context.dots.add(Dot{actor_of(2, 1), 1});
  EXPECT_TRUE(refused(with_context)) << "it would supersede other increments";
  Delta with_range = delta;
  with_range.deleted_ranges.emplace_back();
  EXPECT_TRUE(refused(with_range));
  Delta with_value = delta;
  with_value.cells.emplace_back().column = ColumnId{1};
  EXPECT_TRUE(refused(with_value));
}

TEST(CausalityFormat, OnlyDeletesAreRemembered) {
  Delta delta;
  delta.dot = {actor_of(1, 1), 8};
  delta.deleted_ranges.emplace_back();
  delta.remembered_until = WallTime{1'800'000'000};
  delta.cells.emplace_back().kind = VersionKind::deletion;
  delta.cells.back().expires = WallTime{-1};
  EXPECT_EQ(decode_delta(encoded(delta)).value(), delta);
  delta.deleted_ranges.clear();
  EXPECT_TRUE(decode_delta(encoded(delta)).failed_with(base::Errc::corrupt));
  delta.remembered_until.reset();
  delta.cells.back().kind = VersionKind::increment;
  EXPECT_TRUE(decode_delta(encoded(delta)).failed_with(base::Errc::corrupt));
}

TEST(CausalityFormat, EveryTruncationAndEveryFlippedBitIsAnErrorOrAnotherValue) {
  Delta delta = delta_of({actor_of(2, 3), 5});
  delta.operation.emplace().fill(std::byte{7});
  delta.deleted_ranges = {RowRange{}};
  delta.remembered_until = WallTime{300};
  const base::Bytes whole = encoded(delta);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_delta(whole.slice(0, size)));
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    base::Buffer bytes;
    bytes.append(whole.view());
    bytes.mutable_view()[bit / 8] ^= std::byte(1U << (bit % 8));
    const base::Bytes flipped = std::move(bytes).freeze();
    const auto decoded = decode_delta(flipped);
    if (decoded) EXPECT_EQ(encoded(*decoded), flipped) << "equal values have equal bytes";
  }
}

// What merges let grow is read again: a decoder that refused it would lose data.
constexpr std::uint32_t kVeryMany = 100'000;

TEST(CausalityFormat, ACellThatMergesLetGrowComesBack) {
  CellStore cell;
  for (std::uint32_t actor = 1; actor <= 100; ++actor) {
    Versions increments;
    for (std::uint32_t i = 1; i <= kVeryMany / 100; ++i) {
      Version& version = increments.emplace_back();
      version.dot = {actor_of(actor, 1), i};
      version.kind = VersionKind::increment;
      version.amount = i;
    }
    cell.absorb(CellStore(std::move(increments), {}));
  }
  ASSERT_EQ(cell.versions().size(), kVeryMany);
  EXPECT_EQ(decode_cell(encoded(cell)).value(), cell);
}

TEST(CausalityFormat, ARowThatMergesLetGrowComesBack) {
  RowStore row;
  for (std::uint32_t column = 0; column < kVeryMany; ++column) {
    Version version;
    version.dot = {actor_of(1, 1), column + 1};
    version.value = base::Bytes::copy_of("v");
    row.absorb(ColumnId{column}, CellStore({version}, {}));
  }
  ASSERT_EQ(row.cells().size(), kVeryMany);
  EXPECT_EQ(decode_row(encoded(row)).value(), row);
}

TEST(CausalityFormat, AClockOfVeryManyActorsMarksAndRangesComesBack) {
  Clock clock;
  for (std::uint32_t node = 1; node <= kVeryMany; ++node) {
    clock.add(actor_of(node, 1), CounterSet::up_to(node));
    clock.close(actor_of(node, 3));
  }
  CounterSet gaps;
  for (Counter counter = 1; counter <= 2'400'000; counter += 2) gaps.insert(counter);
  clock.add(actor_of(kVeryMany + 1, 1), std::move(gaps));
  ASSERT_EQ(clock.closed().size(), kVeryMany);
  ASSERT_EQ(clock.entries().back().counters.ranges().size(), 1'200'000U);
  EXPECT_EQ(decode_clock(encoded(clock)).value(), clock);
}

TEST(CausalityFormat, ADeltaOfVeryManyCellsAndRangesComesBack) {
  Delta delta;
  delta.dot = {actor_of(1, 1), 1};
  for (std::uint32_t column = 0; column < kVeryMany; ++column) {
    delta.cells.emplace_back().column = ColumnId{column};
    delta.deleted_ranges.push_back(
        range_of_row(base::Bytes::copy_of(fmt::format("{:06}", column))));
  }
  EXPECT_EQ(decode_delta(encoded(delta)).value(), delta);
}

TEST(CausalityFormat, AHealthyClockOfThreeActorsIsSmall) {
  Clock clock;
  for (std::uint32_t node = 1; node <= 3; ++node) {
    clock.add(actor_of(node, 1), CounterSet::up_to(1'000'000));
  }
  EXPECT_LE(encoded(clock).size(), 24U);
}

RC_GTEST_PROP(CausalityFormatLaws, EveryValueComesBackAsItWas, ()) {
  const Clock clock = *any_clock();
  RC_ASSERT(decode_clock(encoded(clock)).value() == clock);
  const CellStore cell = *any_cell();
  RC_ASSERT(decode_cell(encoded(cell)).value() == cell);
  const RangeDelete range_delete{*testing::any_range(), cell};
  RC_ASSERT(decode_range_delete(encoded(range_delete)).value() == range_delete);
  RowStore row;
  row.absorb(ColumnId{1}, cell);
  row.absorb(ColumnId{300}, *any_cell());
  RC_ASSERT(decode_row(encoded(row)).value() == row);
  const Context context{Epoch{*rc::gen::arbitrary<std::uint64_t>()},
                        Timestamp{*rc::gen::arbitrary<std::int64_t>()}, clock};
  RC_ASSERT(decode_context(encoded(context)).value() == context);
  const Delta delta = delta_of(*any_dot());
  RC_ASSERT(decode_delta(encoded(delta)).value() == delta);
}

RC_GTEST_PROP(CausalityFormatLaws, ArbitraryBytesNeverAssertAndNeverRoundTripDifferently, ()) {
  auto raw = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::inRange<std::uint8_t>(0, 6));
  raw.insert(raw.begin(), 1);
  base::Buffer buffer;
  for (const std::uint8_t byte : raw) buffer.push_back(std::byte{byte});
  const base::Bytes bytes = std::move(buffer).freeze();
  if (const auto clock = decode_clock(bytes)) RC_ASSERT(encoded(*clock) == bytes);
  if (const auto cell = decode_cell(bytes)) RC_ASSERT(encoded(*cell) == bytes);
  if (const auto row = decode_row(bytes)) RC_ASSERT(encoded(*row) == bytes);
  if (const auto range_delete = decode_range_delete(bytes))
    RC_ASSERT(encoded(*range_delete) == bytes);
  if (const auto context = decode_context(bytes)) RC_ASSERT(encoded(*context) == bytes);
  if (const auto delta = decode_delta(bytes)) RC_ASSERT(encoded(*delta) == bytes);
}

}  // namespace
}  // namespace helenus::causality
