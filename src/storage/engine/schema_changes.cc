#include "storage/engine/schema_changes.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

SchemaChanges::SchemaChanges(EngineState& state, ManifestChanges& manifests,
                             MutationKeeper& mutations, Flusher& flusher)
    : state_(state),
      manifests_(manifests),
      mutations_(mutations),
      flusher_(flusher),
      turn_(state.runtime, 1, SIZE_MAX) {}

Task<Result<void>> SchemaChanges::create_table(TableId table, TableOptions options) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  if (table.value() > kTableIdMax) co_return Error(Errc::invalid_argument, "table {}", table);
  if (options.filter) CO_TRY_VOID(validate(*options.filter));
  for (const auto& shard : state_.shards) {
    if (shard->table(table) != nullptr) co_return Error(Errc::already_exists, "table {}", table);
  }
  // Records of an earlier table of that name may still lie in the logs: they are not of this one.
  TableRecord record{.options = options, .flushed = {}, .sstables = {}};
  record.flushed.add_before(state_.log_incarnation);
  record.flushed.add(state_.log->core(), state_.log->tail());
  for (const auto& shard : state_.shards | std::views::reverse) {
    CO_TRY_VOID(co_await manifests_.install_until_done(
        *shard, [=](ManifestState& state) { state.tables[table] = record; }));
  }
  CO_TRY_VOID(co_await manifests_.note_generations());
  bool has_index = options.index.has_value();
  for (const auto& shard : state_.shards) {
    has_index = !shard->add_table(table, options)->indexes().empty() || has_index;
  }
  if (has_index) state_.signals.index_work.wake_all();
  co_return {};
}

Task<Result<void>> SchemaChanges::alter_table(TableId table, TableOptions options) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  if (options.filter) CO_TRY_VOID(validate(*options.filter));
  CO_TRY_VOID(validate(options.compaction));
  bool found = false;
  for (const auto& shard : state_.shards) {
    TableStore* store = shard->table(table);
    if (store == nullptr) continue;
    found = true;
    options.policy = store->options().policy;
    if (store->options() == options) continue;
    CO_TRY_VOID(co_await manifests_.install_until_done(
        *shard, [=](ManifestState& state) { state.tables[table].options = options; }));
    CO_TRY_VOID(co_await manifests_.note_generations());
    store->set_options(options);
    if (options.index) shard->tell_index(*store);
  }
  // Files that are there are merged by it, too.
  state_.signals.compaction_work.wake_all();
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  co_return {};
}

namespace {

Clocks dots_of(const std::vector<TabletBatch>& batches) {
  Clocks clocks;
  for (const TabletBatch& batch : batches) {
    for (const KeptMutation& mutation : batch.mutations) clocks[batch.tablet].add(mutation.dot);
  }
  return clocks;
}

}  // namespace

Task<Result<void>> SchemaChanges::drop_table(TableId table) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  bool found = false;
  for (const auto& shard : state_.shards) {
    const auto at = shard->tables().find(table);
    if (at == shard->tables().end()) continue;
    found = true;
    const std::shared_ptr<TableStore> store = at->second;
    store->set_dropped();
    shard->remove_table(table);
    state_.memory.memtables -= store->active_bytes();
    for (const FrozenMemtable& frozen : store->frozen()) state_.memory.memtables -= frozen.bytes;
    // Its records go from the log without having been flushed; their dots were minted all the same.
    const Clocks dropped = store->dots_in_memory();
    // And peers may lack them still: of these only the dots are left. Of what is in mutation files
    // it shows when they are given.
    const Clocks covered =
        dots_of(MutationKeeper::mutations_of(*shard, table, state_.staged.last_sequence()));
    CO_TRY_VOID(co_await state_.log->sync_to(state_.log->tail(), {.stop = state_.stop.token()}));
    CO_TRY_VOID(co_await manifests_.install_until_done(*shard, [&](ManifestState& state) {
      state.tables.erase(table);
      if (!store->is_index()) join_clocks(state, dropped);
      MutationKeeper::enter_mutations(state, *shard, nullptr);
      for (const auto& [id, dots] : covered) {
        const auto tablet = state.tablets.find(id);
        if (tablet == state.tablets.end()) continue;
        tablet->second.covered = causality::join(tablet->second.covered, dots);
      }
    }));
    for (const auto& [id, dots] : covered) {
      if (Tablet* owner = shard->tablet(id); owner != nullptr) mutations_.cover(*owner, dots);
    }
    CO_TRY_VOID(co_await manifests_.note_generations());
    state_.log->forget_table(store->stream());
    co_await shard->remove_files(store->sstables());
  }
  state_.wake_everybody();
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  co_return {};
}

namespace {

bool overlaps(const KeyRange& a, const KeyRange& b) {
  const bool a_first = a.to && *a.to <= b.from;
  const bool b_first = b.to && *b.to <= a.from;
  return !a_first && !b_first;
}

// Whether memtables have mutations of such a tablet.
bool has_in_memory(const Shard& shard, TabletId tablet) {
  return std::ranges::any_of(shard.tables(),
                             [&](const auto& each) { return each.second->has_in_memory(tablet); });
}

}  // namespace

// The shard where it may be made.
Result<Shard*> SchemaChanges::check_new(const TabletInfo& tablet) const {
  if (tablet.range.to && *tablet.range.to <= tablet.range.from) {
    return Error(Errc::invalid_argument, "the range of tablet {} is empty", tablet.id);
  }
  Shard* shard = state_.shard_of(tablet.id);
  if (shard == nullptr) {
    return Error(Errc::invalid_argument, "tablet {} belongs to another core", tablet.id);
  }
  if (shard->tablet(tablet.id) != nullptr) {
    return Error(Errc::already_exists, "tablet {}", tablet.id);
  }
  for (const auto& [id, other] : shard->tablets()) {
    if (overlaps(tablet.range, other->range)) {
      return Error(Errc::invalid_argument, "tablet {} overlaps tablet {}", tablet.id, id);
    }
  }
  for (const KeyRange& dropped : shard->manifest().dropped_ranges) {
    if (overlaps(tablet.range, dropped)) {
      return Error(Errc::unavailable,
                   "what a dropped tablet had where tablet {} is to be, is not gone yet",
                   tablet.id);
    }
  }
  // The flush of what an earlier tablet of this id had would give its dots to the new one: dots
  // without data. take_away() has flushed it.
  ASSERT(!has_in_memory(*shard, tablet.id), "tablet {} was dropped before it was flushed",
         tablet.id);
  return shard;
}

Task<Result<void>> SchemaChanges::create_tablet(TabletId tablet, KeyRange range,
                                                causality::ActorId actor) {
  const TabletInfo made{.id = tablet, .range = std::move(range), .actor = actor};
  return create_tablets(std::vector(1, made));
}

Task<Result<void>> SchemaChanges::create_tablets(std::vector<TabletInfo> tablets) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  std::ranges::sort(tablets, {}, [](const TabletInfo& each) { return each.range.from; });
  std::map<ShardNumber, std::vector<TabletInfo>> by_shard;
  for (TabletInfo& tablet : tablets) {
    CO_TRY(const Shard* const shard, check_new(tablet));
    std::vector<TabletInfo>& others = by_shard[shard->number()];
    if (!others.empty() && overlaps(others.back().range, tablet.range)) {
      co_return Error(Errc::invalid_argument, "tablet {} overlaps tablet {}", tablet.id,
                      others.back().id);
    }
    others.push_back(std::move(tablet));
  }
  for (const auto& [number, made] : by_shard) {
    Shard& shard = *state_.shard_of(made.front().id);
    CO_TRY_VOID(co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
      for (const TabletInfo& tablet : made) {
        state.tablets.emplace(
            tablet.id, TabletRecord{.range = tablet.range, .actor = tablet.actor, .clock = {}});
        shard.enter_empty_range(state, tablet.range);
      }
    }));
  }
  CO_TRY_VOID(co_await manifests_.note_generations());
  for (const auto& [number, made] : by_shard) {
    Shard& shard = *state_.shard_of(made.front().id);
    for (const TabletInfo& tablet : made) {
      shard.add_tablet(tablet.id, {.range = tablet.range, .actor = tablet.actor, .clock = {}});
    }
  }
  co_return {};
}

Task<Result<void>> SchemaChanges::drop_tablets(std::vector<TabletId> tablets) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY(const std::vector<TabletInfo> dropped, co_await take_away(std::move(tablets)));
  const auto has_some_left = [this](const TabletInfo& tablet) {
    const auto& ranges = state_.shard_of(tablet.id)->manifest().dropped_ranges;
    return std::ranges::find(ranges, tablet.range) != ranges.end();
  };
  while (std::ranges::any_of(dropped, has_some_left)) {
    CO_TRY_VOID(state_.check_writable());
    CO_TRY_VOID(co_await state_.signals.files_changed.wait({.stop = state_.stop.token()}));
  }
  co_return {};
}

// The records of the tablets leave the log first: a start that does not know a tablet could not
// replay them.
Task<Result<void>> SchemaChanges::flush_all_of(const std::vector<TabletId>& tablets) {
  std::set<TableId> tables;
  for (const TabletId tablet : tablets) {
    for (const auto& [id, table] : state_.shard_of(tablet)->tables()) {
      if (table->has_in_memory(tablet)) tables.insert(id);
    }
  }
  for (const TableId table : tables) {
    CO_TRY_VOID(co_await flusher_.flush(table, {.stop = state_.stop.token()}));
  }
  co_return {};
}

Task<Result<std::vector<TabletInfo>>> SchemaChanges::take_away(std::vector<TabletId> tablets) {
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  std::map<ShardNumber, std::vector<Tablet*>> by_shard;
  std::vector<TabletInfo> taken;
  for (const TabletId id : tablets) {
    Tablet* replica = state_.find_tablet(id);
    if (replica == nullptr) co_return Error(Errc::not_found, "tablet {}", id);
    by_shard[state_.shard_of(id)->number()].push_back(replica);
    taken.push_back({.id = id, .range = replica->range, .actor = replica->actor});
  }
  const auto set_dropping = [&](bool dropping) {
    for (const auto& [number, replicas] : by_shard) {
      for (Tablet* replica : replicas) replica->dropping = dropping;
    }
  };
  set_dropping(true);
  auto flushed = co_await flush_all_of(tablets);
  if (!flushed) {
    set_dropping(false);
    co_return std::move(flushed).error();
  }
  for (const auto& [number, replicas] : by_shard) {
    Shard& shard = *state_.shard_of(replicas.front()->id);
    for (Tablet* replica : replicas) replica->lost_mutations.reset();
    CO_TRY_VOID(co_await manifests_.install_until_done(shard, [&](ManifestState& state) {
      for (const Tablet* replica : replicas) {
        state.tablets.erase(replica->id);
        const auto at = std::ranges::lower_bound(state.dropped_ranges, replica->range.from, {},
                                                 &KeyRange::from);
        state.dropped_ranges.insert(at, replica->range);
      }
      shard.enter_unreadable_mutations(state);
    }));
  }
  CO_TRY_VOID(co_await manifests_.note_generations());
  state_.advance_durable();
  bool was_in_doubt = false;
  for (const auto& [number, replicas] : by_shard) {
    Shard& shard = *state_.shard_of(replicas.front()->id);
    for (Tablet* replica : replicas) {
      state_.staged.forget(*replica);
      mutations_.forget(*replica);
      was_in_doubt = was_in_doubt || replica->in_doubt;
      shard.remove_tablet(replica->id);
    }
  }
  mutations_.count_dots();
  state_.wake_everybody();
  if (was_in_doubt) CO_TRY_VOID(co_await clear_tail_doubt());
  co_return taken;
}

std::vector<TabletInfo> SchemaChanges::tablets() const {
  std::vector<TabletInfo> tablets;
  for (const auto& shard : state_.shards) {
    for (const auto& [id, tablet] : shard->tablets()) {
      if (tablet->dropping) continue;
      tablets.push_back({.id = id, .range = tablet->range, .actor = tablet->actor});
    }
  }
  return tablets;
}

Task<Result<void>> SchemaChanges::reincarnate(std::vector<TabletName> names) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  std::map<ShardNumber, std::vector<TabletName>> by_shard;
  for (const TabletName& name : names) {
    const Tablet* replica = state_.find_tablet(name.id);
    if (replica == nullptr) co_return Error(Errc::not_found, "tablet {}", name.id);
    if (name.actor == replica->actor || replica->clock.max_of(name.actor) > 0 ||
        replica->clock.is_closed(name.actor)) {
      co_return Error(Errc::invalid_argument, "actor {} has been used before", name.actor);
    }
    by_shard[state_.shard_of(name.id)->number()].push_back(name);
  }
  for (const auto& [number, some] : by_shard) {
    CO_TRY_VOID(co_await manifests_.install_until_done(
        *state_.shard_of(some.front().id), [&](ManifestState& state) {
          for (const TabletName& name : some) state.tablets[name.id].actor = name.actor;
        }));
  }
  CO_TRY_VOID(co_await manifests_.note_generations());
  bool was_in_doubt = false;
  for (const TabletName& name : names) {
    Tablet& replica = *state_.find_tablet(name.id);
    replica.actor = name.actor;
    was_in_doubt |= std::exchange(replica.in_doubt, false);
  }
  if (was_in_doubt) CO_TRY_VOID(co_await clear_tail_doubt());
  co_return {};
}

Task<Result<void>> SchemaChanges::clear_tail_doubt() {
  if (state_.log_directory == nullptr || !state_.tablets_in_doubt().empty()) co_return {};
  co_return co_await state_.log_directory->clear_tail_doubt();
}

Task<Result<void>> SchemaChanges::cover(TabletId tablet, causality::Clock dots) {
  CO_TRY(const auto pass, state_.gate.enter());
  CO_TRY_VOID(state_.check_writable());
  CO_TRY(const auto turn, co_await turn_.acquire(1, {.stop = state_.stop.token()}));
  Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) co_return Error(Errc::not_found, "tablet {}", tablet);
  if (!dots.closed().empty()) {
    co_return Error(Errc::invalid_argument, "closed actors are not closed by what they minted");
  }
  const causality::Clock unseen = causality::subtract(dots, replica->clock);
  if (unseen.empty()) co_return {};
  if (unseen.max_of(replica->actor) > 0) {
    co_return Error(Errc::invalid_argument,
                    "dots of actor {} are of this replica, which has not "
                    "minted them",
                    replica->actor);
  }
  CO_TRY_VOID(
      co_await manifests_.install_until_done(*state_.shard_of(tablet), [=](ManifestState& state) {
        TabletRecord& record = state.tablets[tablet];
        record.clock = causality::join(record.clock, unseen);
        record.covered = causality::join(record.covered, unseen);
      }));
  CO_TRY_VOID(co_await manifests_.note_generations());
  replica->clock = causality::join(replica->clock, unseen);
  replica->durable = causality::join(replica->durable, unseen);
  state_.staged.note_changed(*replica);
  mutations_.cover(*replica, unseen);
  co_return {};
}

}  // namespace helenus::storage
