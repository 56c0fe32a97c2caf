#include "cluster/cluster_service.h"

#include <functional>
#include <utility>

#include "cluster/join_rules.h"
#include "cluster/metadata_check.h"
#include "consensus/persistent_acceptor.h"
#include "membership/phi_detector.h"
#include "metadata/metadata_codec.h"
#include "runtime/files.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using membership::StateKey;
using model::NodeId;
using runtime::Task;
using runtime::Until;

namespace {

std::string acceptor_path(const std::string& data_directory) {
  return data_directory + "/acceptor";
}

}  // namespace

Task<Result<void>> ClusterService::prepare(runtime::Runtime& runtime, std::string data_directory,
                                           NodeId node) {
  co_return co_await consensus::PersistentAcceptor::create(runtime, acceptor_path(data_directory),
                                                           consensus::AcceptorState::blank(node));
}

Task<Result<void>> ClusterService::check(runtime::Runtime& runtime, std::string data_directory,
                                         NodeId node) {
  CO_TRY(const auto state, co_await consensus::PersistentAcceptor::read(
                               runtime, acceptor_path(data_directory), node));
  (void)state;
  co_return {};
}

Task<Result<bool>> ClusterService::has_voted(runtime::Runtime& runtime,
                                             std::string data_directory) {
  const auto bytes = co_await runtime::read_file(runtime, acceptor_path(data_directory),
                                                 consensus::PersistentAcceptor::kFileSizeMax);
  if (bytes.failed_with(Errc::not_found)) co_return false;
  if (!bytes && !bytes.failed_with(Errc::corrupt)) co_return bytes.error();
  const auto state = bytes ? consensus::decode_acceptor_state(*bytes) : bytes.error();
  co_return !state || *state != consensus::AcceptorState::blank(state->node);
}

ClusterService::StoreParts::StoreParts(ClusterService& service, consensus::PaxosStore& store)
    : discovery(service.context_, service.rpc_, store),
      changer(service.runtime_, store, service.known_),
      follower(service.context_, store, service.known_, service.gossip_),
      join(service.context_, service.hooks_.transfer, service.known_, service.gossip_, changer),
      addresses(service.context_, service.known_, changer) {}

ClusterService::ClusterService(runtime::Runtime& runtime, Options options, Hooks hooks)
    : runtime_(runtime),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      self_(options_.self),
      log_(runtime.logger("cluster")),
      phase_(runtime, options_.retry_pause),
      news_(runtime),
      context_{.runtime = runtime,
               .options = options_,
               .self = self_,
               .phase = phase_,
               .news = news_,
               .tasks = tasks_,
               .stopping = stopping_.token()},
      rpc_(runtime, {.cluster = options_.cluster_name,
                     .node = self_.id,
                     // A port that is chosen when listening begins is known only then.
                     .address = self_.node_address.port() == 0 ? std::nullopt
                                                               : std::optional(self_.node_address),
                     .versions = options_.versions,
                     .secrets = options_.secrets}),
      gossip_(runtime, rpc_,
              {.cluster = options_.cluster_name,
               .seeds = options_.seeds,
               .interval = options_.gossip_interval},
              std::make_unique<membership::PhiDetector>(options_.detector)),
      known_(runtime, news_),
      proximity_(context_, rpc_, known_),
      peers_(context_, rpc_, gossip_, known_),
      applier_(
          context_,
          hooks_.apply ? Apply(std::bind_front(&ClusterService::apply_durable, this)) : Apply(),
          known_, gossip_),
      applied_wait_(context_, rpc_, gossip_, known_, applier_),
      tasks_(runtime) {
  known_.on_newer([this](const MetadataPtr& now, const MetadataPtr& before) {
    proximity_.refresh();
    peers_.on_newer(now, before);
    applier_.on_newer(now, before);
  });
}

Task<Result<void>> ClusterService::start(Until until) {
  CO_TRY_VOID(co_await open_and_listen());
  StoreParts& parts = *store_parts_;
  if (store_->known().is_blank()) CO_TRY_VOID(co_await parts.discovery.find_or_found(until));
  CO_TRY(const auto found, metadata::decode_cluster_metadata(store_->known().content));
  CO_TRY_VOID(check_place(found, options_.cluster_name, self_));
  CO_TRY_VOID(known_.adopt(store_->known()));
  tasks_.spawn(parts.follower.follow());
  tasks_.spawn(proximity_.run());
  CO_TRY(const bool is_newest, co_await parts.follower.catch_up(until));
  applier_.start();
  CO_TRY_VOID(co_await applier_.wait_applied(until));
  start_gossip();
  const metadata::Node* self = metadata()->find(self_.id);
  if (self == nullptr || self->state == metadata::NodeState::joining) {
    CO_TRY_VOID(co_await parts.join.join(until));
  }
  if (is_newest) CO_TRY_VOID(co_await parts.follower.catch_up_when_heard_of(until));
  CO_TRY_VOID(co_await applier_.wait_applied(until));
  phase_.set("is of the cluster");
  parts.addresses.start();
  log_.info("this node is of the cluster", base::kv("cluster", options_.cluster_name),
            base::kv("version", version()));
  co_return {};
}

Task<Result<void>> ClusterService::apply_durable(MetadataPtr metadata, consensus::Version version,
                                                 Until until) {
  CO_TRY_VOID(co_await store_->wait_durable(version, until));
  co_return co_await hooks_.apply(std::move(metadata), version, std::move(until));
}

Task<Result<void>> ClusterService::open_and_listen() {
  phase_.set("reads what it knows of the cluster");
  rpc_.on_id_taken([this] { stop_serving(); });
  CO_TRY(store_,
         co_await consensus::PaxosStore::open(
             runtime_, rpc_,
             {.path = acceptor_path(options_.data_directory),
              .contacts = {},
              .check =
                  [this](const consensus::Document& next, const consensus::Document* previous) {
                    return check_metadata(options_.cluster_name, next, previous);
                  },
              .is_member =
                  [this](NodeId node) {
                    return known_.metadata() == nullptr || known_.metadata()->find(node) != nullptr;
                  },
              .make_room = hooks_.make_room}));
  store_parts_ = std::make_unique<StoreParts>(*this, *store_);
  store_parts_->discovery.serve();
  auto listening = rpc_.start(options_.listen_address);
  if (!listening) co_return std::move(listening).error().within("listening for other nodes");
  if (self_.node_address.port() == 0) self_.node_address = rpc_.address();
  co_return {};
}

void ClusterService::start_gossip() {
  gossip_.on_state([this](NodeId node, StateKey key, const base::Bytes& value) {
    store_parts_->follower.on_state(node, key, value);
    news_.wake_all();
  });
  gossip_.on_event([this](const membership::Event& event) {
    peers_.on_event(event);
    news_.wake_all();
  });
  applier_.announce();
  applied_wait_.on_gossip_start();
  gossip_.start();
  peers_.greet_all();
  tasks_.spawn(store_parts_->follower.keep_asking_holders());
}

Task<void> ClusterService::stop() {
  stopping_.request_stop();
  news_.wake_all(Error(Errc::closed));
  known_.close();
  co_await gossip_.stop();
  if (store_) co_await store_->stop();
  co_await tasks_.join();
  co_await rpc_.stop();
  phase_.set("stopped");
}

std::optional<Error> ClusterService::failure() const {
  if (rpc_.id_taken()) return rpc_.id_taken();
  return store_ ? store_->failure() : std::nullopt;
}

void ClusterService::stop_serving() {
  phase_.set("stopped serving, as another node runs under its id");
  if (hooks_.id_taken && !stopping_.stop_requested()) tasks_.spawn(hooks_.id_taken());
}

void ClusterService::move_clients_to(const runtime::Address& address) {
  if (self_.client_address == address) return;
  self_.client_address = address;
  applier_.announce();
  store_parts_->addresses.start();
}

void ClusterService::on_metadata(Listener listener) {
  known_.on_newer([listener = std::move(listener)](const MetadataPtr& now, const MetadataPtr&) {
    listener(now);
  });
}

}  // namespace helenus::cluster
