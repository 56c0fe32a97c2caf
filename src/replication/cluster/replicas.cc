#include "replication/cluster/replicas.h"

#include <functional>
#include <limits>
#include <utility>

#include "replication/cluster/on_core.h"
#include "runtime/sleep.h"
#include "storage/engine/engines.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using runtime::CoreId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr runtime::Duration kTellAgainAfter = std::chrono::milliseconds(1);

Result<HeldTablet> find(const Replicas::Core& core, base::ByteView partition,
                        causality::Epoch epoch) {
  const HeldTablet* held = core.held == nullptr ? nullptr : core.held->find(partition);
  if (held == nullptr || held->epoch != epoch) {
    return Error(kStale, "no replica of that tablet is here in epoch {}", epoch);
  }
  if (held->is_in_doubt) return Error(Errc::refused, "the replica here may have lost writes");
  return *held;
}

// What the reader of a core asks of the replica here, on whichever core that is.
class OwnReplicas {
 public:
  OwnReplicas(const Replicas& replicas, CoreId here) : replicas_(replicas), here_(here) {}

  Task<Result<ReadReply>> read(std::shared_ptr<const ReadMessage> message, Until until) const {
    return read_on_core(replicas_, here_, std::move(message), std::move(until));
  }
  Task<Result<RepairReply>> repair(std::shared_ptr<const RepairMessage> message,
                                   Until until) const {
    return repair_on_core(replicas_, here_, std::move(message), std::move(until));
  }
  Task<Result<RowsAnswer>> scan(std::shared_ptr<const ScanMessage> message, Until until) const {
    return scan_on_core(replicas_, here_, std::move(message), std::move(until));
  }

 private:
  static Task<Result<ReadReply>> read_on_core(const Replicas& replicas, CoreId here,
                                              std::shared_ptr<const ReadMessage> message,
                                              Until until) {
    Replicas::Core& core = replicas.on(here);
    CO_TRY(const HeldTablet held,
           find(core, message->rows.front().partition.view(), message->epoch));
    Replica& replica = replicas.on(held.core).replica;
    const auto there = [&](Runtime&, Until remaining) {
      return replica.read_in_epoch(held.info.id, *message, std::move(remaining));
    };
    co_return co_await on_core<ReadReply>(core.link.runtime(), held.core, there, std::move(until));
  }
  static Task<Result<RowsAnswer>> scan_on_core(const Replicas& replicas, CoreId here,
                                               std::shared_ptr<const ScanMessage> message,
                                               Until until) {
    Replicas::Core& core = replicas.on(here);
    CO_TRY(const HeldTablet held,
           find(core, message->request.partitions.from.view(), message->epoch));
    Replica& replica = replicas.on(held.core).replica;
    RowsRequest request = message->request;
    request.tablet = held.info.id;
    const auto there = [&](Runtime&, Until remaining) {
      return replica.read_rows_in_epoch(request, message->wants_digest, held.epoch,
                                        std::move(remaining));
    };
    co_return co_await on_core<RowsAnswer>(core.link.runtime(), held.core, there, std::move(until));
  }

  static Task<Result<RepairReply>> repair_on_core(const Replicas& replicas, CoreId here,
                                                  std::shared_ptr<const RepairMessage> message,
                                                  Until until) {
    ReplicaCore& core = replicas.on(here);
    CO_TRY(const HeldTablet held, find(core, message->partition.view(), message->epoch));
    ReplicatedWriter& writer = *replicas.on(held.core).writer;
    const auto there = [&](Runtime&, Until remaining) {
      return writer.repair(held, *message, std::move(remaining));
    };
    co_return co_await on_core<RepairReply>(core.link.runtime(), held.core, there,
                                            std::move(until));
  }

  const Replicas& replicas_;
  const CoreId here_;
};

}  // namespace

Replicas::Replicas(Runtime& runtime, storage::Engines& engines, model::NodeId self,
                   ReplicaOptions options)
    : runtime_(runtime),
      service_(
          runtime, [this](CoreId core) -> Replica& { return on(core).replica; },
          [this](CoreId core) -> ReplicatedWriter& { return *on(core).writer; }),
      anti_entropy_service_(
          runtime, [this](CoreId core) -> AntiEntropy& { return *on(core).anti_entropy; }) {
  options.anti_entropy.bugs = options.bugs;
  for (std::uint32_t number = 0; number < engines.cores(); ++number) {
    const CoreId id{number};
    storage::Engine& engine = engines.on(id);
    auto core = std::make_unique<Core>(engine, self, options.bugs);
    core->writer =
        std::make_unique<ReplicatedWriter>(core->link, core->replica, options.deltas, options.bugs);
    core->anti_entropy = std::make_unique<AntiEntropy>(engine.runtime(), core->link, core->replica,
                                                       options.anti_entropy);
    const OwnReplicas own(*this, id);
    core->reader = std::make_unique<ReplicatedReader>(
        core->link,
        ReplicatedReader::Local{.read = std::bind_front(&OwnReplicas::read, own),
                                .scan = std::bind_front(&OwnReplicas::scan, own),
                                .repair = std::bind_front(&OwnReplicas::repair, own)},
        options.bugs);
    by_core_.push_back(std::move(core));
  }
}

namespace {

Task<Result<void>> take_on_core(Replicas::Core& core, HeldTabletsPtr held) {
  core.link.take(held->map());
  core.replica.take(held);
  core.anti_entropy->take(held);
  core.held = std::move(held);
  co_return {};
}

Task<Result<void>> take_up_on_core(Replicas::Core& core, UpNodesPtr up) {
  core.link.take(std::move(up));
  co_return {};
}

// What is in force must be known: a core that has too much to do is told later.
template <class Work>
Task<void> tell(Runtime& here, CoreId core, const Work& work) {
  for (;;) {
    const auto told = co_await on_core<void>(here, core, work, Until::forever());
    if (!told.failed_with(Errc::overloaded)) co_return;
    std::ignore = co_await runtime::sleep_for(here, kTellAgainAfter, {});
  }
}

}  // namespace

Task<void> Replicas::take(HeldTabletsPtr held) {
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) { return take_on_core(*by_core_[core], held); };
    co_await tell(runtime_, CoreId{core}, there);
  }
  anti_entropy_service_.take(held);
  service_.take(std::move(held));
}

namespace {

Task<Result<void>> take_map_on_core(Replicas::Core& core) {
  core.anti_entropy->take(core.held->map());
  co_return {};
}

Task<Result<void>> start_on_core(Replicas::Core& core) {
  core.anti_entropy->start();
  co_return {};
}

Task<Result<void>> stop_anti_entropy_on_core(Replicas::Core& core) {
  co_await core.anti_entropy->stop();
  co_return {};
}

}  // namespace

Task<void> Replicas::tables_are_there() {
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) { return take_map_on_core(*by_core_[core]); };
    co_await tell(runtime_, CoreId{core}, there);
  }
}

Task<void> Replicas::start_anti_entropy() {
  anti_entropy_runs_ = true;
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) { return start_on_core(*by_core_[core]); };
    co_await tell(runtime_, CoreId{core}, there);
  }
}

namespace {

Task<Result<void>> add_reentry_of(const Replicas::Core& core, ReentryProgress& progress) {
  progress.add(core.anti_entropy->reentry());
  co_return {};
}

Task<Result<void>> add_ring_progress_of(const Replicas::Core& core, RingProgress& progress) {
  progress.add(core.anti_entropy->ring_progress());
  co_return {};
}

Task<Result<void>> begin_round_on_core(const Replicas::Core& core, std::string_view keyspace,
                                       std::size_t& tablets) {
  tablets += core.anti_entropy->begin_round(keyspace);
  co_return {};
}

Task<Result<void>> note_filled_on_core(const Replicas::Core& core, const HeldTablet& tablet) {
  core.anti_entropy->note_filled(tablet.info.id, tablet.info.actor);
  co_return {};
}

Task<Result<void>> give_up_on_core(Replicas::Core& core, const std::set<model::NodeId>& nodes) {
  core.anti_entropy->give_up(nodes);
  co_return {};
}

}  // namespace

// One core after the other, so that they share what they add to.
Task<ReentryProgress> Replicas::reentry() {
  ReentryProgress progress;
  progress.as_of = causality::Epoch(std::numeric_limits<std::uint64_t>::max());
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) {
      return add_reentry_of(*by_core_[core], progress);
    };
    co_await tell(runtime_, CoreId{core}, there);
  }
  co_return progress;
}

Task<std::size_t> Replicas::begin_round(std::string keyspace) {
  std::size_t tablets = 0;
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) {
      return begin_round_on_core(*by_core_[core], keyspace, tablets);
    };
    co_await tell(runtime_, CoreId{core}, there);
  }
  co_return tablets;
}

Task<RingProgress> Replicas::ring_progress() {
  RingProgress progress;
  progress.as_of = causality::Epoch(std::numeric_limits<std::uint64_t>::max());
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) {
      return add_ring_progress_of(*by_core_[core], progress);
    };
    co_await tell(runtime_, CoreId{core}, there);
  }
  co_return progress;
}

Task<Result<void>> Replicas::copy(HeldTablet tablet, model::NodeId source, Until until) {
  AntiEntropy& there_is = *on(tablet.core).anti_entropy;
  const auto there = [&](Runtime&, Until remaining) {
    return there_is.copy(tablet.info.id, source, std::move(remaining));
  };
  co_return co_await on_core<void>(runtime_, tablet.core, there, std::move(until));
}

Task<void> Replicas::note_filled(HeldTablet tablet) {
  const auto there = [&](Runtime&, const Until&) {
    return note_filled_on_core(on(tablet.core), tablet);
  };
  co_await tell(runtime_, tablet.core, there);
}

Task<void> Replicas::give_up(std::set<model::NodeId> nodes) {
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) {
      return give_up_on_core(*by_core_[core], nodes);
    };
    co_await tell(runtime_, CoreId{core}, there);
  }
}

Task<Result<void>> Replicas::copy(storage::TabletId tablet, model::NodeId source, Until until) {
  if (!anti_entropy_runs_) co_return Error(Errc::closed, "no tablets are copied");
  const auto core = anti_entropy_service_.core_of(tablet);
  if (!core) co_return Error(Errc::not_found, "tablet {}", tablet);
  AntiEntropy& anti_entropy = *by_core_[core->value()]->anti_entropy;
  const auto there = [&](Runtime&, Until remaining) {
    return anti_entropy.copy(tablet, source, std::move(remaining));
  };
  co_return co_await on_core<void>(runtime_, *core, there, std::move(until));
}

Task<void> Replicas::stop_anti_entropy() {
  if (!std::exchange(anti_entropy_runs_, false)) co_return;
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) {
      return stop_anti_entropy_on_core(*by_core_[core]);
    };
    co_await tell(runtime_, CoreId{core}, there);
  }
}

Task<void> Replicas::take(UpNodesPtr up) {
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) { return take_up_on_core(*by_core_[core], up); };
    co_await tell(runtime_, CoreId{core}, there);
  }
}

void Replicas::connect(rpc::Rpc& rpc) {
  for (const auto& core : by_core_) core->link.connect(rpc, runtime_.cores.here());
  service_.serve(rpc);
  anti_entropy_service_.serve(rpc);
}

namespace {

Task<Result<void>> stop_on_core(Replicas::Core& core) {
  if (core.writer != nullptr) co_await core.writer->stop();
  if (core.reader != nullptr) co_await core.reader->stop();
  core.writer.reset();
  core.reader.reset();
  core.anti_entropy.reset();
  co_return {};
}

}  // namespace

Task<void> Replicas::stop() {
  for (std::uint32_t core = 0; core < cores(); ++core) {
    const auto there = [&](Runtime&, const Until&) { return stop_on_core(*by_core_[core]); };
    co_await tell(runtime_, CoreId{core}, there);
  }
}

void Replicas::abandon() {
  for (const auto& core : by_core_) {
    core->writer.reset();
    core->reader.reset();
    core->anti_entropy.reset();
  }
}

}  // namespace helenus::replication
