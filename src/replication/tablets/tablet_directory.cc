#include "replication/tablets/tablet_directory.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "causality/dot.h"
#include "replication/tablets/ring_cut.h"
#include "runtime/clock.h"
#include "runtime/run_on.h"
#include "storage/engine/engines.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using runtime::CoreId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using storage::TabletId;

TabletDirectory::TabletDirectory(Private, Runtime& runtime, storage::Engines& engines,
                                 TabletOptions options)
    : runtime_(runtime),
      engines_(engines),
      options_(options),
      log_(runtime.logger("replication")) {}

Task<Result<std::unique_ptr<TabletDirectory>>> TabletDirectory::open(Runtime& runtime,
                                                                     storage::Engines& engines,
                                                                     TabletOptions options) {
  if (options.count == 0 || options.count > TabletOptions::kCountMax) {
    co_return Error(Errc::invalid_argument, "{} tablets; the ring is cut into 1 to {}",
                    options.count, TabletOptions::kCountMax);
  }
  auto directory = std::make_unique<TabletDirectory>(Private{}, runtime, engines, options);
  CO_TRY_VOID(co_await directory->make_tablets());
  CO_TRY_VOID(co_await directory->rename_doubtful());
  co_return directory;
}

namespace {

// On a tablet's core.
Task<Result<std::vector<storage::TabletInfo>>> settle_tablets(storage::Engine& engine) {
  std::vector<storage::TabletInfo> tablets = engine.tablets();
  // Nobody else holds a replica.
  for (const storage::TabletInfo& tablet : tablets) engine.set_watermarks(tablet.id, {});
  co_return tablets;
}

}  // namespace

Task<Result<void>> TabletDirectory::make_tablets() {
  // A crash among the first creations leaves some of them: the rest follows.
  for (std::uint32_t i = 0; i < options_.count; ++i) {
    const Result<void> made = co_await engines_.create_tablet(
        TabletId{i}, cut(i, options_.count), causality::actor_of(options_.node_number, 1));
    if (!made && !made.failed_with(Errc::already_exists)) {
      co_return Error(made.error()).within("cutting the ring");
    }
  }
  for (std::uint32_t core = 0; core < engines_.cores(); ++core) {
    const auto settle = [this, core](Runtime&, const Until&) {
      return settle_tablets(engines_.on(CoreId{core}));
    };
    CO_TRY(auto some, co_await runtime::run_on<std::vector<storage::TabletInfo>>(
                          runtime_, CoreId{core}, settle, Until::forever()));
    std::ranges::move(some, std::back_inserter(tablets_));
  }
  std::ranges::sort(tablets_, {}, [](const storage::TabletInfo& tablet) { return tablet.id; });
  for (std::uint32_t i = 0; i < tablets_.size(); ++i) {
    if (tablets_.size() != options_.count || tablets_[i].range != cut(i, options_.count)) {
      co_return Error(Errc::invalid_argument, "the ring of this folder is cut into {} tablets",
                      tablets_.size());
    }
  }
  co_return {};
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

Task<Result<void>> TabletDirectory::rename_doubtful() {
  CO_TRY(const std::vector<TabletId> doubts, co_await engines_.tablets_in_doubt());
  for (const TabletId doubtful : doubts) {
    storage::TabletInfo& tablet = tablets_[doubtful.value()];
    const std::uint32_t incarnation =
        incarnation_after(tablet.actor.incarnation.value(), runtime_.clock.wall_now());
    const causality::ActorId name = causality::actor_of(options_.node_number, incarnation);
    CO_TRY_VOID(co_await engines_.reincarnate(doubtful, name));
    tablet.actor = name;
    log_.info("tablet mints under a new name", base::kv("tablet", doubtful),
              base::kv("actor", name));
  }
  co_return {};
}

std::size_t TabletDirectory::index_of(base::ByteView partition) const {
  return replication::index_of(tablets_, partition);
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
