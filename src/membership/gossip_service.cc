#include "membership/gossip_service.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "membership/message.h"
#include "rpc/verb.h"
#include "runtime/clock.h"
#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus {

template <>
struct rpc::Codec<membership::Message> {
  static base::Bytes encode(const membership::Message& message, rpc::ProtocolVersion) {
    return membership::encode(message);
  }
};

}  // namespace helenus

namespace helenus::membership {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Task;

namespace {

Generation generation_now(runtime::Runtime& runtime) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(runtime.clock.wall_now().since_origin());
  return static_cast<Generation>(std::max<std::int64_t>(1, seconds.count()));
}

MembershipConfig config_of(runtime::Runtime& runtime, const rpc::Rpc& rpc,
                           const GossipService::Options& options) {
  return {.cluster = options.cluster,
          .self = rpc.node(),
          .generation = generation_now(runtime),
          .seed_count = static_cast<std::uint32_t>(options.seeds.size()),
          .limits = options.limits,
          .pause_max = 5 * options.interval};
}

}  // namespace

GossipService::GossipService(runtime::Runtime& runtime, rpc::Rpc& rpc, Options options,
                             std::unique_ptr<FailureDetector> detector)
    : runtime_(runtime),
      rpc_(rpc),
      options_(std::move(options)),
      log_(runtime.logger("gossip")),
      prng_(runtime.random.fork()),
      membership_(config_of(runtime, rpc, options_), std::move(detector)),
      tasks_(runtime) {
  ASSERT(options_.seeds.size() <= kSeedsMax && options_.ticks > 0);
  ASSERT(options_.interval > runtime::Duration(0));
  for (const runtime::Address& seed : options_.seeds) seeds_.push_back({.address = seed});
}

void GossipService::start() {
  rpc_.serve(rpc::verbs::kGossip,
             [this](rpc::Incoming incoming) { return handle(std::move(incoming)); });
  started_ = true;
  tasks_.spawn(run());
}

Task<void> GossipService::stop() {
  stopping_.request_stop();
  co_await tasks_.join();
}

void GossipService::spread() {
  if (started_ && !stopping_.stop_requested()) act_on(membership_.spread(prng_));
}

void GossipService::greet(std::vector<NodeId> nodes) {
  if (!stopping_.stop_requested()) act_on(membership_.greet(std::move(nodes), prng_));
}

void GossipService::forget(NodeId node) {
  act_on(membership_.forget(node));
  beats_.erase(node);
  rpc_.forget(node);
}

std::optional<runtime::MonotonicTime> GossipService::last_beat(NodeId node) const {
  const auto found = beats_.find(node);
  return found == beats_.end() ? std::nullopt : std::optional(found->second);
}

Task<void> GossipService::run() {
  const runtime::Duration pause = options_.interval / options_.ticks;
  auto next = runtime_.clock.now();
  for (std::uint64_t tick = 0;; ++tick) {
    const auto now = runtime_.clock.now();
    if (tick % options_.ticks == 0) {
      ++statistics_.rounds;
      act_on(membership_.round(now, prng_));
    } else {
      act_on(membership_.tick(now));
    }
    // What was missed while this node was held up is not made up for.
    next = std::max(next + pause, now);
    if (!co_await runtime::sleep_until(runtime_, next, stopping_.token())) co_return;
  }
}

Task<Result<base::Bytes>> GossipService::handle(rpc::Incoming incoming) {
  if (stopping_.stop_requested()) co_return Error(Errc::closed);
  auto message = decode(incoming.payload);
  if (message && message->sender != incoming.from) {
    message = Error(Errc::refused, "node {} speaks for node {}", incoming.from, message->sender);
  }
  Result<Output> output = message ? membership_.receive(*message, runtime_.clock.now(), prng_)
                                  : Result<Output>(std::move(message).error());
  if (!output) {
    ++statistics_.messages_refused;
    if (lines_.admits(log_, runtime_.clock.now())) {
      log_.warn("a message was refused", base::kv("from", incoming.from),
                base::kv("reason", output.error()));
    }
    co_return std::move(output).error();
  }
  act_on(*output);
  co_return base::Bytes();
}

void GossipService::act_on(const Output& output) {
  for (const Progress& progress : output.progress) take(progress);
  for (const Outgoing& outgoing : output.messages) {
    auto message = rpc::Payload::of(outgoing.message, rpc_.versions().newest);
    if (const auto* node = std::get_if<NodeId>(&outgoing.to)) {
      send(*node, std::move(message));
    } else {
      send_to_seed(std::get<Seed>(outgoing.to).value(), std::move(message));
    }
  }
  for (const Event& event : output.events) {
    log_.info("a node changed", base::kv("node", event.node),
              base::kv("event", name_of(event.kind)));
    for (const EventListener& listener : event_listeners_) listener(event);
  }
}

void GossipService::take(const Progress& progress) {
  const NodeStates* node = membership_.gossip().find(progress.node);
  ASSERT(node != nullptr);
  if (progress.learned || progress.restarted || progress.heartbeat) {
    beats_[progress.node] = runtime_.clock.now();
  }
  if (progress.changed(StateKey::node_address)) {
    const auto address = decode_address(*node->find(StateKey::node_address));
    const bool is_reachable = address && rpc_.introduce(progress.node, *address);
    if (!is_reachable && lines_.admits(log_, runtime_.clock.now())) {
      log_.warn("a node has no address to reach it at", base::kv("node", progress.node));
    }
  }
  for (const State& state : node->states()) {
    if (state.key == StateKey::heartbeat || !progress.changed(state.key)) continue;
    for (const StateListener& listener : state_listeners_) {
      listener(progress.node, state.key, state.value);
    }
  }
}

bool GossipService::send(NodeId to, rpc::Payload message) {
  const std::size_t size = message.size();
  if (!rpc_.tell(to, rpc::verbs::kGossip, std::move(message))) {
    ++statistics_.messages_dropped;
    return false;
  }
  ++statistics_.messages_sent;
  statistics_.bytes_sent += size;
  return true;
}

void GossipService::send_to_seed(std::size_t seed, rpc::Payload message) {
  SeedContact& contact = seeds_[seed];
  if (contact.node == rpc_.node()) return;
  if (contact.node && send(*contact.node, message)) return;
  // Whoever was there may have been replaced by another node.
  contact.node.reset();
  if (contact.is_meeting || stopping_.stop_requested()) return;
  contact.is_meeting = true;
  tasks_.spawn(meet_and_send(seed, std::move(message)));
}

Task<void> GossipService::meet_and_send(std::size_t seed, rpc::Payload message) {
  const runtime::Address address = seeds_[seed].address;
  auto met = co_await rpc_.meet(
      address, runtime::Until::after(runtime_, options_.meet_timeout, stopping_.token()));
  seeds_[seed].is_meeting = false;
  std::string& last_logged = seeds_[seed].last_logged;
  if (!met) {
    // A seed that stays away says so once, and not at each attempt.
    std::string reason = met.error().to_string();
    if (reason != last_logged) {
      log_.info("a seed was not reached", base::kv("seed", address), base::kv("reason", reason));
      last_logged = std::move(reason);
    }
    co_return;
  }
  last_logged.clear();
  seeds_[seed].node = *met;
  if (*met != rpc_.node()) send(*met, std::move(message));
}

}  // namespace helenus::membership
