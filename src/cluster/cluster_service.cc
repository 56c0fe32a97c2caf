#include "cluster/cluster_service.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "base/codec.h"
#include "consensus/persistent_acceptor.h"
#include "membership/application_state.h"
#include "metadata/metadata_codec.h"
#include "metadata/transitions.h"
#include "model/schema_codec.h"
#include "rpc/verb.h"
#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using consensus::Document;
using consensus::Version;
using membership::StateKey;
using metadata::ClusterMetadata;
using model::NodeId;
using runtime::Task;
using runtime::Until;

namespace {

std::string acceptor_path(const std::string& data_directory) {
  return data_directory + "/acceptor";
}

base::Bytes encode_version(Version version) {
  base::Buffer buffer;
  base::Encoder(buffer).varint(version.value());
  return std::move(buffer).freeze();
}

Result<Version> decode_version(base::ByteView bytes) {
  base::Decoder in(bytes);
  const Version version(in.varint());
  TRY_VOID(in.finish());
  return version;
}

base::Uuid draw_uuid(runtime::Runtime& runtime) {
  base::Uuid::Octets random;
  runtime.random.fill_secret(random);
  return base::Uuid::from_random(random);
}

}  // namespace

Task<Result<void>> ClusterService::prepare(runtime::Runtime& runtime, std::string data_directory,
                                           NodeId node) {
  co_return co_await consensus::PersistentAcceptor::create(runtime, acceptor_path(data_directory),
                                                           consensus::AcceptorState::blank(node));
}

ClusterService::ClusterService(runtime::Runtime& runtime, Options options, Transfer transfer)
    : runtime_(runtime),
      options_(std::move(options)),
      transfer_(std::move(transfer)),
      log_(runtime.logger("cluster")),
      phase_("stopped"),
      rpc_(runtime, {.cluster = options_.cluster_name,
                     .node = options_.self.id,
                     .address = options_.self.node_address}),
      gossip_(runtime, rpc_,
              {.cluster = options_.cluster_name,
               .seeds = options_.seeds,
               .interval = options_.gossip_interval},
              std::make_unique<membership::PhiDetector>(options_.detector)),
      news_(runtime),
      tasks_(runtime) {}

Task<Result<void>> ClusterService::start(Until until) {
  phase_ = "reads what it knows of the cluster";
  CO_TRY(store_,
         co_await consensus::PaxosStore::open(
             runtime_, rpc_, {.path = acceptor_path(options_.data_directory), .contacts = {}}));
  rpc_.serve(rpc::verbs::kMetadataVersion, [this](const rpc::Incoming&) { return tell_version(); });
  CO_TRY_VOID(rpc_.start(options_.listen_address));
  if (store_->known().is_blank()) CO_TRY_VOID(co_await find_cluster(until));
  CO_TRY_VOID(adopt(store_->known()));
  tasks_.spawn(follow());
  start_gossip();
  const metadata::Node* self = metadata_->find(options_.self.id);
  if (self == nullptr || self->state == metadata::NodeState::joining) {
    CO_TRY_VOID(co_await join_cluster(until));
  }
  phase_ = "is of the cluster";
  log_.info("is of the cluster", base::kv("cluster", options_.cluster_name),
            base::kv("version", version_));
  co_return {};
}

Task<void> ClusterService::stop() {
  stopping_.request_stop();
  news_.wake_all(Error(Errc::closed));
  co_await gossip_.stop();
  if (store_) co_await store_->stop();
  co_await tasks_.join();
  co_await rpc_.stop();
  phase_ = "stopped";
}

Task<Result<base::Bytes>> ClusterService::tell_version() {
  co_return encode_version(store_->known().version);
}

bool ClusterService::founds() const {
  const auto& seeds = options_.seeds;
  return seeds.empty() || *std::ranges::min_element(seeds) == options_.self.node_address;
}

Task<Result<void>> ClusterService::find_cluster(Until until) {
  for (;;) {
    phase_ = "asks the seeds for the cluster";
    const SeedReport report = co_await ask_seeds(until);
    if (!report.informed.empty()) {
      // Any document will do: it names the nodes to ask for the newest.
      for (const NodeId node : report.informed) store_->heard_of(node, Version(1));
      const auto attempt = runtime_.clock.now() + options_.attempt_timeout;
      const auto document = co_await store_->wait_newer(
          Version(0), {.deadline = std::min(attempt, until.deadline), .stop = until.stop});
      if (document) co_return {};
      CO_TRY_VOID(co_await pause("a seed to tell its metadata", until));
      continue;
    }
    if (founds() && report.silent.empty()) co_return co_await found_cluster(until);
    std::string waits_for;
    if (!report.silent.empty()) {
      waits_for =
          fmt::format("{} to say whether there is a cluster", fmt::join(report.silent, " and "));
    } else {
      waits_for = fmt::format("{} to found the cluster", *std::ranges::min_element(options_.seeds));
    }
    CO_TRY_VOID(co_await pause(std::move(waits_for), until));
  }
}

Task<ClusterService::SeedReport> ClusterService::ask_seeds(Until until) {
  SeedReport report;
  for (const runtime::Address& seed : options_.seeds) {
    if (seed == options_.self.node_address) continue;
    const auto attempt = runtime_.clock.now() + options_.attempt_timeout;
    const Until in_time{.deadline = std::min(attempt, until.deadline), .stop = until.stop};
    const auto node = co_await rpc_.meet(seed, in_time);
    if (!node) {
      report.silent.push_back(fmt::format("{} ({})", seed, node.error()));
      continue;
    }
    if (*node == options_.self.id) continue;
    const auto answer = co_await rpc_.call(*node, rpc::verbs::kMetadataVersion,
                                           rpc::Payload(base::Bytes()), in_time);
    const auto version = answer ? decode_version(*answer) : Result<Version>(answer.error());
    if (!version) {
      report.silent.push_back(fmt::format("{} ({})", seed, version.error()));
    } else if (*version > Version(0)) {
      report.informed.push_back(*node);
    }
  }
  co_return report;
}

Task<Result<void>> ClusterService::found_cluster(Until until) {
  phase_ = "founds the cluster";
  CO_TRY(const auto metadata,
         metadata::found({.cluster_name = options_.cluster_name,
                          .partitioner = options_.partitioner,
                          .tokens = ring::evenly_spread_tokens(options_.tokens),
                          .nodes = {options_.self}}));
  CO_TRY(const auto document, consensus::found(consensus::RegisterId(draw_uuid(runtime_)),
                                               {options_.self.id}, metadata::encode(metadata)));
  CO_TRY_VOID(co_await store_->found(document, until));
  log_.info("founded the cluster", base::kv("cluster", options_.cluster_name),
            base::kv("tokens", options_.tokens));
  co_return {};
}

// Until it is there, or cannot be.
Task<Result<void>> ClusterService::join_cluster(Until until) {
  for (;;) {
    phase_ = "joins the cluster";
    const auto joined = co_await try_to_join(until);
    if (joined) co_return {};
    switch (joined.error().code()) {
      case Errc::locked:
      case Errc::timeout:
      case Errc::unavailable:
      case Errc::already_exists:
        break;
      default:
        co_return joined.error();
    }
    CO_TRY_VOID(co_await pause(joined.error().to_string(), until));
  }
}

Task<Result<void>> ClusterService::try_to_join(Until until) {
  const auto attempt = runtime_.clock.now() + options_.attempt_timeout;
  const Until in_time{.deadline = std::min(attempt, until.deadline), .stop = until.stop};
  const NodeId self = options_.self.id;
  if (metadata_->find(self) == nullptr) {
    CO_TRY_VOID(co_await change(
        [&](const ClusterMetadata& now) { return metadata::begin_join(now, options_.self); },
        in_time));
  }
  const MetadataPtr pending = metadata_;
  const metadata::Node* node = pending->find(self);
  if (node == nullptr) {
    co_return Error(Errc::refused, "the join of node {} was given up by somebody", self);
  }
  if (node->state != metadata::NodeState::joining) co_return {};
  if (!pending->keyspaces.empty()) {
    if (!transfer_) {
      co_return Error(Errc::unsupported, "a cluster with keyspaces has data to copy");
    }
    phase_ = "copies its data from other nodes";
    CO_TRY_VOID(co_await transfer_(pending, until));
  }
  CO_TRY_VOID(co_await change(
      [&](const ClusterMetadata& now) { return metadata::finish_change(now, pending->epoch); },
      Until::after(runtime_, options_.attempt_timeout, until.stop)));
  co_return {};
}

Task<Result<MetadataPtr>> ClusterService::change(Transition transition, Until until) {
  for (;;) {
    CO_TRY(const Document document, co_await store_->read(until));
    CO_TRY(const auto now, metadata::decode_cluster_metadata(document.content));
    CO_TRY(const auto next, transition(now));
    auto changed =
        co_await store_->change({.id = draw_change_id(),
                                 .expected = document.version,
                                 .acceptors = metadata::choose_acceptors(next, document.acceptors),
                                 .content = metadata::encode(next)},
                                until);
    if (changed) {
      CO_TRY_VOID(adopt(*changed));
      co_return metadata_;
    }
    if (!changed.failed_with(Errc::already_exists)) co_return std::move(changed).error();
  }
}

Task<Result<void>> ClusterService::wait_everywhere(Version version, Until until) {
  while (!everybody_holds(version)) CO_TRY_VOID(co_await news_.wait(until));
  co_return {};
}

bool ClusterService::everybody_holds(Version version) const {
  for (const auto& [node, known] : gossip_.view().nodes()) {
    if (!known.up) continue;
    const auto* states = gossip_.membership().gossip().find(node);
    const base::Bytes* value =
        states == nullptr ? nullptr : states->find(StateKey::metadata_version);
    const auto held = value == nullptr ? Result<std::uint64_t>(std::uint64_t{0})
                                       : membership::decode_metadata_version(*value);
    if (!held || *held < version.value()) return false;
  }
  return version_ >= version;
}

void ClusterService::start_gossip() {
  gossip_.on_state([this](NodeId node, StateKey key, const base::Bytes& value) {
    if (key == StateKey::metadata_version) {
      const auto held = membership::decode_metadata_version(value);
      if (held) store_->heard_of(node, Version(*held));
    }
    news_.wake_all();
  });
  gossip_.on_event([this](const membership::Event& event) {
    // A further life of a node that was removed.
    if (metadata_->was_removed(event.node) && event.kind == membership::Event::Kind::new_node) {
      gossip_.forget(event.node);
    }
    news_.wake_all();
  });
  announce();
  gossip_.start();
}

Task<void> ClusterService::follow() {
  for (;;) {
    const auto document = co_await store_->wait_newer(version_, {.stop = stopping_.token()});
    if (!document) co_return;
    if (const auto adopted = adopt(*document); !adopted) {
      log_.error("the metadata are not understood; this node goes on with older ones",
                 base::kv("version", document->version), base::kv("reason", adopted.error()));
      co_return;
    }
  }
}

Result<void> ClusterService::adopt(const Document& document) {
  if (document.version <= version_) return {};
  TRY(auto next, metadata::decode_cluster_metadata(document.content));
  const MetadataPtr before =
      std::exchange(metadata_, std::make_shared<const ClusterMetadata>(std::move(next)));
  version_ = document.version;
  for (const metadata::Node& node : metadata_->nodes) {
    if (node.id() == options_.self.id) continue;
    if (!rpc_.introduce(node.id(), node.description.node_address)) {
      log_.warn("a node cannot be introduced", base::kv("node", node.id()));
    }
  }
  if (before) {
    for (const metadata::Node& node : before->nodes) {
      const bool is_gone = metadata_->find(node.id()) == nullptr;
      if (is_gone && node.id() != options_.self.id) gossip_.forget(node.id());
      if (is_gone && node.id() == options_.self.id) {
        phase_ = "was removed from the cluster";
        log_.error("this node was removed from the cluster", base::kv("version", version_));
      }
    }
    announce();
  }
  for (const Listener& listener : listeners_) listener(metadata_);
  news_.wake_all();
  return {};
}

// What this node says of itself.
void ClusterService::announce() {
  const metadata::Node* self = metadata_->find(options_.self.id);
  const auto status = self == nullptr || self->state == metadata::NodeState::joining
                          ? membership::Status::joining
                      : self->state == metadata::NodeState::normal ? membership::Status::normal
                                                                   : membership::Status::leaving;
  const auto say = [this](StateKey key, base::Bytes value) {
    const auto said = gossip_.set(key, std::move(value));
    ASSERT(said, "{}", said.error());
  };
  say(StateKey::node_address, membership::encode_address(options_.self.node_address));
  say(StateKey::client_address, membership::encode_address(options_.self.client_address));
  say(StateKey::datacenter, base::Bytes::copy_of(options_.self.datacentre));
  say(StateKey::rack, base::Bytes::copy_of(options_.self.rack));
  say(StateKey::schema_version,
      membership::encode_schema_version(model::schema_version(metadata_->schema)));
  say(StateKey::metadata_version, membership::encode_metadata_version(version_.value()));
  say(StateKey::status, membership::encode_status(status));
}

consensus::ChangeId ClusterService::draw_change_id() {
  return consensus::ChangeId(draw_uuid(runtime_));
}

Task<Result<void>> ClusterService::pause(std::string waits_for, Until until) {
  phase_ = "waits for " + std::move(waits_for);
  // What an attempt that time cut short found out says less than the one before.
  if (runtime_.clock.now() >= until.deadline) {
    co_return Error(Errc::timeout, waited_for_.empty() ? phase_ : waited_for_);
  }
  waited_for_ = phase_;
  log_.info("starting", base::kv("phase", phase_));
  co_return co_await runtime::sleep_for(runtime_, options_.retry_pause, until.stop);
}

}  // namespace helenus::cluster
