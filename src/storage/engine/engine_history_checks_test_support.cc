// What a history asks its engine, and what the oracle says.
#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "causality/codec.h"
#include "storage/engine/engine_history_test_support.h"

namespace helenus::storage::testing {

using causality::Policy;
using runtime::Task;

namespace {

// A cursor as a reader uses it: rows of which nothing is visible are passed over.
class Reader {
 public:
  Reader(TableCursor& cursor, Policy policy, causality::WallTime now)
      : cursor_(cursor), policy_(policy), now_(now) {}

  bool valid() const { return cursor_.valid(); }
  const std::pair<std::string, std::string>& row() const { return row_; }

  // From where the cursor stands, in that direction, to a row that is visible.
  Task<base::Result<void>> settle(bool forward) {
    while (cursor_.valid()) {
      CO_TRY(const auto read, cursor_.read());
      const auto key = base::Bytes::copy_of(cursor_.row_key());
      row_.first = std::string(base::as_text(cursor_.partition())) + "/" + std::string(key.text());
      row_.second = shown_row(read, key, policy_, now_);
      if (!row_.second.empty()) co_return {};
      CO_TRY_VOID(co_await step(forward));
    }
    co_return {};
  }
  Task<base::Result<void>> move(bool forward) {
    CO_TRY_VOID(co_await step(forward));
    co_return co_await settle(forward);
  }

 private:
  TableCursor::Motion step(bool forward) { return forward ? cursor_.next() : cursor_.previous(); }

  TableCursor& cursor_;
  const Policy policy_;
  const causality::WallTime now_;
  std::pair<std::string, std::string> row_;
};

Task<base::Result<ShownRows>> all_rows(TableCursor& cursor, Policy policy, causality::WallTime now,
                                       bool forward) {
  ShownRows rows;
  Reader reader(cursor, policy, now);
  if (forward) {
    CO_TRY_VOID(co_await cursor.seek_first());
  } else {
    CO_TRY_VOID(co_await cursor.seek_last());
  }
  CO_TRY_VOID(co_await reader.settle(forward));
  while (reader.valid()) {
    rows.push_back(reader.row());
    CO_TRY_VOID(co_await reader.move(forward));
  }
  if (!forward) std::ranges::reverse(rows);
  co_return rows;
}

}  // namespace

void EngineHistory::see_clock(TabletState& tablet, const causality::Clock& clock) {
  for (const auto& entry : clock.entries()) {
    for (const auto& range : entry.counters.ranges()) {
      for (auto counter = range.first; counter <= range.last; ++counter) {
        expect(tablet.oracle.in_engine({entry.actor, counter}),
               "the clock claims what is not there");
        tablet.oracle.see({entry.actor, counter});
      }
    }
  }
}

Task<void> EngineHistory::check_row(Engine& engine) {
  TabletState& tablet = *any_tablet();
  const TableState& table = *any_table();
  const std::string partition = any_partition(tablet);
  const base::Bytes row = any_row();
  const causality::WallTime moment = now();
  const auto read =
      co_await engine.read_row(table.id, tablet.id, base::Bytes::copy_of(partition), row, until());
  if (!fine(read)) co_return;
  const std::string shown = shown_row(read->partition, row, table.policy, moment);
  const std::string wanted =
      shown_row(tablet.oracle.partition(table.id, partition), row, table.policy, moment);
  expect(shown == wanted, "row {}{} reads {} and not {}", partition, row.text(), shown, wanted);
  see_clock(tablet, read->clock);
  tablet.context =
      causality::Context{.epoch = causality::Epoch{1}, .floor = read->floor, .dots = read->clock};
}

// To and fro from any place, as a page of a result is read.
Task<void> EngineHistory::check_walk(Engine& engine) {
  TabletState& tablet = *any_tablet();
  const TableState& table = *any_table();
  const causality::WallTime moment = now();
  const ShownRows wanted = tablet.oracle.rows(table.id, moment);
  auto cursor = engine.cursor(table.id, tablet.id, {});
  if (!fine(cursor)) co_return;
  ++counts_.walks;
  const std::string partition = any_partition(tablet);
  const base::Bytes row = any_row();
  const bool by_bound = prng_.below(3) == 0;
  bool forward = prng_.below(2) == 0;
  // Where they would stand: the first at or behind the place, or the last before it.
  const std::string place = by_bound ? partition : partition + "/" + std::string(row.text());
  auto at = static_cast<std::ptrdiff_t>(
      std::ranges::lower_bound(wanted, place, {}, [](const auto& each) { return each.first; }) -
      wanted.begin());
  if (!forward) --at;
  const auto key = base::Bytes::copy_of(partition);
  Reader reader(**cursor, table.policy, moment);
  auto moved = by_bound  ? forward ? co_await (*cursor)->seek_bound(key)
                                   : co_await (*cursor)->seek_before_bound(key)
                : forward ? co_await (*cursor)->seek(key, row)
                         : co_await (*cursor)->seek_before(key, row);
  if (moved) moved = co_await reader.settle(forward);
  for (int moves = 0; fine(moved); ++moves) {
    const bool inside = at >= 0 && at < std::ssize(wanted);
    expect(reader.valid() == inside, "a walk from {} {}", place,
           inside ? "ends too early" : "does not end");
    if (!inside || !reader.valid() || moves == 8) co_return;
    const auto& expected = wanted[static_cast<std::size_t>(at)];
    expect(reader.row() == expected, "a walk from {} reads {} and not {}", place, reader.row(),
           expected);
    if (prng_.below(4) == 0) forward = !forward;
    at += forward ? 1 : -1;
    moved = co_await reader.move(forward);
  }
}

Task<void> EngineHistory::check_scan(Engine& engine, const TabletState& tablet,
                                     const TableState& table) {
  const causality::WallTime moment = now();
  const ShownRows wanted = tablet.oracle.rows(table.id, moment);
  for (const bool forward : {true, false}) {
    auto cursor = engine.cursor(table.id, tablet.id, {});
    if (!fine(cursor)) co_return;
    const auto rows = co_await all_rows(**cursor, table.policy, moment, forward);
    if (!fine(rows)) co_return;
    counts_.range_paths_read += (*cursor)->trace().range_paths_read;
    expect(*rows == wanted, "tablet {}, table {}{}: reads\n  {}\n and not\n  {}", tablet.id.value(),
           table.id.value(), forward ? "" : ", backward", fmt::join(*rows, "\n  "),
           fmt::join(wanted, "\n  "));
    if (*rows != wanted) co_return;
  }
}

Task<void> EngineHistory::check_everything(Engine& engine) {
  for (TabletState& tablet : tablets_) {
    if (!tablet.there || tablet.changing) continue;
    co_await check_mutation_log(engine, tablet);
    for (const TableState& table : tables_) {
      if (table.there && !table.changing) co_await check_scan(engine, tablet, table);
    }
  }
}

Task<std::optional<MissingMutations>> EngineHistory::everything_missing(Engine& engine,
                                                                        const TabletState& tablet) {
  MissingMutations all;
  causality::Clock given;
  while (true) {
    auto page = co_await engine.missing_mutations(tablet.id, given, prng_.below(6000), until());
    if (!fine(page)) co_return std::nullopt;
    expect(page->complete || !page->mutations.empty() || !page->covered.empty(),
           "a page of nothing that is not the last");
    for (LoggedMutation& mutation : page->mutations) {
      expect(!given.contains(mutation.dot), "{} is given twice", mutation.dot);
      expect(all.mutations.empty() || all.mutations.back().dot < mutation.dot,
             "{} is given out of order", mutation.dot);
      given.add(mutation.dot);
      all.mutations.push_back(std::move(mutation));
    }
    all.covered = causality::join(all.covered, page->covered);
    given = causality::join(given, page->covered);
    all.withheld = std::move(page->withheld);
    if (page->complete) co_return all;
  }
}

void EngineHistory::check_given(TabletState& tablet, const LoggedMutation& mutation) {
  const KnownDelta* known = tablet.oracle.find(mutation.dot);
  const bool there = known != nullptr && known->in_engine;
  expect(there, "{} is in the mutation log and not in the clock", mutation.dot);
  if (!there) return;
  expect(!known->gone || is_changing(known->table), "{} is of a dropped table", mutation.dot);
  expect(mutation.table == known->table && mutation.partition.text() == known->partition,
         "{} is of partition {} of table {}", mutation.dot, mutation.partition.text(),
         mutation.table.value());
  const auto delta = causality::decode_delta(mutation.delta);
  expect(delta && *delta == known->delta, "{} is given otherwise than it was minted", mutation.dot);
  tablet.oracle.see(mutation.dot);
  ++counts_.mutations_given;
}

bool EngineHistory::is_changing(TableId table) const {
  const auto at = std::ranges::find(tables_, table, &TableState::id);
  return at != tables_.end() && at->changing;
}

// Only what was of a table that is no longer there.
void EngineHistory::check_covered(const TabletState& tablet, const causality::Clock& covered) {
  for (const auto& [dot, known] : tablet.oracle.deltas()) {
    if (!covered.contains(dot)) continue;
    expect(known.gone || is_changing(known.table), "{} is of a table that is there", dot);
  }
}

Task<void> EngineHistory::check_mutation_log(Engine& engine, TabletState& tablet) {
  const auto missing = co_await everything_missing(engine, tablet);
  if (!missing) co_return;
  causality::Clock given;
  for (const LoggedMutation& mutation : missing->mutations) {
    check_given(tablet, mutation);
    given.add(mutation.dot);
  }
  const auto durable = engine.durable_clock(tablet.id);
  check_covered(tablet, missing->covered);
  const causality::Clock told = causality::join(missing->withheld, missing->covered);
  if (!flush_error_) {
    expect(causality::join(given, told) == *durable, "given {}, withheld {}, covered {}, of {}",
           given, missing->withheld, missing->covered, *durable);
  }
  expect(causality::meet(given, told).empty(), "what is given is withheld, too");
  expect(causality::meet(missing->withheld, missing->covered).empty(),
         "what is withheld is covered, too");
  if (engine.statistics().mutation_files_shed + counts_.mutation_files_shed > 0) co_return;
  const causality::Clock lost = causality::subtract(missing->withheld, tablet.oracle.told_stable);
  expect(lost.empty(), "{} is lost to peers", lost);
}

void EngineHistory::check_timestamp(const TabletState& tablet, const TableState& table,
                                    const std::string& partition, const causality::Delta& delta) {
  for (const auto& [dot, known] : tablet.oracle.deltas()) {
    if (!known.in_engine || known.gone || known.table != table.id) continue;
    if (known.partition != partition || tablet.oracle.told_stable.contains(dot)) continue;
    if (!overlap(known.delta, delta)) continue;
    const causality::Timestamp timestamp = delta.deleted_ranges.empty()
                                               ? delta.timestamp
                                               : causality::timestamp_of_range_deletes(delta);
    expect(timestamp > known.delta.timestamp, "{} covers {}", delta.dot, dot);
  }
}

// No less than of what is unstable for all the oracle knows, no more than of what there ever was.
void EngineHistory::check_floor(const TabletState& tablet, const TableState& table,
                                const std::string& partition, const causality::CellChange& cell,
                                causality::Timestamp floor) {
  causality::Timestamp least = causality::kTimestampMin;
  causality::Timestamp most = causality::kTimestampMin;
  for (const auto& [dot, known] : tablet.oracle.deltas()) {
    if (!known.in_engine || known.table != table.id || known.partition != partition) continue;
    const auto touches = [&](const causality::CellChange& change) {
      return change.row == cell.row && change.column == cell.column;
    };
    const bool written = std::ranges::any_of(known.delta.cells, touches);
    const bool deleted =
        std::ranges::any_of(known.delta.deleted_ranges,
                            [&](const auto& row_range) { return row_range.contains(cell.row); });
    if (!written && !deleted) continue;
    const causality::Timestamp timestamp =
        written ? known.delta.timestamp : causality::timestamp_of_range_deletes(known.delta);
    most = std::max(most, timestamp);
    if (!known.gone && !tablet.oracle.told_stable.contains(dot)) least = std::max(least, timestamp);
  }
  expect(floor >= least && floor <= most, "a floor of {}, not of {} to {}", floor.value(),
         least.value(), most.value());
}

}  // namespace helenus::storage::testing
