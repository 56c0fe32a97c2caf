// ReplicatedReader: reads rows from as many replicas as a level needs and merges what they answer
// (answer_merge.h), so that a coordinator sees what one replica would have shown that had seen it
// all.
//
// Repair. Where an answer of several lacked something that the merge shows, or had something that
// it does not show any more, that replica gets the whole mutations of the partition that it lacks,
// before the read is answered: so a majority has what was shown, and no later read of a majority
// shows less (RequestLevel::repairs). They come from the mutation log of a replica that has seen
// them: what one lacks is not stable, and stays there.
//
// Digests (R7). Where that is enough the first replica is asked for its rows, and the others that
// the level needs for digests of what they show; spares for their rows. If the digests are those of
// the rows, these are the answer: nothing in them is lacking anywhere, so there is nothing to
// repair. If not, or if no rows came, everything is asked for, as if there were no digests.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "replication/cluster/cluster_link.h"
#include "replication/cluster/gather.h"
#include "replication/map/replica_map.h"
#include "replication/messages/messages.h"
#include "replication/request/planted_bugs.h"
#include "replication/request/request_level.h"
#include "replication/request/rows_request.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "storage/read/row_read.h"

namespace helenus::replication {

class ReplicatedReader {
 public:
  static constexpr std::size_t kAsksMax = 65536;
  // Of the replica on this node, on whichever core.
  struct Local {
    std::function<runtime::Task<base::Result<ReadReply>>(std::shared_ptr<const ReadMessage>,
                                                         runtime::Until)>
        read;
    std::function<runtime::Task<base::Result<RowsAnswer>>(std::shared_ptr<const ScanMessage>,
                                                          runtime::Until)>
        scan;
    std::function<runtime::Task<base::Result<RepairReply>>(std::shared_ptr<const RepairMessage>,
                                                           runtime::Until)>
        repair;
  };

  // What `local` refers to, and the link, outlive it.
  ReplicatedReader(ClusterLink& link, Local local, PlantedBugs bugs = {})
      : link_(link), local_(std::move(local)), bugs_(bugs), asks_(link.runtime(), kAsksMax) {}
  ReplicatedReader(const ReplicatedReader&) = delete;
  ReplicatedReader& operator=(const ReplicatedReader&) = delete;

  // The first ones of the rows, at least one, in their order. All are of one partition. Where the
  // replicas change meanwhile, those that are then are asked (R18). Errors: unavailable, timeout,
  // cancelled; of the replicas.
  runtime::Task<base::Result<std::vector<storage::RowRead>>> read(storage::TableId table,
                                                                  base::Bytes partition,
                                                                  std::vector<base::Bytes> rows,
                                                                  RequestLevel how,
                                                                  runtime::Until until);
  // Some rows of one tablet. Errors: as of read().
  runtime::Task<base::Result<RowsAnswer>> scan(TabletKey tablet, RowsRequest request,
                                               RequestLevel how, runtime::Until until);

  // Asks members of the tablet that are suspected something small, whether they answer again: they
  // might not be asked otherwise. Any partition of the tablet.
  void probe_suspects(const PlacedTablet& tablet, storage::TableId table,
                      const base::Bytes& partition);

  // Waits for slow answers.
  runtime::Task<void> stop() { return asks_.join(); }

 private:
  // By the metadata of now; nothing if the digests differ. Errors: kStale, if they are no longer
  // those of the replicas.
  runtime::Task<base::Result<std::optional<std::vector<storage::RowRead>>>> read_once(
      storage::TableId table, const base::Bytes& partition, const std::vector<base::Bytes>& rows,
      RequestLevel how, runtime::Until until);
  runtime::Task<base::Result<std::optional<RowsAnswer>>> scan_once(TabletKey tablet,
                                                                   const RowsRequest& request,
                                                                   RequestLevel how,
                                                                   runtime::Until until);
  runtime::Task<base::Result<std::vector<storage::RowRead>>> merge_reads(
      const ReadMessage& message, std::vector<Gathered<ReadReply>> answers, RequestLevel how,
      RequestUnderWay& request, runtime::Until until);
  runtime::Task<base::Result<RowsAnswer>> merge_scans(const ScanMessage& message,
                                                      std::vector<Gathered<RowsAnswer>> answers,
                                                      RequestLevel how, RequestUnderWay& under_way,
                                                      runtime::Until until,
                                                      runtime::Until asked_until);
  runtime::Task<base::Result<ReadReply>> ask(model::NodeId node,
                                             std::shared_ptr<const ReadMessage> message,
                                             runtime::Until until);
  runtime::Task<base::Result<std::vector<storage::RowRead>>> read_named(model::NodeId node,
                                                                        causality::Epoch epoch,
                                                                        storage::TableId table,
                                                                        std::vector<RowName> names,
                                                                        runtime::Until until);

  // An answer, as far as repairs go by it.
  struct Seen {
    model::NodeId node;
    causality::Clock clock;
    bool is_newer_than_clock = false;
    std::set<base::Bytes> lacks_of = {};  // partitions
  };
  // Brings replicas what others have answered and they lack, and waits for it. Errors: of those
  // that send it, or do not get it.
  runtime::Task<base::Result<void>> repair(causality::Epoch epoch, storage::TableId table,
                                           std::vector<Seen> seen, RequestNotes* notes,
                                           runtime::Until until);
  runtime::Task<base::Result<void>> repair_patiently(model::NodeId from,
                                                     std::shared_ptr<const RepairMessage> message,
                                                     runtime::Until until);
  runtime::Task<base::Result<void>> repair_one(model::NodeId from,
                                               std::shared_ptr<const RepairMessage> message,
                                               runtime::Until until);

  ClusterLink& link_;
  const Local local_;
  const PlantedBugs bugs_;
  runtime::TaskGroup asks_;
};

}  // namespace helenus::replication
