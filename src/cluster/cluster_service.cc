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
#include "runtime/when_all.h"

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

// How many rounds of gossip it may take until a beat of everybody who is up has been heard of.
constexpr int kRoundsUntilHeard = 5;
// After how many without one it is looked whether a node can be reached, so that this is known when
// the others are over.
constexpr int kRoundsUntilDoubt = 2;
// How long a connection may take: a packet may be lost and sent again a second later.
constexpr runtime::Duration kReachTimeout = std::chrono::seconds(2);
// How long the owner is given to act by newer metadata before it is asked again.
constexpr runtime::Duration kApplyTimeout = std::chrono::minutes(1);
constexpr runtime::Duration kApplyPauseMax = std::chrono::seconds(30);

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

ClusterService::ClusterService(runtime::Runtime& runtime, Options options, Hooks hooks)
    : runtime_(runtime),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      self_(options_.self),
      log_(runtime.logger("cluster")),
      phase_("stopped"),
      rpc_(runtime, {.cluster = options_.cluster_name,
                     .node = self_.id,
                     // A port that is chosen when listening begins is known only then.
                     .address = self_.node_address.port() == 0 ? std::nullopt
                                                               : std::optional(self_.node_address),
                     .versions = options_.versions}),
      gossip_(runtime, rpc_,
              {.cluster = options_.cluster_name,
               .seeds = options_.seeds,
               .interval = options_.gossip_interval},
              std::make_unique<membership::PhiDetector>(options_.detector)),
      news_(runtime),
      newer_(runtime),
      tasks_(runtime) {}

Task<Result<void>> ClusterService::start(Until until) {
  phase_ = "reads what it knows of the cluster";
  CO_TRY(store_,
         co_await consensus::PaxosStore::open(
             runtime_, rpc_, {.path = acceptor_path(options_.data_directory), .contacts = {}}));
  rpc_.serve(rpc::verbs::kMetadataVersion, [this](const rpc::Incoming&) { return tell_version(); });
  auto listening = rpc_.start(options_.listen_address);
  if (!listening) co_return std::move(listening).error().within("listening for other nodes");
  if (self_.node_address.port() == 0) self_.node_address = rpc_.address();
  if (store_->known().is_blank()) CO_TRY_VOID(co_await find_cluster(until));
  CO_TRY(const auto known, metadata::decode_cluster_metadata(store_->known().content));
  CO_TRY_VOID(check_place(known));
  CO_TRY_VOID(adopt(store_->known()));
  tasks_.spawn(follow());
  tasks_.spawn(keep_judging_proximity());
  CO_TRY(const bool is_newest, co_await ask_for_newest(until));
  if (hooks_.apply) tasks_.spawn(apply_newer());
  CO_TRY_VOID(co_await wait_applied(until));
  start_gossip();
  const metadata::Node* self = metadata_->find(self_.id);
  if (self == nullptr || self->state == metadata::NodeState::joining) {
    CO_TRY_VOID(co_await join_cluster(until));
  }
  if (is_newest) CO_TRY_VOID(co_await look_when_heard(until));
  CO_TRY_VOID(co_await wait_applied(until));
  phase_ = "is of the cluster";
  correct_addresses();
  log_.info("is of the cluster", base::kv("cluster", options_.cluster_name),
            base::kv("version", version_));
  co_return {};
}

Task<void> ClusterService::stop() {
  stopping_.request_stop();
  news_.wake_all(Error(Errc::closed));
  newer_.wake_all(Error(Errc::closed));
  co_await gossip_.stop();
  if (store_) co_await store_->stop();
  co_await tasks_.join();
  co_await rpc_.stop();
  phase_ = "stopped";
}

std::optional<Error> ClusterService::failure() const {
  return store_ ? store_->failure() : std::nullopt;
}

// Whether this node belongs where these metadata are from.
Result<void> ClusterService::check_place(const ClusterMetadata& metadata) const {
  if (metadata.cluster_name != options_.cluster_name) {
    return Error(Errc::refused, "this node is of the cluster \"{}\", and not of \"{}\"",
                 metadata.cluster_name, options_.cluster_name);
  }
  const metadata::Node* self = metadata.find(self_.id);
  if (self == nullptr) {
    if (metadata.was_removed(self_.id) || options_.schema.keyspaces().empty()) return {};
    return has_a_past();
  }
  const metadata::NodeDescription& known = self->description;
  if (known.datacentre != self_.datacentre || known.rack != self_.rack) {
    return Error(
        Errc::refused,
        "the cluster knows this node in rack \"{}\" of data centre \"{}\", and not in \"{}\" "
        "of \"{}\": a node's place decides which data it holds",
        known.rack, known.datacentre, self_.rack, self_.datacentre);
  }
  return {};
}

// Its tables would have to make way for the cluster's.
Error ClusterService::has_a_past() const {
  return Error(
      Errc::refused,
      "this node's folder has keyspaces of its own, and there is a cluster already: with "
      "this folder it can only be alone, or found a cluster; to join, it needs an empty one");
}

void ClusterService::move_clients_to(const runtime::Address& address) {
  if (self_.client_address == address) return;
  self_.client_address = address;
  announce();
  correct_addresses();
}

void ClusterService::correct_addresses() {
  if (!std::exchange(is_correcting_, true)) tasks_.spawn(keep_correcting_addresses());
}

// What the metadata say of where this node is; restarts wait for nobody, so neither does this.
Task<void> ClusterService::keep_correcting_addresses() {
  for (;;) {
    const metadata::Node* self = metadata_->find(self_.id);
    if (self == nullptr || self->description == self_) break;
    const auto changed = co_await change(
        [this](const ClusterMetadata& now) {
          return metadata::change_addresses(now, self_.id, self_.node_address,
                                            self_.client_address);
        },
        Until::after(runtime_, options_.attempt_timeout, stopping_.token()));
    if (changed) continue;
    log_.warn("the metadata say that this node is elsewhere, and that could not be changed",
              base::kv("error", changed.error()));
    if (changed.failed_with(Errc::invalid_argument)) break;
    if (!co_await runtime::sleep_for(runtime_, options_.attempt_timeout, stopping_.token())) break;
  }
  is_correcting_ = false;
}

Task<Result<base::Bytes>> ClusterService::tell_version() {
  co_return encode_version(store_->known().version);
}

bool ClusterService::founds() const {
  const auto& seeds = options_.seeds;
  return seeds.empty() || *std::ranges::min_element(seeds) == self_.node_address;
}

Task<Result<void>> ClusterService::find_cluster(Until until) {
  phase_ = "asks the seeds for the cluster";
  for (;;) {
    const SeedReport report = co_await ask_seeds(until);
    if (!report.informed.empty()) {
      // Before anything of the cluster is kept here: the folder may still found one.
      if (!options_.schema.keyspaces().empty()) co_return has_a_past();
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
    if (seed == self_.node_address) continue;
    const auto attempt = runtime_.clock.now() + options_.attempt_timeout;
    const Until in_time{.deadline = std::min(attempt, until.deadline), .stop = until.stop};
    const auto node = co_await rpc_.meet(seed, in_time);
    if (!node) {
      report.silent.push_back(fmt::format("{} ({})", seed, node.error()));
      continue;
    }
    if (*node == self_.id) continue;
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
  CO_TRY(auto metadata, metadata::found({.cluster_name = options_.cluster_name,
                                         .partitioner = options_.partitioner,
                                         .tokens = ring::evenly_spread_tokens(options_.tokens),
                                         .nodes = {self_}}));
  if (!options_.schema.keyspaces().empty()) {
    CO_TRY(metadata, metadata::change_schema(metadata, options_.schema));
  }
  CO_TRY(const auto document, consensus::found(consensus::RegisterId(draw_uuid(runtime_)),
                                               {self_.id}, metadata::encode(metadata)));
  CO_TRY_VOID(co_await store_->found(document, until));
  log_.info("founded the cluster", base::kv("cluster", options_.cluster_name),
            base::kv("tokens", options_.tokens));
  co_return {};
}

// Until it is there, or cannot be.
Task<Result<void>> ClusterService::join_cluster(Until until) {
  phase_ = "joins the cluster";
  for (;;) {
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
  const NodeId self = self_.id;
  const auto begin = [this](const ClusterMetadata& now) -> Result<ClusterMetadata> {
    if (!hooks_.transfer && !now.keyspaces.empty() && !now.was_removed(self_.id)) {
      return Error(Errc::unsupported,
                   "the cluster has {} keyspaces, and this release copies no data to a node that "
                   "joins: nodes join before the first keyspace is made",
                   now.keyspaces.size());
    }
    return metadata::begin_join(now, self_);
  };
  if (metadata_->find(self) == nullptr) CO_TRY_VOID(co_await change(begin, in_time));
  const MetadataPtr pending = metadata_;
  const metadata::Node* node = pending->find(self);
  if (node == nullptr) {
    co_return Error(Errc::refused, "the join of node {} was given up by somebody", self);
  }
  if (node->state != metadata::NodeState::joining) co_return {};
  if (!pending->keyspaces.empty() && hooks_.transfer) {
    phase_ = "copies its data from other nodes";
    CO_TRY_VOID(co_await hooks_.transfer(pending, until));
  }
  const auto finish = [&](const ClusterMetadata& now) -> Result<ClusterMetadata> {
    const metadata::Node* here = now.find(self);
    if (here != nullptr && here->state != metadata::NodeState::joining) return now;
    if (here != nullptr && now.epoch != pending->epoch) {
      return Error(Errc::locked, "the ring to hold still: epoch {} is followed by epoch {}",
                   pending->epoch, now.epoch);
    }
    return metadata::finish_change(now, pending->epoch);
  };
  CO_TRY_VOID(
      co_await change(finish, Until::after(runtime_, options_.attempt_timeout, until.stop)));
  co_return {};
}

Task<Result<MetadataPtr>> ClusterService::change(Transition transition, Until until) {
  for (;;) {
    CO_TRY(const Document document, co_await store_->read(until));
    CO_TRY(const auto now, metadata::decode_cluster_metadata(document.content));
    CO_TRY(const auto next, transition(now));
    if (next == now) {
      CO_TRY_VOID(adopt(document));
      co_return metadata_;
    }
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

Task<Result<void>> ClusterService::wait_applied_everywhere(Version version, Until until) {
  std::set<NodeId> unreachable;
  // A look that the deadline would cut short could not tell who is slow from who is gone.
  const auto look_after = [&](runtime::MonotonicTime now) {
    const auto next = now + options_.gossip_interval;
    return next + kReachTimeout > until.deadline ? until.deadline : next;
  };
  auto next_look = look_after(runtime_.clock.now());
  for (;;) {
    const auto missing = not_applied_by(version, unreachable);
    if (missing.empty()) co_return {};
    const auto now = runtime_.clock.now();
    if (now >= until.deadline) {
      co_return Error(Errc::timeout, "version {} of the metadata waits for {}", version,
                      describe(missing));
    }
    if (now >= next_look) {
      std::vector<NodeId> silent = not_applied_by(version, {});
      std::erase_if(silent, [&](NodeId node) { return !is_silent(node, kRoundsUntilDoubt); });
      unreachable = co_await unreachable_of(std::move(silent), until.stop);
      next_look = look_after(runtime_.clock.now());
      continue;
    }
    auto waited = co_await news_.wait({.deadline = next_look, .stop = until.stop});
    if (!waited && !waited.failed_with(Errc::timeout)) co_return std::move(waited).error();
  }
}

std::vector<NodeId> ClusterService::not_applied_by(Version version,
                                                   const std::set<NodeId>& unreachable) const {
  std::vector<NodeId> missing;
  if (applied_version_ < version) missing.push_back(self_.id);
  for (const auto& [node, known] : gossip_.view().nodes()) {
    const bool is_quiet = is_silent(node, kRoundsUntilHeard);
    const bool is_gone = is_quiet && unreachable.contains(node);
    // One that has just come back is not known to be up before its heart has beaten again.
    const bool may_be_up = known.up || (!is_quiet && metadata_->find(node) != nullptr);
    if (may_be_up && !is_gone && applied_version_of(node) < version) missing.push_back(node);
  }
  if (runtime_.clock.now() >= all_heard_by_) return missing;
  for (const metadata::Node& node : metadata_->nodes) {
    if (node.id() == self_.id) continue;
    if (gossip_.view().find(node.id()) == nullptr) missing.push_back(node.id());
  }
  return missing;
}

bool ClusterService::is_silent(NodeId node, int rounds) const {
  const auto beat = gossip_.last_beat(node);
  return !beat || runtime_.clock.now() - *beat > rounds * options_.gossip_interval;
}

Task<std::set<NodeId>> ClusterService::unreachable_of(std::vector<NodeId> nodes,
                                                      runtime::StopToken stop) {
  std::vector<Task<bool>> looks;
  for (const NodeId node : nodes) looks.push_back(is_unreachable(node, stop));
  const auto answers = co_await runtime::when_all(std::move(looks));
  std::set<NodeId> unreachable;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (answers[i]) unreachable.insert(nodes[i]);
  }
  co_return unreachable;
}

// No connection can be had to its machine: a process that was killed or a machine that is cut off
// is gone long before the detector is sure of it. Who is slow to answer is waited for. So what a
// call says does not count: it is refused at once where a process that is held up did not shake
// hands.
Task<bool> ClusterService::is_unreachable(NodeId node, runtime::StopToken stop) {
  const auto reached = co_await rpc_.reach(node, Until::after(runtime_, kReachTimeout, stop));
  co_return !reached && !stop.stop_requested();
}

Version ClusterService::applied_version_of(NodeId node) const {
  if (node == self_.id) return applied_version_;
  const auto* states = gossip_.membership().gossip().find(node);
  const base::Bytes* value = states == nullptr ? nullptr : states->find(StateKey::metadata_version);
  if (value == nullptr) return Version(0);
  const auto held = membership::decode_metadata_version(*value);
  return held ? Version(*held) : Version(0);
}

std::string ClusterService::describe(const std::vector<NodeId>& nodes) const {
  std::vector<std::string> texts;
  for (const NodeId node : nodes) {
    texts.push_back(fmt::format("node {} (at version {})", node, applied_version_of(node)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
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
  all_heard_by_ = runtime_.clock.now() + kRoundsUntilHeard * options_.gossip_interval;
  gossip_.start();
  std::vector<NodeId> others;
  for (const metadata::Node& node : metadata_->nodes) {
    if (node.id() != self_.id) others.push_back(node.id());
  }
  gossip_.greet(std::move(others));
  tasks_.spawn(keep_asking_holders());
}

// Whoever tells of a newer version is asked for it at once, and that question or its answer may be
// lost: so one who holds it is asked in each round for as long as this node is behind.
Task<void> ClusterService::keep_asking_holders() {
  while (co_await runtime::sleep_for(runtime_, options_.gossip_interval, stopping_.token())) {
    if (const auto holder = draw_holder_of_newer()) {
      store_->heard_of(*holder, applied_version_of(*holder));
    }
  }
}

std::optional<NodeId> ClusterService::draw_holder_of_newer() {
  std::vector<NodeId> up;
  std::vector<NodeId> down;
  for (const auto& [node, known] : gossip_.view().nodes()) {
    if (applied_version_of(node) > store_->known().version) (known.up ? up : down).push_back(node);
  }
  const std::vector<NodeId>& holders = up.empty() ? down : up;
  if (holders.empty()) return std::nullopt;
  return holders[runtime_.random.below(holders.size())];
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

// What was decided while this node was away clients are not to miss on it, nor what it decided
// alone and had not noted as decided when it stopped. Others may be starting as well, so they are
// asked again and again; if too few of them come there is nobody to wait for, and this node starts
// with what it has.
Task<Result<bool>> ClusterService::ask_for_newest(Until until) {
  const std::size_t acceptors = store_->known().acceptors.size();
  const auto seconds =
      std::chrono::duration_cast<std::chrono::duration<double>>(options_.catch_up_timeout);
  phase_ = fmt::format(
      "waits for {} of the {} nodes that decide on the metadata to tell the newest, {} s at most",
      consensus::majority_of(acceptors), acceptors, seconds.count());
  const auto limit = runtime_.clock.now() + options_.catch_up_timeout;
  const auto newest =
      co_await store_->read({.deadline = std::min(limit, until.deadline), .stop = until.stop});
  if (newest) {
    CO_TRY_VOID(adopt(*newest));
    co_return true;
  }
  if (until.stop.stop_requested()) co_return newest.error();
  log_.warn("too few of those who decide are there to tell: this node starts with what it has",
            base::kv("version", store_->known().version), base::kv("error", newest.error()));
  tasks_.spawn(keep_catching_up());
  CO_TRY_VOID(adopt(store_->known()));
  co_return false;
}

// Others acknowledge changes without a node that they take for down, as they did this one until
// they heard of it. Who has spoken to it by gossip knows of it before it is asked here, on the same
// connection: what that one changes from then on waits for this node, and what was decided before
// is read here. The others were greeted as well; one that changes something and has not heard of
// this node yet is left, for some rounds of gossip at most. If nobody speaks to it soon, nobody is
// taken to be there.
Task<Result<void>> ClusterService::look_when_heard(Until until) {
  if (metadata_->nodes.size() == 1) co_return {};
  phase_ = "waits for another node to hear of it";
  const auto limit = std::min(until.deadline, runtime_.clock.now() + options_.gossip_interval);
  while (gossip_.view().nodes().empty()) {
    const auto heard = co_await news_.wait({.deadline = limit, .stop = until.stop});
    if (heard.failed_with(Errc::timeout)) co_return {};
    if (!heard) co_return heard.error();
  }
  const auto attempt = std::min(until.deadline, runtime_.clock.now() + options_.gossip_interval);
  const auto newest = co_await store_->read({.deadline = attempt, .stop = until.stop});
  if (newest) co_return adopt(*newest);
  if (until.stop.stop_requested()) co_return newest.error();
  // Too few of those who decide answered it in time; what it misses it hears of by gossip.
  co_return {};
}

// What was decided when this node stopped need not be in its file as decided; asking finds it out.
// Gossip tells of documents that somebody holds. One that was decided and is held by nobody yet is
// found by asking the acceptors.
Task<void> ClusterService::keep_catching_up() {
  while (true) {
    const auto attempt = Until::after(runtime_, options_.attempt_timeout, stopping_.token());
    if (co_await store_->read(attempt)) break;
    if (!co_await runtime::sleep_for(runtime_, options_.attempt_timeout, stopping_.token())) break;
  }
}

Result<void> ClusterService::adopt(const Document& document) {
  if (document.version <= version_) return {};
  TRY(auto next, metadata::decode_cluster_metadata(document.content));
  const MetadataPtr before =
      std::exchange(metadata_, std::make_shared<const ClusterMetadata>(std::move(next)));
  version_ = document.version;
  ring_ = metadata::present_ring(*metadata_);
  judge_proximity();
  for (const metadata::Node& node : metadata_->nodes) {
    if (node.id() == self_.id) continue;
    if (!rpc_.introduce(node.id(), node.description.node_address)) {
      log_.warn("a node cannot be introduced", base::kv("node", node.id()));
    }
  }
  if (before) {
    for (const metadata::Node& node : before->nodes) {
      const bool is_gone = metadata_->find(node.id()) == nullptr;
      if (is_gone && node.id() != self_.id) gossip_.forget(node.id());
      if (is_gone && node.id() == self_.id) {
        phase_ = "was removed from the cluster";
        log_.error("this node was removed from the cluster", base::kv("version", version_));
      }
    }
  }
  if (!hooks_.apply) set_applied(version_, metadata_);
  if (before && applied_metadata_) announce();
  if (!hooks_.apply) gossip_.spread();
  for (const Listener& listener : listeners_) listener(metadata_);
  news_.wake_all();
  newer_.wake_all();
  return {};
}

Task<void> ClusterService::apply_newer() {
  runtime::Duration pause = options_.retry_pause;
  for (;;) {
    while (applied_version_ >= version_) {
      if (!co_await newer_.wait({.stop = stopping_.token()})) co_return;
    }
    const Version version = version_;
    const MetadataPtr metadata = metadata_;
    const auto applied = co_await hooks_.apply(
        metadata, version, Until::after(runtime_, kApplyTimeout, stopping_.token()));
    if (applied) {
      pause = options_.retry_pause;
      set_applied(version, metadata);
      announce();
      gossip_.spread();
      news_.wake_all();
      continue;
    }
    if (stopping_.stop_requested()) co_return;
    log_.error("this node does not act by the newest metadata yet", base::kv("version", version),
               base::kv("reason", applied.error()));
    if (!co_await runtime::sleep_for(runtime_, pause, stopping_.token())) co_return;
    pause = std::min(2 * pause, kApplyPauseMax);
  }
}

void ClusterService::set_applied(Version version, MetadataPtr metadata) {
  applied_version_ = version;
  applied_metadata_ = std::move(metadata);
}

Task<Result<void>> ClusterService::wait_applied(Until until) {
  const Version version = version_;
  if (applied_version_ < version)
    phase_ = fmt::format("applies version {} of the metadata", version);
  while (applied_version_ < version) CO_TRY_VOID(co_await news_.wait(until));
  co_return {};
}

// What this node says of itself. Requires: it holds something.
void ClusterService::announce() {
  const metadata::Node* self = metadata_->find(self_.id);
  const auto status = self == nullptr || self->state == metadata::NodeState::joining
                          ? membership::Status::joining
                      : self->state == metadata::NodeState::normal ? membership::Status::normal
                                                                   : membership::Status::leaving;
  const auto say = [this](StateKey key, base::Bytes value) {
    const auto said = gossip_.set(key, std::move(value));
    ASSERT(said, "{}", said.error());
  };
  say(StateKey::node_address, membership::encode_address(self_.node_address));
  say(StateKey::client_address, membership::encode_address(self_.client_address));
  say(StateKey::datacenter, base::Bytes::copy_of(self_.datacentre));
  say(StateKey::rack, base::Bytes::copy_of(self_.rack));
  say(StateKey::schema_version,
      membership::encode_schema_version(model::schema_version(applied_metadata_->schema)));
  say(StateKey::metadata_version, membership::encode_metadata_version(applied_version_.value()));
  say(StateKey::status, membership::encode_status(status));
}

void ClusterService::judge_proximity() {
  const auto self = ring_->find(self_.id);
  proximity_.reset();
  if (!self) return;
  std::vector<ring::Proximity::Latency> latencies;
  for (const ring::Node& node : ring_->nodes()) {
    const rpc::PeerStatistics* peer = rpc_.statistics_of_peer(node.id);
    latencies.push_back(peer == nullptr ? std::nullopt : peer->round_trip_smoothed);
  }
  proximity_ = std::make_shared<const ring::Proximity>(ring_, *self, latencies);
}

Task<void> ClusterService::keep_judging_proximity() {
  while (co_await runtime::sleep_for(runtime_, kProximityPeriod, stopping_.token())) {
    judge_proximity();
  }
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
  if (waited_for_ != phase_) log_.info("starting", base::kv("phase", phase_));
  waited_for_ = phase_;
  co_return co_await runtime::sleep_for(runtime_, options_.retry_pause, until.stop);
}

}  // namespace helenus::cluster
