#include "replication/tablets/tablet_directory.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "base/assert.h"
#include "causality/dot.h"
#include "runtime/clock.h"
#include "runtime/run_on.h"
#include "storage/engine/engines.h"

namespace helenus::replication {

using base::kv;
using base::Result;
using runtime::CoreId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using storage::TabletId;

TabletDirectory::TabletDirectory(Private, Runtime& runtime, storage::Engines& engines)
    : runtime_(runtime),
      engines_(engines),
      log_(runtime.logger("replication")),
      dropped_(runtime),
      drops_(runtime) {}

Task<Result<std::unique_ptr<TabletDirectory>>> TabletDirectory::open(Runtime& runtime,
                                                                     storage::Engines& engines) {
  auto directory = std::make_unique<TabletDirectory>(Private{}, runtime, engines);
  CO_TRY(const auto tablets, co_await engines.tablets());
  for (const storage::TabletInfo& tablet : tablets) directory->tablets_.insert(tablet.id);
  // Tablets that the folder does not have yet may be ones that it has lost.
  directory->doubts_all_ = engines.report().log.tail_may_be_lost;
  co_return directory;
}

Task<Result<HeldTabletsPtr>> TabletDirectory::hold(ReplicaMapPtr map) {
  const auto core_of = [this](TabletId tablet) { return engines_.core_of(tablet); };
  const HeldTablets wanted(map, core_of);
  CO_TRY_VOID(co_await drop_outdated(wanted));
  CO_TRY_VOID(co_await drop_damaged(wanted));
  std::vector<storage::TabletInfo> missing;
  for (const HeldTablet& tablet : wanted.all()) {
    if (!tablets_.contains(tablet.info.id)) missing.push_back(tablet.info);
  }
  if (doubts_all_ && !has_new_names(wanted)) name_apart(missing);
  CO_TRY_VOID(co_await make(std::move(missing)));
  CO_TRY_VOID(co_await rename_doubtful(wanted));
  CO_TRY_VOID(co_await take_names(wanted));
  if (!doubts_all_) CO_TRY_VOID(co_await engines_.clear_tail_doubt());
  std::vector<TabletId> doubtful;
  for (const HeldTablet& tablet : wanted.all()) {
    if (doubts_all_ && !tablet.is_alone()) doubtful.push_back(tablet.info.id);
  }
  std::ranges::sort(doubtful);
  if (!doubtful.empty()) {
    log_.warn("replicas here may have lost writes that other nodes know of, and serve nobody",
              kv("tablets", doubtful.size()));
  }
  co_return std::make_shared<const HeldTablets>(std::move(map), core_of, doubtful);
}

Task<Result<void>> TabletDirectory::drop_outdated(const HeldTablets& held) {
  if (std::ranges::none_of(held.all(), &HeldTablet::is_pending)) co_return {};
  CO_TRY(const auto there, co_await engines_.tablets());
  std::vector<TabletId> outdated;
  for (const storage::TabletInfo& tablet : there) {
    const HeldTablet* kept = held.find(tablet.range.from.view());
    const bool is_outdated = kept != nullptr && kept->is_pending && kept->info.id == tablet.id &&
                             kept->info.actor != tablet.actor && tablets_.contains(tablet.id);
    if (is_outdated) outdated.push_back(tablet.id);
  }
  if (outdated.empty()) co_return {};
  log_.info("what is here of tablets that this node has left is dropped: they are filled anew",
            kv("tablets", outdated.size()));
  for (const TabletId tablet : outdated) tablets_.erase(tablet);
  co_return co_await engines_.drop_tablets(std::move(outdated));
}

bool TabletDirectory::has_new_names(const HeldTablets& held) const {
  return reentry_after_ && held.map()->reentered() > *reentry_after_;
}

Task<Result<void>> TabletDirectory::forget_doubts() {
  doubts_all_ = false;
  co_return co_await engines_.clear_tail_doubt();
}

Task<Result<void>> TabletDirectory::note_doubt() {
  return engines_.note_doubt();
}

// The metadata say that the node is in doubt by now: a crash from here on leaves it so, and what
// was dropped is not taken for empty.
Task<Result<void>> TabletDirectory::drop_damaged(const HeldTablets& held) {
  if (damaged_.empty() || !has_new_names(held)) co_return {};
  std::vector<TabletId> dropped;
  for (const TabletId tablet : std::exchange(damaged_, {})) {
    if (tablets_.erase(tablet) > 0) dropped.push_back(tablet);
  }
  if (dropped.empty()) co_return {};
  log_.warn("replicas with damaged files are made anew from others", kv("tablets", dropped.size()));
  co_return co_await engines_.drop_tablets(std::move(dropped));
}

Task<Result<void>> TabletDirectory::take_names(const HeldTablets& held) {
  const bool are_new = has_new_names(held);
  CO_TRY(const std::vector<TabletId> in_doubt, co_await engines_.tablets_in_doubt());
  CO_TRY(const auto there, co_await engines_.tablets());
  std::vector<storage::TabletName> names;
  for (const storage::TabletInfo& tablet : there) {
    const HeldTablet* kept = held.find(tablet.range.from.view());
    if (kept == nullptr || kept->is_alone() || kept->info.id != tablet.id) continue;
    const bool has_name = tablet.actor == kept->info.actor;
    if (are_new && !has_name) {
      names.push_back({.id = tablet.id, .actor = kept->info.actor});
    } else if (!are_new && (!has_name || std::ranges::binary_search(in_doubt, tablet.id))) {
      doubts_all_ = true;
    }
  }
  if (!names.empty()) CO_TRY_VOID(co_await engines_.reincarnate(std::move(names)));
  if (are_new) doubts_all_ = false;
  co_return {};
}

Task<Result<void>> TabletDirectory::make(std::vector<storage::TabletInfo> missing) {
  if (missing.empty()) co_return {};
  const auto is_going = [this](const storage::TabletInfo& tablet) {
    return dropping_.contains(tablet.id);
  };
  // One that has left and comes back is filled anew: what is here of it goes first.
  while (std::ranges::any_of(missing, is_going)) {
    CO_TRY_VOID(co_await dropped_.wait(Until::forever()));
  }
  std::map<TabletId, causality::ActorId> wanted;
  for (const storage::TabletInfo& tablet : missing) wanted.emplace(tablet.id, tablet.actor);
  const auto made = co_await engines_.create_tablets(std::move(missing));
  // An attempt that was cut short has made some.
  CO_TRY(const auto there, co_await engines_.tablets());
  for (const storage::TabletInfo& tablet : there) {
    const auto at = wanted.find(tablet.id);
    if (at != wanted.end() && at->second == tablet.actor) tablets_.insert(tablet.id);
  }
  co_return made;
}

namespace {

// After all that this folder knows of, and, by the time, after what other lives of an older image
// of it went on as: one that is put back twice does not come back under one name.
std::uint32_t incarnation_after(std::uint32_t last, runtime::WallTime now) {
  constexpr auto kMax = std::numeric_limits<std::uint32_t>::max();
  ASSERT(last < kMax);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now.since_origin()).count();
  return std::max(last + 1, static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, kMax)));
}

}  // namespace

void TabletDirectory::name_apart(std::vector<storage::TabletInfo>& tablets) const {
  for (storage::TabletInfo& tablet : tablets) {
    tablet.actor.incarnation = causality::Incarnation(
        incarnation_after(tablet.actor.incarnation.value(), runtime_.clock.wall_now()));
  }
}

Task<Result<void>> TabletDirectory::rename_doubtful(const HeldTablets& held) {
  CO_TRY(const std::vector<TabletId> doubts, co_await engines_.tablets_in_doubt());
  if (doubts.empty()) co_return {};
  CO_TRY(const auto there, co_await engines_.tablets());
  for (const storage::TabletInfo& tablet : there) {
    if (!std::ranges::binary_search(doubts, tablet.id)) continue;
    const HeldTablet* kept = held.find(tablet.range.from.view());
    if (kept != nullptr && !kept->is_alone()) continue;
    const causality::ActorId name{
        .node = tablet.actor.node,
        .incarnation = causality::Incarnation(
            incarnation_after(tablet.actor.incarnation.value(), runtime_.clock.wall_now()))};
    CO_TRY_VOID(co_await engines_.reincarnate(tablet.id, name));
    log_.info("tablet mints under a new name", kv("tablet", tablet.id), kv("actor", name));
  }
  co_return {};
}

Task<Result<causality::ActorId>> TabletDirectory::next_name(TabletId tablet,
                                                            causality::ActorId last) {
  CO_TRY(const auto there, co_await engines_.tablets());
  const auto found = std::ranges::find(there, tablet, &storage::TabletInfo::id);
  const std::uint32_t before =
      found == there.end() ? last.incarnation.value()
                           : std::max(last.incarnation.value(), found->actor.incarnation.value());
  co_return causality::ActorId{
      .node = last.node,
      .incarnation = causality::Incarnation(incarnation_after(before, runtime_.clock.wall_now()))};
}

void TabletDirectory::let_go(const HeldTablets& held) {
  std::set<TabletId> kept;
  for (const HeldTablet& tablet : held.all()) kept.insert(tablet.info.id);
  std::vector<TabletId> unused;
  std::ranges::set_difference(tablets_, kept, std::back_inserter(unused));
  if (unused.empty()) return;
  for (const TabletId tablet : unused) {
    tablets_.erase(tablet);
    dropping_.insert(tablet);
  }
  drops_.spawn(drop(std::move(unused)));
}

// What cannot be dropped now is dropped after the next start.
Task<void> TabletDirectory::drop(std::vector<TabletId> tablets) {
  const std::size_t count = tablets.size();
  const auto dropped = co_await engines_.drop_tablets(tablets);
  for (const TabletId tablet : tablets) dropping_.erase(tablet);
  dropped_.wake_all();
  if (dropped) co_return;
  log_.warn("tablets that are no longer in use stay for now", kv("tablets", count),
            kv("error", dropped.error()));
}

CoreId TabletDirectory::core_of(TabletId tablet) const {
  return engines_.core_of(tablet);
}

namespace {

Task<Result<std::vector<TableId>>> tables_on_core(storage::Engine& engine) {
  co_return engine.tables();
}

}  // namespace

// A table is there if the first shard has it (storage/engine/engines.h), which the first core has.
Task<Result<std::vector<TableId>>> TabletDirectory::tables() {
  static constexpr CoreId kFirst{0};
  const auto list = [this](Runtime&, const Until&) { return tables_on_core(engines_.on(kFirst)); };
  co_return co_await runtime::run_on<std::vector<TableId>>(runtime_, kFirst, list,
                                                           Until::forever());
}

Task<Result<void>> TabletDirectory::create_table(TableId table, storage::TableOptions options) {
  return engines_.create_table(table, options);
}

Task<Result<void>> TabletDirectory::alter_table(TableId table, storage::TableOptions options) {
  return engines_.alter_table(table, options);
}

Task<Result<void>> TabletDirectory::drop_table(TableId table) {
  return engines_.drop_table(table);
}

}  // namespace helenus::replication
