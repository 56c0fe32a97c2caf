#include "replication/coordinator/coordinator.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "base/assert.h"
#include "replication/tablets/ring_cut.h"
#include "runtime/run_on.h"
#include "runtime/when_all.h"

namespace helenus::replication {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::Delta;
using runtime::CoreId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using storage::TabletId;

Coordinator::Coordinator(Private, Runtime& runtime, CoordinatorOptions options)
    : runtime_(runtime), options_(std::move(options)), log_(runtime.logger("replication")) {}

Task<Result<std::unique_ptr<Coordinator>>> Coordinator::open(Runtime& runtime,
                                                             CoordinatorOptions options) {
  const std::uint32_t tablets = options.tablets;
  if (tablets == 0 || tablets > CoordinatorOptions::kTabletsMax) {
    co_return Error(Errc::invalid_argument, "{} tablets; the ring is cut into 1 to {}", tablets,
                    CoordinatorOptions::kTabletsMax);
  }
  auto coordinator = std::make_unique<Coordinator>(Private{}, runtime, std::move(options));
  coordinator->node_ = std::make_shared<NodeState>();
  NodeState& node = *coordinator->node_;
  CO_TRY(node.engines, co_await storage::Engines::open(runtime, coordinator->options_.engine,
                                                       coordinator->options_.cores));
  node.report = node.engines->report();
  Result<void> ready = co_await coordinator->make_tablets();
  if (ready) ready = co_await coordinator->rename_doubtful();
  if (!ready) {
    std::ignore = co_await node.engines->stop();
    co_return std::move(ready).error();
  }
  for (std::uint32_t core = 0; core < node.engines->cores(); ++core) {
    node.replicas.push_back(
        std::make_unique<Replica>(node.engines->on(CoreId{core}), node.tablets));
  }
  coordinator->find_places();
  co_return coordinator;
}

std::unique_ptr<Coordinator> Coordinator::for_core(Runtime& there) const {
  auto coordinator = std::make_unique<Coordinator>(Private{}, there, options_);
  coordinator->node_ = node_;
  coordinator->find_places();
  return coordinator;
}

void Coordinator::find_places() {
  for (const storage::TabletInfo& tablet : node_->tablets) {
    const CoreId core = node_->engines->core_of(tablet.id);
    places_.push_back({.core = core,
                       .replica = node_->replicas[core.value()].get(),
                       .here = core == runtime_.cores.here()});
  }
}

Task<Result<void>> Coordinator::stop() {
  return node_->engines->stop();
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

Task<Result<void>> Coordinator::make_tablets() {
  storage::Engines& engines = *node_->engines;
  // A crash among the first creations leaves some of them: the rest follows.
  for (std::uint32_t i = 0; i < options_.tablets; ++i) {
    const Result<void> made = co_await engines.create_tablet(
        TabletId{i}, cut(i, options_.tablets), causality::actor_of(options_.node_number, 1));
    if (!made && !made.failed_with(Errc::already_exists)) {
      co_return Error(made.error()).within("cutting the ring");
    }
  }
  std::vector<storage::TabletInfo>& tablets = node_->tablets;
  for (std::uint32_t core = 0; core < engines.cores(); ++core) {
    const auto settle = [&engines, core](Runtime&, const Until&) {
      return settle_tablets(engines.on(CoreId{core}));
    };
    CO_TRY(auto some, co_await runtime::run_on<std::vector<storage::TabletInfo>>(
                          runtime_, CoreId{core}, settle, Until::forever()));
    std::ranges::move(some, std::back_inserter(tablets));
  }
  std::ranges::sort(tablets, {}, [](const storage::TabletInfo& tablet) { return tablet.id; });
  for (std::uint32_t i = 0; i < tablets.size(); ++i) {
    if (tablets.size() != options_.tablets || tablets[i].range != cut(i, options_.tablets)) {
      co_return Error(Errc::invalid_argument, "the ring of this folder is cut into {} tablets",
                      tablets.size());
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

Task<Result<void>> Coordinator::rename_doubtful() {
  CO_TRY(const std::vector<TabletId> doubts, co_await node_->engines->tablets_in_doubt());
  for (const TabletId doubtful : doubts) {
    storage::TabletInfo& tablet = node_->tablets[doubtful.value()];
    const std::uint32_t incarnation =
        incarnation_after(tablet.actor.incarnation.value(), runtime_.clock.wall_now());
    const causality::ActorId name = causality::actor_of(options_.node_number, incarnation);
    CO_TRY_VOID(co_await node_->engines->reincarnate(doubtful, name));
    tablet.actor = name;
    log_.info("tablet mints under a new name", base::kv("tablet", doubtful),
              base::kv("actor", name));
  }
  co_return {};
}

std::size_t Coordinator::index_of_tablet(ByteView partition) const {
  return index_of(node_->tablets, partition);
}

Task<Result<void>> Coordinator::create_table(TableId table, storage::TableOptions options) {
  return node_->engines->create_table(table, options);
}

Task<Result<void>> Coordinator::alter_table(TableId table, storage::TableOptions options) {
  return node_->engines->alter_table(table, options);
}

Task<Result<void>> Coordinator::drop_table(TableId table) {
  return node_->engines->drop_table(table);
}

// ---- Writing ----

Task<Result<std::optional<Delta>>> Coordinator::write(PartitionWrite write, Until until) {
  const std::size_t index = index_of_tablet(write.partition.view());
  const TabletPlace& place = places_[index];
  if (!place.here) return write_on_core(index, std::move(write), std::move(until));
  return place.replica->write(node_->tablets[index].id, std::move(write), std::move(until));
}

Task<Result<std::optional<Delta>>> Coordinator::write_on_core(std::size_t index,
                                                              PartitionWrite write, Until until) {
  const TabletPlace& place = places_[index];
  const auto there = [&](Runtime&, Until remaining) {
    return place.replica->write(node_->tablets[index].id, std::move(write), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::optional<Delta>>(runtime_, place.core, there,
                                                           std::move(until));
}

Task<Result<void>> Coordinator::write_until_durable(PartitionWrite write, Until admitted) {
  const std::size_t index = index_of_tablet(write.partition.view());
  const TabletPlace& place = places_[index];
  if (!place.here) return write_until_durable_on_core(index, std::move(write), std::move(admitted));
  return place.replica->write_until_durable(node_->tablets[index].id, std::move(write),
                                            std::move(admitted));
}

Task<Result<void>> Coordinator::write_until_durable_on_core(std::size_t index, PartitionWrite write,
                                                            Until admitted) {
  const TabletPlace& place = places_[index];
  const auto there = [&](Runtime&, Until remaining) {
    return place.replica->write_until_durable(node_->tablets[index].id, std::move(write),
                                              std::move(remaining));
  };
  co_return co_await runtime::run_on<void>(runtime_, place.core, there, std::move(admitted));
}

Task<Result<std::vector<Delta>>> Coordinator::write(std::vector<PartitionWrite> writes,
                                                    Until until) {
  const auto is_here = [&](const PartitionWrite& write) {
    return places_[index_of_tablet(write.partition.view())].here;
  };
  if (!writes.empty() && std::ranges::all_of(writes, is_here)) {
    return node_->replicas[runtime_.cores.here().value()]->write(std::move(writes),
                                                                 std::move(until));
  }
  return write_to_cores(std::move(writes), std::move(until));
}

namespace {

bool outcome_is_unknown(const Error& error) {
  return error.code() == Errc::timeout || error.code() == Errc::cancelled;
}

}  // namespace

// What would be refused for what it is, or for want of room, is refused before the first core
// writes. What goes wrong after that leaves a part written: nobody may be told otherwise.
Task<Result<std::vector<Delta>>> Coordinator::write_to_cores(std::vector<PartitionWrite> writes,
                                                             Until until) {
  std::map<CoreId, std::vector<PartitionWrite>> by_core;
  for (PartitionWrite& write : writes) {
    const CoreId core = places_[index_of_tablet(write.partition.view())].core;
    by_core[core].push_back(std::move(write));
  }
  if (by_core.size() > 1) {
    std::vector<Task<Result<void>>> admissions;
    for (const auto& [core, some] : by_core) admissions.push_back(admit_on(core, some, until));
    for (Result<void>& admitted : co_await runtime::when_all(std::move(admissions))) {
      CO_TRY_VOID(std::move(admitted));
    }
  }
  std::vector<Task<Result<std::vector<Delta>>>> parts;
  for (auto& [core, some] : by_core) parts.push_back(write_on(core, std::move(some), until));
  std::vector<Delta> deltas;
  std::optional<Error> failure;
  std::size_t failures = 0;
  auto written = co_await runtime::when_all(std::move(parts));
  for (Result<std::vector<Delta>>& part : written) {
    if (part) {
      std::ranges::move(*part, std::back_inserter(deltas));
      continue;
    }
    ++failures;
    // That it is not known what became of a part says the most.
    if (!failure || outcome_is_unknown(part.error())) failure = std::move(part).error();
  }
  if (!failure) co_return deltas;
  if (failures == written.size()) co_return *std::move(failure);
  co_return Error(Errc::timeout, "a part of the writes is there, another one failed: {}", *failure);
}

namespace {

Task<Result<void>> admit_on_core(Replica& replica, const std::vector<PartitionWrite>& writes,
                                 Until until) {
  CO_TRY_VOID(replica.check(writes));
  co_return co_await replica.admit(writes, std::move(until));
}

}  // namespace

Task<Result<void>> Coordinator::admit_on(CoreId core, const std::vector<PartitionWrite>& writes,
                                         Until until) {
  Replica& replica = *node_->replicas[core.value()];
  if (core == runtime_.cores.here()) {
    co_return co_await admit_on_core(replica, writes, std::move(until));
  }
  const auto admit = [&](Runtime&, Until remaining) {
    return admit_on_core(replica, writes, std::move(remaining));
  };
  co_return co_await runtime::run_on<void>(runtime_, core, admit, std::move(until));
}

Task<Result<std::vector<Delta>>> Coordinator::write_on(CoreId core,
                                                       std::vector<PartitionWrite> writes,
                                                       Until until) {
  Replica& replica = *node_->replicas[core.value()];
  if (core == runtime_.cores.here()) {
    co_return co_await replica.write(std::move(writes), std::move(until));
  }
  const auto write = [&](Runtime&, Until remaining) {
    return replica.write(std::move(writes), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::vector<Delta>>(runtime_, core, write, std::move(until));
}

// ---- Reading ----

Task<Result<storage::RowRead>> Coordinator::read_row(TableId table, Bytes partition, Bytes row,
                                                     Until until) {
  const std::size_t index = index_of_tablet(partition.view());
  const TabletPlace& place = places_[index];
  if (!place.here) {
    return read_row_on_core(index, table, std::move(partition), std::move(row), std::move(until));
  }
  return place.replica->engine().read_row(table, node_->tablets[index].id, std::move(partition),
                                          std::move(row), std::move(until));
}

Task<Result<storage::RowRead>> Coordinator::read_row_on_core(std::size_t index, TableId table,
                                                             Bytes partition, Bytes row,
                                                             Until until) {
  const TabletPlace& place = places_[index];
  const auto read = [&](Runtime&, Until remaining) {
    return place.replica->engine().read_row(table, node_->tablets[index].id, std::move(partition),
                                            std::move(row), std::move(remaining));
  };
  co_return co_await runtime::run_on<storage::RowRead>(runtime_, place.core, read,
                                                       std::move(until));
}

Task<Result<std::vector<storage::RowRead>>> Coordinator::read_rows_at_one_moment(
    TableId table, Bytes partition, std::vector<Bytes> rows, Until until) {
  const std::size_t index = index_of_tablet(partition.view());
  const TabletPlace& place = places_[index];
  const TabletId tablet = node_->tablets[index].id;
  if (place.here) {
    co_return co_await place.replica->read_rows_at_one_moment(table, tablet, std::move(partition),
                                                              std::move(rows), std::move(until));
  }
  const auto read = [&](Runtime&, Until remaining) {
    return place.replica->read_rows_at_one_moment(table, tablet, std::move(partition),
                                                  std::move(rows), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::vector<storage::RowRead>>(runtime_, place.core, read,
                                                                    std::move(until));
}

std::unique_ptr<RangeCursor> Coordinator::scan(TableId table, storage::KeyRange partitions,
                                               storage::SstableCursorOptions options) {
  return std::make_unique<RangeCursor>(runtime_, node_->tablets, places_, table,
                                       std::move(partitions), std::move(options));
}

// ---- Of all cores ----

// `work` makes a task of an engine and an Until; it is asked on each core in turn.
template <class T, class Work>
Task<Result<std::vector<T>>> Coordinator::ask_all(Work work, Until until) {
  std::vector<T> answers;
  for (std::uint32_t core = 0; core < node_->replicas.size(); ++core) {
    storage::Engine& engine = node_->replicas[core]->engine();
    if (CoreId{core} == runtime_.cores.here()) {
      CO_TRY(auto answer, co_await work(engine, until));
      answers.push_back(std::move(answer));
      continue;
    }
    const auto there = [&](Runtime&, Until remaining) {
      return work(engine, std::move(remaining));
    };
    CO_TRY(auto answer, co_await runtime::run_on<T>(runtime_, CoreId{core}, there, until));
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

namespace {

// Whether the core has the table: one without tablets never does.
Result<bool> found(Result<void> done) {
  if (done.failed_with(Errc::not_found)) return false;
  TRY_VOID(std::move(done));
  return true;
}

Task<Result<bool>> flush_on_core(storage::Engine& engine, TableId table, Until until) {
  co_return found(co_await engine.flush(table, std::move(until)));
}

Task<Result<bool>> compact_on_core(storage::Engine& engine, TableId table, Until until) {
  co_return found(co_await engine.compact(table, std::move(until)));
}

Result<void> found_somewhere(const std::vector<bool>& found, TableId table) {
  if (std::ranges::find(found, true) != found.end()) return {};
  return Error(Errc::not_found, "table {}", table);
}

}  // namespace

Task<Result<void>> Coordinator::flush(TableId table, Until until) {
  const auto flush = [table](storage::Engine& engine, Until remaining) {
    return flush_on_core(engine, table, std::move(remaining));
  };
  CO_TRY(const auto found, co_await ask_all<bool>(flush, std::move(until)));
  co_return found_somewhere(found, table);
}

Task<Result<void>> Coordinator::compact(TableId table, Until until) {
  const auto compact = [table](storage::Engine& engine, Until remaining) {
    return compact_on_core(engine, table, std::move(remaining));
  };
  CO_TRY(const auto found, co_await ask_all<bool>(compact, std::move(until)));
  co_return found_somewhere(found, table);
}

storage::EngineStatistics Coordinator::statistics_here() const {
  return node_->replicas[runtime_.cores.here().value()]->engine().statistics();
}

std::optional<Error> Coordinator::fatal_error_here() const {
  return node_->replicas[runtime_.cores.here().value()]->engine().fatal_error();
}

}  // namespace helenus::replication
