#include "rpc/rpc.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus::rpc {

using base::Bytes;
using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using model::NodeId;
using runtime::Address;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

namespace {

constexpr runtime::Duration kAcceptRetryDelay = 100ms;

// Stops a source when a token stops; a source has one parent by itself.
class SecondParent final : private runtime::StopCallback {
 public:
  SecondParent(runtime::StopSource& source, const runtime::StopToken& token) : source_(source) {
    watch(token);
  }

 private:
  void on_stop() override { source_.request_stop(); }
  runtime::StopSource& source_;
};

}  // namespace

Rpc::Peer::Peer(runtime::Runtime& runtime, const Self& self, NodeId node, const base::Logger& log)
    : control(runtime, self, node, Lane::control, statistics, log),
      data(runtime, self, node, Lane::data, statistics, log) {}

bool Rpc::Peer::is_forgotten() const {
  return !address && statistics.connections_current == 0 && control.is_idle() && data.is_idle();
}

Rpc::Rpc(runtime::Runtime& runtime, Options options)
    : runtime_(runtime),
      options_(std::move(options)),
      self_{.options = options_,
            .life = runtime.random.next(),
            .id_is_taken = [this](const std::string& text) { note_taken(text); }},
      log_(runtime.logger("rpc")),
      stranger_lines_(options_.limits.stranger_lines),
      peer_lines_(options_.limits.peer_lines),
      calls_(runtime),
      tasks_(runtime) {
  ASSERT(!options_.cluster.empty() && options_.cluster.size() <= kClusterNameSizeMax);
  ASSERT(options_.versions.oldest <= options_.versions.newest);
  ASSERT(options_.limits.body_size_max >= kHandshakeBodySizeMax);
}

Result<void> Rpc::start(const Address& address) {
  ASSERT(listener_ == nullptr && !stopping_.stop_requested());
  TRY_VOID(check_in_the_clear(options_, address));
  TRY(listener_, runtime_.transport.listen(address));
  if (!options_.address) options_.address = listener_->address();
  tasks_.spawn(accept_connections());
  return {};
}

Task<void> Rpc::stop() {
  stopping_.request_stop();
  if (listener_ != nullptr) listener_->close();
  const Until until = Until::after(runtime_, options_.limits.drain_timeout);
  for (const auto& [id, inbound] : inbounds_) inbound->drain();
  for (const auto& [node, peer] : peers_) {
    peer->control.close();
    peer->data.close();
  }
  for (const auto& [node, peer] : peers_) {
    co_await peer->control.stop(until);
    co_await peer->data.stop(until);
  }
  const auto drained = co_await tasks_.join(until);
  if (!drained) {
    log_.warn("requests did not end in time", kv("connections", inbounds_.size()));
    for (const auto& [id, inbound] : inbounds_) {
      inbound->abort(Error(Errc::closed, "this node is stopping"));
    }
  }
  aborting_.request_stop();
  co_await tasks_.join();
  co_await calls_.close();
}

void Rpc::serve(Verb verb, Handler handler) {
  const bool is_new = handlers_.emplace(verb.number, std::move(handler)).second;
  ASSERT(is_new, "the verb {} is served twice", verb.number);
}

Rpc::Peer* Rpc::find(NodeId node) {
  const auto found = peers_.find(node);
  return found == peers_.end() ? nullptr : found->second.get();
}

bool Rpc::make_room_for_peer() {
  if (peers_.size() < options_.limits.peers_max) return true;
  return std::erase_if(peers_, [](const auto& entry) { return entry.second->is_forgotten(); }) > 0;
}

Result<Rpc::Peer*> Rpc::peer(NodeId node) {
  if (Peer* known = find(node)) return known;
  if (stopping_.stop_requested()) return Error(Errc::closed, "this node is stopping");
  if (!make_room_for_peer()) return Error(Errc::overloaded, "{} nodes are known", peers_.size());
  auto made = std::make_unique<Peer>(runtime_, self_, node, log_);
  return peers_.emplace(node, std::move(made)).first->second.get();
}

Result<void> Rpc::introduce(NodeId node, const Address& address) {
  if (node == options_.node) return {};
  TRY(Peer* const known, peer(node));
  known->address = address;
  known->control.set_address(address);
  known->data.set_address(address);
  return {};
}

void Rpc::forget(NodeId node) {
  Peer* const known = find(node);
  if (known == nullptr) return;
  known->address.reset();
  known->control.set_address(std::nullopt);
  known->data.set_address(std::nullopt);
}

Task<Result<NodeId>> Rpc::meet(Address address, Until until) {
  CO_TRY(const auto inside, calls_.enter());
  if (stopping_.stop_requested()) co_return Error(Errc::closed, "this node is stopping");
  runtime::StopSource stop(until.stop);
  const SecondParent parent(stop, stopping_.token());
  const auto deadline =
      std::min(until.deadline, runtime_.clock.now() + options_.limits.dial_timeout);
  const Hello hello{.versions = options_.versions,
                    .cluster = options_.cluster,
                    .from = options_.node,
                    .life = self_.life,
                    .to = std::nullopt,
                    .lane = Lane::control,
                    .address = options_.address,
                    .body_size_max = options_.limits.body_size_max};
  CO_TRY(const Dialled dialled, co_await dial(runtime_, self_, address, hello,
                                              {.deadline = deadline, .stop = stop.token()}));
  if (const auto* refusal = std::get_if<Refusal>(&dialled.reply)) {
    if (refusal->reason == RefusalReason::itself) co_return options_.node;
    note_id_taken(self_, dialled);
    const bool lacks_proof = refusal->reason == RefusalReason::no_proof;
    if (lacks_proof ? may_log_proof(address) : may_log(Standing::stranger)) {
      log_.warn("a node refused us", kv("address", address), kv("reason", refusal->text));
    }
    co_return Error(Errc::refused, refusal->text);
  }
  const NodeId node = std::get<Welcome>(dialled.reply).node;
  CO_TRY_VOID(introduce(node, address));
  co_return node;
}

Task<Result<void>> Rpc::reach(NodeId node, Until until) {
  CO_TRY(const auto inside, calls_.enter());
  if (stopping_.stop_requested()) co_return Error(Errc::closed, "this node is stopping");
  if (node == options_.node) co_return {};
  const Peer* const known = find(node);
  if (known == nullptr || !known->address) {
    co_return Error(Errc::unavailable, "where node {} is is not known", node.value());
  }
  runtime::StopSource stop(until.stop);
  const SecondParent parent(stop, stopping_.token());
  const Address address = *known->address;
  CO_TRY_VOID(co_await runtime_.transport.connect(
      address, {.deadline = until.deadline, .stop = stop.token()}));
  co_return {};
}

Task<Result<Bytes>> Rpc::call(NodeId to, Verb verb, Payload payload, Until until) {
  CO_TRY(Reply reply, co_await ask(to, verb, std::move(payload), std::move(until)));
  co_return std::move(reply.payload);
}

Task<Result<Reply>> Rpc::ask(NodeId to, Verb verb, Payload payload, Until until) {
  CO_TRY(const auto inside, calls_.enter());
  if (to == options_.node) {
    Bytes bytes = payload.in(options_.versions.newest);
    co_return co_await ask_self(verb, std::move(bytes), std::move(until));
  }
  Peer* const known = find(to);
  if (known == nullptr) {
    co_return Error(Errc::unavailable, "where node {} is is not known", to.value());
  }
  co_return co_await known->in(verb.lane).call(verb.number, std::move(payload), std::move(until));
}

Task<Result<Reply>> Rpc::ask_self(Verb verb, Bytes payload, Until until) {
  const Handler* const handler = handler_of(verb.number);
  if (handler == nullptr) {
    co_return Error(Errc::unsupported, "nobody serves the verb {}", verb.number);
  }
  if (stopping_.stop_requested()) co_return Error(Errc::closed, "this node is stopping");
  const ProtocolVersion version = options_.versions.newest;
  runtime::StopSource stop(until.stop);
  const SecondParent parent(stop, aborting_.token());
  CO_TRY(Bytes answer,
         co_await (*handler)({.from = options_.node,
                              .version = version,
                              .payload = std::move(payload),
                              .until = {.deadline = until.deadline, .stop = stop.token()}}));
  co_return Reply{.payload = std::move(answer), .version = version};
}

Result<void> Rpc::tell(NodeId to, Verb verb, Payload payload) {
  if (to == options_.node) return tell_self(verb, payload.in(options_.versions.newest));
  Peer* const known = find(to);
  if (known == nullptr) {
    return Error(Errc::unavailable, "where node {} is is not known", to.value());
  }
  return known->in(verb.lane).tell(verb.number, std::move(payload));
}

Result<void> Rpc::tell_self(Verb verb, Bytes payload) {
  if (stopping_.stop_requested()) return Error(Errc::closed, "this node is stopping");
  const Handler* const handler = handler_of(verb.number);
  if (handler == nullptr) return {};
  if (tasks_.size() >= options_.limits.handlers_max) {
    return Error(Errc::overloaded, "{} handlers are at work", tasks_.size());
  }
  tasks_.spawn(drop_result((*handler)({.from = options_.node,
                                       .version = options_.versions.newest,
                                       .payload = std::move(payload),
                                       .until = {.stop = aborting_.token()},
                                       .wants_answer = false})));
  return {};
}

Task<void> Rpc::drop_result(Task<Result<Bytes>> handling) {
  const auto result = co_await std::move(handling);
  std::ignore = result.has_value();
}

std::vector<PeerInfo> Rpc::peers() const {
  std::vector<PeerInfo> infos;
  infos.reserve(peers_.size());
  for (const auto& [node, peer] : peers_) {
    PeerInfo info{.node = node, .address = peer->address, .versions = {}};
    for (const Lane lane : {Lane::control, Lane::data}) {
      const Outbound& outbound = peer->in(lane);
      if (outbound.is_open()) info.versions[static_cast<std::size_t>(lane)] = outbound.version();
    }
    infos.push_back(info);
  }
  return infos;
}

const PeerStatistics* Rpc::statistics_of_peer(NodeId node) const {
  const auto found = peers_.find(node);
  return found == peers_.end() ? nullptr : &found->second->statistics;
}

Task<void> Rpc::accept_connections() {
  const runtime::StopToken stop = stopping_.token();
  for (;;) {
    auto stream = co_await listener_->accept({.stop = stop});
    if (stream) {
      admit_stream(*std::move(stream));
      continue;
    }
    if (stream.failed_with(Errc::cancelled) || stream.failed_with(Errc::closed)) co_return;
    if (may_log(Standing::stranger)) {
      log_.warn("accepting a connection failed", kv("error", stream.error()));
    }
    const auto paused = co_await runtime::sleep_for(runtime_, kAcceptRetryDelay, stop);
    if (!paused) co_return;
  }
}

void Rpc::admit_stream(std::unique_ptr<runtime::Stream> stream) {
  ++statistics_.connections_accepted;
  if (statistics_.connections_current >= options_.limits.connections_max) {
    ++statistics_.connections_refused;
    if (may_log(Standing::stranger)) {
      log_.warn("closed a connection", kv("address", stream->peer_address()),
                kv("reason", "too many connections"));
    }
    return;
  }
  if (strangers_.size() >= options_.limits.strangers_max) evict_a_stranger();
  const std::uint64_t id = next_inbound_++;
  ++statistics_.connections_current;
  strangers_.emplace(id, stream->peer_address());
  tasks_.spawn(serve_stream(id, std::move(stream)));
}

// Somebody who connects and says nothing must not keep nodes out, for they need a place as well,
// though only for a moment. Who has many places gives up the oldest, so that one address, however
// fast, takes none from the others.
void Rpc::evict_a_stranger() {
  struct Places {
    std::size_t count = 0;
    std::uint64_t oldest = 0;
  };
  std::map<Address, Places> by_address;
  const Places* most = nullptr;
  for (const auto& [id, address] : strangers_) {
    Places& places = by_address[address.with_port(0)];
    if (places.count++ == 0) places.oldest = id;
    if (most == nullptr || places.count > most->count) most = &places;
  }
  const std::uint64_t victim = most->oldest;
  strangers_.erase(victim);
  const auto found = inbounds_.find(victim);
  if (found == inbounds_.end()) {
    ++statistics_.connections_refused;  // it has not begun, and will not
    return;
  }
  found->second->abort(Error(Errc::overloaded, "too many connections without a handshake"));
}

Task<void> Rpc::serve_stream(std::uint64_t id, std::unique_ptr<runtime::Stream> stream) {
  if (!stopping_.stop_requested() && strangers_.contains(id)) {
    Inbound inbound(runtime_, self_, *this, id, statistics_, log_, std::move(stream));
    inbounds_.emplace(id, &inbound);
    co_await inbound.run();
    inbounds_.erase(id);
  }
  strangers_.erase(id);
  --statistics_.connections_current;
}

std::optional<Refusal> Rpc::admit(const Hello& hello) {
  const auto known = peer(hello.from);
  if (known && !is_second_life(**known, hello)) return std::nullopt;
  if (known) {
    return Refusal{.reason = RefusalReason::same_id,
                   .versions = options_.versions,
                   .text = fmt::format("another node runs under the id {}, and was here before",
                                       hello.from.value())};
  }
  const bool is_full = known.failed_with(Errc::overloaded);
  return Refusal{.reason = is_full ? RefusalReason::overloaded : RefusalReason::stopping,
                 .versions = options_.versions,
                 .text = std::string(known.error().context())};
}

// The other life may have ended in the meantime.
bool Rpc::is_second_life(Peer& peer, const Hello& hello) {
  if (peer.refused_life != hello.life) return false;
  for (const auto& [id, inbound] : inbounds_) {
    if (!inbound->is_admitted()) continue;
    if (inbound->hello().from == hello.from && inbound->hello().life == peer.life) return true;
  }
  peer.refused_life.reset();
  return false;
}

void Rpc::begin_life(Peer& peer, std::uint64_t life) {
  if (peer.life == life || peer.older_life == life) return;
  peer.older_life = peer.life;
  peer.life = life;
  peer.life_began_at = runtime_.clock.now();
}

// A process that ended says nothing any more when the next one has its id. Whoever was here first
// stays; the other is told why it may not, and stops serving.
void Rpc::on_ping(const Hello& hello) {
  Peer& known = *find(hello.from);
  if (known.older_life != hello.life) return;
  if (runtime_.clock.now() - known.life_began_at < options_.limits.two_lives_max) return;
  known.refused_life = known.life;
  known.life = known.older_life;
  known.older_life.reset();
  log_.error("two nodes run under one id; the later one is refused",
             kv("node", hello.from.value()));
  for (const auto& [id, inbound] : inbounds_) {
    if (!inbound->is_admitted() || inbound->hello().from != hello.from) continue;
    if (inbound->hello().life != known.refused_life) continue;
    inbound->abort(Error(Errc::refused, "another node runs under this id"));
  }
}

void Rpc::note_taken(const std::string& text) {
  if (id_taken_ || stopping_.stop_requested()) return;
  id_taken_ = Error(Errc::refused, text);
  log_.error(
      "another node runs under the id of this one, as others say: this one stops serving; "
      "give one of the two an empty data folder",
      kv("node", options_.node.value()), kv("reason", text));
  if (on_id_taken_) on_id_taken_();
}

// A map of addresses that strangers fill has a limit; beyond it they share the lines of strangers.
bool Rpc::may_log_proof(const Address& address) {
  const auto now = runtime_.clock.now();
  const runtime::Duration interval = options_.limits.proof_line_interval;
  std::erase_if(proof_lines_, [&](const auto& line) { return now - line.second >= interval; });
  const Address place = address.with_port(0);
  if (proof_lines_.contains(place)) return false;
  if (proof_lines_.size() >= options_.limits.strangers_max) return may_log(Standing::stranger);
  proof_lines_.emplace(place, now);
  return true;
}

PeerStatistics& Rpc::statistics_of(NodeId node) {
  Peer* const known = find(node);
  ASSERT(known != nullptr);
  return known->statistics;
}

const Handler* Rpc::handler_of(std::uint16_t verb) {
  const auto found = handlers_.find(verb);
  return found == handlers_.end() ? nullptr : &found->second;
}

bool Rpc::may_log(Standing standing) {
  runtime::LineBudget& lines = standing == Standing::stranger ? stranger_lines_ : peer_lines_;
  return lines.admits(log_, runtime_.clock.now());
}

void Rpc::on_admitted(std::uint64_t connection, const Hello& hello) {
  strangers_.erase(connection);
  Peer& known = *find(hello.from);
  begin_life(known, hello.life);
  if (hello.address) {
    known.address = hello.address;
    known.control.set_address(hello.address);
    known.data.set_address(hello.address);
  }
  known.control.forgive();
  known.data.forgive();
}

}  // namespace helenus::rpc
