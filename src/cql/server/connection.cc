#include "cql/server/connection.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "base/codec.h"
#include "runtime/executor.h"
#include "runtime/sleep.h"

namespace helenus::cql {

using base::Bytes;
using base::Errc;
using protocol::ErrorCode;
using protocol::Frame;
using protocol::FrameHeader;
using protocol::FrameReader;
using protocol::FrameRefusal;
using protocol::Opcode;
using protocol::Request;
using protocol::Response;
using runtime::Task;
using runtime::Until;

namespace {

constexpr unsigned kCqlMajorMin = 3;
// No answer comes near the protocol's limit for a body; what stands in front of it has room.
constexpr std::size_t kAnswerSizeMax = protocol::kBodySizeCap / 2;

bool is_spoken(std::string_view cql_version) {
  unsigned major = 0;
  const auto read =
      std::from_chars(cql_version.data(), cql_version.data() + cql_version.size(), major);
  return read.ec == std::errc() && major >= kCqlMajorMin;
}

std::string client_text(std::optional<std::string_view> text) {
  return std::string(protocol::cut_utf8(text.value_or(""), Session::kClientTextSizeMax));
}

ErrorCode code_of(const Response& error) {
  ASSERT(error.opcode == Opcode::error && error.body[0].size() >= sizeof(std::uint32_t));
  return static_cast<ErrorCode>(base::load_be<std::uint32_t>(error.body[0].data()));
}

std::size_t answer_kind_of(const Response& response) {
  if (response.opcode != Opcode::result) return ServerStatistics::kErrors;
  ASSERT(response.body[0].size() >= sizeof(std::uint32_t));
  const auto kind = base::load_be<std::uint32_t>(response.body[0].data());
  ASSERT(kind > ServerStatistics::kErrors && kind < ServerStatistics::kAnswerKinds);
  return kind;
}

}  // namespace

Connection::Connection(const ConnectionContext& context, std::unique_ptr<runtime::Stream> stream,
                       std::uint64_t id, std::optional<Refusal> refusal)
    : context_(context),
      timeouts_(context.timeouts),
      stream_(std::move(stream)),
      refusal_(refusal),
      began_at_(context.runtime.clock.now()),
      reader_(protocol::Direction::request, context.admission.node_limits().request_size_max),
      partial_(context.admission.request_charge()),
      coming_in_(context.admission, stream_->peer_address()),
      capacity_(context.runtime),
      work_(context.runtime),
      requests_(context.runtime),
      writer_(context.runtime) {
  session_.id = id;
  session_.client = stream_->peer_address();
  session_.connected_at = context.runtime.clock.wall_now();
}

Task<void> Connection::run() {
  writer_.spawn(write_answers());
  co_await read_requests();
  // A client that has ended its half is usually gone: its requests are not waited for at length.
  if (!draining_.stop_requested()) {
    const auto ended =
        co_await requests_.join(Until::after(context_.runtime, timeouts_.half_closed_timeout));
    if (!ended) aborting_.request_stop();
  }
  co_await requests_.join();
  no_more_answers_ = true;
  if (!work_.empty()) work_.wake_one();
  co_await writer_.join();
  outgoing_.clear();
  count_outgoing();
  if (!broken_) co_await linger();
  stream_->close();
}

Task<void> Connection::read_requests() {
  while (!draining_.stop_requested()) {
    const Pause pause = take_frames();
    if (pause == Pause::ends) co_return;
    if (pause != Pause::needs_bytes) {
      const bool goes_on = co_await pause_reading(pause);
      if (!goes_on) co_return;
      continue;
    }
    note_frame_start();
    const Until until{.deadline = read_deadline(), .stop = draining_.token()};
    const base::MutableByteView room = segments_ ? segments_->room() : reader_.room();
    const auto got = co_await stream_->read(room, until);
    if (!got) {
      if (got.failed_with(Errc::timeout)) ++context_.statistics.connections_timed_out;
      if (!got.failed_with(Errc::cancelled)) break_off();
      co_return;
    }
    // The client ended its half: it may still wait for answers.
    if (*got == 0) co_return;
    context_.standstill.look();
    if (broken_) co_return;
    note_arrival(*got, room.size());
    context_.statistics.bytes_read += *got;
    note_frame_bytes(*got);
    if (segments_) {
      segments_->commit(*got);
    } else {
      reader_.commit(*got);
    }
  }
}

void Connection::note_arrival(std::size_t bytes, std::size_t room) {
  came_at_ = unread_since_.value_or(context_.runtime.clock.now());
  const bool may_be_more = bytes == room;
  if (!may_be_more) unread_since_.reset();
}

Task<bool> Connection::pause_reading(Pause pause) {
  if (pause == Pause::gives_way) {
    std::ignore = co_await runtime::yield_now(context_.runtime);
    co_return true;
  }
  const auto stopped_at = context_.runtime.clock.now();
  unread_since_ = unread_since_.value_or(stopped_at);
  base::Result<void> woken;
  if (pause == Pause::needs_capacity) {
    woken = co_await capacity_.wait({.stop = draining_.token()});
  } else {
    woken = co_await runtime::sleep_for(context_.runtime, kRoomRetryInterval, draining_.token());
  }
  const runtime::Duration paused = context_.runtime.clock.now() - stopped_at;
  if (pause == Pause::needs_room) waited_for_room_ += paused;
  if (frame_due_) frame_due_ = *frame_due_ + paused;
  co_return woken.has_value();
}

Connection::Pause Connection::take_frames() {
  const std::uint64_t last_of_turn = requests_served_ + kRequestsPerTurn;
  while (has_capacity()) {
    if (requests_served_ == last_of_turn) return Pause::gives_way;
    const FrameReader::Step step = reader_.next();
    if (const auto* header = std::get_if<FrameHeader>(&step)) {
      incoming_stream_ = header->stream;
      if (!fits_version(*header)) return Pause::ends;
      if (refusal_) {
        refuse(header->stream, *refusal_);
        return Pause::ends;
      }
    } else if (const auto* frame = std::get_if<Frame>(&step)) {
      ++frames_taken_;
      coming_in_.release();
      on_frame(*frame);
      partial_.release();
      waited_for_room_ = {};
      if (took_long(*frame)) return Pause::gives_way;
    } else if (const auto* refusal = std::get_if<FrameRefusal>(&step)) {
      ++frames_taken_;
      refuse(refusal->stream, refusal->code, refusal->message);
      if (refusal->fatal) return Pause::ends;
    } else {
      if (segments_) {
        const auto fed = feed_reader();
        if (!fed) {
          refuse(0, ErrorCode::protocol_error, std::string(fed.error().context()));
          return Pause::ends;
        }
        if (*fed) continue;
      }
      // Memory that a frame takes while it comes in is charged as it comes.
      if (!reader_.in_body() || charge_body()) return Pause::needs_bytes;
      if (waited_for_room_ < timeouts_.room_timeout) return Pause::needs_room;
      reader_.skip_body();
      coming_in_.release();
      partial_.release();
      waited_for_room_ = {};
      refuse(incoming_stream_, Refusal::request_bytes);
    }
  }
  return Pause::needs_capacity;
}

bool Connection::fits_version(const FrameHeader& header) {
  if (session_.version == 0) {
    session_.version = header.version;
    outgoing_.speak(header.version);
  }
  if (session_.version == header.version) return true;
  refuse(
      header.stream, ErrorCode::protocol_error,
      fmt::format("Invalid message version. Got {0}/v{0} but previous messages on this connection "
                  "had version {1}/v{1}",
                  header.version, session_.version));
  return false;
}

base::Result<bool> Connection::feed_reader() {
  if (payload_.empty()) {
    TRY(auto next, segments_->next());
    if (!next) return false;
    payload_ = *std::move(next);
    if (payload_.empty()) return true;
  }
  payload_ = payload_.slice(reader_.feed(payload_.view()));
  return true;
}

bool Connection::nothing_held() const {
  return reader_.at_boundary() && (!segments_ || (segments_->size_held() == 0 && payload_.empty()));
}

// What was read behind STARTUP came too early to be in segments.
void Connection::begin_segments() {
  if (session_.version < protocol::kVersionOfSegments || phase_ != Phase::ready) return;
  segments_.emplace(session_.compression);
  outgoing_.begin_segments(session_.compression);
}

// Bodies that are large, unpacked at least, are so few in a slice that its end is looked at behind
// each of them; small requests that were answered at once only some at a time.
bool Connection::took_long(const Frame& frame) {
  if (protocol::plain_size(frame) <= kSmallBodyMax && answers_unlooked_ < kAnswersPerLook) {
    return false;
  }
  answers_unlooked_ = 0;
  return context_.runtime.executor.slice_is_over();
}

bool Connection::charge_body() {
  const std::size_t held = reader_.size_held();
  return coming_in_.grow_to(held) && partial_.grow_to(held);
}

void Connection::count_outgoing() {
  const std::size_t counted = std::exchange(bytes_counted_, bytes_outgoing());
  context_.admission.count_responses(counted, bytes_counted_);
}

void Connection::wake_reader() {
  if (!capacity_.empty() && has_capacity()) capacity_.wake_one();
}

runtime::MonotonicTime Connection::read_deadline() const {
  auto deadline = runtime::MonotonicTime::never();
  if (phase_ == Phase::fresh) deadline = began_at_ + timeouts_.startup_timeout;
  if (frame_due_) {
    deadline =
        std::min({deadline, *frame_due_, context_.runtime.clock.now() + timeouts_.stall_timeout});
  }
  return deadline;
}

void Connection::note_frame_start() {
  if (nothing_held()) {
    frame_due_.reset();
  } else if (!frame_due_ || frame_number_ != frames_taken_) {
    frame_due_ = context_.runtime.clock.now() + timeouts_.frame_timeout;
    frame_number_ = frames_taken_;
  }
}

void Connection::note_frame_bytes(std::size_t bytes) {
  if (!frame_due_) return;
  frame_due_ = std::min(*frame_due_ + time_for(bytes),
                        context_.runtime.clock.now() + timeouts_.frame_timeout);
}

runtime::Duration Connection::time_for(std::uint64_t bytes) const {
  return std::chrono::microseconds(bytes * 1'000'000 / timeouts_.bytes_per_second_min);
}

void Connection::on_frame(const Frame& frame) {
  const std::int16_t stream = frame.header.stream;
  // A compressed body is there twice for a while.
  const std::size_t size_max = context_.admission.node_limits().request_size_max;
  const std::size_t unpacked = frame.header.has(protocol::kFlagCompressed)
                                   ? std::min(protocol::plain_size(frame), size_max)
                                   : 0;
  if (!partial_.grow_to(frame.body.size() + unpacked + kRequestOverhead)) {
    return refuse(stream, Refusal::request_bytes);
  }
  const auto compression = segments_ ? protocol::Compression::none : session_.compression;
  auto body = protocol::plain_body(frame, compression, size_max);
  if (!body) {
    const bool too_big = body.failed_with(Errc::invalid_argument);
    return refuse(stream, too_big ? ErrorCode::invalid : ErrorCode::protocol_error,
                  std::string(body.error().context()));
  }
  auto request = protocol::decode_request(frame.header, *std::move(body));
  if (!request) {
    return refuse(stream, ErrorCode::protocol_error, std::string(request.error().context()));
  }
  on_request(*std::move(request), std::move(partial_));
}

void Connection::on_request(Request&& request, Admission::RequestCharge charge) {
  const Opcode opcode = opcode_of(request.message);
  ++context_.statistics.requests[static_cast<std::size_t>(opcode)];
  ++requests_served_;
  if (auto problem = out_of_turn(opcode)) {
    return refuse(request.stream, ErrorCode::protocol_error, *std::move(problem));
  }
  if (const auto* startup = std::get_if<protocol::StartupRequest>(&request.message)) {
    answer(request.stream, start_up(*startup));
    return begin_segments();
  }
  if (opcode == Opcode::options) return answer(request.stream, context_.supported);
  if (const auto* wanted = std::get_if<protocol::RegisterRequest>(&request.message)) {
    return answer(request.stream, register_for(*wanted));
  }
  const PendingRequest pending{.stream = request.stream, .at = context_.runtime.clock.now()};
  if (pending.at - came_at_ >= timeouts_.lost_after && context_.handler.may_change_data(request)) {
    return refuse(request.stream, Refusal::waited_too_long);
  }
  auto answering = context_.handler.handle(std::move(request), session_, aborting_.token());
  if (answering.ready()) {
    ++answers_unlooked_;
    return answer_served(pending, std::move(answering).take());
  }
  ++requests_under_way_;
  ++context_.statistics.requests_current;
  request_bytes_ += charge.bytes();
  requests_.spawn(serve(pending, std::move(answering).task(), std::move(charge)));
}

std::optional<std::string> Connection::out_of_turn(Opcode opcode) const {
  if (phase_ == Phase::fresh) {
    if (opcode == Opcode::startup || opcode == Opcode::options) return std::nullopt;
    return fmt::format("Unexpected message {}, expecting STARTUP or OPTIONS", name_of(opcode));
  }
  if (opcode == Opcode::startup) {
    return "Unexpected message STARTUP, the connection is already initialized";
  }
  if (opcode == Opcode::auth_response) {
    return "Unexpected message AUTH_RESPONSE, no authentication was asked for";
  }
  return std::nullopt;
}

Response Connection::start_up(const protocol::StartupRequest& request) {
  const auto version = request.find(protocol::kOptionCqlVersion);
  if (!version) {
    return Response::error(ErrorCode::protocol_error,
                           "Missing value CQL_VERSION in STARTUP message");
  }
  if (!is_spoken(*version)) {
    return Response::error(ErrorCode::protocol_error,
                           fmt::format("CQL version {} is not supported by the binary protocol "
                                       "(supported version are >= 3.0.0)",
                                       *version));
  }
  const auto compression = request.find(protocol::kOptionCompression).value_or("");
  const auto known = protocol::compression_named(compression);
  if (!known) {
    return Response::error(ErrorCode::protocol_error,
                           fmt::format("Unknown compression algorithm: {}", compression));
  }
  session_.compression = *known;
  session_.driver_name = client_text(request.find(protocol::kOptionDriverName));
  session_.driver_version = client_text(request.find(protocol::kOptionDriverVersion));
  phase_ = Phase::ready;
  return Response::of(protocol::ReadyMessage());
}

Response Connection::register_for(const protocol::RegisterRequest& request) {
  for (const protocol::EventKind kind : request.kinds) {
    session_.subscribed[static_cast<std::size_t>(kind)] = true;
  }
  return Response::of(protocol::ReadyMessage());
}

void Connection::refuse(std::int16_t stream, ErrorCode code, std::string message) {
  answer(stream, Response::error(code, std::move(message)));
}

void Connection::refuse(std::int16_t stream, Refusal refusal) {
  refuse(stream, ErrorCode::overloaded, std::string(text_of(refusal)));
}

Task<void> Connection::serve(PendingRequest pending, Task<Response> answering,
                             Admission::RequestCharge charge) {
  Response response = co_await std::move(answering);
  answer_served(pending, std::move(response));
  --requests_under_way_;
  --context_.statistics.requests_current;
  request_bytes_ -= charge.bytes();
  charge.release();
  wake_reader();
}

void Connection::answer_served(const PendingRequest& pending, Response response) {
  const auto took = context_.runtime.clock.now() - pending.at;
  context_.statistics.answer_ns[answer_kind_of(response)].record(
      static_cast<std::uint64_t>(took.count()));
  if (response.body_size() > kSmallBodyMax) answers_unlooked_ = kAnswersPerLook;
  answer(pending.stream, std::move(response));
}

void Connection::answer(std::int16_t stream, Response response) {
  if (broken_) return;
  if (response.body_size() > kAnswerSizeMax) {
    response = Response::error(ErrorCode::server_error, "The answer is too large");
  } else if (!context_.admission.may_respond(load(), response.body_size())) {
    response =
        Response::error(ErrorCode::overloaded, std::string(text_of(Refusal::response_bytes)));
  }
  if (response.opcode == Opcode::error) ++context_.statistics.errors[code_of(response)];
  if (session_.version >= protocol::kVersionOfSegments && response.opcode == Opcode::error) {
    protocol::tell_failures_by_reason(response);
  }
  outgoing_.add(response, stream, session_.compression);
  count_outgoing();
  if (!work_.empty()) work_.wake_one();
}

void Connection::send_event(protocol::EventKind kind, const Bytes& frame) {
  if (broken_ || !session_.subscribed[static_cast<std::size_t>(kind)]) return;
  if (!context_.admission.may_send_event(load())) return break_off();
  ++context_.statistics.events;
  outgoing_.add(frame);
  count_outgoing();
  if (!work_.empty()) work_.wake_one();
}

// The writer is woken behind what is about to run on this core, so that the answers made there are
// part of the same write.
Task<void> Connection::write_answers() {
  auto waits_since = context_.runtime.clock.now();
  std::uint64_t written_since = 0;
  for (;;) {
    while (outgoing_.empty()) {
      if (no_more_answers_) co_return;
      const auto woken = co_await work_.wait({.stop = aborting_.token()});
      if (!woken) co_return;
      waits_since = context_.runtime.clock.now();
      written_since = 0;
    }
    const ResponseQueue::Pieces pieces = outgoing_.take(kWriteSizeMax, runtime::Stream::kPiecesMax);
    absl::InlinedVector<base::ByteView, 4> views;
    for (const Bytes& piece : pieces) {
      views.push_back(piece.view());
      bytes_in_write_ += piece.size();
    }
    auto until = Until::after(context_.runtime, timeouts_.write_timeout, aborting_.token());
    until.deadline =
        std::min(until.deadline, waits_since + timeouts_.write_timeout + time_for(written_since));
    const auto written = co_await stream_->write(views, until);
    const std::size_t size = std::exchange(bytes_in_write_, 0);
    count_outgoing();
    if (!written) {
      if (written.failed_with(Errc::timeout)) ++context_.statistics.connections_timed_out;
      break_off();
      co_return;
    }
    context_.statistics.bytes_written += size;
    written_since += size;
    wake_reader();
  }
}

// A stream that is closed with bytes unread breaks, and the client may lose the answer that it has
// not read. So what it still sends is read and dropped.
Task<void> Connection::linger() {
  stream_->shutdown_write();
  const auto until = Until::after(context_.runtime, timeouts_.linger_timeout, aborting_.token());
  base::Buffer dropped;
  const auto room = dropped.extend(FrameReader::kInputSizeMin);
  for (std::size_t size = 0; size < timeouts_.linger_size_max;) {
    const auto got = co_await stream_->read(room, until);
    if (!got || *got == 0) co_return;
    size += *got;
  }
}

void Connection::break_off() {
  if (std::exchange(broken_, true)) return;
  outgoing_.clear();
  count_outgoing();
  stream_->close();
  draining_.request_stop();
  aborting_.request_stop();
}

}  // namespace helenus::cql
