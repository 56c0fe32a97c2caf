// Node: the composition root. It builds everything a node is made of from a Runtime and a Config,
// and owns the order in which they start and stop. The server runs one over the operating system,
// the simulator runs many in virtual time: the same class.
//
// Order: the data folder is locked, the identity read, the admin port opened (so that a long start
// can be watched), the storage recovered, the cluster founded, joined or found again, and then the
// port for clients opened. So whoever is up among the nodes has its data, and whoever has a client
// is one of the cluster. Stop goes the other way.
//
// What survives a crash: the data folder. Start after a crash is start.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "admin/admin_server.h"
#include "admin/cluster_reporter.h"
#include "base/log.h"
#include "base/result.h"
#include "cluster/cluster_secrets.h"
#include "cluster/cluster_service.h"
#include "cql/agreement/schema_service.h"
#include "keyvalue/key_value_service.h"
#include "node/config.h"
#include "node/database.h"
#include "node/identity.h"
#include "node/reentry.h"
#include "node/ring_change.h"
#include "node/snapshots.h"
#include "node/up_nodes.h"
#include "runtime/file_system.h"
#include "runtime/gate.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::node {

class Node {
 public:
  // A start that takes longer than the first says what it waits for, and again after each of the
  // second.
  static constexpr runtime::Duration kProgressDelay = std::chrono::milliseconds(500);
  static constexpr runtime::Duration kProgressPeriod = std::chrono::seconds(3);

  // Is told what a start waits for: "waits for 192.0.2.1:7000 to found the cluster".
  using Progress = std::function<void(const std::string& phase)>;

  Node(runtime::Runtime& runtime, Config config);
  // Requires: stopped, or never started.
  ~Node();

  // Takes the data folder, learns who it is, becomes one of its cluster, and opens its ports. That
  // may take until other nodes are there: a stop ends the wait (cancelled). Without a Progress the
  // log is told. After an error, call stop().
  // A node whose replicas may have lost what others count on re-enters before it opens its port for
  // clients (reentry.h).
  // Errors name the folder or the address at fault: locked (another node runs there),
  // permission_denied, address_in_use, corrupt, ...; those of ClusterService::start;
  // invalid_argument.
  runtime::Task<base::Result<void>> start(runtime::StopToken stop = {}, Progress progress = {});
  // Winds up in reverse order. Also right after a failed or partial start.
  runtime::Task<void> stop();

  // What start() waits for, as Progress is told.
  std::string phase() const;

  // Requires: started.
  const Identity& identity() const { return *identity_; }
  runtime::Address admin_address() const { return admin_->address(); }
  // Requires: started, with a database.
  runtime::Address cql_address() const { return database_->cql_address(); }
  cluster::ClusterService& cluster() { return *cluster_; }
  // How many cores serve clients and keep data.
  std::uint32_t cores() const { return database_->cores(); }
  Database& database() { return *database_; }
  RingChange& ring_change() { return *ring_change_; }

 private:
  // Whether nothing is there that belongs to an identity which was lost. Errors: corrupt, naming
  // what is there and what to do.
  runtime::Task<base::Result<void>> check_folder_is_new();
  // What a new folder needs before the identity is in it.
  runtime::Task<base::Result<void>> prepare_folder(model::NodeId node);
  runtime::Task<base::Result<void>> start_parts(runtime::StopToken stop);
  runtime::Task<base::Result<void>> start_and_tell(runtime::StopToken stop,
                                                   runtime::StopSource& started);
  cluster::ClusterService::Options cluster_options() const;
  cluster::SecretSource secret_source() const;
  void make_cluster(std::vector<rpc::ClusterSecret> secrets);
  runtime::Task<base::Result<void>> start_cluster(runtime::StopToken stop);
  // A cluster::Apply.
  runtime::Task<base::Result<void>> apply(cluster::MetadataPtr metadata, consensus::Version version,
                                          runtime::Until until);
  base::Result<void> check_port(const runtime::Address& address) const;
  runtime::Task<void> report_progress(runtime::StopToken started, Progress progress);

  runtime::Task<admin::HttpResponse> answer(const admin::HttpRequest& request);
  static admin::HttpResponse no_such_path(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_health();
  runtime::Task<admin::HttpResponse> answer_metrics();
  // What is wrong with this node, for operators; empty if nothing is.
  std::string trouble() const;
  admin::HttpResponse answer_cluster(const admin::HttpRequest& request) const;
  runtime::Task<admin::HttpResponse> answer_missing();
  runtime::Task<admin::HttpResponse> answer_repair(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_snapshots(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_compactions();
  runtime::Task<admin::HttpResponse> answer_tables(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_rows(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_change(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_accept_data_loss();
  runtime::Task<admin::HttpResponse> answer_ring(const admin::HttpRequest& request);
  runtime::Task<admin::HttpResponse> answer_ring_progress();
  cluster::Transfer transfer_hook();
  RingChange::Hooks ring_hooks();
  // Serves no clients any more, and says so to the other nodes. For good; also a second time.
  runtime::Task<void> drain();

  runtime::Runtime& runtime_;
  const Config config_;
  base::Logger log_;
  std::unique_ptr<runtime::FileLock> data_lock_;
  std::optional<Identity> identity_;
  bool identity_is_new_ = false;  // made by this start
  bool in_cluster_ = false;
  bool started_ = false;
  bool stopping_ = false;
  bool drained_ = false;  // or about to be
  bool cluster_stopped_ = false;
  std::optional<Database> database_;
  std::optional<cql::SchemaService> schema_;
  std::optional<admin::ClusterReporter> reporter_;
  std::optional<UpNodes> up_nodes_;
  std::optional<cluster::ClusterService> cluster_;
  std::optional<Reentry> reentry_;
  std::optional<RingChange> ring_change_;
  std::optional<Snapshots> snapshots_;
  runtime::StopSource changes_stop_;
  runtime::Gate changes_;  // inside: what an operator asked for, and requests for rows over HTTP
  std::optional<keyvalue::KeyValueService> key_value_;
  std::optional<admin::AdminServer> admin_;
};

}  // namespace helenus::node
