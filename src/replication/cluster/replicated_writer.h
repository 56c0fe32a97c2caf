// ReplicatedWriter: a write at the replica that mints it. It makes the mutation durable here,
// brings its delta to the other replicas, and answers when the level is met.
//
// Rules.
//   - Nothing leaves before the record is durable here (S1).
//   - What deletes anything at a level of several replicas first unites the clocks of as many as
//   the
//     level reads (S2): else an acknowledged write that has not come here yet would outlive it. In
//     a table with causal_writes = 'quorum' every write does. One under a client's context has seen
//     what that says, and with siblings nothing else; an explicit timestamp is judged here.
//   - A delta is sent once. Who does not get it (down, slow, too much under way to it) gets it by
//     anti-entropy; so an answer of "too late" leaves the write where it is, and is a timeout.
//   - Replicas in doubt get it by anti-entropy, too, and count for nothing (R10).
//   - Pending replicas get every delta and count for nothing (S8).
//   - Where the replicas change while a delta is being sent, it is sent to those that are then, and
//     what was acknowledged before counts for nothing any more (S10): it has its dot, so this is no
//     second attempt.
//
// Core affinity: the core of its replica.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "causality/delta.h"
#include "model/consistency.h"
#include "replication/cluster/cluster_link.h"
#include "replication/map/replica_map.h"
#include "replication/messages/messages.h"
#include "replication/replica/replica.h"
#include "replication/request/partition_write.h"
#include "replication/request/planted_bugs.h"
#include "replication/tablets/held_tablets.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::replication {

class ReplicatedWriter {
 public:
  // Of deltas that are being sent: beyond it they are left to anti-entropy.
  static constexpr std::size_t kBytesSendingMax = std::size_t{64} << 20;
  static constexpr std::size_t kSendsMax = 65536;

  // Who brings a delta to the other replicas. Left to anti-entropy a write acknowledges itself
  // alone, so no level beyond one is met.
  enum class Deltas : std::uint8_t { sent, left_to_anti_entropy };

  // Both outlive it.
  ReplicatedWriter(ClusterLink& link, Replica& replica, Deltas deltas = Deltas::sent,
                   PlantedBugs bugs = {})
      : link_(link),
        replica_(replica),
        deltas_(deltas),
        bugs_(bugs),
        sends_(link.runtime(), kSendsMax) {}
  ReplicatedWriter(const ReplicatedWriter&) = delete;
  ReplicatedWriter& operator=(const ReplicatedWriter&) = delete;

  struct Written {
    WriteReply reply;
    std::optional<causality::Delta> delta;  // none if an explicit timestamp won in no cell
    std::vector<std::string> notes = {};    // what happened, if it was to be told
  };
  // Errors: unavailable and those of Replica::write that say that nothing was written; timeout,
  // cancelled: it may be here. A level that is not met is no error: see WriteReply::met.
  // Requires: the tablet is of this core.
  runtime::Task<base::Result<Written>> write(HeldTablet held, model::Consistency level,
                                             PartitionWrite write, runtime::Until until,
                                             bool tells_notes = false);

  // Sends what of a partition another replica lacks, from the mutation log. `message` outlives it.
  // Errors: of the mutation log, of the other replica. Requires: as write().
  runtime::Task<base::Result<RepairReply>> repair(HeldTablet held, const RepairMessage& message,
                                                  runtime::Until until);

  // Waits for what is being sent.
  runtime::Task<void> stop() { return sends_.join(); }

 private:
  struct Acks;
  using AcksPtr = std::shared_ptr<Acks>;
  // What is sent, in one epoch or the next.
  struct Sending;
  // To all replicas as the metadata have them; returns when the level is met or cannot be, when the
  // replicas have changed, or when the time is over. Null if the keyspace is gone.
  runtime::Task<AcksPtr> bring(const Sending& sending, RequestUnderWay& request,
                               runtime::Until until);
  runtime::Task<base::Result<void>> unite_clocks(const HeldTablet& held, const PlacedTablet& tablet,
                                                 const LevelRule& rule, PartitionWrite& write,
                                                 runtime::Until until);
  runtime::Task<void> send(AcksPtr acks, TabletKey tablet, PlacedReplica to, bool counts,
                           causality::Epoch epoch, rpc::Payload message, std::size_t bytes,
                           runtime::Until until);

  ClusterLink& link_;
  Replica& replica_;
  const Deltas deltas_;
  const PlantedBugs bugs_;
  std::size_t bytes_sending_ = 0;
  runtime::TaskGroup sends_;
};

}  // namespace helenus::replication
