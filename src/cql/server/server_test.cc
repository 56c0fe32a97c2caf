// What clients see of a Server: handshake, requests side by side, events, the end.
#include "cql/server/server.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cql/server/server_test_support.h"

namespace helenus::cql {
namespace {

using protocol::StartupRequest;

std::string message_of(const Result<protocol::DecodedResponse>& answer) {
  if (!answer) return answer.error().to_string();
  const auto* error = std::get_if<ErrorMessage>(&answer->message);
  return error == nullptr ? "no error" : error->message;
}

TEST_F(ServerTest, ShakesHandsAndServes) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool connected = co_await client.connect(server);
    CO_ASSERT_TRUE(connected);
    const auto options = co_await client.ask(5, protocol::OptionsRequest());
    CO_ASSERT_OK(options);
    EXPECT_EQ(options->stream, 5);
    EXPECT_EQ(std::get<protocol::SupportedMessage>(options->message),
              (protocol::SupportedMessage{.options = {{"CQL_VERSION", {"3.4.6"}},
                                                      {"COMPRESSION", {"lz4"}},
                                                      {"PROTOCOL_VERSIONS", {"4/v4", "5/v5"}}}}));
    const auto ready =
        co_await client.ask(6, StartupRequest{.options = {{"CQL_VERSION", "3.0.0"}}});
    EXPECT_EQ(TestClient::describe(ready), "READY");
    EXPECT_EQ(co_await client.text_of(7, "echo hello"), "hello");
    const auto beat = co_await client.ask(8, protocol::OptionsRequest());
    EXPECT_EQ(TestClient::describe(beat), "SUPPORTED");
  });
}

TEST_F(ServerTest, GivesEveryKindOfRequestToTheHandler) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const auto prepared = co_await client.ask(1, protocol::PrepareRequest{.text = "SELECT"});
    CO_ASSERT_OK(prepared);
    const auto id = std::get<protocol::PreparedResult>(prepared->message).id;
    const auto executed =
        co_await client.ask(2, protocol::ExecuteRequest{.id = id, .parameters = {}});
    EXPECT_EQ(TestClient::describe(executed), base::to_hex(id));
    const auto batch = co_await client.ask(3, protocol::BatchRequest());
    EXPECT_EQ(TestClient::describe(batch), "RESULT");
    EXPECT_EQ(co_await client.text_of(4, "fail"), "error 2200");
    EXPECT_EQ(co_await client.text_of(5, "use music"), "music");
  });
  const auto answers = [this](protocol::ResultKind kind) {
    return statistics().answer_ns[static_cast<std::size_t>(kind)].count();
  };
  EXPECT_EQ(answers(protocol::ResultKind::prepared), 1U);
  EXPECT_EQ(answers(protocol::ResultKind::nothing), 1U);
  EXPECT_EQ(statistics().answer_ns[ServerStatistics::kErrors].count(), 1U);
  EXPECT_EQ(statistics().requests[static_cast<std::size_t>(Opcode::query)], 2U);
  EXPECT_EQ(statistics().requests[static_cast<std::size_t>(Opcode::execute)], 1U);
  EXPECT_EQ(errors(ErrorCode::invalid), 1U);
}

TEST_F(ServerTest, CarriesThePayloadBothWays) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    protocol::Request request;
    request.stream = 1;
    request.payload = {{.key = "helenus-context", .value = base::as_bytes("abc")}};
    request.message = protocol::QueryRequest{.text = "echo x", .parameters = {}};
    base::Buffer out;
    protocol::encode_request(request, out);
    const bool sent = co_await client.send(std::move(out).freeze());
    CO_ASSERT_TRUE(sent);
    const auto answer = co_await client.receive();
    CO_ASSERT_OK(answer);
    EXPECT_EQ(answer->prefix.payload.at(0).key, "helenus-context");
    EXPECT_EQ(answer->prefix.payload.at(0).value->text(), "abc");
  });
}

TEST_F(ServerTest, RefusesWhatComesOutOfTurnAndGoesOn) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool connected = co_await client.connect(server);
    CO_ASSERT_TRUE(connected);
    const auto early = co_await client.ask(1, protocol::PrepareRequest{.text = "x"});
    EXPECT_EQ(message_of(early), "Unexpected message PREPARE, expecting STARTUP or OPTIONS");
    const StartupRequest startup{.options = {{"cql_version", "3.4.5"}}};
    const auto ready = co_await client.ask(2, startup);
    EXPECT_EQ(TestClient::describe(ready), "READY");
    const auto twice = co_await client.ask(3, startup);
    EXPECT_EQ(message_of(twice),
              "Unexpected message STARTUP, the connection is already initialized");
    const auto login = co_await client.ask(4, protocol::AuthResponseRequest());
    EXPECT_TRUE(message_of(login).starts_with("Unexpected message AUTH_RESPONSE"));
    EXPECT_EQ(co_await client.text_of(5, "echo still here"), "still here");
  });
  EXPECT_EQ(errors(ErrorCode::protocol_error), 3U);
}

TEST_F(ServerTest, RefusesAStartupItCannotServe) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool connected = co_await client.connect(server);
    CO_ASSERT_TRUE(connected);
    const auto none = co_await client.ask(1, StartupRequest());
    EXPECT_EQ(message_of(none), "Missing value CQL_VERSION in STARTUP message");
    const auto old = co_await client.ask(2, StartupRequest{.options = {{"CQL_VERSION", "2.0.0"}}});
    EXPECT_TRUE(message_of(old).starts_with("CQL version 2.0.0 is not supported"));
    const auto odd = co_await client.ask(3, StartupRequest{.options = {{"CQL_VERSION", "x"}}});
    EXPECT_TRUE(message_of(odd).starts_with("CQL version x is not supported"));
    const auto snappy = co_await client.ask(
        4, StartupRequest{.options = {{"CQL_VERSION", "3.0.0"}, {"COMPRESSION", "snappy"}}});
    EXPECT_EQ(message_of(snappy), "Unknown compression algorithm: snappy");
    const auto good = co_await client.ask(5, StartupRequest{.options = {{"CQL_VERSION", "4.0"}}});
    EXPECT_EQ(TestClient::describe(good), "READY");
  });
}

TEST_F(ServerTest, TellsEveryOtherVersionWhichOneItSpeaksAndCloses) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    for (const unsigned version : {6U, 65U, 66U, 3U, 0x86U, 0x47U}) {
      TestClient client(rt);
      const bool connected = co_await client.connect(server);
      CO_ASSERT_TRUE(connected);
      base::Buffer hello;
      hello.push_back(static_cast<std::byte>(version));
      hello.append(std::string_view("\0\0\x09\x05\0\0\0\0 and more of it", 24));
      const bool sent = co_await client.send(std::move(hello).freeze());
      CO_ASSERT_TRUE(sent);
      const auto refusal = co_await client.receive();
      CO_ASSERT_OK(refusal);
      EXPECT_EQ(refusal->stream, 9);
      EXPECT_EQ(message_of(refusal),
                fmt::format("Invalid or unsupported protocol version ({}); supported versions are "
                            "(4/v4, 5/v5)",
                            version & 0x7fU));
      const auto end = co_await client.receive();
      EXPECT_TRUE(end.failed_with(Errc::closed)) << message_of(end);
    }
  });
}

TEST_F(ServerTest, AnswersInTheOrderOfCompletion) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    all.append(TestClient::query(1, "wait 300 slow"));
    all.append(TestClient::query(2, "wait 200 slower"));
    all.append(TestClient::query(3, "wait 100 quick"));
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    for (const std::int16_t expected : std::vector<std::int16_t>{3, 2, 1}) {
      const auto answer = co_await client.receive();
      CO_ASSERT_OK(answer);
      EXPECT_EQ(answer->stream, expected);
    }
  });
  base::Histogram took;
  for (const base::Histogram& of_kind : statistics().answer_ns) took.merge(of_kind);
  EXPECT_EQ(took.count(), 3U);
  EXPECT_GE(took.min(), 100'000'000U);
  EXPECT_GE(took.max(), 300'000'000U);
  EXPECT_LT(took.max(), 400'000'000U);
}

// Sends `count` queries at once and checks that each is answered, once.
Task<void> pipeline(Runtime& rt, Address server, int count, std::string compression) {
  TestClient client(rt);
  const bool open = co_await client.open(server, compression);
  CO_ASSERT_TRUE(open);
  base::Buffer all;
  for (int number = 0; number < count; ++number) {
    all.append(TestClient::query(static_cast<std::int16_t>(number),
                                 fmt::format("wait {} n{}", number * 7 % 50, number)));
  }
  const bool sent = co_await client.send(std::move(all).freeze());
  CO_ASSERT_TRUE(sent);
  std::set<std::int16_t> answered;
  for (int number = 0; number < count; ++number) {
    const auto answer = co_await client.receive(60s);
    CO_ASSERT_OK(answer);
    EXPECT_EQ(TestClient::describe(answer), fmt::format("n{}", answer->stream));
    answered.insert(answer->stream);
  }
  EXPECT_EQ(answered.size(), static_cast<std::size_t>(count));
}

TEST_F(ServerTest, ServesPipelinedRequests) {
  tell([](Runtime& rt, Address server) { return pipeline(rt, server, 5000, ""); });
}

TEST_F(ServerTest, ServesPipelinedRequestsPastItsLimitByReadingLater) {
  options_.limits.connection.requests_max = 3;
  tell([](Runtime& rt, Address server) { return pipeline(rt, server, 200, ""); });
  EXPECT_EQ(statistics().errors_total(), 0U);
}

TEST_F(ServerTest, TakesFramesByteByByte) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const Bytes frame = TestClient::query(1, "echo slowly");
    for (std::size_t at = 0; at < frame.size(); ++at) {
      const bool sent = co_await client.send(frame.slice(at, 1));
      CO_ASSERT_TRUE(sent);
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    }
    const auto answer = co_await client.receive();
    EXPECT_EQ(TestClient::describe(answer), "slowly");
  });
}

TEST_F(ServerTest, CompressesWhatIsLarge) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server, "LZ4");
    CO_ASSERT_TRUE(open);
    // A request that is compressed, and an answer.
    base::Buffer request;
    request.append(TestClient::query(1, "echo " + std::string(5000, 'x')));
    const std::size_t plain_size = request.size();
    protocol::compress_frame(request, 0);
    EXPECT_LT(request.size(), plain_size);
    const bool sent = co_await client.send(std::move(request).freeze());
    CO_ASSERT_TRUE(sent);
    const auto echoed = co_await client.receive();
    EXPECT_EQ(TestClient::describe(echoed), std::string(5000, 'x'));
    const bool asked = co_await client.send(TestClient::query(2, "rows 1000000"));
    CO_ASSERT_TRUE(asked);
    const auto rows = co_await client.receive();
    CO_ASSERT_OK(rows);
    EXPECT_GT(std::get<protocol::RowsResult>(rows->message).rows.size(), 1'000'000U);
  });
  EXPECT_LT(statistics().bytes_written, 20'000U);
}

TEST_F(ServerTest, RefusesCompressionNobodyAgreedUpon) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer request;
    request.append(TestClient::query(1, "echo " + std::string(5000, 'x')));
    protocol::compress_frame(request, 0);
    const bool sent = co_await client.send(std::move(request).freeze());
    CO_ASSERT_TRUE(sent);
    const auto refused = co_await client.receive();
    EXPECT_EQ(TestClient::describe(refused), "error 000a");
    EXPECT_EQ(co_await client.text_of(2, "echo on"), "on");
  });
}

TEST_F(ServerTest, SendsLargeAnswersWhole) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    for (const std::int16_t stream : std::vector<std::int16_t>{1, 2, 3}) {
      const bool sent = co_await client.send(TestClient::query(stream, "rows 3000000"));
      CO_ASSERT_TRUE(sent);
    }
    for (int count = 0; count < 3; ++count) {
      const auto rows = co_await client.receive(60s);
      CO_ASSERT_OK(rows);
      EXPECT_EQ(std::get<protocol::RowsResult>(rows->message).rows.size(), 3'000'004U);
    }
  });
}

TEST_F(ServerTest, SendsEventsToThoseWhoRegistered) {
  begin([](Runtime& rt, Address server) -> Task<void> {
    TestClient listener(rt);
    TestClient other(rt);
    const bool open = co_await listener.open(server);
    const bool open_other = co_await other.open(server);
    CO_ASSERT_TRUE(open && open_other);
    const auto registered = co_await listener.ask(
        1, protocol::RegisterRequest{.kinds = {protocol::EventKind::schema_change}});
    EXPECT_EQ(TestClient::describe(registered), "READY");
    const auto event = co_await listener.receive(60s);
    CO_ASSERT_OK(event);
    EXPECT_EQ(event->stream, protocol::kEventStream);
    const auto& change =
        std::get<protocol::SchemaChange>(std::get<protocol::Event>(event->message));
    EXPECT_EQ(change.keyspace, "music");
    const auto nothing = co_await other.receive(1s);
    EXPECT_TRUE(nothing.failed_with(Errc::timeout));
  });
  start_server();
  world_.run_for(10s);
  server_->broadcast(protocol::StatusChange{.kind = protocol::StatusChangeKind::up, .node = {}});
  server_->broadcast(protocol::SchemaChange{.kind = protocol::SchemaChangeKind::created,
                                            .target = protocol::SchemaTarget::keyspace,
                                            .keyspace = "music",
                                            .name = "",
                                            .argument_types = {}});
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1min));
  EXPECT_EQ(statistics().events, 1U);
}

TEST_F(ServerTest, ListsItsClients) {
  start_server();
  begin([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    EXPECT_EQ(co_await client.text_of(1, "use music"), "music");
    const bool sent = co_await client.send(TestClient::query(2, "forever"));
    CO_ASSERT_TRUE(sent);
    const auto nothing = co_await client.receive(60s);
    EXPECT_TRUE(nothing.failed_with(Errc::timeout));
  });
  world_.run_for(10s);
  const auto clients = server_->clients();
  ASSERT_EQ(clients.size(), 1U);
  EXPECT_EQ(clients[0].address.ip_text(), client_machine_.address().ip_text());
  EXPECT_EQ(clients[0].driver_name, "a test");
  EXPECT_EQ(clients[0].keyspace, "music");
  EXPECT_EQ(clients[0].compression, "");
  EXPECT_EQ(clients[0].requests, 3U);
  EXPECT_EQ(clients[0].requests_under_way, 1U);
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 2min));
  world_.run_for(options_.timeouts.half_closed_timeout + 1s);
  EXPECT_TRUE(server_->clients().empty());
  EXPECT_EQ(handler_->stopped(), 1U);
}

TEST_F(ServerTest, StoppingAnswersWhatIsUnderWay) {
  begin([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    all.append(TestClient::query(1, "wait 3000 late"));
    all.append(TestClient::query(2, "rows 2000000"));
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    const auto rows = co_await client.receive(60s);
    EXPECT_EQ(TestClient::describe(rows), "RESULT");
    const auto late = co_await client.receive(60s);
    EXPECT_EQ(TestClient::describe(late), "late");
    const auto end = co_await client.receive(60s);
    EXPECT_TRUE(end.failed_with(Errc::closed)) << TestClient::describe(end);
  });
  start_server();
  world_.run_for(1s);
  server_machine_.request_stop();
  EXPECT_TRUE(world_.run_until([&] { return server_machine_.exits() == 1; }, 8s));
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 10s));
}

// Connections in every state there is, kept until the end.
Task<void> crowd(Runtime& rt, Address server, int count) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int number = 0; number < count; ++number) {
    clients.push_back(std::make_unique<TestClient>(rt));
    if (number % 5 == 0) {
      const bool connected = co_await clients.back()->connect(server);
      CO_ASSERT_TRUE(connected);
      continue;
    }
    const bool open = co_await clients.back()->open(server);
    CO_ASSERT_TRUE(open);
    Bytes frame = TestClient::query(1, number % 5 == 1   ? "forever"
                                       : number % 5 == 2 ? "rows 5000000"
                                                         : "echo x");
    if (number % 5 == 3) frame = frame.slice(0, frame.size() - 2);
    const bool sent = co_await clients.back()->send(frame);
    CO_ASSERT_TRUE(sent);
  }
  runtime::Event never(rt);
  const auto waited = co_await never.wait(Until::forever());
  EXPECT_TRUE(waited.has_value());
}

TEST_F(ServerTest, StoppingEndsEveryConnection) {
  start_server();
  begin([](Runtime& rt, Address server) { return crowd(rt, server, 30); });
  world_.run_for(10s);
  EXPECT_EQ(statistics().connections_current, 30U);
  server_machine_.request_stop();
  EXPECT_TRUE(
      world_.run_until([&] { return server_machine_.exits() == 1; }, options_.drain_timeout + 1s));
}

TEST_F(ServerTest, MayCrashWithAllItsConnections) {
  start_server();
  begin([](Runtime& rt, Address server) { return crowd(rt, server, 30); });
  world_.run_for(10s);
  server_machine_.kill();
  client_machine_.kill();
  tell([](Runtime& rt, Address server) { return pipeline(rt, server, 10, "lz4"); });
}

TEST_F(ServerTest, ATakenAddressIsRefused) {
  tell([](Runtime& rt, Address) -> Task<void> {
    ScriptedHandler handler(rt);
    Server first(rt, handler, {});
    Server second(rt, handler, {});
    CO_ASSERT_OK(first.start(Address::v4({127, 0, 0, 1}, 1234)));
    EXPECT_TRUE(second.start(first.address()).failed_with(Errc::address_in_use));
    co_await second.stop();
    co_await first.stop();
    co_await first.stop();
  });
}

}  // namespace
}  // namespace helenus::cql
