#include "client/connection.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::client {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using cql::protocol::Compression;
using cql::protocol::DecodedResponse;
using cql::protocol::ErrorMessage;
using cql::protocol::Frame;
using cql::protocol::FrameReader;
using cql::protocol::FrameRefusal;
using cql::protocol::Request;
using runtime::MonotonicTime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::string_view kCqlVersion = "3.0.0";
// Bytes of requests that are written at once, and one request more.
constexpr std::size_t kWriteSize = std::size_t{256} << 10;

Request request_of(cql::protocol::RequestMessage message) {
  Request request;
  request.message = std::move(message);
  return request;
}

bool offers(const Connection::Supported& supported, Compression compression) {
  for (const auto& [name, values] : supported.options) {
    if (!cql::protocol::equal_ignoring_case(name, cql::protocol::kOptionCompression)) continue;
    return std::ranges::any_of(values, [&](const std::string& value) {
      return cql::protocol::compression_named(value) == compression;
    });
  }
  return false;
}

RequestError unexpected(const DecodedResponse& response) {
  return RequestError::unknown(
      Error(Errc::corrupt, "the server answered with {}", name_of(opcode_of(response.message))));
}

std::string use_statement(std::string_view keyspace) {
  std::string text = "USE \"";
  for (const char letter : keyspace) {
    if (letter == '"') text += '"';
    text += letter;
  }
  return text + '"';
}

}  // namespace

Connection::Connection(runtime::Runtime& runtime, std::unique_ptr<runtime::Stream> stream,
                       ConnectionOptions options, EventSink on_event)
    : runtime_(runtime),
      options_(std::move(options)),
      on_event_(std::move(on_event)),
      stream_(std::move(stream)),
      address_(stream_->peer_address()),
      closed_(runtime),
      reader_(cql::protocol::Direction::response, options_.response_size_max),
      heard_at_(runtime.clock.now()),
      work_(runtime),
      gate_(runtime),
      tasks_(runtime) {
  ASSERT(options_.requests_in_flight_max <= kRequestsInFlightCap);
  ASSERT(options_.request_size_max <= cql::protocol::kBodySizeCap);
}

// ---- Opening and closing ----

Task<Result<std::unique_ptr<Connection>>> Connection::open(runtime::Runtime& runtime,
                                                           runtime::Address address,
                                                           ConnectionOptions options, Until until,
                                                           EventSink on_event) {
  auto connected = co_await runtime.transport.connect(address, until);
  if (!connected) co_return std::move(connected).error();
  auto connection = std::unique_ptr<Connection>(
      new Connection(runtime, *std::move(connected), std::move(options), std::move(on_event)));
  connection->tasks_.spawn(connection->write_requests());
  connection->tasks_.spawn(connection->read_responses());
  const auto started = co_await connection->start_up(until);
  if (!started) {
    co_await connection->stop();
    co_return started.error().to_error().within(fmt::format("starting up at {}", address));
  }
  co_return connection;
}

Task<RequestResult<void>> Connection::start_up(Until until) {
  CO_TRY(DecodedResponse options, co_await ask(request_of(cql::protocol::OptionsRequest()), until));
  auto* supported = std::get_if<Supported>(&options.message);
  if (supported == nullptr) co_return unexpected(options);
  supported_ = std::move(*supported);
  if (offers(supported_, options_.compression)) compression_ = options_.compression;

  cql::protocol::StartupRequest startup;
  startup.options = {{cql::protocol::kOptionCqlVersion, kCqlVersion},
                     {cql::protocol::kOptionDriverName, options_.driver_name},
                     {cql::protocol::kOptionDriverVersion, options_.driver_version}};
  if (compression_ != Compression::none) {
    startup.options.emplace_back(cql::protocol::kOptionCompression, name_of(compression_));
  }
  CO_TRY(const DecodedResponse ready, co_await ask(request_of(std::move(startup)), until));
  if (std::holds_alternative<cql::protocol::AuthenticateMessage>(ready.message)) {
    co_return RequestError::not_sent(Error(Errc::unsupported, "the server wants credentials"));
  }
  if (!std::holds_alternative<cql::protocol::ReadyMessage>(ready.message)) {
    co_return unexpected(ready);
  }
  compresses_requests_ = compression_ != Compression::none;

  if (options_.keyspace.empty()) co_return {};
  const auto used = co_await execute(Query{.text = use_statement(options_.keyspace)}, {}, until);
  if (!used) co_return used.error();
  co_return {};
}

Task<Result<void>> Connection::wait_closed(Until until) {
  auto waited = co_await closed_.wait(std::move(until));
  co_return waited;
}

void Connection::close() {
  break_off(Error(Errc::closed, "the connection was closed here"));
}

Task<void> Connection::stop() {
  close();
  co_await tasks_.join();
  co_await gate_.close();
}

void Connection::break_off(Error why) {
  if (closed_by_) return;
  closed_by_ = std::move(why);
  waiting_.clear();
  bytes_waiting_ = 0;
  answers_owed_ = 0;
  for (const auto& [stream, pending] : std::exchange(pending_, {})) {
    if (pending.call != nullptr) pending.call->complete(*closed_by_);
  }
  stopping_.request_stop();
  stream_->close();
  closed_.set();
}

// ---- Requests ----

Task<RequestResult<ResultSet>> Connection::execute(Statement statement, RequestOptions options,
                                                   Until until) {
  const auto pass = gate_.enter();
  if (!pass) co_return RequestError::not_sent(pass.error());
  auto request = make_request(statement, options, options_.request_size_max);
  if (!request) co_return RequestError::not_sent(std::move(request).error());
  CO_TRY(DecodedResponse answer, co_await ask(*std::move(request), std::move(until)));
  if (opcode_of(answer.message) != cql::protocol::Opcode::result ||
      std::holds_alternative<cql::protocol::PreparedResult>(answer.message)) {
    co_return unexpected(answer);
  }
  auto result = ResultSet::of(std::move(answer));
  if (!result) co_return RequestError::unknown(std::move(result).error());
  co_return *std::move(result);
}

Task<RequestResult<Prepared>> Connection::prepare(std::string text, Until until) {
  const auto pass = gate_.enter();
  if (!pass) co_return RequestError::not_sent(pass.error());
  if (text.size() > options_.request_size_max) {
    co_return RequestError::not_sent(
        Error(Errc::invalid_argument, "a statement of {} bytes", text.size()));
  }
  CO_TRY(DecodedResponse answer,
         co_await ask(request_of(cql::protocol::PrepareRequest{.text = text}), std::move(until)));
  auto* prepared = std::get_if<cql::protocol::PreparedResult>(&answer.message);
  if (prepared == nullptr) co_return unexpected(answer);
  co_return std::make_shared<const PreparedStatement>(
      PreparedStatement{.text = std::move(text),
                        .id = std::move(prepared->id),
                        .markers = std::move(prepared->markers),
                        .partition_key_markers = std::move(prepared->partition_key_markers),
                        .columns = std::move(prepared->columns)});
}

Task<RequestResult<void>> Connection::register_for(std::vector<cql::protocol::EventKind> kinds,
                                                   Until until) {
  const auto pass = gate_.enter();
  if (!pass) co_return RequestError::not_sent(pass.error());
  cql::protocol::RegisterRequest registration{.kinds = std::move(kinds)};
  CO_TRY(const DecodedResponse answer,
         co_await ask(request_of(std::move(registration)), std::move(until)));
  if (!std::holds_alternative<cql::protocol::ReadyMessage>(answer.message)) {
    co_return unexpected(answer);
  }
  co_return {};
}

Task<RequestResult<DecodedResponse>> Connection::ask(Request request, Until until) {
  Call call(*this, std::move(request), std::move(until));
  auto answer = co_await call;
  if (!answer) {
    co_return call.was_sent() ? RequestError::unknown(std::move(answer).error())
                              : RequestError::not_sent(std::move(answer).error());
  }
  if (auto* error = std::get_if<ErrorMessage>(&answer->message)) {
    co_return RequestError::answered(std::move(*error));
  }
  co_return *std::move(answer);
}

Result<Bytes> Connection::encode(const Request& request) const {
  base::Buffer out;
  encode_request(request, out);
  if (out.size() > options_.request_size_max + cql::protocol::kHeaderSize) {
    return Error(Errc::invalid_argument, "a request of {} bytes, where {} are the most", out.size(),
                 options_.request_size_max);
  }
  if (compresses_requests_) cql::protocol::compress_frame(out, 0);
  return std::move(out).freeze();
}

void Connection::begin(Call& call) {
  if (closed_by_) return call.complete(*closed_by_);
  if (pending_.size() >= options_.requests_in_flight_max) {
    return call.complete(Error(Errc::overloaded, "{} requests are in flight", pending_.size()));
  }
  const std::int16_t stream = take_stream();
  call.request_.stream = stream;
  auto frame = encode(call.request_);
  if (frame && bytes_waiting_ + frame->size() > options_.bytes_waiting_max) {
    frame = Error(Errc::overloaded, "{} bytes of requests wait", bytes_waiting_);
  }
  if (!frame) {
    release_stream(stream);
    return call.complete(std::move(frame).error());
  }
  call.stream_ = stream;
  pending_.emplace(stream, Pending{.call = &call});
  enqueue(stream, *std::move(frame));
}

void Connection::abandon(Call& call) {
  const auto found = pending_.find(call.stream_);
  ASSERT(found != pending_.end() && found->second.call == &call);
  if (call.sent_) {
    found->second.call = nullptr;
    ++answers_owed_;
  } else {
    const auto waits = std::ranges::find(waiting_, call.stream_, &Waiting::stream);
    ASSERT(waits != waiting_.end());
    bytes_waiting_ -= waits->frame.size();
    waiting_.erase(waits);
    pending_.erase(found);
    release_stream(call.stream_);
  }
  call.complete(Error(Errc::cancelled));
  if (answers_owed_ > options_.answers_owed_max) {
    break_off(Error(Errc::connection_lost, "the server owes {} answers", answers_owed_));
  }
}

std::int16_t Connection::take_stream() {
  if (free_streams_.empty()) return next_stream_++;
  const std::int16_t stream = free_streams_.back();
  free_streams_.pop_back();
  return stream;
}

void Connection::release_stream(std::int16_t stream) {
  free_streams_.push_back(stream);
}

// ---- Writing ----

void Connection::enqueue(std::int16_t stream, Bytes frame) {
  bytes_waiting_ += frame.size();
  waiting_.push_back({.stream = stream, .frame = std::move(frame)});
  if (!work_.empty()) work_.wake_one();
}

std::vector<Bytes> Connection::take_waiting() {
  std::vector<Bytes> frames;
  std::size_t size = 0;
  while (!waiting_.empty() && size < kWriteSize && frames.size() < runtime::Stream::kPiecesMax) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Pending& pending = pending_.at(next.stream);
    pending.sent = true;
    if (pending.call != nullptr) pending.call->sent_ = true;
    size += next.frame.size();
    frames.push_back(std::move(next.frame));
  }
  return frames;
}

Task<void> Connection::write_requests() {
  while (!closed_by_) {
    const std::vector<Bytes> frames = take_waiting();
    if (frames.empty()) {
      std::ignore = co_await work_.wait({.stop = stopping_.token()});
      continue;
    }
    const std::vector<base::ByteView> views(frames.begin(), frames.end());
    const auto until = Until::after(runtime_, options_.write_timeout, stopping_.token());
    const auto written = co_await stream_->write(views, until);
    if (closed_by_) co_return;
    if (!written) co_return break_off(written.error());
    for (const Bytes& frame : frames) bytes_waiting_ -= frame.size();
  }
}

// ---- Reading ----

Task<void> Connection::read_responses() {
  for (;;) {
    auto taken = take_frames();
    if (!taken) co_return break_off(std::move(taken).error());
    if (closed_by_) co_return;
    const Until until{.deadline = silent_until(), .stop = stopping_.token()};
    auto got = co_await stream_->read(reader_.room(), until);
    if (closed_by_) co_return;
    if (got.failed_with(Errc::timeout)) {
      auto silence = on_silence();
      if (!silence) co_return break_off(std::move(silence).error());
      continue;
    }
    if (!got) co_return break_off(std::move(got).error());
    if (*got == 0) co_return break_off(Error(Errc::connection_lost, "the server hung up"));
    reader_.commit(*got);
    heard_at_ = runtime_.clock.now();
    heartbeat_at_.reset();
  }
}

Result<void> Connection::take_frames() {
  for (;;) {
    const auto step = reader_.next();
    if (std::holds_alternative<FrameReader::NeedBytes>(step)) return {};
    if (const auto* refusal = std::get_if<FrameRefusal>(&step)) TRY_VOID(on_refusal(*refusal));
    if (const auto* frame = std::get_if<Frame>(&step)) TRY_VOID(on_frame(*frame));
    if (closed_by_) return {};
  }
}

Result<void> Connection::on_frame(const Frame& frame) {
  if (frame.header.version != cql::protocol::kVersion) {
    return Error(Errc::corrupt, "an answer by version {}, asked by version {}",
                 frame.header.version, cql::protocol::kVersion);
  }
  if (frame.header.stream == cql::protocol::kEventStream) return on_event(frame);
  TRY(Call * call, take_pending(frame.header.stream));
  if (call != nullptr) call->complete(decode(frame));
  return {};
}

Result<void> Connection::on_refusal(const FrameRefusal& refusal) {
  Error problem(Errc::corrupt, refusal.message);
  if (refusal.fatal) return problem;
  TRY(Call * call, take_pending(refusal.stream));
  if (call != nullptr) call->complete(std::move(problem));
  return {};
}

Result<void> Connection::on_event(const Frame& frame) {
  TRY(const DecodedResponse decoded, decode(frame));
  const auto* event = std::get_if<cql::protocol::Event>(&decoded.message);
  if (event == nullptr) {
    return Error(Errc::corrupt, "{} came as an event", name_of(frame.header.opcode));
  }
  if (on_event_) on_event_(*event);
  return {};
}

Result<DecodedResponse> Connection::decode(const Frame& frame) const {
  TRY(const Bytes body, plain_body(frame, compression_, options_.response_size_max));
  return decode_response(frame.header, body);
}

Result<Connection::Call*> Connection::take_pending(std::int16_t stream) {
  const auto found = pending_.find(stream);
  if (found == pending_.end() || !found->second.sent) {
    return Error(Errc::corrupt, "an answer on stream {}, where nothing was asked", stream);
  }
  Call* call = found->second.call;
  pending_.erase(found);
  release_stream(stream);
  if (heartbeat_stream_ == stream) {
    heartbeat_stream_.reset();
  } else if (call == nullptr) {
    --answers_owed_;
  }
  return call;
}

// ---- Silence ----

MonotonicTime Connection::silent_until() const {
  if (heartbeat_at_) return *heartbeat_at_ + options_.heartbeat_timeout;
  return heard_at_ + options_.heartbeat_interval;
}

Result<void> Connection::on_silence() {
  if (heartbeat_at_) return Error(Errc::connection_lost, "the server was silent for too long");
  heartbeat_at_ = runtime_.clock.now();
  if (heartbeat_stream_) return {};  // an older one is still unanswered, though other answers came
  const std::int16_t stream = take_stream();
  Request request = request_of(cql::protocol::OptionsRequest());
  request.stream = stream;
  TRY(Bytes frame, encode(request));
  pending_.emplace(stream, Pending());
  heartbeat_stream_ = stream;
  enqueue(stream, std::move(frame));
  return {};
}

}  // namespace helenus::client
