// A server that does what the text of a query says, honest or not, and clients of it, each on a
// machine of its own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "client/connection.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::client::testing {

using base::Bytes;
using base::Errc;
using cql::protocol::ErrorCode;
using cql::protocol::ErrorMessage;
using runtime::Address;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;
namespace protocol = cql::protocol;

inline constexpr std::uint16_t kPort = 9042;

inline Bytes frame_of(const protocol::Response& response, std::int16_t stream,
                      protocol::Compression compression = protocol::Compression::none) {
  base::Buffer out;
  encode_frame(response, stream, compression, out);
  return std::move(out).freeze();
}

// What a server answers a request with, and what it has seen. Lives as long as the test: lives of
// the server come and go.
class Script {
 public:
  using Answer = std::function<std::optional<Bytes>(const protocol::Request&)>;

  // "echo X" answers X (as if it were USE X), "hold X" does when "release" comes, the last first,
  // "silent" is never answered, "hang up" ends the connection; whatever `answers` knows goes first.
  std::map<std::string, Answer> answers;
  // What STARTUP is answered with.
  protocol::Response startup = protocol::Response::of(protocol::ReadyMessage());
  protocol::Compression compression = protocol::Compression::none;

  std::vector<std::string> texts;  // of queries, in their order
  std::vector<std::string> prepared;
  std::vector<std::int16_t> streams;
  std::size_t compressed_requests = 0;
  std::size_t connections = 0;
};

class ScriptedServer {
 public:
  ScriptedServer(Runtime& runtime, Script& script)
      : runtime_(runtime), script_(script), tasks_(runtime) {}

  Task<void> run(Address address, StopToken stop) {
    auto listening = runtime_.transport.listen(address);
    CO_ASSERT_OK(listening);
    const auto listener = *std::move(listening);
    for (;;) {
      auto accepted = co_await listener->accept({.stop = stop});
      if (!accepted) break;
      ++script_.connections;
      tasks_.spawn(serve(*std::move(accepted), stop));
    }
    co_await tasks_.join();
  }

 private:
  struct Held {
    std::int16_t stream;
    std::string text;
  };

  Task<void> serve(std::unique_ptr<runtime::Stream> stream, StopToken stop) {
    protocol::FrameReader reader(protocol::Direction::request, protocol::kBodySizeCap);
    protocol::Compression compression = protocol::Compression::none;
    std::vector<Held> held;
    bool goes_on = true;
    while (goes_on) {
      auto step = reader.next();
      if (const auto* frame = std::get_if<protocol::Frame>(&step)) {
        if (frame->header.has(protocol::kFlagCompressed)) ++script_.compressed_requests;
        auto body = protocol::plain_body(*frame, compression, protocol::kBodySizeCap);
        EXPECT_TRUE(body.has_value());
        const auto request = protocol::decode_request(frame->header, *std::move(body));
        EXPECT_TRUE(request.has_value());
        const auto answer = answer_of(*request, compression, held);
        goes_on = answer.has_value();
        if (answer && !answer->empty()) {
          const auto sent = co_await stream->write(*answer, Until::after(runtime_, 1h, stop));
          goes_on = sent.has_value();
        }
      } else if (std::holds_alternative<protocol::FrameReader::NeedBytes>(step)) {
        const auto got = co_await stream->read(reader.room(), {.stop = stop});
        goes_on = got && *got > 0;
        if (goes_on) reader.commit(*got);
      }
    }
  }

  // Nothing ends the connection.
  std::optional<Bytes> answer_of(const protocol::Request& request,
                                 protocol::Compression& compression, std::vector<Held>& held) {
    using protocol::Response;
    script_.streams.push_back(request.stream);
    const auto reply = [&](const protocol::ResponseMessage& message) {
      return frame_of(Response::of(message), request.stream, compression);
    };
    if (std::holds_alternative<protocol::OptionsRequest>(request.message)) {
      protocol::SupportedMessage supported{.options = {{"CQL_VERSION", {"3.4.6"}}}};
      if (script_.compression != protocol::Compression::none) {
        supported.options.push_back({"COMPRESSION", {"snappy", "lz4"}});
      }
      return reply(supported);
    }
    if (const auto* startup = std::get_if<protocol::StartupRequest>(&request.message)) {
      const auto wanted = startup->find(protocol::kOptionCompression);
      compression = protocol::compression_named(wanted.value_or("")).value_or(compression);
      return frame_of(script_.startup, request.stream);
    }
    if (std::holds_alternative<protocol::RegisterRequest>(request.message)) {
      return reply(protocol::ReadyMessage());
    }
    if (const auto* prepare = std::get_if<protocol::PrepareRequest>(&request.message)) {
      script_.prepared.emplace_back(prepare->text);
      const auto id = protocol::prepared_id("", prepare->text);
      known_.emplace(base::as_text(id));
      return reply(protocol::PreparedResult{
          .id = Bytes::copy_of(id), .markers = {}, .partition_key_markers = {}, .columns = {}});
    }
    if (const auto* execute = std::get_if<protocol::ExecuteRequest>(&request.message)) {
      return reply(executed({execute->id}));
    }
    if (const auto* batch = std::get_if<protocol::BatchRequest>(&request.message)) {
      std::vector<base::ByteView> ids;
      for (const auto& part : batch->statements) {
        if (part.prepared) ids.push_back(part.id);
      }
      return reply(executed(ids));
    }
    return answer_query(request, compression, held);
  }

  protocol::ResponseMessage executed(const std::vector<base::ByteView>& ids) const {
    for (const base::ByteView id : ids) {
      if (known_.contains(std::string(base::as_text(id)))) continue;
      return ErrorMessage(protocol::UnpreparedDetails{.id = Bytes::copy_of(id)}, "who?");
    }
    return protocol::VoidResult();
  }

  std::optional<Bytes> answer_query(const protocol::Request& request,
                                    protocol::Compression compression, std::vector<Held>& held) {
    const std::string text(std::get<protocol::QueryRequest>(request.message).text);
    script_.texts.push_back(text);
    if (const auto found = script_.answers.find(text); found != script_.answers.end()) {
      return found->second(request);
    }
    const auto echo = [&](std::int16_t stream, const std::string& said) {
      return frame_of(protocol::Response::of(protocol::SetKeyspaceResult{
                          .keyspace = said.substr(said.find(' ') + 1, protocol::kShortSizeMax)}),
                      stream, compression);
    };
    if (text == "hang up") return std::nullopt;
    if (text == "silent") return Bytes();
    if (text.starts_with("hold ")) {
      held.push_back({.stream = request.stream, .text = text});
      return Bytes();
    }
    if (text != "release") return echo(request.stream, text);
    base::Buffer all;
    for (const Held& one : std::views::reverse(held)) all.append(echo(one.stream, one.text).view());
    held.clear();
    all.append(echo(request.stream, text).view());
    return std::move(all).freeze();
  }

  Runtime& runtime_;
  Script& script_;
  std::set<std::string> known_;
  runtime::TaskGroup tasks_;
};

// Servers s0, s1, ... and a client.
class ScriptedServers : public ::testing::Test {
 protected:
  using Story = std::function<Task<void>(Runtime&)>;

  explicit ScriptedServers(std::size_t count = 1)
      : client_machine_(world_.add_machine({.name = "client"}, {})), scripts_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      servers_.push_back(
          &world_.add_machine({.name = fmt::format("s{}", i)},
                              sim::FunctionProcess::factory([this, i](Runtime& rt, StopToken stop) {
                                return serve(rt, scripts_[i], address(i), std::move(stop));
                              })));
      servers_.back()->start();
    }
    world_.run_for(1s);
  }

  // Runs the story on the client's machine to its end.
  void tell(Story story) {
    client_machine_.set_process(sim::FunctionProcess::factory(
        [story = std::move(story)](Runtime& rt, StopToken) { return story(rt); }));
    client_machine_.start();
    EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1h)) << "waits for ever";
  }
  Address address(std::size_t i = 0) const { return servers_[i]->address(kPort); }
  Script& script(std::size_t i = 0) { return scripts_[i]; }
  sim::Machine& server(std::size_t i = 0) { return *servers_[i]; }

  sim::World world_{1};
  sim::Machine& client_machine_;

 private:
  static Task<void> serve(Runtime& rt, Script& script, Address address, StopToken stop) {
    ScriptedServer server(rt, script);
    co_await server.run(address, std::move(stop));
  }

  std::vector<Script> scripts_;
  std::vector<sim::Machine*> servers_;
};

// What a statement came to: the text echoed, or the error.
inline std::string told(const RequestResult<ResultSet>& result) {
  if (!result) return result.error().to_string();
  return result->keyspace().value_or("done");
}

}  // namespace helenus::client::testing
