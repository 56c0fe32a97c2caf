// A Server on one simulated machine with a handler that does what the text of a query says, and its
// clients on another.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "cql/protocol/rows.h"
#include "cql/protocol/segment.h"
#include "cql/server/server.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::cql {

using base::Bytes;
using base::Errc;
using base::Result;
using protocol::ErrorCode;
using protocol::ErrorMessage;
using protocol::Opcode;
using runtime::Address;
using runtime::Duration;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Stream;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

inline constexpr std::uint16_t kTestPort = 9042;

// "echo X" answers X, "at once X" the same without a task, "wait N X" answers X after N
// milliseconds, "rows N" answers a cell of N bytes, "use K" changes the keyspace, "fail" is an
// invalid query, "forever" ends when stopped, "hold X" answers X once the gate is open and "open"
// opens it. An answer is a SetKeyspaceResult. PREPARE answers its id, EXECUTE echoes the id it was
// given, BATCH answers void.
class ScriptedHandler final : public RequestHandler {
 public:
  explicit ScriptedHandler(Runtime& runtime) : runtime_(runtime), gate_(runtime) {}

  runtime::MaybeTask<protocol::Response> handle(protocol::Request request, Session& session,
                                                StopToken stop) override {
    ++handled_;
    const auto* query = std::get_if<protocol::QueryRequest>(&request.message);
    if (query != nullptr && query->text.starts_with("at once ")) {
      return echo(std::string(query->text.substr(8)));
    }
    return answer(std::move(request), session, std::move(stop));
  }

  Task<protocol::Response> answer(protocol::Request request, Session& session, StopToken stop) {
    if (const auto* query = std::get_if<protocol::QueryRequest>(&request.message)) {
      protocol::Response response = co_await run(std::string(query->text), session, stop);
      for (const auto& entry : request.payload) {
        response.prefix.payload.push_back(
            {.key = std::string(entry.key), .value = Bytes::copy_of(*entry.value)});
      }
      co_return response;
    }
    if (const auto* prepare = std::get_if<protocol::PrepareRequest>(&request.message)) {
      const auto id = protocol::prepared_id(session.keyspace, prepare->text);
      co_return protocol::Response::of(protocol::PreparedResult{
          .id = Bytes::copy_of(id), .markers = {}, .partition_key_markers = {}, .columns = {}});
    }
    if (const auto* execute = std::get_if<protocol::ExecuteRequest>(&request.message)) {
      co_return protocol::Response::of(
          protocol::SetKeyspaceResult{.keyspace = base::to_hex(execute->id)});
    }
    co_return protocol::Response::of(protocol::VoidResult());
  }

  bool may_change_data(const protocol::Request& request) override {
    const auto* query = std::get_if<protocol::QueryRequest>(&request.message);
    return query == nullptr || !query->text.starts_with("rows");
  }

  std::size_t handled() const { return handled_; }
  std::size_t stopped() const { return stopped_; }

 private:
  static protocol::Response echo(std::string text) {
    return protocol::Response::of(protocol::SetKeyspaceResult{.keyspace = std::move(text)});
  }

  Task<protocol::Response> run(std::string text, Session& session, StopToken stop) {
    const std::size_t blank = text.find(' ');
    const std::string verb = text.substr(0, blank);
    std::string rest = blank == std::string::npos ? "" : text.substr(blank + 1);
    if (verb == "wait") {
      const std::size_t second = rest.find(' ');
      const auto slept = co_await runtime::sleep_for(
          runtime_, std::chrono::milliseconds(std::stoi(rest.substr(0, second))), stop);
      if (!slept) ++stopped_;
      rest = rest.substr(second + 1);
    } else if (verb == "rows") {
      co_return rows(std::stoul(rest));
    } else if (verb == "use") {
      session.keyspace = rest;
    } else if (verb == "fail") {
      co_return protocol::Response::error(ErrorCode::invalid, "as asked");
    } else if (verb == "forever") {
      runtime::Event never(runtime_);
      const auto waited = co_await never.wait({.stop = stop});
      if (!waited) ++stopped_;
    } else if (verb == "hold") {
      const auto waited = co_await gate_.wait({.stop = stop});
      if (!waited) ++stopped_;
    } else if (verb == "open") {
      gate_.set();
    }
    co_return echo(std::move(rest));
  }

  static protocol::Response rows(std::size_t size) {
    const std::vector<protocol::ColumnSpec> columns = {
        {.keyspace = "k",
         .table = "t",
         .name = "v",
         .type = model::DataType(model::TypeKind::blob)}};
    const protocol::EncodedColumns encoded(columns);
    protocol::RowsWriter writer(encoded, false);
    writer.cell(base::as_bytes(std::string(size, 'x')));
    writer.end_row();
    return std::move(writer).finish(std::nullopt);
  }

  Runtime& runtime_;
  runtime::Event gate_;
  std::size_t handled_ = 0;
  std::size_t stopped_ = 0;
};

// A client that speaks frames. Every wait has a deadline.
class TestClient {
 public:
  explicit TestClient(Runtime& runtime) : runtime_(runtime) {}

  Task<bool> connect(Address server) {
    auto stream = co_await runtime_.transport.connect(server, Until::after(runtime_, 5s));
    EXPECT_TRUE(stream.has_value());
    if (stream) stream_ = *std::move(stream);
    co_return stream_ != nullptr;
  }

  // Connects and starts up.
  Task<bool> open(Address server, std::string compression = "") {
    const bool connected = co_await connect(server);
    if (!connected) co_return false;
    protocol::StartupRequest startup;
    startup.options = {{"CQL_VERSION", "3.0.0"}, {"DRIVER_NAME", "a test"}};
    if (!compression.empty()) startup.options.emplace_back("COMPRESSION", compression);
    const auto answer = co_await ask(0, startup);
    const bool ready = answer && std::holds_alternative<protocol::ReadyMessage>(answer->message);
    EXPECT_TRUE(ready);
    if (!compression.empty()) compression_ = *protocol::compression_named(compression);
    co_return ready;
  }

  Task<bool> send(Bytes bytes) {
    const auto sent = co_await stream_->write(bytes, Until::after(runtime_, 60s));
    co_return sent.has_value();
  }

  static Bytes frame(std::int16_t stream, protocol::RequestMessage message) {
    protocol::Request request;
    request.stream = stream;
    request.message = std::move(message);
    base::Buffer out;
    protocol::encode_request(request, out);
    return std::move(out).freeze();
  }
  static Bytes query(std::int16_t stream, std::string_view text) {
    return frame(stream, protocol::QueryRequest{.text = text, .parameters = {}});
  }

  // From now on, frames of version 5 travel in segments.
  void begin_segments(protocol::Compression compression) { segments_.emplace(compression); }
  static Bytes frame_of_version_five(std::int16_t stream, protocol::RequestMessage message) {
    protocol::Request request;
    request.stream = stream;
    request.version = protocol::kVersionOfSegments;
    request.message = std::move(message);
    base::Buffer out;
    protocol::encode_request(request, out);
    return std::move(out).freeze();
  }

  // The next response. Errors: closed at the end of the stream, corrupt, those of reading.
  Task<Result<protocol::DecodedResponse>> receive(Duration wait = 5s) {
    const Until until = Until::after(runtime_, wait);
    for (;;) {
      auto step = reader_.next();
      if (auto* frame = std::get_if<protocol::Frame>(&step)) {
        CO_TRY(const Bytes body,
               protocol::plain_body(*frame, compression_, protocol::kBodySizeCap));
        co_return protocol::decode_response(frame->header, body);
      }
      if (auto* refusal = std::get_if<protocol::FrameRefusal>(&step)) {
        co_return base::Error(Errc::corrupt, refusal->message);
      }
      if (!std::holds_alternative<protocol::FrameReader::NeedBytes>(step)) continue;
      if (segments_) {
        CO_TRY_VOID(co_await read_segment(until));
        continue;
      }
      const auto got = co_await stream_->read(reader_.room(), until);
      if (!got) co_return got.error();
      if (*got == 0) co_return base::Error(Errc::closed);
      reader_.commit(*got);
    }
  }

  Task<Result<protocol::DecodedResponse>> ask(std::int16_t stream,
                                              protocol::RequestMessage message) {
    const bool sent = co_await send(frame(stream, std::move(message)));
    if (!sent) co_return base::Error(Errc::connection_lost);
    co_return co_await receive();
  }
  // What a query is answered with: a text, or "error CODE".
  Task<std::string> text_of(std::int16_t stream, std::string text) {
    const bool sent = co_await send(query(stream, text));
    if (!sent) co_return "not sent";
    const auto answer = co_await receive();
    co_return describe(answer);
  }

  static std::string describe(const Result<protocol::DecodedResponse>& answer) {
    if (!answer) return "[" + answer.error().to_string() + "]";
    if (const auto* error = std::get_if<ErrorMessage>(&answer->message)) {
      return fmt::format("error {:04x}", static_cast<int>(error->code));
    }
    if (const auto* text = std::get_if<protocol::SetKeyspaceResult>(&answer->message)) {
      return text->keyspace;
    }
    return std::string(name_of(opcode_of(answer->message)));
  }

  Stream& stream() { return *stream_; }
  void leave() { stream_.reset(); }

 private:
  Task<Result<void>> read_segment(Until until) {
    while (payload_.empty()) {
      CO_TRY(auto payload, segments_->next());
      if (payload) {
        payload_ = *std::move(payload);
        continue;
      }
      const auto got = co_await stream_->read(segments_->room(), until);
      if (!got) co_return got.error();
      if (*got == 0) co_return base::Error(Errc::closed);
      segments_->commit(*got);
    }
    payload_ = payload_.slice(reader_.feed(payload_.view()));
    co_return Result<void>();
  }

  Runtime& runtime_;
  std::unique_ptr<Stream> stream_;
  protocol::FrameReader reader_{protocol::Direction::response, protocol::kBodySizeCap};
  protocol::Compression compression_ = protocol::Compression::none;
  std::optional<protocol::SegmentReader> segments_;
  Bytes payload_;
};

class ServerTest : public testing::Test {
 protected:
  using Story = std::function<Task<void>(Runtime&, Address server)>;

  ServerTest()
      : server_machine_(world_.add_machine({.name = "server"}, {})),
        client_machine_(world_.add_machine({.name = "client"}, {})) {}

  // With the options as they are then.
  void start_server() {
    server_machine_.set_process(sim::FunctionProcess::factory(
        [this](Runtime& rt, StopToken stop) { return serve(rt, std::move(stop)); }));
    server_machine_.start();
  }
  // Runs the story on the client's machine to its end, with a server unless there is one.
  void tell(const Story& story) {
    if (!server_machine_.is_up()) start_server();
    begin(story);
    EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1h)) << "waits for ever";
  }
  void begin(Story story) {
    client_machine_.set_process(sim::FunctionProcess::factory(
        [story = std::move(story), address = server_machine_.address(kTestPort)](
            Runtime& rt, StopToken) { return story(rt, address); }));
    client_machine_.start();
  }

  // Requires: the server is up.
  const ServerStatistics& statistics() const { return server_->statistics(); }
  std::uint64_t errors(ErrorCode code) const {
    const auto found = statistics().errors.find(code);
    return found == statistics().errors.end() ? 0 : found->second;
  }

  sim::World world_{1};
  sim::Machine& server_machine_;
  sim::Machine& client_machine_;
  ServerOptions options_;
  Server* server_ = nullptr;
  ScriptedHandler* handler_ = nullptr;

 private:
  Task<void> serve(Runtime& rt, StopToken stop) {
    ScriptedHandler handler(rt);
    Server server(rt, handler, options_);
    handler_ = &handler;
    server_ = &server;
    CO_ASSERT_OK(server.start(server_machine_.address(kTestPort)));
    runtime::Event never(rt);
    const auto stopped = co_await never.wait({.stop = stop});
    EXPECT_TRUE(stopped.failed_with(Errc::cancelled));
    co_await server.stop();
    EXPECT_EQ(server.statistics().connections_current, 0U);
    EXPECT_EQ(server.statistics().requests_current, 0U);
    EXPECT_EQ(server.admission().request_bytes(), 0U);
    EXPECT_EQ(server.admission().response_bytes(), 0U);
  }
};

}  // namespace helenus::cql
