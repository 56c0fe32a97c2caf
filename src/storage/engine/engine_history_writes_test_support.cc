// What a history writes, here and at its peer.
#include <algorithm>
#include <utility>

#include "causality/resolve.h"
#include "storage/engine/engine_history_test_support.h"

namespace helenus::storage::testing {

using causality::Policy;
using runtime::Task;

namespace {

constexpr causality::Epoch kEpoch{1};
constexpr std::uint64_t kFewRows = 6;

}  // namespace

// ---- What is drawn ----

EngineHistory::TableState* EngineHistory::any_table() {
  std::vector<TableState*> there;
  for (TableState& table : tables_) {
    if (table.there && !table.changing) there.push_back(&table);
  }
  return there.empty() ? nullptr : there[prng_.below(there.size())];
}

EngineHistory::TabletState* EngineHistory::any_tablet() {
  std::vector<TabletState*> there;
  for (TabletState& tablet : tablets_) {
    if (tablet.there && !tablet.changing) there.push_back(&tablet);
  }
  return there.empty() ? nullptr : there[prng_.below(there.size())];
}

std::string EngineHistory::any_partition(const TabletState& tablet) {
  return tablet.partitions + static_cast<char>('0' + prng_.below(options_.partitions));
}

// One letter of six, then more of them: many rows begin alike. Where there are many, each letter is
// there several times, and the deletes of ranges of a partition sooner exceed what lies together.
base::Bytes EngineHistory::any_row() {
  constexpr std::uint64_t kLetters = 6;
  std::string row;
  std::uint64_t number = prng_.below(options_.rows);
  do {
    row += std::string(options_.rows > kFewRows ? 4 : 1,
                       static_cast<char>('a' + 3 * (number % kLetters)));
    number /= kLetters;
  } while (number > 0);
  return base::Bytes::copy_of(row);
}

causality::CellChange EngineHistory::any_cell(Policy policy) {
  causality::CellChange change;
  change.row = any_row();
  change.column = causality::ColumnId{static_cast<std::uint32_t>(prng_.below(kHistoryColumns))};
  if (policy == Policy::counter) {
    change.kind = causality::VersionKind::increment;
    change.amount = static_cast<std::int64_t>(prng_.below(20)) - 10;
  } else if (prng_.below(4) == 0) {
    change.kind = causality::VersionKind::deletion;
  } else {
    change.value = base::Bytes::copy_of(std::string(prng_.below(60), 'v') + std::to_string(time_));
    if (prng_.below(4) == 0) {
      ++counts_.values_with_a_ttl;
      change.expires =
          causality::WallTime{now().value() + static_cast<std::int64_t>(prng_.below(12))};
    }
  }
  return change;
}

// Often of one row, whose delete lies with it, and often of ranges that overlap others. Where there
// are many rows, mostly of those that begin alike: a delete of nearly everything makes those before
// it needless, and they would never be many.
causality::RowRange EngineHistory::any_range() {
  const std::uint64_t kind = prng_.below(8);
  if (kind < 4) return causality::range_of_row(any_row());
  if (options_.rows > kFewRows && prng_.below(24) != 0) {
    const base::Bytes row = any_row();
    return {row, base::Bytes::copy_of(std::string(row.text()) + "~")};
  }
  causality::RowRange row_range;
  if (kind == 4) return row_range;
  row_range.from = any_row();
  row_range.to = any_row();
  if (*row_range.to < *row_range.from) std::swap(row_range.from, row_range.to);
  if (*row_range.to == *row_range.from) row_range.to.reset();
  if (kind == 5) row_range.from.reset();
  return row_range;
}

causality::Mutation EngineHistory::any_mutation(Policy policy) {
  causality::Mutation mutation;
  // Clients' clocks differ.
  ++time_;
  const std::int64_t skew = prng_.below(4) == 0 ? static_cast<std::int64_t>(prng_.below(400)) : 0;
  mutation.timestamp = causality::Timestamp{time_ + skew};
  const std::uint64_t kind = prng_.below(20);
  if (kind < 13) {
    std::map<std::pair<base::Bytes, causality::ColumnId>, causality::CellChange> cells;
    for (std::uint64_t left = 1 + prng_.below(3); left > 0; --left) {
      causality::CellChange cell = any_cell(policy);
      cells[{cell.row, cell.column}] = std::move(cell);
    }
    for (auto& [place, cell] : cells) mutation.cells.push_back(std::move(cell));
  }
  // Some replace what they delete; increments go alone.
  if (kind >= 13 || (kind >= 10 && policy != Policy::counter)) {
    for (std::uint64_t left = 1 + prng_.below(3); left > 0; --left) {
      mutation.deleted_ranges.push_back(any_range());
    }
  }
  return mutation;
}

// None, an empty one, or that of an earlier read.
std::optional<causality::Context> EngineHistory::any_context(TabletState& tablet) {
  const std::uint64_t choice = prng_.below(10);
  if (choice < 2) return tablet.context;
  if (choice < 3) return causality::Context{.epoch = kEpoch, .dots = {}};
  return std::nullopt;
}

// ---- Writing ----

void EngineHistory::note_minted(TabletState& tablet, const TableState& table,
                                const std::string& partition, const causality::Delta& delta) {
  expect(!tablet.oracle.seen(delta.dot), "{} was minted twice", delta.dot);
  tablet.oracle.add_minted(table.id, partition, delta);
}

std::optional<Staged> EngineHistory::stage_any(Engine& engine, TabletState& tablet,
                                               const TableState& table) {
  const std::string partition = any_partition(tablet);
  causality::Mutation mutation = any_mutation(table.policy);
  if (table.policy != Policy::counter) mutation.context = any_context(tablet);
  const causality::Timestamp given = mutation.timestamp;
  auto staged =
      engine.stage(table.id, tablet.id, base::as_bytes(partition), std::move(mutation), kEpoch);
  if (!fine(staged)) return std::nullopt;
  if (staged->delta.timestamp > given) ++counts_.timestamps_raised;
  if (table.policy == Policy::lww) check_timestamp(tablet, table, partition, staged->delta);
  note_minted(tablet, table, partition, staged->delta);
  return *std::move(staged);
}

Task<bool> EngineHistory::admitted(Engine& engine, const TabletState& tablet,
                                   const TableState& table) {
  co_return fine(co_await engine.admit(table.id, tablet.id, 1024, WriteKind::data, until()));
}

Task<void> EngineHistory::await_durable(Engine& engine, TabletState& tablet, LogPosition position,
                                        std::vector<causality::Dot> dots) {
  if (!fine(co_await engine.durable(position, until()))) co_return;
  for (const causality::Dot& dot : dots) {
    tablet.oracle.acknowledge(dot);
    ++counts_.writes;
  }
}

// Several are several records in one write of the log.
Task<void> EngineHistory::write(Engine& engine, std::uint64_t count) {
  TabletState* tablet = any_tablet();
  std::vector<causality::Dot> dots;
  std::optional<LogPosition> last;
  for (; count > 0; --count) {
    const TableState* table = any_table();
    if (tablet == nullptr || table == nullptr) co_return;
    const bool admission = co_await admitted(engine, *tablet, *table);
    if (!admission) break;
    const auto staged = stage_any(engine, *tablet, *table);
    if (!staged) break;
    dots.push_back(staged->delta.dot);
    last = staged->position;
  }
  if (last) co_await await_durable(engine, *tablet, *last, std::move(dots));
}

// By rule (d): whoever writes so looks first, and leaves out what the write does not win.
Task<void> EngineHistory::write_explicitly(Engine& engine) {
  TabletState& tablet = *any_tablet();
  const auto table = std::ranges::find(tables_, Policy::lww, &TableState::policy);
  if (table == tables_.end() || !table->there || table->changing) co_return;
  const std::string partition = any_partition(tablet);
  const causality::CellChange cell = any_cell(Policy::lww);
  ++time_;
  const causality::Timestamp timestamp{time_ - static_cast<std::int64_t>(prng_.below(60)) + 20};
  const bool admission = co_await admitted(engine, tablet, *table);
  if (!admission) co_return;
  const auto key = base::Bytes::copy_of(partition);
  const auto read = co_await engine.read_row(table->id, tablet.id, key, cell.row, until());
  if (!fine(read)) co_return;
  const auto floor =
      co_await engine.covered_floor(table->id, tablet.id, key, cell.row, cell.column, until());
  const bool cut_off = options_.mutation_log_bytes_max < (1 << 20);
  if (cut_off && floor.failed_with(base::Errc::unavailable)) co_return;
  if (!fine(floor)) co_return;
  check_floor(tablet, *table, partition, cell, *floor);
  causality::Version version;
  version.timestamp = timestamp;
  version.kind = cell.kind;
  version.expires = cell.expires;
  version.value = cell.value;
  if (!causality::explicit_write_applies(read->partition.cell(cell.row, cell.column), *floor,
                                         version)) {
    ++counts_.explicit_writes_left_out;
    co_return;
  }
  causality::Mutation mutation;
  mutation.timestamp = timestamp;
  mutation.cells.push_back(cell);
  const auto staged = engine.stage(table->id, tablet.id, base::as_bytes(partition),
                                   std::move(mutation), kEpoch, Timestamps::as_given);
  if (!fine(staged)) co_return;
  expect(staged->delta.timestamp == timestamp, "an explicit timestamp was raised");
  note_minted(tablet, *table, partition, staged->delta);
  ++counts_.explicit_writes;
  co_await await_durable(engine, tablet, *staged->position, {staged->delta.dot});
}

// ---- The peer ----

void EngineHistory::mint_at_peer() {
  TabletState& tablet = *any_tablet();
  const TableState& table = *any_table();
  if (!tablet.has_peer) return;
  const std::string partition = any_partition(tablet);
  tablet.oracle.mint_at_peer(table.id, partition, table.policy, any_mutation(table.policy));
}

Task<void> EngineHistory::take_from_peer(Engine& engine, TabletState& tablet) {
  std::vector<causality::Dot> dots;
  for (const auto& [dot, known] : tablet.oracle.deltas()) {
    if (known.at_peer && !known.gone) dots.push_back(dot);
  }
  const bool all = prng_.below(2) == 0;
  for (const causality::Dot& dot : dots) {
    KnownDelta& known = *tablet.oracle.find(dot);
    const auto table = std::ranges::find(tables_, known.table, &TableState::id);
    ASSERT(table != tables_.end(), "the deltas of a dropped table are gone");
    if (!table->there || table->changing || (!all && prng_.below(3) == 0)) continue;
    const bool admission = co_await admitted(engine, tablet, *table);
    if (!admission) co_return;
    const auto staged =
        engine.stage(table->id, tablet.id, base::as_bytes(known.partition), known.delta);
    if (!fine(staged)) co_return;
    expect((staged->applied == causality::Applied::before) == known.in_engine, "{} of the peer {}",
           dot, known.in_engine ? "is applied again" : "is not applied");
    tablet.oracle.enter(known, table->policy);
    if (!fine(co_await engine.durable(staged->position, until()))) co_return;
    known.acknowledged = true;
  }
}

void EngineHistory::give_to_peer() {
  TabletState& tablet = *any_tablet();
  if (!tablet.has_peer) return;
  std::vector<causality::Dot> dots;
  for (const auto& [dot, known] : tablet.oracle.deltas()) {
    if (known.acknowledged && !known.at_peer && prng_.below(3) != 0) dots.push_back(dot);
  }
  for (const causality::Dot& dot : dots) tablet.oracle.give_to_peer(dot);
}

// As after a complete pull: everything the peer had is here.
void EngineHistory::update_watermarks(Engine& engine) {
  TabletState& tablet = *any_tablet();
  if (options_.peer_is_away) return;
  TabletOracle& oracle = tablet.oracle;
  if (!tablet.has_peer) {
    engine.set_watermarks(tablet.id, {});
    oracle.told_alone = true;
    oracle.told_stable = causality::join(oracle.told_stable, oracle.dots_in_engine());
    return;
  }
  if (!oracle.pulled_completely()) return;
  const causality::Clock base = causality::base(oracle.peer_clock());
  const causality::WallTime wall{now().value() - static_cast<std::int64_t>(prng_.below(3))};
  engine.set_watermarks(tablet.id, {causality::Watermark{base, wall}});
  oracle.told_stable = causality::join(
      oracle.told_stable, causality::meet(base, causality::base(oracle.dots_in_engine())));
}

}  // namespace helenus::storage::testing
