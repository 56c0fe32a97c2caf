// Engines: the storage of a node: one engine on each of its cores, over one folder.
//
//   auto engines = co_await Engines::open(runtime, options, cores);   on the node's first core
//   const auto core = engines->core_of(tablet);
//   co_await call_on<...>(runtime, core, ... engines->on(core).write(...) ...);
//   co_await engines->stop();
//
// What is shared and what is not. Shards are dealt out to cores anew at every start: shard s is of
// core s modulo their number, and so are its tablets. An engine has its shards, its commit log, its
// memtables and its cache to itself; the folder's locks and the LogDirectory are here, on the core
// that opened it. No engine ever touches a shard of another.
//
// Another number of cores is nothing special. A start is in two parts:
//   1. On one core, as if it were the only one: all shards are opened, the logs of all earlier
//      incarnations replayed, whatever cores they were of, and what they held is flushed, so that
//      no log is needed any more. Only then are the old ones released.
//   2. Each core opens its shards from what is on disk, and a log of the new incarnation.
// After part 1 the manifests say everything, so a crash in part 2, or between, is a crash before
// the first write. Part 1 takes as long as one core takes to replay all logs, which the limit of
// the logs' size bounds; parts of it could run on each core, should that ever matter.
//
// A table is there if the first shard has it (engine.h). So it is made on the core of the first
// shard last, and dropped there first.
//
// Core affinity: the core that opened it; core_of() and on() may be asked on any.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "storage/engine/engine.h"

namespace helenus::storage {

class Engines {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Opens engines on the first `cores` cores. What the options limit, they limit for each core.
  // Errors: invalid_argument; those of Engine::open.
  static runtime::Task<base::Result<std::unique_ptr<Engines>>> open(runtime::Runtime& runtime,
                                                                    EngineOptions options,
                                                                    std::uint32_t cores);
  // For open().
  Engines(Private, runtime::Runtime& runtime, OpenedFolder folder);
  // Requires: stopped, or the cores have halted.
  ~Engines();
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  // Stops the engines and gives the folder free. Errors: the first of theirs. Called once.
  runtime::Task<base::Result<void>> stop();

  const EngineOpenReport& report() const { return folder_.report; }
  std::uint32_t cores() const { return static_cast<std::uint32_t>(engines_.size()); }
  runtime::CoreId core_of(TabletId tablet) const;
  // To be used on that core alone.
  Engine& on(runtime::CoreId core) { return *engines_[core.value()]; }

  // As Engine's, on all cores.
  runtime::Task<base::Result<void>> create_table(TableId table, TableOptions options);
  runtime::Task<base::Result<void>> alter_table(TableId table, TableOptions options);
  runtime::Task<base::Result<void>> drop_table(TableId table);
  // As Engine's, on the tablets' cores.
  runtime::Task<base::Result<void>> create_tablets(std::vector<TabletInfo> tablets);
  runtime::Task<base::Result<void>> drop_tablets(std::vector<TabletId> tablets);
  runtime::Task<base::Result<std::vector<TabletInfo>>> tablets();
  runtime::Task<base::Result<void>> create_tablet(TabletId tablet, KeyRange range,
                                                  causality::ActorId actor);
  runtime::Task<base::Result<void>> drop_tablet(TabletId tablet);
  runtime::Task<base::Result<void>> reincarnate(TabletId tablet, causality::ActorId actor);
  runtime::Task<base::Result<void>> reincarnate(std::vector<TabletName> names);
  // As Engine's, on the tablets' cores, one after the other.
  runtime::Task<base::Result<SnapshotSize>> make_snapshot(std::string name,
                                                          std::vector<TableId> tables,
                                                          std::vector<TabletId> tablets,
                                                          runtime::Until until);
  runtime::Task<base::Result<RestoreReport>> restore(std::string name, RestoreOrder order,
                                                     runtime::StopToken stop);
  runtime::Task<base::Result<std::vector<TabletId>>> tablets_in_doubt();
  // Every start finds the folder in doubt until this is called and no tablet is: whoever renames
  // the tablets knows what else the folder may have had.
  runtime::Task<base::Result<void>> clear_tail_doubt();
  // The next start finds the folder in doubt.
  runtime::Task<base::Result<void>> note_doubt() { return folder_.logs->note_doubt(); }

 private:
  runtime::Task<base::Result<void>> open_engines(EngineOptions options);
  runtime::Task<base::Result<void>> stop_engine(std::size_t index);

  runtime::Runtime& runtime_;
  OpenedFolder folder_;
  const std::uint32_t shards_;
  std::vector<std::unique_ptr<Engine>> engines_;  // by core
};

}  // namespace helenus::storage
