// Reentry: a node whose replicas may have lost what others count on becomes a member again (R10).
//
//   in doubt ──▶ the metadata give new names, in a new epoch ──▶ its replicas pull from others
//            ──▶ the metadata say that it counts again
//
// In doubt is a node whose last stop may have lost acknowledged writes (commitlog_sync: periodic
// and no orderly stop; logs that are lost and accepted as lost; a folder that was copied or put
// back), which does not have the names that the metadata say, or of whose own writes a peer has
// seen more than it has (S13), or of whose replicas files are damaged and others have what they had
// seen (S6): these are made anew, empty. From the first moment on its replicas refuse what others
// ask of them, but for what they have seen; what a pull brings depends on what was missed, not on
// how much there is.
//
// It waits as long as it must: where too few others are not in doubt, for every other one, and for
// one that is down until it is back or an operator gives up what it alone has.
//
// Core affinity: the core of its Runtime, which is the Database's.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "cluster/cluster_service.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"
#include "node/database.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/time.h"

namespace helenus::node {

class Reentry {
 public:
  static constexpr runtime::Duration kAttemptTimeout = std::chrono::seconds(5);
  static constexpr runtime::Duration kRetryPause = std::chrono::milliseconds(500);
  // From one look at how far it is to the next.
  static constexpr runtime::Duration kLookPeriod = std::chrono::milliseconds(50);
  // From one look at whether something was lost to the next.
  static constexpr runtime::Duration kWatchPeriod = std::chrono::seconds(1);

  // How long a node whose files are damaged, and that serves nobody any more, waits for others to
  // take what it has minted, before it keeps what they have not got; and from one attempt to the
  // next.
  static constexpr runtime::Duration kDamagedWait = std::chrono::seconds(10);
  static constexpr runtime::Duration kDamagedPause = std::chrono::minutes(1);

  // They outlive it.
  Reentry(runtime::Runtime& runtime, cluster::ClusterService& cluster, Database& database,
          model::NodeId self);
  Reentry(const Reentry&) = delete;
  Reentry& operator=(const Reentry&) = delete;

  // Begins replication, and returns when the replicas here count. Errors: cancelled; not_found and
  // refused if this node is none of the cluster's any more. Requires: metadata were applied.
  runtime::Task<base::Result<void>> run(runtime::StopToken stop);
  // From now on re-enters whenever a peer has seen more of this node than it has. Once.
  void watch();
  runtime::Task<void> stop();

  // What it waits for; empty if it does not re-enter.
  const std::string& phase() const { return phase_; }
  // What else is wrong with replicas here, for operators; empty if nothing is.
  const std::string& trouble() const { return trouble_; }
  // An operator accepts the loss of what only nodes have that are waited for and are down.
  runtime::Task<base::Result<std::set<model::NodeId>>> accept_data_loss();
  // How often it has re-entered since the start.
  std::uint64_t count() const { return count_; }

 private:
  bool is_in_doubt() const;
  runtime::Task<base::Result<void>> reenter(runtime::StopToken stop);
  // The metadata give new names.
  runtime::Task<base::Result<void>> begin(runtime::StopToken stop);
  // One look; whether the metadata say that this node counts.
  runtime::Task<base::Result<bool>> try_to_finish(runtime::StopToken stop);
  // What is known is in force here.
  runtime::Task<base::Result<void>> wait_applied(runtime::StopToken stop);
  runtime::Task<void> keep_watching();
  void tell(const replication::ReentryProgress& progress);
  void note_damage(const replication::ReentryProgress& progress);
  runtime::Task<void> give_up_damaged();
  bool is_up(model::NodeId node) const;

  runtime::Runtime& runtime_;
  cluster::ClusterService& cluster_;
  Database& database_;
  const model::NodeId self_;
  base::Logger log_;
  std::string phase_;
  metadata::Epoch reentered_;
  std::uint64_t count_ = 0;
  std::size_t damaged_ = 0;  // tablets, as of the last look
  std::string trouble_;
  runtime::MonotonicTime damaged_not_before_;
  runtime::StopSource stopping_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::node
