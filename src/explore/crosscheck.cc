#include "explore/crosscheck.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "causality/codec.h"
#include "causality/delta.h"
#include "causality/resolve.h"
#include "explore/birth.h"
#include "explore/parts.h"
#include "explore/rules.h"

namespace helenus::explore {

namespace {

namespace lib = causality;

class Comparison {
 public:
  Comparison(const State& state, const Scope& scope) : state_(state), scope_(scope) {
    std::array<lib::Counter, kActorsMax> minted{};
    for (int e = 0; e < state.events; ++e) {
      const unsigned actor = event(e).actor;
      const auto slot = static_cast<std::uint32_t>(state.slot_of_actor[actor]);
      dots_.push_back({lib::actor_of(slot + 1, actor + 1), ++minted[actor]});
    }
  }

  void run() {
    for (int r = 0; r < kReplicasMax; ++r) {
      if (replica(r).phase == Phase::absent) continue;
      compare_clock(r);
      compare_mint(r);
      compare_storage(r);
      for (int other = 0; other < kReplicasMax; ++other) {
        if (replica(other).phase == Phase::absent) continue;
        if (other != r) compare_pair(r, other);
        compare_births(r, other);
      }
    }
    for (int e = 0; e < state_.events; ++e) compare_delta(e);
  }

 private:
  const Event& event(int e) const { return state_.event[static_cast<unsigned>(e)]; }
  const Replica& replica(int r) const { return state_.replica[static_cast<unsigned>(r)]; }
  lib::Policy policy() const {
    return scope_.policy == Policy::lww ? lib::Policy::lww : lib::Policy::siblings;
  }

  lib::Clock clock_of(Events events, Mask closed = 0) const {
    lib::Clock clock;
    each(events, [&](int e) { clock.add(dots_[static_cast<unsigned>(e)]); });
    each(closed, [&](int actor) {
      const std::uint32_t slot = state_.slot_of_actor[static_cast<unsigned>(actor)];
      clock.close(lib::actor_of(slot + 1, static_cast<std::uint32_t>(actor) + 1));
    });
    return clock;
  }
  lib::Clock clock_of(const Replica& it) const { return clock_of(it.clock, it.closed); }
  Events events_in(const lib::Clock& clock) const {
    Events events = 0;
    for (int e = 0; e < state_.events; ++e) {
      if (clock.contains(dots_[static_cast<unsigned>(e)])) events |= event_bit(e);
    }
    return events;
  }

  lib::Version version_of(int e) const {
    const Event& it = event(e);
    lib::Version version;
    version.dot = dots_[static_cast<unsigned>(e)];
    version.timestamp = lib::Timestamp{it.timestamp};
    version.kind = it.kind == Kind::put ? lib::VersionKind::value : lib::VersionKind::deletion;
    if (it.expires != 0) version.expires = lib::WallTime{1};
    // The explorer breaks ties by number; so do these bytes.
    version.value = base::Bytes::copy_of(std::string(1, static_cast<char>('a' + e)));
    version.amount = 1;
    return version;
  }
  lib::CellStore store_of(const Fragment& fragment) const {
    lib::Versions versions;
    each(fragment.versions, [&](int e) { versions.push_back(version_of(e)); });
    return {std::move(versions), clock_of(fragment.context)};
  }
  Fragment fragment_of(const lib::CellStore& cell) const {
    Fragment fragment{0, events_in(cell.context())};
    for (const lib::Version& version : cell.versions()) {
      const auto at = std::ranges::find(dots_, version.dot);
      ASSERT(at != dots_.end());
      fragment.versions |= event_bit(static_cast<int>(at - dots_.begin()));
    }
    return fragment;
  }

  // A table is a row of the library, its cells are columns, its scope slot a delete of the row.
  static lib::RowKey row_of(int table) {
    return base::Bytes::copy_of(std::string(1, static_cast<char>('0' + table)));
  }
  static lib::ColumnId column_of(int slot) {
    return lib::ColumnId{static_cast<std::uint32_t>(slot)};
  }
  lib::PartitionStore partition_of(int t, const Layer& layer) const {
    lib::PartitionStore partition;
    for (int slot = 0; slot < kCellsPerTable; ++slot) {
      partition.absorb(row_of(t), column_of(slot), store_of(layer[static_cast<unsigned>(slot)]));
    }
    partition.absorb(lib::RangeDelete{lib::range_of_row(row_of(t)), store_of(layer[kScopeSlot])});
    return partition;
  }

  void compare_clock(int r) const {
    const Replica& it = replica(r);
    const lib::Clock clock = clock_of(it);
    ASSERT(events_in(clock) == seen_by(state_, it), "clock {}", clock);
    ASSERT(events_in(lib::base(clock)) == base_of(state_, it), "base of {}", clock);
    ASSERT(lib::decode_clock(lib::encoded(clock)).value() == clock);
    if (it.phase != Phase::active || has(state_.config[it.epoch].removed, it.actor)) return;
    std::vector<std::optional<lib::Watermark>> watermarks;
    each(others_of(state_, r), [&](int other) {
      auto& watermark = watermarks.emplace_back();
      if (!has(it.pulled, other)) return;
      const bool passed = has(it.reported, other);
      watermark = lib::Watermark{clock_of(it.watermark[static_cast<unsigned>(other)]),
                                 lib::WallTime{passed ? 1 : 0}};
    });
    const lib::Stability stable = lib::stability(clock, lib::WallTime{it.wall}, watermarks);
    ASSERT(events_in(stable.dots) == stable_at(state_, scope_, r), "stability at {}", r);
    const bool passed = stable.wall && *stable.wall >= lib::WallTime{1};
    ASSERT(passed == expired_everywhere(state_, scope_, r));
  }

  void compare_pair(int mine, int theirs) const {
    const lib::Clock a = clock_of(replica(mine));
    const lib::Clock b = clock_of(replica(theirs));
    ASSERT(events_in(lib::join(a, b)) ==
           (seen_by(state_, replica(mine)) | seen_by(state_, replica(theirs))));
    Events lacked = 0;
    for (const lib::DotRange& range : lib::missing(a, b).dots) {
      for (std::size_t e = 0; e < dots_.size(); ++e) {
        const lib::Dot& dot = dots_[e];
        if (dot.actor == range.actor && range.first <= dot.counter && dot.counter <= range.last) {
          lacked |= event_bit(static_cast<int>(e));
        }
      }
    }
    for (int cell = 0; cell < scope_.tables * kCellsPerTable; ++cell) {
      const Fragment sent = filled(state_, scope_, theirs, cell);
      const Fragment want{without(sent.versions, seen_by(state_, replica(mine))), sent.context};
      ASSERT(fragment_of(lib::unseen(store_of(sent), a)) == want, "cell {} of {}", cell, theirs);
    }
    const Events open = without(replica(theirs).clock, minted_by(state_, replica(theirs).closed));
    ASSERT(lacked == without(open, seen_by(state_, replica(mine))));
  }

  lib::ActorId actor_of(const Replica& it) const {
    const auto slot = static_cast<std::uint32_t>(state_.slot_of_actor[it.actor]);
    return lib::actor_of(slot + 1, it.actor + 1U);
  }

  // A blind write through this replica: the next dot of its actor, after all that it has seen.
  void compare_mint(int r) const {
    const Replica& it = replica(r);
    if (it.phase != Phase::active || has(it.closed, it.actor)) return;
    lib::Clock clock = clock_of(it);
    lib::Mutation mutation;
    mutation.cells.emplace_back().row = row_of(0);
    mutation.cells.back().kind = lib::VersionKind::deletion;
    const lib::Delta delta = lib::mint(clock, actor_of(it), lib::Epoch{it.epoch}, policy(),
                                       std::move(mutation), lib::kTimestampMin)
                                 .value();
    ASSERT(std::ranges::find(dots_, delta.dot) == dots_.end(), "{} is minted twice", delta.dot);
    ASSERT(events_in(delta.context.dots) == seen_by(state_, it), "context {}", delta.context);
    ASSERT(clock.contains(delta.dot) && !delta.context.dots.contains(delta.dot));
  }

  // Writes through `r` with the context that a client read at `peer`, at timestamps around its
  // floor.
  void compare_births(int r, int peer) const {
    if (!coordinates(state_, r) || !answers(state_, peer)) return;
    if (has(replica(r).closed, replica(r).actor) || replica(peer).epoch > replica(r).epoch) return;
    for (const Mask cells : {Mask{1}, Mask{3}}) {
      const ReadContext client = context_of_read(state_, scope_, peer, cells);
      std::vector<lib::CellStore> stores;
      std::vector<const lib::CellStore*> read;
      each(cells,
           [&](int cell) { stores.push_back(store_of(read_cell(state_, replica(peer), cell))); });
      for (const lib::CellStore& store : stores) read.push_back(&store);
      const lib::Context context{.epoch = lib::Epoch{replica(peer).epoch},
                                 .floor = timestamp_of(client.floor),
                                 .dots = lib::context_of_read(read, clock_of(replica(peer)))};
      ASSERT(events_in(context.dots) == client.context, "read at {}: {}", peer, context);
      if (scope_.policy != Policy::lww) continue;
      for (int timestamp = std::max(1, client.floor); timestamp <= client.floor + 1; ++timestamp) {
        for (const Kind kind : {Kind::put, Kind::remove}) {
          compare_raise(r, cells, client, context, timestamp, kind);
          compare_explicit(r, cells, client, context, timestamp, kind);
        }
      }
    }
  }

  static lib::Timestamp timestamp_of(int floor) {
    return floor == 0 ? lib::kTimestampMin : lib::Timestamp{floor};
  }
  static lib::Mutation mutation_of(Mask cells, const lib::Context& context, int timestamp,
                                   Kind kind) {
    lib::Mutation mutation;
    mutation.context = context;
    mutation.timestamp = lib::Timestamp{timestamp};
    each(cells, [&](int cell) {
      lib::CellChange& change = mutation.cells.emplace_back();
      change.row = row_of(0);
      change.column = column_of(cell);
      if (kind == Kind::remove) change.kind = lib::VersionKind::deletion;
    });
    return mutation;
  }

  // Rules (a) and (b).
  void compare_raise(int r, Mask cells, const ReadContext& client, const lib::Context& context,
                     int timestamp, Kind kind) const {
    const Replica& it = replica(r);
    const Events seen = seen_by(state_, it);
    const int floor = floor_of_log(state_, r, cells, seen);
    lib::Clock clock = clock_of(it);
    const lib::Delta delta =
        lib::mint(clock, actor_of(it), lib::Epoch{it.epoch}, policy(),
                  mutation_of(cells, context, timestamp, kind), timestamp_of(floor))
            .value();
    ASSERT(events_in(delta.context.dots) == (seen | client.context), "context {}", delta.context);
    const int want = std::max(timestamp, std::max(client.floor, floor) + 1);
    ASSERT(delta.timestamp == lib::Timestamp{want}, "{} where {} is right", delta.timestamp, want);
  }

  // Rule (d): cell by cell by what is known here, then by the context.
  void compare_explicit(int r, Mask cells, const ReadContext& client, const lib::Context& context,
                        int timestamp, Kind kind) const {
    const Replica& it = replica(r);
    const auto strength = kind == Kind::put ? Strength::stays : Strength::defeats_expiring;
    const Mask wins = cells_it_wins(state_, scope_, r, cells, timestamp, strength);
    lib::Version write;
    write.timestamp = lib::Timestamp{timestamp};
    write.kind = kind == Kind::remove ? lib::VersionKind::deletion : lib::VersionKind::value;
    // Larger than those of any version there is.
    if (kind == Kind::put) write.value = base::Bytes::copy_of("~");
    each(cells, [&](int cell) {
      lib::Versions versions;
      each(read_cell(state_, it, cell).versions, [&](int e) {
        versions.push_back(version_of(e));
        if (event(e).kind == Kind::remove) versions.back().value = {};
      });
      const int floor = floor_of_log(state_, r, bit(cell), seen_by(state_, it));
      const bool applies = lib::explicit_write_applies(lib::CellStore(std::move(versions), {}),
                                                       timestamp_of(floor), write);
      ASSERT(applies == has(wins, cell), "cell {} of {} at {}", cell, r, timestamp);
    });
    if (wins == 0) return;
    lib::Mutation mutation = mutation_of(wins, context, timestamp, kind);
    mutation.timestamp_is_explicit = true;
    const int floor = floor_of_log(state_, r, wins, seen_by(state_, it));
    lib::Clock clock = clock_of(it);
    const bool covers = clock.covers(context.dots);
    const auto minted = lib::mint(clock, actor_of(it), lib::Epoch{it.epoch}, policy(),
                                  std::move(mutation), timestamp_of(floor));
    // An actor that is closed at the reader and not here has all its dots covered, those to come
    // too; the masks know those that came.
    const bool closes = !covers && (client.context & ~seen_by(state_, it)) == 0;
    const bool forbidden = forbids_explicit(state_, scope_, r, client, timestamp) ||
                           (closes && timestamp <= client.floor);
    ASSERT(minted.has_value() != forbidden, "explicit {} at {}", timestamp, r);
    ASSERT(!minted || minted->timestamp == lib::Timestamp{timestamp});
  }

  // Every merge that could happen now, and by whose knowledge it may strip and drop.
  static void compare_instants(const Table& table) {
    if (table.is_frozen != 0) compare_instant(table, plan_of_flush(table));
    for (unsigned inputs = 1; inputs < 1U << table.sstables; ++inputs) {
      compare_instant(table, plan_of_compaction(table, inputs));
    }
  }
  static void compare_instant(const Table& table, const MergePlan& plan) {
    for (int slot = 0; slot < kSlots; ++slot) {
      std::vector<lib::FragmentSpan> inputs;
      std::vector<lib::FragmentSpan> others;
      const auto sort_in = [&](const Layer& layer, std::uint64_t first, std::uint64_t last) {
        const bool is_input =
            std::find(plan.input, plan.input + plan.inputs, &layer) != plan.input + plan.inputs;
        (is_input ? inputs : others)
            .push_back(
                {.first_freeze = first, .last_freeze = last, .may_hold_key = holds(layer, slot)});
      };
      for (unsigned i = 0; i < table.sstables; ++i) {
        sort_in(table.sstable[i], table.sstable_at[i].first, table.sstable_at[i].last);
      }
      if (table.is_frozen != 0) {
        sort_in(table.frozen, table.frozen_at.first, table.frozen_at.last);
      }
      sort_in(table.memtable, lib::kNotFrozen, lib::kNotFrozen);
      const lib::MergeInstant instant = lib::merge_instant(inputs, others);
      ASSERT(static_cast<int>(instant) == static_cast<int>(instant_of(plan, slot)), "slot {}",
             slot);
    }
  }

  void compare_storage(int r) const {
    const Replica& it = replica(r);
    const lib::Clock clock = clock_of(it);
    for (int t = 0; t < scope_.tables; ++t) {
      const Table& table = it.table[static_cast<unsigned>(t)];
      MergePlan plan{};
      plan.input[plan.inputs++] = &table.memtable;
      if (table.is_frozen != 0) plan.input[plan.inputs++] = &table.frozen;
      for (unsigned i = 0; i < table.sstables; ++i) plan.input[plan.inputs++] = &table.sstable[i];
      lib::PartitionStore whole;
      for (int i = 0; i < plan.inputs; ++i) whole.absorb(partition_of(t, *plan.input[i]));
      for (int slot = 0; slot < kCellsPerTable; ++slot) compare_cell(r, t, slot, whole, clock);
      compare_instants(table);
      plan.at_freeze = plan.now = freeze_now(state_, scope_, r);
      compare_merge(t, plan, std::move(whole));
    }
  }

  void compare_cell(int r, int t, int slot, const lib::PartitionStore& whole,
                    const lib::Clock& clock) const {
    const Replica& it = replica(r);
    const int cell = t * kCellsPerTable + slot;
    const lib::CellStore store = whole.cell(row_of(t), column_of(slot));
    const Fragment want = read_cell(state_, it, cell);
    ASSERT(fragment_of(store) == want, "cell {} of {}: {}", cell, r, store);
    ASSERT(fragment_of(lib::fill(store, clock)) == filled(state_, scope_, r, cell));
    ASSERT(lib::decode_cell(lib::encoded(lib::CellStore({}, store.context()))).has_value());
    Events shown = 0;
    for (const lib::Version* version : lib::visible(store, policy(), lib::WallTime{it.wall})) {
      const auto at = std::ranges::find(dots_, version->dot);
      shown |= event_bit(static_cast<int>(at - dots_.begin()));
    }
    ASSERT(shown == visible(state_, scope_, want.versions, it.wall), "cell {} of {}", cell, r);
  }

  // A merge of everything at this instant: drop what is stable, then strip what is known.
  void compare_merge(int t, const MergePlan& plan, lib::PartitionStore whole) const {
    const Layer want = merge_layers(state_, scope_, plan);
    Events scoped_before = 0;
    for (const lib::RangeDelete& scoped : whole.range_deletes()) {
      scoped_before |= fragment_of(scoped.store).versions;
    }
    lib::Stability stable;
    stable.dots = clock_of(plan.now.stable);
    stable.wall = lib::WallTime{plan.now.expired != 0 ? 1 : 0};
    lib::drop_stable(whole, policy(), stable);
    whole.strip(clock_of(plan.now.base));
    Layer got{};
    if (const auto row = whole.rows().find(row_of(t)); row != whole.rows().end()) {
      for (int slot = 0; slot < kCellsPerTable; ++slot) {
        got[static_cast<unsigned>(slot)] = fragment_of(row->second.cell(column_of(slot)));
      }
    }
    for (const lib::RangeDelete& scoped : whole.range_deletes()) {
      got[kScopeSlot] = fragment_of(scoped.store);
    }
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      ASSERT(got[slot].versions == want[slot].versions, "slot {} of table {}", slot, t);
      // The library spares a scope's version only while it is there; the explorer decides before.
      ASSERT((got[slot].context & ~want[slot].context) == 0, "slot {} of table {}", slot, t);
      ASSERT((want[slot].context & ~(got[slot].context | scoped_before)) == 0,
             "slot {} of table {}", slot, t);
    }
  }

  void compare_delta(int e) const {
    const Event& it = event(e);
    lib::Delta delta;
    delta.dot = dots_[static_cast<unsigned>(e)];
    delta.timestamp = lib::Timestamp{it.timestamp};
    delta.context.epoch = lib::Epoch{it.epoch};
    delta.context.dots = clock_of(it.context);
    const lib::Version version = version_of(e);
    each(it.scoped != 0 ? 0U : it.cells, [&](int cell) {
      lib::CellChange& change = delta.cells.emplace_back();
      change.row = row_of(cell / kCellsPerTable);
      change.column = column_of(cell % kCellsPerTable);
      change.kind = version.kind;
      change.expires = version.expires;
      if (version.kind == lib::VersionKind::value) change.value = version.value;
    });
    const int scoped_table = std::countr_zero(it.cells) / kCellsPerTable;
    if (it.scoped != 0) delta.deleted_ranges.push_back(lib::range_of_row(row_of(scoped_table)));
    ASSERT(lib::decode_delta(lib::encoded(delta)).value() == delta);
    const lib::PartitionStore fragment = lib::fragment_of(delta, policy());
    const bool adds_version = it.kind != Kind::remove || scope_.policy == Policy::lww;
    const Fragment want{adds_version ? event_bit(e) : Events{0}, it.context};
    each(it.cells, [&](int cell) {
      const auto row = row_of(cell / kCellsPerTable);
      ASSERT(fragment_of(fragment.cell(row, column_of(cell % kCellsPerTable))) == want);
    });
  }

  const State& state_;
  const Scope& scope_;
  std::vector<lib::Dot> dots_;
};

}  // namespace

void compare_with_library(const State& state, const Scope& scope) {
  ASSERT(!scope.replaces, "two events under one dot have no translation");
  Comparison(state, scope).run();
}

}  // namespace helenus::explore
