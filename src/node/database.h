// Database: the part of a node that keeps data and answers CQL. It opens the storage of all cores
// and the catalog, and gives every core what serves clients there (core_service.h); it stops them
// in reverse. In between the node becomes one of its cluster, of which the catalog learns.
//
// What is the node's, whatever the number of cores: the settings of memory, disk and connections.
// Memory and disk are divided among cores (core_limits.h); connections, and the bytes of requests
// and results, are counted over all of them.
//
// An operator who asks is answered within kAnswerTimeout, also when a core does not answer: that is
// when one asks.
//
// Core affinity: the core of its Runtime, save where it says otherwise.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admin/cluster_report.h"
#include "admin/metrics.h"
#include "admin/table_report.h"
#include "base/log.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/catalog/catalog.h"
#include "cql/execute/query_processor.h"
#include "cql/server/admission.h"
#include "cql/server/server.h"
#include "cql/system/peers.h"
#include "cql/system/system_tables.h"
#include "cql/system/traces.h"
#include "node/config.h"
#include "node/core_service.h"
#include "node/trace_messages.h"
#include "replication/cluster/replicas.h"
#include "replication/coordinator/coordinator.h"
#include "replication/map/replica_map.h"
#include "replication/tablets/tablet_directory.h"
#include "rpc/rpc.h"
#include "runtime/gate.h"
#include "runtime/run_on.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "storage/engine/engines.h"

namespace helenus::node {

class Database {
 public:
  // How long a core may take to say how it is.
  static constexpr runtime::Duration kAnswerTimeout = std::chrono::seconds(2);
  // Questions that may wait for the cores.
  static constexpr std::size_t kQuestionsMax = 4096;

  // Requires: `config` outlives it.
  Database(runtime::Runtime& runtime, const Config& config, model::NodeId node);

  // Recovers what there is. If the folder was used before and there is nothing, it was lost. Errors
  // name the file, the folder or the address at fault. After an error, call stop().
  runtime::Task<base::Result<void>> open(bool was_used);
  // Other nodes ask this one for rows, and are asked. Requires: open; on the core of the Rpc,
  // before it listens.
  void connect(rpc::Rpc& rpc);
  // Acts by newer metadata: tablets, then the catalog by `apply_schema`; what is no longer named
  // goes after that. Errors: of the engines, and of the schema's; it may be asked again. One at a
  // time.
  runtime::Task<base::Result<void>> apply(replication::ReplicaMapPtr map,
                                          runtime::Task<base::Result<void>> apply_schema);
  // ---- Re-entry (reentry.h) ----
  // See TabletDirectory's of these names.
  bool must_reenter() const { return tablets_->must_reenter(); }
  runtime::Task<base::Result<void>> forget_doubts() { return tablets_->forget_doubts(); }
  void begin_reentry(causality::Epoch after) { tablets_->begin_reentry(after); }
  // See TabletDirectory's.
  void make_anew(std::set<storage::TabletId> damaged) { tablets_->make_anew(std::move(damaged)); }
  // Replicas that others hold too serve nobody from now on, nor after another start. Errors: of the
  // engines.
  runtime::Task<base::Result<void>> doubt_all();
  // Replicas here and those of other nodes become equal from now on. Requires: connected, and
  // metadata were applied. Also a second time.
  runtime::Task<void> begin_replication();
  runtime::Task<replication::ReentryProgress> reentry() { return replicas_->reentry(); }
  // ---- Changes of the ring (ring_change.h) ----
  // The tablets that this node holds now. Null before metadata were applied.
  replication::HeldTabletsPtr held() const { return replicas_->on(runtime_.cores.here()).held; }
  runtime::Task<replication::RingProgress> ring_progress() { return replicas_->ring_progress(); }
  runtime::Task<base::Result<void>> copy(replication::HeldTablet tablet, model::NodeId source,
                                         runtime::Until until) {
    return replicas_->copy(std::move(tablet), source, std::move(until));
  }
  runtime::Task<void> note_filled(replication::HeldTablet tablet) {
    return replicas_->note_filled(std::move(tablet));
  }
  runtime::Task<void> give_up(std::set<model::NodeId> nodes) {
    return replicas_->give_up(std::move(nodes));
  }

  // Who is up, this node not among them.
  runtime::Task<void> take(replication::UpNodesPtr up) { return replicas_->take(std::move(up)); }
  // Opens the port for clients. `node_address` is where other nodes reach this one. Errors: as of
  // open(). Requires: open; replication has begun.
  runtime::Task<base::Result<void>> serve(runtime::Address node_address, cql::PeersPtr peers);
  // Tells the clients of all cores of other nodes; returns when it is done. One at a time.
  // Requires: serving.
  runtime::Task<void> publish(const admin::PeerNews::News& news);
  // Answers what is under way and refuses the rest, for good; other nodes and operators are served
  // on. Also a second time.
  runtime::Task<void> stop_clients();
  // The same for operators, too. The catalog may still change.
  runtime::Task<void> stop_serving();
  // The same, and seals the commit log. Also right after a start that failed, and a second time.
  // Requires: nobody changes the catalog any more.
  runtime::Task<void> stop();

  // Destroys what serves clients and other nodes, whatever is under way. Requires: stopped, or the
  // core has halted.
  void abandon() {
    services_.clear();
    if (replicas_ != nullptr) replicas_->abandon();
  }

  // As Engine's, of the core of its Runtime. Requires: open.
  runtime::Task<bool> make_room();

  // Requires: open.
  cql::Catalog& catalog() { return *catalog_; }
  const cql::Catalog& catalog() const { return *catalog_; }
  replication::Coordinator& coordinator() { return *coordinator_; }

  // What open() or serve() waits for, or "serving".
  const std::string& phase() const { return phase_; }
  // What is wrong with the first core that is not well, if one is not: it can write nothing any
  // more; or it does not answer (timeout, overloaded). Else the first that takes no data for now:
  // no_space, the disk is full; or what its flushes fail with. Nothing before it serves.
  struct CoreFailure {
    std::uint32_t core = 0;
    base::Error error;
    bool for_now = false;
  };
  runtime::Task<std::optional<CoreFailure>> failure();

  // Requires: started.
  runtime::Address cql_address() const { return cql_address_; }
  // How many serve clients and keep data.
  std::uint32_t cores() const { return cores_; }
  // Of all cores together. Errors: closed when it stops; timeout, overloaded, naming the core.
  runtime::Task<base::Result<std::vector<admin::Metric>>> metrics();
  // What the replicas of all cores lack and have done about it. Errors: the same.
  runtime::Task<base::Result<replication::AntiEntropyReport>> anti_entropy();
  // ---- Snapshots (snapshots.h) ----
  // See Engine's.
  runtime::Task<base::Result<storage::SnapshotSize>> make_snapshot(
      std::string name, std::vector<storage::TableId> tables,
      std::vector<storage::TabletId> tablets, runtime::Until until) {
    return engines_->make_snapshot(std::move(name), std::move(tables), std::move(tablets),
                                   std::move(until));
  }
  // See Engine::restore; a tablet that no other node holds is made anew.
  runtime::Task<base::Result<storage::RestoreReport>> restore_tablet(std::string name,
                                                                     storage::RestoreOrder order,
                                                                     replication::HeldTablet tablet,
                                                                     runtime::StopToken stop);
  // Forces a round of anti-entropy, of a keyspace or of all if the name is empty, and waits until
  // nothing is missing any more, here or elsewhere; or for so long without any progress. What is
  // missing then. Errors: not_found for a keyspace that there is not; as above.
  static constexpr runtime::Duration kRepairPatience = std::chrono::seconds(10);
  runtime::Task<base::Result<replication::AntiEntropyReport>> repair(std::string keyspace,
                                                                     runtime::Until until);
  // What the data of all cores takes on disk. Errors: the same.
  runtime::Task<base::Result<std::uint64_t>> load_bytes();
  // What this node has of the tables that statements made: of one, of those of a keyspace, or of
  // all, where a name is empty. Errors: not_found for a name that there is not; as above.
  runtime::Task<base::Result<std::vector<admin::TableReport>>> tables(std::string keyspace,
                                                                      std::string table);
  // How files of all tables that have some are merged now, indexes among them; by name. Errors: as
  // above.
  runtime::Task<base::Result<std::vector<admin::TableReport>>> compactions();
  // What is done to such tables one after the other; says to how many. Errors: not_found; those of
  // the engine; timeout, cancelled.
  enum class Maintenance : std::uint8_t { flush, compact, verify };
  runtime::Task<base::Result<std::size_t>> maintain(Maintenance what, std::string keyspace,
                                                    std::string table, runtime::Until until);

 private:
  base::Result<void> count_cores();
  base::Result<std::vector<admin::TableReport>> find_tables(std::string_view keyspace,
                                                            std::string_view table) const;
  cql::SystemSources system_sources(runtime::Runtime& there);
  cql::NodeFacts facts() const;
  CoreService::Options service_options() const;

  runtime::Task<base::Result<void>> open_storage(bool was_used);
  runtime::Task<base::Result<void>> start_services();
  runtime::Task<void> destroy_services();
  // Whatever it takes: a core that has too much to do is asked again.
  runtime::Task<base::Result<void>> do_on(std::uint32_t core, runtime::CoreWork<void> work);
  // What each core tells the first one, which waits no longer than it must.
  template <class T>
  struct Answers;
  template <class T>
  runtime::Task<std::vector<base::Result<T>>> ask_all(T (*tell)(const CoreService&));
  template <class T>
  runtime::Task<void> ask(std::uint32_t core, T (*tell)(const CoreService&),
                          std::shared_ptr<Answers<T>> answers);
  // On any core, from what all tell.
  template <class T>
  runtime::Task<base::Result<std::vector<T>>> gather(runtime::Runtime& here,
                                                     T (*tell)(const CoreService&),
                                                     runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::MetricRow>>> metric_rows(runtime::Runtime& here,
                                                                       runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::ClientRow>>> client_rows(runtime::Runtime& here,
                                                                       runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::RequestRow>>> request_rows(runtime::Runtime& here,
                                                                         runtime::Until until);
  // Of this node, and of all nodes that are up and answer in time.
  runtime::Task<base::Result<std::vector<cql::Traces::Session>>> own_traces(runtime::Runtime& here,
                                                                            runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::Traces::Session>>> traces(runtime::Runtime& here,
                                                                        runtime::Until until);
  runtime::Task<base::Result<TracesReply>> answer_traces(runtime::Until until);

  runtime::Runtime& runtime_;
  const Config& config_;
  const model::NodeId node_;
  base::Logger log_;
  std::string phase_;
  runtime::Address node_address_;
  cql::PeersPtr peers_;  // of the beginning
  runtime::Address cql_address_;
  std::uint32_t cores_ = 1;
  // What all cores share.
  const std::shared_ptr<cql::NodeAdmission> admission_;

  std::unique_ptr<storage::Engines> engines_;
  bool engines_stopped_ = false;
  std::unique_ptr<replication::TabletDirectory> tablets_;
  std::unique_ptr<replication::Replicas> replicas_;
  std::unique_ptr<replication::Coordinator> coordinator_;  // of this core
  std::unique_ptr<cql::Catalog> catalog_;
  // By core, each made and destroyed there. Does not change while clients are served.
  std::vector<std::unique_ptr<CoreService>> services_;
  bool serving_ = false;
  bool replicating_ = false;
  // Whoever changes which tablets are held, and how.
  runtime::Semaphore holding_;
  runtime::Gate askers_;
  runtime::TaskGroup questions_;
};

}  // namespace helenus::node
