#include "storage/engine/engines.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/call_on.h"
#include "runtime/run_on.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::CoreId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

CoreId core_numbered(std::size_t index) {
  return CoreId{static_cast<std::uint32_t>(index)};
}

// What is run over there, as functions with values: the frames of lambdas would not live long
// enough.
Task<Result<std::unique_ptr<Engine>>> open_on_core(Runtime& there, EngineOptions options,
                                                   CoreShare share) {
  return Engine::open(there, std::move(options), std::move(share));
}

Task<Result<void>> stop_on_core(std::unique_ptr<Engine> engine) {
  co_return co_await engine->stop();
}

Task<Result<std::vector<TabletId>>> doubts_on_core(Engine* engine) {
  co_return engine->tablets_in_doubt();
}

Task<Result<std::vector<TabletInfo>>> tablets_on_core(Engine* engine) {
  co_return engine->tablets();
}

}  // namespace

Engines::Engines(Private, Runtime& runtime, OpenedFolder folder)
    : runtime_(runtime), folder_(std::move(folder)), shards_(folder_.shards) {}

Engines::~Engines() = default;

Task<Result<std::unique_ptr<Engines>>> Engines::open(Runtime& runtime, EngineOptions options,
                                                     std::uint32_t cores) {
  if (cores == 0 || cores > runtime.cores.count()) {
    co_return Error(Errc::invalid_argument, "{} cores, of {}", cores, runtime.cores.count());
  }
  CO_TRY(auto folder, co_await Engine::open_folder(runtime, options, cores));
  auto engines = std::make_unique<Engines>(Private(), runtime, std::move(folder));
  auto opened = co_await engines->open_engines(std::move(options));
  if (!opened) {
    // What was begun is given back; the error that matters is the first one.
    (void)co_await engines->stop();
    co_return std::move(opened).error();
  }
  co_return engines;
}

Task<Result<void>> Engines::open_engines(EngineOptions options) {
  for (CoreShare& share : folder_.shares) {
    const CoreId core{share.core};
    auto open = [options, share = std::move(share)](Runtime& there) mutable {
      return open_on_core(there, std::move(options), std::move(share));
    };
    CO_TRY(auto engine, co_await runtime::call_on<std::unique_ptr<Engine>>(
                            runtime_, core, std::move(open), Until::forever()));
    engines_.push_back(std::move(engine));
  }
  co_return {};
}

Task<Result<void>> Engines::stop_engine(std::size_t index) {
  auto stop = [engine = std::move(engines_[index])](Runtime&) mutable {
    return stop_on_core(std::move(engine));
  };
  co_return co_await runtime::call_on<void>(runtime_, core_numbered(index), std::move(stop),
                                            Until::forever());
}

Task<Result<void>> Engines::stop() {
  Result<void> stopped;
  for (std::size_t index = 0; index < engines_.size(); ++index) {
    auto one = co_await stop_engine(index);
    if (stopped && !one) stopped = std::move(one);
  }
  engines_.clear();
  auto closed = co_await folder_.logs->close();
  if (stopped && !closed) stopped = std::move(closed);
  folder_.locks.clear();
  co_return stopped;
}

CoreId Engines::core_of(TabletId tablet) const {
  return core_numbered(tablet.value() % shards_ % engines_.size());
}

Task<Result<void>> Engines::create_table(TableId table, TableOptions options) {
  for (std::size_t index = engines_.size(); index-- > 0;) {
    auto create = [engine = engines_[index].get(), table, options](Runtime&) {
      return engine->create_table(table, options);
    };
    const auto created = co_await runtime::call_on<void>(runtime_, core_numbered(index),
                                                         std::move(create), Until::forever());
    // It is there when the first core has it: one that was cut short is finished.
    if (created.failed_with(Errc::already_exists) && index > 0) continue;
    if (!created) co_return created;
  }
  co_return {};
}

Task<Result<void>> Engines::alter_table(TableId table, TableOptions options) {
  bool found = false;
  for (std::size_t index = 0; index < engines_.size(); ++index) {
    auto alter = [engine = engines_[index].get(), table, options](Runtime&) {
      return engine->alter_table(table, options);
    };
    auto altered = co_await runtime::call_on<void>(runtime_, core_numbered(index), std::move(alter),
                                                   Until::forever());
    // A core without shards never has it.
    if (altered.failed_with(Errc::not_found)) continue;
    if (!altered) co_return altered;
    found = true;
  }
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  co_return {};
}

Task<Result<void>> Engines::drop_table(TableId table) {
  bool found = false;
  for (std::size_t index = 0; index < engines_.size(); ++index) {
    auto drop = [engine = engines_[index].get(), table](Runtime&) {
      return engine->drop_table(table);
    };
    auto dropped = co_await runtime::call_on<void>(runtime_, core_numbered(index), std::move(drop),
                                                   Until::forever());
    // A core without shards never has it; others may, and a drop that was cut short is finished.
    if (dropped.failed_with(Errc::not_found)) continue;
    if (!dropped) co_return dropped;
    found = true;
  }
  if (!found) co_return Error(Errc::not_found, "table {}", table);
  co_return {};
}

Task<Result<void>> Engines::create_tablet(TabletId tablet, KeyRange range,
                                          causality::ActorId actor) {
  const CoreId core = core_of(tablet);
  auto create = [engine = &on(core), tablet, range = std::move(range), actor](Runtime&) mutable {
    return engine->create_tablet(tablet, std::move(range), actor);
  };
  co_return co_await runtime::call_on<void>(runtime_, core, std::move(create), Until::forever());
}

Task<Result<void>> Engines::drop_tablet(TabletId tablet) {
  const CoreId core = core_of(tablet);
  auto drop = [engine = &on(core), tablet](Runtime&) { return engine->drop_tablet(tablet); };
  co_return co_await runtime::call_on<void>(runtime_, core, std::move(drop), Until::forever());
}

Task<Result<void>> Engines::create_tablets(std::vector<TabletInfo> tablets) {
  std::map<CoreId, std::vector<TabletInfo>> by_core;
  for (TabletInfo& tablet : tablets) by_core[core_of(tablet.id)].push_back(std::move(tablet));
  for (auto& [core, some] : by_core) {
    auto create = [engine = &on(core), own = std::move(some)](Runtime&) mutable {
      return engine->create_tablets(std::move(own));
    };
    CO_TRY_VOID(
        co_await runtime::call_on<void>(runtime_, core, std::move(create), Until::forever()));
  }
  co_return {};
}

Task<Result<void>> Engines::drop_tablets(std::vector<TabletId> tablets) {
  std::map<CoreId, std::vector<TabletId>> by_core;
  for (const TabletId tablet : tablets) by_core[core_of(tablet)].push_back(tablet);
  for (auto& [core, some] : by_core) {
    auto drop = [engine = &on(core), own = std::move(some)](Runtime&) mutable {
      return engine->drop_tablets(std::move(own));
    };
    CO_TRY_VOID(co_await runtime::call_on<void>(runtime_, core, std::move(drop), Until::forever()));
  }
  co_return {};
}

Task<Result<std::vector<TabletInfo>>> Engines::tablets() {
  std::vector<TabletInfo> all;
  for (std::size_t index = 0; index < engines_.size(); ++index) {
    auto ask = [engine = engines_[index].get()](Runtime&) { return tablets_on_core(engine); };
    CO_TRY(auto some, co_await runtime::call_on<std::vector<TabletInfo>>(
                          runtime_, core_numbered(index), std::move(ask), Until::forever()));
    std::ranges::move(some, std::back_inserter(all));
  }
  std::ranges::sort(all, {}, [](const TabletInfo& tablet) { return tablet.range.from; });
  co_return all;
}

Task<Result<std::vector<TabletId>>> Engines::tablets_in_doubt() {
  std::vector<TabletId> all;
  for (std::size_t index = 0; index < engines_.size(); ++index) {
    auto ask = [engine = engines_[index].get()](Runtime&) { return doubts_on_core(engine); };
    CO_TRY(const auto some, co_await runtime::call_on<std::vector<TabletId>>(
                                runtime_, core_numbered(index), std::move(ask), Until::forever()));
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all);
  co_return all;
}

Task<Result<SnapshotSize>> Engines::make_snapshot(std::string name, std::vector<TableId> tables,
                                                  std::vector<TabletId> tablets, Until until) {
  SnapshotSize size;
  for (std::size_t index = 0; index < engines_.size(); ++index) {
    std::vector<TabletId> own;
    std::ranges::copy_if(tablets, std::back_inserter(own),
                         [&](TabletId tablet) { return core_of(tablet) == core_numbered(index); });
    auto make = [engine = engines_[index].get(), &name, &tables, &own](Runtime&, Until remaining) {
      return engine->make_snapshot(name, tables, own, std::move(remaining));
    };
    CO_TRY(const SnapshotSize part,
           co_await runtime::run_on<SnapshotSize>(runtime_, core_numbered(index), make, until));
    size.add(part);
  }
  co_return size;
}

Task<Result<RestoreReport>> Engines::restore(std::string name, RestoreOrder order,
                                             runtime::StopToken stop) {
  const CoreId core = core_of(order.tablet);
  auto restore = [engine = &on(core), &name, &order](Runtime&, Until remaining) {
    return engine->restore(name, order, std::move(remaining.stop));
  };
  co_return co_await runtime::run_on<RestoreReport>(runtime_, core, restore,
                                                    Until{.stop = std::move(stop)});
}

Task<Result<void>> Engines::reincarnate(TabletId tablet, causality::ActorId actor) {
  const CoreId core = core_of(tablet);
  auto reborn = [engine = &on(core), tablet, actor](Runtime&) {
    return engine->reincarnate(tablet, actor);
  };
  co_return co_await runtime::call_on<void>(runtime_, core, std::move(reborn), Until::forever());
}

Task<Result<void>> Engines::reincarnate(std::vector<TabletName> names) {
  std::map<CoreId, std::vector<TabletName>> by_core;
  for (const TabletName& name : names) by_core[core_of(name.id)].push_back(name);
  for (auto& [core, some] : by_core) {
    auto reborn = [engine = &on(core), own = std::move(some)](Runtime&) mutable {
      return engine->reincarnate(std::move(own));
    };
    CO_TRY_VOID(
        co_await runtime::call_on<void>(runtime_, core, std::move(reborn), Until::forever()));
  }
  co_return {};
}

// The doubt is of the folder: it is over when no core has one left.
Task<Result<void>> Engines::clear_tail_doubt() {
  CO_TRY(const auto doubtful, co_await tablets_in_doubt());
  if (doubtful.empty()) CO_TRY_VOID(co_await folder_.logs->clear_tail_doubt());
  co_return {};
}

}  // namespace helenus::storage
