#include "replication/cluster/replica_service.h"

#include <utility>

#include "replication/cluster/on_core.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

void ReplicaService::serve(rpc::Rpc& rpc) {
  rpc.serve(kWriteMethod, [this](NodeId, WriteMessage message, Until until) {
    return write(std::move(message), std::move(until));
  });
  rpc.serve(kApplyMethod, [this](NodeId, ApplyMessage message, Until until) {
    return apply(std::move(message), std::move(until));
  });
  rpc.serve(kReadMethod, [this](NodeId, ReadMessage message, Until until) {
    return read(std::move(message), std::move(until));
  });
  rpc.serve(kScanMethod, [this](NodeId, ScanMessage message, Until until) {
    return scan(std::move(message), std::move(until));
  });
  rpc.serve(kRepairMethod, [this](NodeId, RepairMessage message, Until until) {
    return repair(std::move(message), std::move(until));
  });
  rpc.serve(kClockMethod, [this](NodeId, ClockMessage message, Until until) {
    return clock(std::move(message), std::move(until));
  });
}

Task<Result<RepairReply>> ReplicaService::repair(RepairMessage message, Until until) {
  CO_TRY(const HeldTablet held, find(message.partition.view(), message.epoch));
  if (std::ranges::find(held.peers, message.to) == held.peers.end()) {
    co_return Error(Errc::refused, "node {} holds no replica of that tablet", message.to);
  }
  ReplicatedWriter& writer = writer_of_(held.core);
  const auto there = [&](Runtime&, Until remaining) {
    return writer.repair(held, message, std::move(remaining));
  };
  co_return co_await on_core<RepairReply>(here_, held.core, there, std::move(until));
}

Result<HeldTablet> ReplicaService::find(base::ByteView partition, causality::Epoch epoch) const {
  const HeldTablet* held = held_ == nullptr ? nullptr : held_->find(partition);
  if (held == nullptr) return Error(kStale, "this node has no replica of that tablet");
  if (held->epoch != epoch) {
    return Error(kStale, "the tablet is in epoch {} here, not in {}", held->epoch, epoch);
  }
  if (held->is_in_doubt) return Error(Errc::refused, "the replica here may have lost writes");
  return *held;
}

namespace {

causality::Delta head_of(const causality::Delta& delta) {
  causality::Delta head;
  head.dot = delta.dot;
  head.context = delta.context;
  head.timestamp = delta.timestamp;
  return head;
}

}  // namespace

Task<Result<WriteReply>> ReplicaService::write(WriteMessage message, Until until) {
  CO_TRY(const HeldTablet held, find(message.write.partition.view(), message.epoch));
  ReplicatedWriter& writer = writer_of_(held.core);
  const auto there = [&](Runtime&, Until remaining) -> Task<Result<WriteReply>> {
    CO_TRY(auto written, co_await writer.write(held, message.level, std::move(message.write),
                                               std::move(remaining)));
    if (written.delta) written.reply.delta = head_of(*written.delta);
    co_return std::move(written.reply);
  };
  co_return co_await on_core<WriteReply>(here_, held.core, there, std::move(until));
}

Task<Result<ApplyReply>> ReplicaService::apply(ApplyMessage message, Until until) {
  CO_TRY(const HeldTablet held, find(message.partition.view(), message.epoch));
  Replica& replica = replica_of_(held.core);
  const auto there = [&](Runtime&, Until remaining) -> Task<Result<ApplyReply>> {
    CO_TRY_VOID(co_await replica.apply(held.info.id, message.table, std::move(message.partition),
                                       std::move(message.delta), message.epoch,
                                       std::move(remaining)));
    co_return ApplyReply{};
  };
  co_return co_await on_core<ApplyReply>(here_, held.core, there, std::move(until));
}

Task<Result<ReadReply>> ReplicaService::read(ReadMessage message, Until until) {
  if (message.rows.empty()) co_return Error(Errc::invalid_argument, "a read of no rows");
  CO_TRY(const HeldTablet held, find(message.rows.front().partition.view(), message.epoch));
  Replica& replica = replica_of_(held.core);
  const auto there = [&](Runtime&, Until remaining) {
    return replica.read_in_epoch(held.info.id, message, std::move(remaining));
  };
  co_return co_await on_core<ReadReply>(here_, held.core, there, std::move(until));
}

Task<Result<RowsAnswer>> ReplicaService::scan(ScanMessage message, Until until) {
  CO_TRY(const HeldTablet held, find(message.request.partitions.from.view(), message.epoch));
  message.request.tablet = held.info.id;
  Replica& replica = replica_of_(held.core);
  const auto there = [&](Runtime&, Until remaining) {
    return replica.read_rows_in_epoch(message.request, message.wants_digest, held.epoch,
                                      std::move(remaining));
  };
  co_return co_await on_core<RowsAnswer>(here_, held.core, there, std::move(until));
}

Task<Result<ClockReply>> ReplicaService::clock(ClockMessage message, Until until) {
  CO_TRY(const HeldTablet held, find(message.partition.view(), message.epoch));
  Replica& replica = replica_of_(held.core);
  const auto there = [&](Runtime&, const Until&) -> Task<Result<ClockReply>> {
    CO_TRY_VOID(replica.check_serves(held.info.id, held.epoch));
    CO_TRY(auto reply, co_await replica.clock_of(held.info.id, message.table, message.partition));
    CO_TRY_VOID(replica.check_serves(held.info.id, held.epoch));
    co_return std::move(reply);
  };
  co_return co_await on_core<ClockReply>(here_, held.core, there, std::move(until));
}

}  // namespace helenus::replication
