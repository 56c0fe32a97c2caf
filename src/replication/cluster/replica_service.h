// ReplicaService: answers what other nodes ask of the replicas here. It listens on the core of the
// Rpc and goes to the core that has the tablet.
//
// Every message is checked first: this node holds a replica of its tablet, in the epoch that the
// sender thinks of (S10), and the table is one that there is (R9). What fails that was not
// executed.
//
// Core affinity: the core of the Rpc.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/replicated_writer.h"
#include "replication/messages/messages.h"
#include "replication/replica/replica.h"
#include "replication/tablets/held_tablets.h"
#include "rpc/rpc.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::replication {

class ReplicaService {
 public:
  // Of a core; asked on the core of the Rpc, used over there.
  using ReplicaOf = std::function<Replica&(runtime::CoreId core)>;
  using WriterOf = std::function<ReplicatedWriter&(runtime::CoreId core)>;

  // What they refer to outlives the Rpc's stop(), and so does this.
  ReplicaService(runtime::Runtime& here, ReplicaOf replica_of, WriterOf writer_of)
      : here_(here), replica_of_(std::move(replica_of)), writer_of_(std::move(writer_of)) {}
  ReplicaService(const ReplicaService&) = delete;
  ReplicaService& operator=(const ReplicaService&) = delete;

  void take(HeldTabletsPtr held) { held_ = std::move(held); }
  // Requires: nobody serves these verbs yet.
  void serve(rpc::Rpc& rpc);

  // What this node's own reader asks of its replicas, too.
  runtime::Task<base::Result<ReadReply>> read(ReadMessage message, runtime::Until until);
  runtime::Task<base::Result<RowsAnswer>> scan(ScanMessage message, runtime::Until until);
  runtime::Task<base::Result<RepairReply>> repair(RepairMessage message, runtime::Until until);

 private:
  base::Result<HeldTablet> find(base::ByteView partition, causality::Epoch epoch) const;
  runtime::Task<base::Result<WriteReply>> write(WriteMessage message, runtime::Until until);
  runtime::Task<base::Result<ApplyReply>> apply(ApplyMessage message, runtime::Until until);
  runtime::Task<base::Result<ClockReply>> clock(ClockMessage message, runtime::Until until);

  runtime::Runtime& here_;
  const ReplicaOf replica_of_;
  const WriterOf writer_of_;
  HeldTabletsPtr held_;
};

}  // namespace helenus::replication
