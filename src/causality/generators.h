// Arbitrary clocks, stores and deltas for property tests, from a small universe so that they meet:
// five actors on three nodes, counters up to twelve.
#pragma once

#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"

namespace helenus::causality::testing {

inline constexpr Counter kUniverseCounterMax = 12;

inline std::vector<ActorId> universe_actors() {
  return {actor_of(1, 1), actor_of(1, 2), actor_of(2, 1), actor_of(2, 3), actor_of(3, 1)};
}

inline std::vector<Dot> universe() {
  std::vector<Dot> dots;
  for (const ActorId actor : universe_actors()) {
    for (Counter counter = 1; counter <= kUniverseCounterMax; ++counter) {
      dots.push_back({actor, counter});
    }
  }
  return dots;
}

inline rc::Gen<Dot> any_dot() {
  return rc::gen::elementOf(universe());
}

inline rc::Gen<Clock> any_clock(bool with_closed = true) {
  return rc::gen::exec([with_closed] {
    Clock clock;
    for (const ActorId actor : universe_actors()) {
      switch (*rc::gen::inRange(0, with_closed ? 5 : 4)) {
        case 0:
          break;
        case 4:
          clock.close(actor);
          break;
        default:
          clock.add(actor, CounterSet::up_to(*rc::gen::inRange<Counter>(0, kUniverseCounterMax)));
          for (const auto counter : *rc::gen::container<std::vector<Counter>>(
                   rc::gen::inRange<Counter>(1, kUniverseCounterMax + 1))) {
            clock.add(Dot{actor, counter});
          }
      }
    }
    return clock;
  });
}

// The version that dot always has: one dot, one mutation (I0).
inline Version version_of(const Dot& dot, bool lww) {
  const std::uint64_t seed = dot.counter * 7 + dot.actor.node.value();
  Version version;
  version.dot = dot;
  version.timestamp = Timestamp{static_cast<std::int64_t>(seed % 5)};
  if (lww && seed % 3 == 0) version.kind = VersionKind::deletion;
  if (version.kind == VersionKind::value) {
    version.value = base::Bytes::copy_of(std::string(1, static_cast<char>('a' + seed % 4)));
  }
  // A value is brief then, and a delete remembered.
  if (seed % 7 == 0) version.expires = WallTime{static_cast<std::int64_t>(seed % 10)};
  return version;
}

inline rc::Gen<CellStore> any_cell(bool lww = true, bool with_closed = true) {
  return rc::gen::exec([lww, with_closed] {
    const Clock context = *any_clock(with_closed);
    Versions versions;
    for (const Dot& dot : *rc::gen::container<std::set<Dot>>(any_dot())) {
      if (!context.contains(dot)) versions.push_back(version_of(dot, lww));
    }
    return CellStore(std::move(versions), context);
  });
}

inline base::Bytes any_row() {
  return base::Bytes::copy_of(*rc::gen::element<std::string>("a", "b", "c", "cc"));
}

inline rc::Gen<RowRange> any_range() {
  return rc::gen::exec([] {
    base::Bytes from = any_row();
    base::Bytes to = any_row();
    if (to < from) std::swap(from, to);
    if (from == to) return range_of_row(from);
    RowRange row_range{from, to};
    if (*rc::gen::inRange(0, 4) == 0) row_range.from.reset();
    if (*rc::gen::inRange(0, 4) == 0) row_range.to.reset();
    return row_range;
  });
}

// What minting gives for this dot; the same dot always gives the same delta.
inline Delta delta_of(const Dot& dot) {
  const std::uint64_t seed =
      dot.counter * 31 + dot.actor.node.value() * 7 + dot.actor.incarnation.value();
  Delta delta;
  delta.dot = dot;
  delta.timestamp = Timestamp{static_cast<std::int64_t>(seed % 6)};
  for (const ActorId actor : universe_actors()) {
    const Counter seen = (seed + actor.node.value()) % kUniverseCounterMax;
    delta.context.dots.add(
        actor, CounterSet::up_to(actor == dot.actor ? std::min(seen, dot.counter - 1) : seen));
  }
  const std::vector<std::string> rows{"a", "b", "c"};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if ((seed >> row) % 2 == 0) continue;
    CellChange change;
    change.row = base::Bytes::copy_of(rows[row]);
    change.column = ColumnId{static_cast<std::uint32_t>(seed % 2)};
    if (seed % 4 == 1) {
      change.kind = VersionKind::deletion;
      if (seed % 3 == 0) change.expires = WallTime{static_cast<std::int64_t>(seed % 10)};
    } else {
      change.value = base::Bytes::copy_of(std::to_string(seed));
    }
    delta.cells.push_back(std::move(change));
  }
  if (delta.cells.empty())
    delta.deleted_ranges.push_back(range_of_row(base::Bytes::copy_of(rows[seed % 3])));
  if (seed % 5 == 0) delta.deleted_ranges.insert(delta.deleted_ranges.begin(), RowRange{});
  if (seed % 3 == 0 && !delta.deleted_ranges.empty()) {
    delta.remembered_until = WallTime{static_cast<std::int64_t>(seed % 10)};
  }
  return delta;
}

}  // namespace helenus::causality::testing

namespace rc {
inline void showValue(const helenus::causality::Clock& clock, std::ostream& out) {
  out << fmt::format("{}", clock);
}
inline void showValue(const helenus::causality::CellStore& cell, std::ostream& out) {
  out << fmt::format("{}", cell);
}
}  // namespace rc
