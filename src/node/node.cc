#include "node/node.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "node/core_limits.h"
#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "runtime/transport.h"
#include "runtime/when_all.h"

namespace helenus::node {

using base::kv;
using base::Result;
using cluster::ClusterService;
using runtime::StopSource;
using runtime::StopToken;
using runtime::Task;

Node::Node(runtime::Runtime& runtime, Config config)
    : runtime_(runtime),
      config_(std::move(config)),
      log_(runtime.logger("node")),
      changes_(runtime),
      admin_(std::in_place, runtime,
             [this](const admin::HttpRequest& request) { return answer(request); }) {}

// Only a simulated crash destroys what is under way, where it waits. Requests of clients lean on
// the cluster, and what the cluster does leans on the catalog: so clients go first, the database
// last.
Node::~Node() {
  admin_.reset();
  ring_change_.reset();
  if (database_) database_->abandon();
}

Task<Result<void>> Node::start(StopToken stop, Progress progress) {
  const std::string& directory = config_.data_directory;
  CO_TRY_VOID(co_await runtime::make_directories_durably(runtime_, directory));
  CO_TRY(data_lock_, co_await runtime_.files.lock(directory + "/lock"));
  const Prepare prepare = [this](model::NodeId node) { return prepare_folder(node); };
  CO_TRY(const auto identity, co_await load_or_create_identity(runtime_, directory, prepare));
  identity_ = identity;

  auto listening = admin_->start(config_.admin_address);
  if (!listening) {
    co_return std::move(listening).error().within("admin server");
  }
  if (config_.with_database) {
    StopSource started;
    auto outcomes =
        co_await runtime::when_all(start_and_tell(std::move(stop), started),
                                   report_progress(started.token(), std::move(progress)));
    CO_TRY_VOID(std::get<0>(std::move(outcomes)));
  }
  started_ = true;
  log_.info("started", kv("node", identity.node), kv("folder", directory),
            kv("admin", admin_->address()));
  co_return {};
}

// The identity is the first file of a folder but for a vote that was never cast, and the last one
// that may be made anew.
Task<Result<void>> Node::check_folder_is_new() {
  const storage::EngineOptions options = engine_options(config_, 1);
  std::vector<std::string> parts = {options.log_directory_or_default() + "/catalog",
                                    options.log_directory_or_default() + "/log-place"};
  for (const std::string& directory : options.data_directories) {
    parts.push_back(directory + "/engine");
    parts.push_back(directory + "/place");
  }
  const auto lost = [this](const std::string& part) {
    return base::Error(base::Errc::corrupt,
                       "{}/identity is missing, and {} is there: restore all of the folder from a "
                       "backup, or give the node up and start a new one with empty folders",
                       config_.data_directory, part);
  };
  CO_TRY(const bool has_voted,
         co_await ClusterService::has_voted(runtime_, config_.data_directory));
  if (has_voted) co_return lost(config_.data_directory + "/acceptor");
  for (const std::string& part : parts) {
    const auto info = co_await runtime_.files.info(part);
    if (info) co_return lost(part);
    if (!info.failed_with(base::Errc::not_found)) co_return info.error();
  }
  co_return {};
}

Task<Result<void>> Node::prepare_folder(model::NodeId node) {
  identity_is_new_ = true;
  CO_TRY_VOID(co_await check_folder_is_new());
  if (config_.with_database) CO_TRY_VOID(co_await prepare_secrets(runtime_, secret_source()));
  co_return co_await ClusterService::prepare(runtime_, config_.data_directory, node);
}

Task<Result<void>> Node::start_and_tell(StopToken stop, StopSource& started) {
  auto outcome = co_await start_parts(std::move(stop));
  started.request_stop();
  co_return outcome;
}

Task<Result<void>> Node::start_parts(StopToken stop) {
  // Before anything is changed: with the wrong one of the two, what follows is another node's.
  CO_TRY_VOID(co_await ClusterService::check(runtime_, config_.data_directory, identity_->node));
  CO_TRY(auto secrets, co_await load_secrets(runtime_, secret_source()));
  // A port that is taken is told before a recovery that may take long, not behind it.
  auto port_is_free = check_port(config_.listen_address);
  if (!port_is_free) co_return std::move(port_is_free).error().within("listening for other nodes");
  database_.emplace(runtime_, config_, identity_->node);
  CO_TRY_VOID(co_await database_->open(!identity_is_new_));
  make_cluster(std::move(secrets));
  CO_TRY_VOID(co_await start_cluster(stop));
  reentry_.emplace(runtime_, *cluster_, *database_, identity_->node);
  CO_TRY_VOID(co_await reentry_->run(stop));
  snapshots_.emplace(runtime_, *database_,
                     engine_options(config_, database_->cores()).data_directories, identity_->node);
  CO_TRY_VOID(co_await snapshots_->resume(stop));
  CO_TRY_VOID(co_await up_nodes_->wait_heard(std::move(stop)));
  reporter_.emplace(
      runtime_, *cluster_, identity_->node,
      [this](const admin::PeerNews::News& news) { return database_->publish(news); },
      [this] { return database_->load_bytes(); });
  schema_->take_statements(*cluster_, [this](runtime::Until until) {
    return reporter_->wait_published(std::move(until));
  });
  CO_TRY_VOID(co_await database_->serve(cluster_->node_address(), reporter_->peers()));
  // The port in force may have been chosen only now.
  cluster_->move_clients_to(
      config_.cql_address_for_clients().with_port(database_->cql_address().port()));
  reporter_->start();
  reentry_->watch();
  ring_change_->start();
  key_value_.emplace(runtime_, database_->coordinator(), database_->catalog(),
                     database_->catalog().context_secret(),
                     keyvalue::KeyValueService::Options{
                         .timeout = std::chrono::milliseconds(config_.request_timeout_ms),
                         .is_remote = config_.key_value_remote});
  co_return {};
}

cluster::SecretSource Node::secret_source() const {
  return {.data_directory = config_.data_directory,
          .file = config_.cluster_secret_file,
          .text = config_.cluster_secret,
          .listen_address = config_.listen_address,
          .node_address = config_.node_address(),
          .seeds = config_.seeds};
}

void Node::make_cluster(std::vector<rpc::ClusterSecret> secrets) {
  schema_.emplace(identity_->node, database_->catalog());
  ClusterService::Hooks hooks;
  hooks.id_taken = [this] { return database_->stop_serving(); };
  hooks.make_room = [this] { return database_->make_room(); };
  hooks.apply = [this](cluster::MetadataPtr metadata, consensus::Version version,
                       runtime::Until until) {
    return apply(std::move(metadata), version, std::move(until));
  };
  ClusterService::Options options = cluster_options();
  options.secrets = std::move(secrets);
  hooks.transfer = transfer_hook();
  cluster_.emplace(runtime_, std::move(options), std::move(hooks));
  database_->connect(cluster_->rpc());
  ring_change_.emplace(runtime_, *cluster_, *database_, identity_->node, ring_hooks());
  ring_change_->serve(cluster_->rpc());
  up_nodes_.emplace(runtime_, *cluster_, identity_->node,
                    [this](replication::UpNodesPtr up) { return database_->take(std::move(up)); });
  up_nodes_->start();
}

cluster::Transfer Node::transfer_hook() {
  return [this](cluster::MetadataPtr metadata, runtime::Until until) {
    return ring_change_->transfer(std::move(metadata), std::move(until));
  };
}

RingChange::Hooks Node::ring_hooks() {
  return {.fill =
              [this](replication::HeldTablet tablet, model::NodeId source, runtime::Until until) {
                return database_->copy(std::move(tablet), source, std::move(until));
              },
          .let_go = [this] { return drain(); }};
}

Task<Result<void>> Node::start_cluster(StopToken stop) {
  auto in_cluster = co_await cluster_->start({.stop = std::move(stop)});
  if (!in_cluster) co_return std::move(in_cluster).error().within("cluster");
  in_cluster_ = true;
  co_return {};
}

Task<Result<void>> Node::apply(cluster::MetadataPtr metadata, consensus::Version version,
                               runtime::Until until) {
  auto map = replication::ReplicaMap::make(*metadata, version.value(), identity_->node);
  co_return co_await database_->apply(
      std::move(map), schema_->apply(std::move(metadata), version, std::move(until)));
}

ClusterService::Options Node::cluster_options() const {
  const runtime::Duration interval = std::chrono::milliseconds(config_.gossip_interval_ms);
  return {.data_directory = config_.data_directory,
          .cluster_name = config_.cluster_name,
          .self = {.id = identity_->node,
                   .node_address = config_.node_address(),
                   .client_address = config_.cql_address_for_clients(),
                   .datacentre = config_.data_center,
                   .rack = config_.rack},
          .listen_address = config_.listen_address,
          .seeds = config_.seeds,
          .replaces = config_.replace_node,
          .partitioner = config_.partitioner,
          .tokens = config_.tokens,
          .gossip_interval = interval,
          .detector = {.threshold = config_.phi_threshold,
                       .interval_initial = 2 * interval,
                       .interval_max = 2 * interval}};
}

Result<void> Node::check_port(const runtime::Address& address) const {
  TRY(const auto listener, runtime_.transport.listen(address));
  listener->close();
  return {};
}

std::string Node::phase() const {
  if (cluster_ && !in_cluster_) {
    const std::string change = ring_change_ ? ring_change_->phase() : "";
    return change.empty() ? cluster_->phase() : cluster_->phase() + ": " + change;
  }
  if (reentry_ && !reentry_->phase().empty()) return reentry_->phase();
  return "waits for " + (database_ ? database_->phase() : "the data folder");
}

Task<void> Node::report_progress(StopToken started, Progress progress) {
  for (runtime::Duration pause = kProgressDelay;; pause = kProgressPeriod) {
    const auto paused = co_await runtime::sleep_for(runtime_, pause, started);
    if (!paused) co_return;
    if (progress) {
      progress(phase());
    } else {
      log_.info("starting", kv("phase", phase()));
    }
  }
}

// A change that an operator asked for ends first, done or not, and so do requests for rows over
// HTTP.
Task<void> Node::stop() {
  stopping_ = true;
  changes_stop_.request_stop();
  co_await changes_.close();
  if (reporter_) co_await reporter_->stop();
  if (ring_change_) ring_change_->request_stop();
  if (reentry_) co_await reentry_->stop();
  if (database_) co_await database_->stop_serving();
  // A copy that is under way has ended with the anti-entropy that takes it.
  if (ring_change_) co_await ring_change_->stop();
  if (up_nodes_) co_await up_nodes_->stop();
  if (cluster_ && !std::exchange(cluster_stopped_, true)) co_await cluster_->stop();
  if (database_) co_await database_->stop();
  co_await admin_->stop();
  data_lock_.reset();
  if (std::exchange(started_, false)) log_.info("stopped");
}

}  // namespace helenus::node
