#include "rpc/outbound.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus::rpc {

using base::Errc;
using base::Error;
using base::kv;
using runtime::Duration;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

namespace {

std::uint64_t microseconds(Duration duration) {
  const auto count = std::chrono::ceil<std::chrono::microseconds>(duration).count();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
}

}  // namespace

Outbound::Call::Call(Outbound& outbound, std::uint16_t verb, Payload payload, Until until)
    : Operation(outbound.runtime_, until),
      outbound_(outbound),
      verb_(verb),
      payload_(std::move(payload)),
      deadline_(until.deadline) {}

Outbound::Outbound(runtime::Runtime& runtime, const Self& self, model::NodeId peer, Lane lane,
                   PeerStatistics& statistics, const base::Logger& log)
    : runtime_(runtime),
      self_(self),
      peer_(peer),
      lane_(lane),
      statistics_(statistics),
      log_(log),
      drained_(runtime),
      tasks_(runtime) {}

std::optional<Error> Outbound::obstacle(std::size_t size) const {
  const Limits& limits = self_.options.limits;
  if (stopped_) return Error(Errc::closed, "this node is stopping");
  if (!address_) return Error(Errc::unavailable, "where node {} is is not known", peer_.value());
  if (size + kFrameOverheadMax > peer_body_size_max_) return too_large(size);
  if (state_ == State::open && leaving_) {
    return Error(Errc::unavailable, "node {} is stopping", peer_.value());
  }
  if (state_ != State::open && state_ != State::dialling && runtime_.clock.now() < retry_at_) {
    return Error(Errc::unavailable, "node {}: {}", peer_.value(), last_failure_.to_string());
  }
  if (bytes_waiting_ + size > limits.bytes_waiting_max || runtime_.buggify("rpc.overloaded")) {
    return Error(Errc::overloaded, "{} bytes wait for node {}", bytes_waiting_, peer_.value());
  }
  return std::nullopt;
}

Error Outbound::too_large(std::size_t size) const {
  return Error(Errc::invalid_argument, "a message of {} bytes, where node {} takes {}", size,
               peer_.value(), peer_body_size_max_ - kFrameOverheadMax);
}

void Outbound::begin(Call& call) {
  call.began_at_ = runtime_.clock.now();
  ++statistics_.requests_current;
  const std::size_t size = call.payload_.size();
  if (auto problem = obstacle(size)) return finish(call, *std::move(problem));
  if (calls_.size() >= self_.options.limits.calls_max) {
    return finish(call, Error(Errc::overloaded, "{} calls to node {} are under way", calls_.size(),
                              peer_.value()));
  }
  call.id_ = next_id_++;
  call.bytes_waiting_ = size;
  bytes_waiting_ += size;
  calls_.emplace(call.id_, &call);
  queue_.push_back({.call = call.id_, .verb = call.verb_, .payload = base::Bytes()});
  want();
}

base::Result<void> Outbound::tell(std::uint16_t verb, Payload payload) {
  auto problem = obstacle(payload.size());
  if (!problem && one_way_waiting_ >= self_.options.limits.one_way_waiting_max) {
    problem =
        Error(Errc::overloaded, "{} messages wait for node {}", one_way_waiting_, peer_.value());
  }
  if (problem) {
    ++statistics_.one_way_dropped;
    return *std::move(problem);
  }
  bytes_waiting_ += payload.size();
  ++one_way_waiting_;
  queue_.push_back({.call = 0, .verb = verb, .payload = std::move(payload)});
  want();
  return {};
}

void Outbound::release_bytes(Call& call) {
  bytes_waiting_ -= std::exchange(call.bytes_waiting_, 0);
  call.payload_.clear();
}

void Outbound::finish(Call& call, base::Result<Reply> result) {
  release_bytes(call);
  --statistics_.requests_current;
  if (!result) ++statistics_.calls_failed[result.error().code()];
  call.complete(std::move(result));
}

void Outbound::abandon(Call& call, bool stopped) {
  calls_.erase(call.id_);
  release_bytes(call);
  --statistics_.requests_current;
  ++statistics_.calls_failed[stopped ? Errc::cancelled : Errc::timeout];
  // At its deadline the handler over there ends by itself.
  if (call.written_ && stopped && state_ == State::open) {
    cancels_.push_back(call.id_);
    pipe_->wake();
  }
  call.complete(Error(Errc::cancelled));
}

void Outbound::want() {
  if (state_ == State::open) return pipe_->wake();
  if (state_ != State::idle) return;
  state_ = State::dialling;
  tasks_.spawn(run());
}

void Outbound::set_address(std::optional<runtime::Address> address) {
  if (address == address_) return;
  address_ = address;
  if (address) return forgive();
  if (state_ == State::open) break_off(Error(Errc::closed, "the node was forgotten"));
}

void Outbound::forgive() {
  retry_at_ = runtime::MonotonicTime();
}

void Outbound::close() {
  stopped_ = true;
  const Error why(Errc::closed, "this node is stopping");
  if (state_ != State::open) return fail_all(why);
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    finish(*call, call->written_ ? Error(Errc::connection_lost, "{}", why.context()) : why);
  }
}

Task<void> Outbound::stop(Until until) {
  close();
  while (state_ == State::open && has_something_to_write()) {
    const auto woken = co_await drained_.wait(until);
    if (!woken) break;
  }
  stopping_.request_stop();
  co_await tasks_.join();
}

bool Outbound::has_something_to_write() const {
  return pipe_ != nullptr && pipe_->is_writing();
}

Task<void> Outbound::run() {
  do {
    state_ = State::dialling;
    co_await connect_once();
  } while (!queue_.empty() && !stopped_);
  state_ = State::idle;
}

Task<void> Outbound::connect_once() {
  ++statistics_.dials;
  const Options& options = self_.options;
  const Hello hello{.versions = options.versions,
                    .cluster = options.cluster,
                    .from = options.node,
                    .life = self_.life,
                    .to = peer_,
                    .lane = lane_,
                    .address = options.address,
                    .body_size_max = options.limits.body_size_max};
  if (!address_) co_return fail_all(Error(Errc::unavailable, "the node was forgotten"));
  const runtime::Address address = *address_;
  auto dialled =
      co_await dial(runtime_, self_, address, hello,
                    Until::after(runtime_, options.limits.dial_timeout, stopping_.token()));
  if (!dialled) co_return note_dial_failure(address, std::move(dialled).error());
  if (const auto* refusal = std::get_if<Refusal>(&dialled->reply)) {
    note_id_taken(self_, *dialled);
    co_return note_dial_failure(address, Error(Errc::refused, refusal->text));
  }
  if (!address_) co_return fail_all(Error(Errc::unavailable, "the node was forgotten"));
  const auto& welcome = std::get<Welcome>(dialled->reply);
  version_ = welcome.version;
  peer_body_size_max_ = static_cast<std::size_t>(welcome.body_size_max);
  peer_clock_ = {};
  peer_clock_.note(dialled->asked_at, time_of(welcome.clock_us), dialled->heard_at);
  co_await talk(*dialled->pipe);
}

void Outbound::note_dial_failure(runtime::Address address, Error why) {
  ++statistics_.dials_failed;
  state_ = State::ending;
  // A peer that stays away says so once, and not at each attempt.
  std::string text = why.to_string();
  if (text != last_logged_ && !stopped_) {
    log_.warn("no connection to a node", kv("node", peer_.value()), kv("address", address),
              kv("lane", name_of(lane_)), kv("reason", text));
    last_logged_ = std::move(text);
  }
  back_off(std::move(why));
}

void Outbound::back_off(Error why) {
  const Limits& limits = self_.options.limits;
  const std::uint32_t doublings = std::min<std::uint32_t>(failures_++, 20);
  const Duration pause = std::min(limits.back_off_max, limits.back_off_min * (1U << doublings));
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  const Duration drawn(static_cast<std::int64_t>(half + runtime_.random.between(0, half)));
  retry_at_ = runtime_.clock.now() + drawn;
  last_failure_ = std::move(why);
  fail_all(last_failure_);
}

Task<void> Outbound::talk(Pipe& pipe) {
  const auto opened_at = runtime_.clock.now();
  runtime::StopSource over(stopping_.token());
  pipe_ = &pipe;
  broken_by_.reset();
  leaving_ = false;
  ping_wanted_ = false;
  last_logged_.clear();
  ping_under_way_ = false;
  unanswered_since_.reset();
  state_ = State::open;
  ++statistics_.connections_current;
  log_.debug("connected to a node", kv("node", peer_.value()), kv("address", pipe.peer_address()),
             kv("lane", name_of(lane_)), kv("version", version_.value()));

  runtime::TaskGroup side(runtime_);
  side.spawn(write_frames(pipe, over.token()));
  side.spawn(send_pings(pipe, over.token()));
  Error why = co_await read_frames(pipe, over.token());
  if (broken_by_) why = *std::move(broken_by_);
  const bool brief = runtime_.clock.now() - opened_at < self_.options.limits.back_off_max;
  on_end(std::move(why), brief);
  over.request_stop();
  co_await side.join();
  count_bytes(pipe);
  pipe.close();
}

void Outbound::on_end(Error why, bool brief) {
  state_ = State::ending;
  pipe_ = nullptr;
  cancels_.clear();
  drained_.wake_all();
  --statistics_.connections_current;
  const bool orderly = stopped_ || leaving_ || !address_;
  if (orderly) {
    log_.debug("a connection to a node ended", kv("node", peer_.value()),
               kv("lane", name_of(lane_)), kv("reason", why));
  } else {
    ++statistics_.connections_broken;
    log_.info("a connection to a node broke", kv("node", peer_.value()), kv("lane", name_of(lane_)),
              kv("reason", why));
  }
  if (!brief) failures_ = 0;
  if (brief && !stopped_) {
    back_off(std::move(why));
  } else {
    fail_all(why);
  }
}

void Outbound::count_bytes(Pipe& pipe) {
  statistics_.bytes_sent += pipe.take_bytes_written();
  statistics_.bytes_received += pipe.take_bytes_read();
}

Task<Error> Outbound::read_frames(Pipe& pipe, StopToken stop) {
  for (;;) {
    auto frame = pipe.take();
    if (!frame) co_return std::move(frame).error();
    if (*frame) {
      unanswered_since_.reset();
      if (auto problem = on_frame(**std::move(frame))) co_return *std::move(problem);
      continue;
    }
    if (leaving_ && calls_.empty()) co_return Error(Errc::closed, "the node is stopping");
    const Duration patience = self_.options.limits.patience().for_bytes(pipe.bytes_since_frame());
    const auto since = unanswered_since_.value_or(runtime_.clock.now());
    auto more = co_await pipe.read_more({.deadline = since + patience, .stop = stop});
    if (more.failed_with(Errc::timeout)) {
      if (unanswered_since_.value_or(runtime_.clock.now()) > since) continue;
      co_return Error(Errc::timeout, "the node was silent for too long");
    }
    if (!more) co_return std::move(more).error();
    count_bytes(pipe);
  }
}

std::optional<Error> Outbound::on_frame(Frame frame) {
  if (runtime_.buggify("rpc.break_connection")) {
    return Error(Errc::connection_lost, "broken on purpose");
  }
  if (auto* answer = std::get_if<Answer>(&frame)) {
    on_answered(answer->id, Reply{.payload = std::move(answer->payload), .version = version_});
  } else if (auto* failure = std::get_if<Failure>(&frame)) {
    on_answered(failure->id,
                Error(failure->code, "node {} answered: {}", peer_.value(), failure->text));
  } else if (const auto* pong = std::get_if<Pong>(&frame)) {
    on_pong(*pong);
  } else if (std::holds_alternative<Goodbye>(frame)) {
    leaving_ = true;
  } else {
    return Error(Errc::corrupt, "a frame of the kind '{}' out of turn", name_of(frame));
  }
  return std::nullopt;
}

void Outbound::on_answered(std::uint64_t id, base::Result<Reply> result) {
  ++statistics_.answers;
  const auto found = calls_.find(id);
  if (found == calls_.end()) {
    ++statistics_.answers_late;
    return;
  }
  Call& call = *found->second;
  calls_.erase(found);
  statistics_.answer_us.record(microseconds(runtime_.clock.now() - call.began_at_));
  finish(call, std::move(result));
}

void Outbound::on_pong(const Pong& pong) {
  if (pong.number != pings_) return;
  const auto now = runtime_.clock.now();
  peer_clock_.note(ping_sent_at_, time_of(pong.clock_us), now);
  const Duration round_trip = now - ping_sent_at_;
  statistics_.round_trip_us.record(microseconds(round_trip));
  auto& smoothed = statistics_.round_trip_smoothed;
  smoothed = smoothed ? *smoothed + (round_trip - *smoothed) / 8 : round_trip;
}

Task<void> Outbound::write_frames(Pipe& pipe, StopToken stop) {
  Error why = co_await pipe.write_from(*this, self_.options.limits.patience(), stop);
  if (why.code() == Errc::timeout) why = Error(Errc::timeout, "the node takes nothing");
  if (!stop.stop_requested()) break_off(std::move(why));
}

Task<void> Outbound::send_pings(Pipe& pipe, StopToken stop) {
  for (;;) {
    ping_wanted_ = true;
    pipe.wake();
    const auto slept =
        co_await runtime::sleep_for(runtime_, self_.options.limits.ping_interval, stop);
    if (!slept) co_return;
  }
}

void Outbound::fill(FrameBatch& batch) {
  if (state_ != State::open) return;
  fill_urgent(batch);
  while (!batch.full() && !queue_.empty()) {
    const Item item = std::move(queue_.front());
    queue_.pop_front();
    if (item.call != 0) {
      add_request(batch, item.call);
    } else {
      add_one_way(batch, item);
    }
  }
  if (batch.empty()) drained_.wake_all();
}

void Outbound::add_one_way(FrameBatch& batch, const Item& item) {
  --one_way_waiting_;
  bytes_waiting_ -= item.payload.size();
  base::Bytes payload = item.payload.in(version_);
  if (payload.size() + kFrameOverheadMax > peer_body_size_max_) {
    ++statistics_.one_way_dropped;
    return;
  }
  ++statistics_.one_way_sent;
  batch.add(OneWay{.verb = item.verb, .payload = std::move(payload)});
}

void Outbound::fill_urgent(FrameBatch& batch) {
  const auto now = runtime_.clock.now();
  if (std::exchange(ping_under_way_, false)) unanswered_since_ = unanswered_since_.value_or(now);
  if (std::exchange(ping_wanted_, false)) {
    ping_under_way_ = true;
    ping_sent_at_ = now;
    batch.add(Ping{.number = ++pings_});
  }
  while (!batch.full() && !cancels_.empty()) {
    batch.add(Cancel{.id = cancels_.front()});
    cancels_.pop_front();
  }
}

void Outbound::add_request(FrameBatch& batch, std::uint64_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // given up before it was its turn
  Call& call = *found->second;
  base::Bytes payload = call.payload_.in(version_);
  if (payload.size() + kFrameOverheadMax > peer_body_size_max_) {
    calls_.erase(found);
    return finish(call, too_large(payload.size()));
  }
  Request request{.id = id, .verb = call.verb_, .payload = std::move(payload)};
  if (!call.deadline_.is_never()) {
    const auto now = runtime_.clock.now();
    request.remaining_us = std::max<std::uint64_t>(microseconds(call.deadline_ - now), 1);
    if (const auto begun_by = peer_clock_.at_least(call.deadline_, now)) {
      request.begun_by_us = microseconds_of(*begun_by);
    }
  }
  batch.add(request);
  call.written_ = true;
  release_bytes(call);
  ++statistics_.requests_sent;
}

void Outbound::break_off(Error why) {
  if (!broken_by_) broken_by_ = std::move(why);
  if (pipe_ != nullptr) pipe_->close();
}

void Outbound::fail_all(const Error& why) {
  for (const Item& item : std::exchange(queue_, {})) {
    if (item.call != 0) continue;
    --one_way_waiting_;
    bytes_waiting_ -= item.payload.size();
    ++statistics_.one_way_dropped;
  }
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    const Errc unsent = stopped_ ? Errc::closed : Errc::unavailable;
    finish(*call, Error(call->written_ ? Errc::connection_lost : unsent, "node {}: {}",
                        peer_.value(), why.to_string()));
  }
}

}  // namespace helenus::rpc
