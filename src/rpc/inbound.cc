#include "rpc/inbound.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "rpc/peer_clock.h"
#include "runtime/dawdle.h"
#include "runtime/random.h"

namespace helenus::rpc {

using base::Bytes;
using base::Errc;
using base::Error;
using base::kv;
using base::Result;
using runtime::MonotonicTime;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

namespace {

// How long one that is refused may take to read why.
constexpr runtime::Duration kLingerTimeout = 1s;
constexpr std::size_t kLingerFramesMax = 64;
constexpr runtime::Duration kDawdleMax = 200ms;

std::string cut(std::string_view text) {
  return std::string(text.substr(0, kTextSizeMax));
}

}  // namespace

Inbound::Inbound(runtime::Runtime& runtime, const Self& self, InboundOwner& owner, std::uint64_t id,
                 Statistics& statistics, const base::Logger& log,
                 std::unique_ptr<runtime::Stream> stream)
    : runtime_(runtime),
      self_(self),
      owner_(owner),
      id_(id),
      all_(statistics),
      log_(log),
      pipe_(runtime, std::move(stream), kHandshakeBodySizeMax),
      capacity_(runtime),
      tasks_(runtime) {}

Task<void> Inbound::run() {
  const auto shaken = co_await shake_hands();
  if (shaken) {
    co_await serve();
  } else if (!shaken.failed_with(Errc::refused)) {
    log_end(broken_by_ ? *broken_by_ : shaken.error());
  }
  pipe_.close();
}

Task<Result<void>> Inbound::shake_hands() {
  const Until until = Until::after(runtime_, self_.options.limits.handshake_timeout, over_.token());
  auto frame = co_await pipe_.read(until, &transcript_);
  if (frame.failed_with(Errc::timeout)) {
    co_return Error(Errc::timeout, "no handshake within the time for it");
  }
  if (!frame) co_return std::move(frame).error();
  if (runtime_.buggify("rpc.late_handshake")) {
    CO_TRY_VOID(co_await runtime::dawdle(runtime_, kDawdleMax, over_.token()));
  }
  const auto* hello = std::get_if<Hello>(&*frame);
  if (hello == nullptr) {
    co_return Error(Errc::corrupt, "a frame of the kind '{}' before a handshake", name_of(*frame));
  }
  CO_TRY(const ClusterSecret* const prover, co_await challenge(*hello, until));
  auto verdict = judge(self_, *hello);
  auto* const welcome = std::get_if<Welcome>(&verdict);
  auto refusal = welcome == nullptr ? std::get<Refusal>(verdict) : owner_.admit(*hello);
  if (refusal) co_return co_await refuse(*hello, *std::move(refusal), prover, until);
  welcome->clock_us = microseconds_of(runtime_.clock.now());
  if (prover != nullptr) {
    CO_TRY_VOID(co_await write_proved(*welcome, prover, until));
    // The owner may have had to forget the peer, or may be stopping.
    if (const auto late = owner_.admit(*hello)) co_return Error(Errc::closed, late->text);
  }

  hello_ = *hello;
  version_ = welcome->version;
  peer_ = &owner_.statistics_of(hello->from);
  pipe_.set_body_size_max(self_.options.limits.body_size_max);
  if (prover == nullptr) send(*welcome, 0);
  ++peer_->connections_accepted;
  ++peer_->connections_current;
  owner_.on_admitted(id_, *hello);
  log_.debug("a node connected", kv("node", hello->from.value()),
             kv("address", pipe_.peer_address()), kv("lane", name_of(hello->lane)),
             kv("version", version_.value()));
  co_return {};
}

Task<Result<const ClusterSecret*>> Inbound::challenge(Hello hello, Until until) {
  if (auto refusal = judge_stranger(self_, hello, pipe_.peer_address())) {
    CO_TRY_VOID(co_await refuse(std::move(hello), *std::move(refusal), nullptr, until));
  }
  if (!hello.nonce) co_return nullptr;
  Challenge challenge;
  runtime_.random.fill_secret(challenge.nonce);
  CO_TRY_VOID(co_await pipe_.write(challenge, until, &transcript_));
  const Transcript asked = transcript_.copy();
  auto frame = co_await pipe_.read(until, &transcript_);
  if (frame.failed_with(Errc::timeout)) {
    co_return Error(Errc::timeout, "no handshake within the time for it");
  }
  if (!frame) co_return std::move(frame).error();
  const auto* proof = std::get_if<Proof>(&*frame);
  if (proof == nullptr) {
    co_return Error(Errc::corrupt, "a frame of the kind '{}' before a proof", name_of(*frame));
  }
  const ClusterSecret* const prover =
      find_secret(self_.options.secrets, Side::caller, asked, *proof);
  if (prover == nullptr) {
    CO_TRY_VOID(co_await refuse(std::move(hello), refuse_proof(self_), nullptr, until));
  }
  co_return prover;
}

Task<Result<void>> Inbound::write_proved(Frame frame, const ClusterSecret* prover, Until until) {
  const ClusterSecret& ours = self_.options.secrets.front();
  CO_TRY_VOID(co_await pipe_.write(std::move(frame), until, &transcript_));
  CO_TRY_VOID(co_await pipe_.write(prove(ours, Side::callee, transcript_), std::move(until)));
  const SessionKeys keys = session_keys(*prover, ours, transcript_);
  pipe_.seal(keys.callee, keys.caller);
  co_return {};
}

void Inbound::log_refusal(const Hello& hello, const Refusal& refusal) {
  ++all_.connections_refused;
  const bool lacks_proof = refusal.reason == RefusalReason::no_proof;
  if (lacks_proof) ++all_.proofs_refused;
  if (refusal.reason == RefusalReason::itself) return;
  if (lacks_proof ? !owner_.may_log_proof(pipe_.peer_address()) : !may_log()) return;
  log_.warn("refused a node", kv("node", hello.from.value()), kv("address", pipe_.peer_address()),
            kv("cluster", hello.cluster), kv("reason", refusal.text));
}

// A stream that is closed with bytes unread breaks, and the caller might lose the reason. So its
// half is read to the end.
Task<Result<void>> Inbound::refuse(Hello hello, Refusal refusal, const ClusterSecret* prover,
                                   Until until) {
  log_refusal(hello, refusal);
  std::string text = refusal.text;
  if (prover != nullptr) {
    CO_TRY_VOID(co_await write_proved(std::move(refusal), prover, until));
  } else {
    CO_TRY_VOID(co_await pipe_.write(std::move(refusal), until));
  }
  pipe_.end_writing();
  const Until lingering = Until::after(runtime_, kLingerTimeout, until.stop);
  for (std::size_t i = 0; i < kLingerFramesMax; ++i) {
    const auto frame = co_await pipe_.read(lingering);
    if (!frame) break;
  }
  co_return Error(Errc::refused, std::move(text));
}

Task<void> Inbound::serve() {
  tasks_.spawn(write_frames());
  Error why = co_await read_frames();
  if (broken_by_) why = *broken_by_;
  over_.request_stop();
  co_await tasks_.join();
  count_bytes();
  --peer_->connections_current;
  log_end(why);
}

void Inbound::log_end(const Error& why) {
  if (why.code() == Errc::closed || why.code() == Errc::cancelled) {
    log_.debug("a connection ended", kv("address", pipe_.peer_address()), kv("reason", why));
    return;
  }
  const bool is_bad = why.code() != Errc::connection_lost;
  if (is_bad) ++all_.connections_bad;
  if (!may_log()) return;
  if (is_bad) {
    log_.warn("closed a connection", kv("address", pipe_.peer_address()),
              kv("node", hello_ ? hello_->from.value().to_string() : "unknown"), kv("reason", why));
  } else {
    log_.info("a connection broke", kv("address", pipe_.peer_address()), kv("reason", why));
  }
}

bool Inbound::may_log() {
  return owner_.may_log(is_admitted() ? InboundOwner::Standing::peer
                                      : InboundOwner::Standing::stranger);
}

void Inbound::drain() {
  if (!hello_) return abort(Error(Errc::closed, "this node is stopping"));
  if (std::exchange(draining_, true)) return;
  send(Goodbye(), 0);
}

void Inbound::abort(Error why) {
  if (!broken_by_) broken_by_ = std::move(why);
  pipe_.close();
  over_.request_stop();
}

Task<Error> Inbound::read_frames() {
  heard_at_ = runtime_.clock.now();
  const Limits& limits = self_.options.limits;
  for (;;) {
    while (outgoing_bytes_ >= limits.answer_bytes_high) {
      auto woken = co_await capacity_.wait({.stop = over_.token()});
      if (!woken) co_return std::move(woken).error();
      heard_at_ = runtime_.clock.now();
    }
    auto frame = pipe_.take();
    if (!frame) co_return std::move(frame).error();
    if (*frame) {
      heard_at_ = runtime_.clock.now();
      if (auto problem = on_frame(**std::move(frame))) co_return *std::move(problem);
      continue;
    }
    const auto patience = limits.patience().for_bytes(pipe_.bytes_since_frame());
    auto more = co_await pipe_.read_more({.deadline = heard_at_ + patience, .stop = over_.token()});
    if (more.failed_with(Errc::timeout)) {
      co_return Error(Errc::timeout, "the node was silent for too long");
    }
    if (!more) co_return std::move(more).error();
    count_bytes();
  }
}

std::optional<Error> Inbound::on_frame(Frame frame) {
  if (auto* request = std::get_if<Request>(&frame)) return on_request(std::move(*request));
  if (auto* message = std::get_if<OneWay>(&frame)) {
    on_one_way(std::move(*message));
  } else if (const auto* cancel = std::get_if<Cancel>(&frame)) {
    on_cancel(*cancel);
  } else if (const auto* ping = std::get_if<Ping>(&frame)) {
    owner_.on_ping(*hello_);
    send(Pong{.number = ping->number, .clock_us = microseconds_of(runtime_.clock.now())}, 0);
  } else {
    return Error(Errc::corrupt, "a frame of the kind '{}' out of turn", name_of(frame));
  }
  return std::nullopt;
}

Result<MonotonicTime> Inbound::deadline_of(const Request& request) const {
  if (request.remaining_us == 0) return MonotonicTime::never();
  constexpr std::uint64_t kRemainingMax = 1'000'000'000'000;  // eleven days
  const std::chrono::microseconds remaining(
      static_cast<std::int64_t>(std::min(request.remaining_us, kRemainingMax)));
  const MonotonicTime now = runtime_.clock.now();
  if (request.begun_by_us == 0 || self_.options.believes_remaining_time) return now + remaining;
  const MonotonicTime begun_by = time_of(request.begun_by_us);
  // It was sent no earlier than that.
  const runtime::Duration ahead = begun_by + -remaining - now;
  if (ahead > PeerClock::kErrorMax) {
    return Error(Errc::corrupt, "a request from {} ms in the future", ahead / 1ms);
  }
  return std::min(now + remaining, begun_by);
}

std::optional<Error> Inbound::on_request(Request request) {
  ++peer_->requests_received;
  const std::uint64_t id = request.id;
  const auto in_time = deadline_of(request);
  if (!in_time) return in_time.error();
  const MonotonicTime deadline = *in_time;
  if (deadline <= runtime_.clock.now()) {
    // It lay somewhere for too long, and nobody waits for it any more.
    ++peer_->requests_late;
    return std::nullopt;
  }
  if (at_work_.contains(id)) return Error(Errc::corrupt, "two requests of the number {}", id);
  const Handler* const handler = owner_.handler_of(request.verb);
  if (draining_ || handler == nullptr || !has_room(request.payload.size())) {
    ++peer_->requests_refused;
    if (draining_) {
      answer(id, Error(Errc::unavailable, "the node is stopping"));
    } else if (handler == nullptr) {
      answer(id, Error(Errc::unsupported, "nobody serves the verb {}", request.verb));
    } else {
      answer(id, Error(Errc::overloaded, "{} handlers are at work", handlers_));
    }
    return std::nullopt;
  }
  const std::size_t size = request.payload.size();
  const auto work = at_work_.try_emplace(id, over_.token()).first;
  take_room(size);
  tasks_.spawn(
      handle(id, size, deadline,
             (*handler)({.from = hello_->from,
                         .version = version_,
                         .payload = std::move(request.payload),
                         .until = {.deadline = deadline, .stop = work->second.stop.token()}})));
  return std::nullopt;
}

Task<void> Inbound::handle(std::uint64_t id, std::size_t size, MonotonicTime deadline,
                           Task<Result<Bytes>> handling) {
  if (runtime_.buggify("rpc.late_dispatch")) {
    static_cast<void>(co_await runtime::dawdle(runtime_, kDawdleMax, over_.token()));
  }
  auto result = co_await std::move(handling);
  const auto work = at_work_.find(id);
  const bool wanted =
      !work->second.cancelled && !over_.stop_requested() && runtime_.clock.now() < deadline;
  at_work_.erase(work);
  give_room(size);
  if (!wanted) {
    ++peer_->answers_dropped;
    co_return;
  }
  answer(id, std::move(result));
}

void Inbound::on_one_way(OneWay message) {
  ++peer_->one_way_received;
  const Handler* const handler = owner_.handler_of(message.verb);
  const std::size_t size = message.payload.size();
  if (draining_ || handler == nullptr || !has_room(size) || runtime_.buggify("rpc.lose_one_way")) {
    ++peer_->one_way_ignored;
    return;
  }
  take_room(size);
  tasks_.spawn(hear(message.verb, size,
                    (*handler)({.from = hello_->from,
                                .version = version_,
                                .payload = std::move(message.payload),
                                .until = {.stop = over_.token()},
                                .wants_answer = false})));
}

Task<void> Inbound::hear(std::uint16_t verb, std::size_t size, Task<Result<Bytes>> handling) {
  const auto result = co_await std::move(handling);
  give_room(size);
  if (!result) {
    log_.debug("a one-way message failed", kv("node", hello_->from.value()), kv("verb", verb),
               kv("error", result.error()));
  }
}

void Inbound::on_cancel(const Cancel& cancel) {
  const auto work = at_work_.find(cancel.id);
  if (work == at_work_.end()) return;  // its answer is on the way
  ++peer_->requests_cancelled;
  work->second.cancelled = true;
  work->second.stop.request_stop();
}

bool Inbound::has_room(std::size_t bytes) const {
  const Limits& limits = self_.options.limits;
  return handlers_ < limits.handlers_max && handler_bytes_ + bytes <= limits.handler_bytes_max &&
         all_.handler_bytes_current + bytes <= limits.handler_bytes_all_max;
}

void Inbound::take_room(std::size_t bytes) {
  ++handlers_;
  ++peer_->handlers_current;
  handler_bytes_ += bytes;
  all_.handler_bytes_current += bytes;
}

void Inbound::give_room(std::size_t bytes) {
  --handlers_;
  --peer_->handlers_current;
  handler_bytes_ -= bytes;
  all_.handler_bytes_current -= bytes;
}

void Inbound::answer(std::uint64_t id, Result<Bytes> result) {
  if (result && result->size() + kFrameOverheadMax > hello_->body_size_max) {
    result = Error(Errc::invalid_argument, "the answer has {} bytes", result->size());
  } else if (result && outgoing_bytes_ + result->size() > self_.options.limits.answer_bytes_max) {
    // Not `overloaded`, which says that nothing was done.
    result = Error(Errc::timeout, "{} bytes of answers wait to be read", outgoing_bytes_);
  }
  if (!result) {
    Failure failure{.id = id, .code = result.error().code(), .text = cut(result.error().context())};
    const std::size_t size = failure.text.size();
    return send(std::move(failure), size);
  }
  const std::size_t size = result->size();
  send(Answer{.id = id, .payload = *std::move(result)}, size);
}

void Inbound::send(Frame frame, std::size_t size) {
  size += kFrameOverheadMax;
  outgoing_bytes_ += size;
  outgoing_.push_back({.frame = std::move(frame), .size = size});
  pipe_.wake();
}

Task<void> Inbound::write_frames() {
  Error why = co_await pipe_.write_from(*this, self_.options.limits.patience(), over_.token());
  if (why.code() == Errc::timeout) why = Error(Errc::timeout, "the node takes nothing");
  if (!over_.stop_requested()) abort(std::move(why));
}

void Inbound::fill(FrameBatch& batch) {
  while (!batch.full() && !outgoing_.empty()) {
    const Outgoing& next = outgoing_.front();
    batch.add(next.frame);
    outgoing_bytes_ -= next.size;
    outgoing_.pop_front();
  }
  if (outgoing_bytes_ < self_.options.limits.answer_bytes_high) capacity_.wake_all();
}

void Inbound::count_bytes() {
  peer_->bytes_sent += pipe_.take_bytes_written();
  peer_->bytes_received += pipe_.take_bytes_read();
}

}  // namespace helenus::rpc
