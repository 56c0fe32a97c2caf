#include "causality/counter.h"

#include <array>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "causality/codec.h"
#include "causality/generators.h"

namespace helenus::causality {
namespace {

using base::Errc;

const ActorId kOne = actor_of(1, 1);
const ActorId kTwo = actor_of(2, 1);

base::Bytes name_bytes(char letter) {
  return base::Bytes::copy_of(std::string(sizeof(OperationId), letter));
}

Version of_kind(VersionKind kind, Dot dot, std::int64_t amount = 0, char name = 0) {
  Version version;
  version.dot = dot;
  version.kind = kind;
  version.amount = amount;
  if (name != 0) version.value = name_bytes(name);
  return version;
}

Version plus(Dot dot, std::int64_t amount, char name = 0) {
  return of_kind(VersionKind::increment, dot, amount, name);
}

Clock seen(std::initializer_list<DotRange> ranges) {
  Clock clock;
  for (const DotRange& range : ranges) clock.add(range);
  return clock;
}

Stability stable_at(Clock dots) {
  return {.dots = std::move(dots), .wall = WallTime{}};
}

// Any counter of a replica that has not folded anything: what a dot is is the same everywhere, and
// some share an operation.
rc::Gen<CellStore> any_counter() {
  return rc::gen::exec([] {
    const Clock context = *testing::any_clock(false);
    Versions versions;
    for (const Dot& dot : *rc::gen::container<std::set<Dot>>(testing::any_dot())) {
      const std::uint64_t kind = (dot.counter * 5 + dot.actor.node.value()) % 4;
      const char name = static_cast<char>('a' + dot.counter % 3);
      if (kind == 0) {
        versions.push_back(of_kind(VersionKind::reset, dot));
      } else if (kind == 1 && context.contains(dot)) {
        versions.push_back(of_kind(VersionKind::dead, dot, 0, name));
      } else if (!context.contains(dot)) {
        const char of = kind == 1 ? name : '\0';
        // All dots of an operation add the same.
        versions.push_back(plus(dot, kind == 1 ? name : static_cast<int>(dot.counter), of));
      }
    }
    return CellStore(std::move(versions), context);
  });
}

RC_GTEST_PROP(CounterLaws, FragmentsMergeInAnyOrder, ()) {
  const CellStore a = *any_counter();
  const CellStore b = *any_counter();
  const CellStore c = *any_counter();
  RC_ASSERT(sync(a, b) == sync(b, a));
  RC_ASSERT(sync(sync(a, b), c) == sync(a, sync(b, c)));
  RC_ASSERT(sync(a, a) == a);
}

RC_GTEST_PROP(CounterLaws, FoldingKeepsTheValueAndFoldsOnce, ()) {
  CellStore cell = *any_counter();
  // As everybody has all dots of what is stable.
  const Stability stable = stable_at(*testing::any_clock());
  const std::int64_t before = counter_value(cell);
  fold(cell, stable);
  RC_ASSERT(counter_value(cell) == before);
  const CellStore once = cell;
  fold(cell, stable);
  RC_ASSERT(cell == once);
  for (const Version& version : once.versions()) {
    if (is_record(version.kind)) RC_ASSERT(!stable.dots.contains(version.dot));
  }
}

RC_GTEST_PROP(CounterLaws, WhatIsStableFoldsIntoOneVersionWithoutAContext, ()) {
  CellStore cell = *any_counter();
  Clock all;
  for (const ActorId actor : testing::universe_actors()) all.add(DotRange{actor, 1, 100});
  fold(cell, stable_at(all));
  cell.strip(all);
  RC_ASSERT(cell.versions().size() <= 1);
  RC_ASSERT(cell.context().empty());
}

RC_GTEST_PROP(CounterLaws, WhatEncodesDecodes, ()) {
  CellStore cell = *any_counter();
  fold(cell, stable_at(*testing::any_clock()));
  const auto decoded = decode_cell(encoded(cell));
  RC_ASSERT(decoded.has_value());
  RC_ASSERT(*decoded == cell);
}

RC_GTEST_PROP(CounterLaws, OneAnswerIsItself, ()) {
  const CellStore cell = *any_counter();
  RC_ASSERT(merge_counters(std::array{CounterAnswer{.cell = cell, .clock = {}}}) == cell);
}

TEST(Counter, AnOperationIsFoldedWithAllItsDotsOrNotAtAll) {
  CellStore cell({plus({kOne, 1}, 5, 'u'), plus({kTwo, 1}, 5, 'u'), plus({kOne, 2}, 7)}, {});
  fold(cell, stable_at(seen({{kOne, 1, 2}})));
  EXPECT_EQ(cell.versions().size(), 3U) << fmt::format("{}", cell);
  EXPECT_EQ(counter_value(cell), 12);
  fold(cell, stable_at(seen({{kOne, 1, 2}, {kTwo, 1, 1}})));
  ASSERT_EQ(cell.versions().size(), 1U);
  EXPECT_EQ(cell.versions()[0].kind, VersionKind::total);
  EXPECT_EQ(cell.versions()[0].amount, 12);
  EXPECT_TRUE(cell.versions()[0].value.empty());
}

TEST(Counter, ADeleteThatComesLaterTakesTheTotal) {
  CellStore cell({plus({kOne, 1}, 5), plus({kTwo, 1}, 6)}, {});
  fold(cell, stable_at(seen({{kOne, 1, 1}, {kTwo, 1, 1}})));
  cell.absorb(
      CellStore({of_kind(VersionKind::reset, {kTwo, 2})}, seen({{kOne, 1, 1}, {kTwo, 1, 1}})));
  EXPECT_TRUE(living(cell).empty());
  cell.absorb(CellStore({plus({kOne, 2}, 3)}, {}));
  EXPECT_EQ(counter_value(cell), 3);
}

TEST(Counter, ADeadIncrementTakesItsAliasAlong) {
  CellStore cell({plus({kOne, 1}, 5, 'u')}, {});
  cell.absorb(CellStore({of_kind(VersionKind::reset, {kTwo, 1})}, seen({{kOne, 1, 1}})));
  cell.absorb(CellStore({plus({kTwo, 2}, 5, 'u'), plus({kTwo, 3}, 9, 'v')}, {}));
  EXPECT_EQ(counter_value(cell), 9);
  fold(cell, stable_at(seen({{kOne, 1, 1}})));
  EXPECT_EQ(counter_value(cell), 9) << fmt::format("{}", cell);
}

TEST(Counter, AnswersMeetByOneAndTheNewsOfOthers) {
  // The first has folded what the second still has as increments, and lacks the second's last.
  CellStore folded({plus({kOne, 1}, 5), plus({kTwo, 1}, 6)}, {});
  fold(folded, stable_at(seen({{kOne, 1, 1}, {kTwo, 1, 1}})));
  const CounterAnswer first{.cell = folded, .clock = seen({{kOne, 1, 1}, {kTwo, 1, 1}})};
  const CounterAnswer second{
      .cell = CellStore({plus({kOne, 1}, 5), plus({kTwo, 1}, 6), plus({kTwo, 2}, 7)}, {}),
      .clock = seen({{kOne, 1, 1}, {kTwo, 1, 2}})};
  EXPECT_EQ(counter_value(merge_counters(std::array{first, second})), 18);
  EXPECT_EQ(counter_value(merge_counters(std::array{second, first})), 18);
  EXPECT_TRUE(lacks(first.clock, second.cell));
  EXPECT_FALSE(lacks(second.clock, first.cell)) << "a total is nothing that anybody lacks";
  const CounterAnswer third{
      .cell = CellStore({of_kind(VersionKind::reset, {kOne, 2})}, first.clock),
      .clock = seen({{kOne, 1, 2}, {kTwo, 1, 1}})};
  EXPECT_EQ(counter_value(merge_counters(std::array{first, second, third})), 7);
  EXPECT_EQ(counter_value(merge_counters(std::array{third, second, first})), 7);
}

// What is `ours` after the copy is in, as its value.
std::int64_t united(const CellStore& theirs, const Clock& claim, const CellStore& ours) {
  const auto difference = counter_difference(theirs, claim, ours);
  EXPECT_TRUE(difference);
  CellStore both = ours;
  both.absorb(*difference);
  CellStore other = *difference;
  other.absorb(ours);
  EXPECT_EQ(both, other) << "fragments merge in any order";
  CellStore folded = both;
  fold(folded, stable_at({}));
  EXPECT_EQ(counter_value(folded), counter_value(both));
  return counter_value(both);
}

TEST(Counter, ACopyIsTakenWholeWithWhatOnlyIsHere) {
  const Clock claim = seen({{kOne, 1, 2}, {kTwo, 1, 1}});
  const CellStore increments({plus({kOne, 1}, 5), plus({kOne, 2}, 6, 'u'), plus({kTwo, 1}, 7)}, {});
  CellStore all_folded = increments;
  fold(all_folded, stable_at(claim));
  CellStore some_folded = increments;
  fold(some_folded, stable_at(seen({{kOne, 1, 2}})));
  for (const CellStore& theirs : {increments, some_folded, all_folded}) {
    for (const CellStore& folded : {increments, some_folded, all_folded}) {
      CellStore ours = folded;
      EXPECT_EQ(united(theirs, claim, ours), 18);
      ours.absorb(CellStore({plus({kTwo, 2}, 100)}, {}));
      EXPECT_EQ(united(theirs, claim, ours), 118);
      ours.absorb(CellStore({of_kind(VersionKind::reset, {kTwo, 3})}, claim));
      EXPECT_EQ(united(theirs, claim, ours), 100) << "a delete that theirs has not seen";
    }
    EXPECT_EQ(united(theirs, claim, CellStore()), 18);
    EXPECT_EQ(united(CellStore(), claim, theirs), 0) << "a delete that was forgotten there";
  }
  EXPECT_FALSE(counter_difference(increments, seen({{kOne, 1, 2}}), all_folded));
}

TEST(Counter, AContextStaysWholeBesideAReset) {
  const Clock context = seen({{kOne, 1, 3}});
  CellStore cell({of_kind(VersionKind::reset, {kTwo, 1})}, context);
  cell.strip(context);
  EXPECT_EQ(cell.context(), context);
  fold(cell, stable_at(seen({{kTwo, 1, 1}})));
  cell.strip(context);
  EXPECT_TRUE(cell.empty());
}

TEST(Counter, BytesThatNoCounterHasAreCorrupt) {
  const auto decodes_with = [](const CellStore& cell, std::size_t at, std::uint8_t flags) {
    const base::Bytes bytes = encoded(cell);
    std::vector<std::byte> changed(bytes.view().begin(), bytes.view().end());
    changed[at] = std::byte{flags};
    return decode_cell(base::Bytes::copy_of(changed));
  };
  // Version, count, dot, flags; each version takes six bytes.
  const CellStore two({plus({kOne, 1}, 1), plus({kOne, 2}, 1)}, {});
  ASSERT_TRUE(decodes_with(two, 5, 3).has_value()) << "one total";
  for (const int flags : {32, 34, 35, 7, 19, 64}) {
    EXPECT_TRUE(decodes_with(two, 5, static_cast<std::uint8_t>(flags)).failed_with(Errc::corrupt))
        << flags;
  }
}

}  // namespace
}  // namespace helenus::causality
