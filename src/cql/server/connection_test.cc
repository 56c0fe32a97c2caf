// What bounds a connection: limits, slow clients, hostile bytes, broken streams.
#include "cql/server/connection.h"

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "cql/server/server_test_support.h"
#include "runtime/task_group.h"

namespace helenus::cql {
namespace {

Bytes header(std::uint8_t opcode, std::uint32_t body_size, std::int16_t stream = 1) {
  base::Buffer out;
  base::Encoder encoder(out);
  encoder.u8(protocol::kVersion);
  encoder.u8(0);
  encoder.u16_be(static_cast<std::uint16_t>(stream));
  encoder.u8(opcode);
  encoder.u32_be(body_size);
  return std::move(out).freeze();
}

TEST_F(ServerTest, RefusesABodyThatIsTooLargeAndGoesOn) {
  options_.limits.node.request_size_max = 1000;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const std::string large = "echo " + std::string(2000, 'x');
    EXPECT_EQ(co_await client.text_of(1, large), "error 2200");
    EXPECT_EQ(co_await client.text_of(2, "echo on"), "on");
  });
}

TEST_F(ServerTest, WhatNeedsNoWaitIsAnsweredBeforeWhatWaitsAndCountsAlike) {
  constexpr std::int16_t kAtOnce = 100;  // more than a turn has
  tell([this](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer requests;
    requests.append(TestClient::query(0, "wait 50 slow"));
    for (std::int16_t i = 1; i <= kAtOnce; ++i) {
      requests.append(TestClient::query(i, fmt::format("at once {}", i)));
    }
    const bool sent = co_await client.send(std::move(requests).freeze());
    CO_ASSERT_TRUE(sent);
    for (std::int16_t i = 1; i <= kAtOnce; ++i) {
      const auto answer = co_await client.receive();
      CO_ASSERT_OK(answer);
      EXPECT_EQ(answer->stream, i);
      EXPECT_EQ(TestClient::describe(answer), fmt::format("{}", i));
    }
    EXPECT_EQ(statistics().requests_current, 1U);
    EXPECT_EQ(TestClient::describe(co_await client.receive()), "slow");
    EXPECT_EQ(statistics().requests_current, 0U);
  });
}

TEST_F(ServerTest, RefusesAnUnknownOpcodeAndGoesOn) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const bool sent = co_await client.send(header(0x42, 0, 77));
    CO_ASSERT_TRUE(sent);
    const auto refused = co_await client.receive();
    CO_ASSERT_OK(refused);
    EXPECT_EQ(refused->stream, 77);
    EXPECT_EQ(TestClient::describe(refused), "error 000a");
    EXPECT_EQ(co_await client.text_of(2, "echo on"), "on");
  });
}

TEST_F(ServerTest, RefusesAMalformedBodyOnItsStreamAndGoesOn) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer query;
    query.append(header(0x07, 4, 9));
    query.append(std::string_view("\x7f\xff\xff\xff", 4));
    const bool sent = co_await client.send(std::move(query).freeze());
    CO_ASSERT_TRUE(sent);
    const auto refused = co_await client.receive();
    CO_ASSERT_OK(refused);
    EXPECT_EQ(refused->stream, 9);
    EXPECT_EQ(TestClient::describe(refused), "error 000a");
    EXPECT_EQ(co_await client.text_of(2, "echo on"), "on");
  });
}

TEST_F(ServerTest, ANegativeSizeIsAnsweredAndEndsTheConnection) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const bool sent = co_await client.send(header(0x07, 0xffffffff, 9));
    CO_ASSERT_TRUE(sent);
    const auto refused = co_await client.receive();
    EXPECT_EQ(TestClient::describe(refused), "error 000a");
    const auto end = co_await client.receive();
    EXPECT_TRUE(end.failed_with(Errc::closed));
  });
}

// What a hostile client may send: noise, frames cut and spliced, sizes that lie.
Task<void> attack(Runtime& rt, Address server, std::uint64_t seed) {
  base::Prng prng(seed);
  TestClient client(rt);
  const bool open = co_await client.open(server, prng.below(2) == 0 ? "" : "lz4");
  CO_ASSERT_TRUE(open);
  base::Buffer noise;
  for (int count = 0; count < 50; ++count) {
    base::Buffer frame;
    frame.append(TestClient::query(static_cast<std::int16_t>(count), "echo x"));
    for (std::uint64_t flips = prng.below(4); flips > 0; --flips) {
      frame.mutable_view()[prng.below(frame.size())] = static_cast<std::byte>(prng.next());
    }
    noise.append(frame.view().first(frame.size() - prng.below(3)));
  }
  const bool sent = co_await client.send(std::move(noise).freeze());
  if (!sent) co_return;
  client.stream().shutdown_write();
  for (;;) {
    const auto answer = co_await client.receive(200s);
    EXPECT_FALSE(answer.failed_with(Errc::timeout)) << seed;
    if (!answer) co_return;
  }
}

TEST_F(ServerTest, SurvivesHostileClients) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    for (std::uint64_t seed = 0; seed < 200; ++seed) co_await attack(rt, server, seed);
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    EXPECT_EQ(co_await client.text_of(1, "echo alive"), "alive");
  });
  world_.run_for(5min);
  EXPECT_EQ(statistics().connections_current, 0U);
  EXPECT_EQ(server_->admission().request_bytes(), 0U);
}

TEST_F(ServerTest, OneConnectionTooManyIsToldSoAndClosed) {
  options_.limits.node.connections_max = 2;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient first(rt);
    TestClient second(rt);
    const bool open_first = co_await first.open(server);
    const bool open_second = co_await second.open(server);
    CO_ASSERT_TRUE(open_first && open_second);
    TestClient third(rt);
    const bool connected = co_await third.connect(server);
    CO_ASSERT_TRUE(connected);
    const auto refused = co_await third.ask(3, protocol::OptionsRequest());
    EXPECT_EQ(TestClient::describe(refused), "error 1001");
    const auto end = co_await third.receive();
    EXPECT_TRUE(end.failed_with(Errc::closed));
    EXPECT_EQ(co_await first.text_of(1, "echo on"), "on");
    second.leave();
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    TestClient fourth(rt);
    const bool open_fourth = co_await fourth.open(server);
    EXPECT_TRUE(open_fourth);
  });
  EXPECT_EQ(statistics().connections_refused, 1U);
}

TEST_F(ServerTest, AnAddressWithTooManyConnectionsIsToldSoUntilOneLeaves) {
  options_.limits.node.connections_per_address_max = 2;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient first(rt);
    TestClient second(rt);
    const bool open_first = co_await first.open(server);
    const bool open_second = co_await second.open(server);
    CO_ASSERT_TRUE(open_first && open_second);
    TestClient third(rt);
    const bool connected = co_await third.connect(server);
    CO_ASSERT_TRUE(connected);
    const auto refused = co_await third.ask(3, protocol::OptionsRequest());
    CO_ASSERT_OK(refused);
    const auto& error = std::get<protocol::ErrorMessage>(refused->message);
    EXPECT_EQ(error.message, "Too many connections from this address");
    second.leave();
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    TestClient fourth(rt);
    const bool open_fourth = co_await fourth.open(server);
    EXPECT_TRUE(open_fourth);
  });
  EXPECT_EQ(statistics().connections_refused, 1U);
}

TEST_F(ServerTest, FarTooManyConnectionsAreClosedWithoutAWord) {
  options_.limits.node.connections_max = 1;
  options_.limits.core.connections_refused_max = 1;
  tell([](Runtime& rt, Address server) -> Task<void> {
    std::vector<std::unique_ptr<TestClient>> clients;
    for (int count = 0; count < 3; ++count) {
      clients.push_back(std::make_unique<TestClient>(rt));
      const bool connected = co_await clients.back()->connect(server);
      CO_ASSERT_TRUE(connected);
    }
    const auto silent = co_await clients[2]->receive(1s);
    EXPECT_FALSE(silent.failed_with(Errc::timeout));
    // The one that is refused and says nothing is not kept for long.
    const auto refused = co_await clients[1]->receive(5s);
    EXPECT_FALSE(refused.failed_with(Errc::timeout));
  });
}

TEST_F(ServerTest, RequestsBeyondTheMemoryForThemAreOverloaded) {
  options_.limits.node.request_size_max = 40'000;
  options_.timeouts.room_timeout = 0s;
  options_.limits.node.request_bytes_max = 100'000;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const std::string large = "hold " + std::string(30'000, 'x');
    std::vector<std::string> answers;
    for (const std::int16_t stream : std::vector<std::int16_t>{1, 2, 3, 4, 5}) {
      const bool sent = co_await client.send(TestClient::query(stream, large));
      CO_ASSERT_TRUE(sent);
    }
    for (int count = 0; count < 2; ++count) {
      const auto answer = co_await client.receive();
      EXPECT_EQ(TestClient::describe(answer), "error 1001");
    }
    const bool sent = co_await client.send(TestClient::query(6, "open"));
    CO_ASSERT_TRUE(sent);
    for (int count = 0; count < 4; ++count) {
      const auto answer = co_await client.receive();
      CO_ASSERT_OK(answer);
      EXPECT_NE(answer->stream, 4);
      EXPECT_NE(answer->stream, 5);
    }
    EXPECT_EQ(co_await client.text_of(7, large), large.substr(5));
  });
  EXPECT_EQ(errors(ErrorCode::overloaded), 2U);
  EXPECT_EQ(server_->admission().request_bytes(), 0U);
}

TEST_F(ServerTest, ALargeBodyIsChargedAsItComes) {
  options_.limits.node.request_size_max = std::size_t{8} << 20;
  options_.limits.node.request_bytes_max = std::size_t{17} << 20;
  start_server();
  begin([](Runtime& rt, Address server) -> Task<void> {
    std::vector<std::unique_ptr<TestClient>> liars;
    for (int count = 0; count < 10; ++count) {
      liars.push_back(std::make_unique<TestClient>(rt));
      const bool open = co_await liars.back()->open(server);
      CO_ASSERT_TRUE(open);
      const bool sent = co_await liars.back()->send(header(0x07, 8 << 20));
      CO_ASSERT_TRUE(sent);
    }
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    // Ten that declare eight megabytes each leave room for one that sends them.
    const std::string large = "rows 1" + std::string(7 << 20, ' ');
    const bool sent = co_await client.send(TestClient::query(1, large));
    CO_ASSERT_TRUE(sent);
    const auto answer = co_await client.receive(60s);
    EXPECT_EQ(TestClient::describe(answer), "RESULT");
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 10s, {}));
  });
  world_.run_for(8s);
  EXPECT_LT(server_->admission().request_bytes(), std::size_t{1} << 20);
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1min));
}

// Sends a large request in two parts, and is served.
Task<void> load(Runtime& rt, Address server) {
  TestClient client(rt);
  const bool open = co_await client.open(server);
  CO_ASSERT_TRUE(open);
  const Bytes large = TestClient::query(1, "rows 1" + std::string(1'000'000, ' '));
  const bool began = co_await client.send(large.slice(0, 900'000));
  CO_ASSERT_TRUE(began);
  CO_ASSERT_OK(co_await runtime::sleep_for(rt, 100ms, {}));
  const bool ended = co_await client.send(large.slice(900'000));
  CO_ASSERT_TRUE(ended);
  const auto answer = co_await client.receive(60s);
  EXPECT_EQ(TestClient::describe(answer), "RESULT");
}

TEST_F(ServerTest, BodiesOfOneAddressThatDoNotFitTogetherComeInOneAfterTheOther) {
  options_.limits.node.request_size_max = std::size_t{1} << 20;
  options_.limits.node.request_bytes_max = std::size_t{8} << 20;
  tell([](Runtime& rt, Address server) -> Task<void> {
    runtime::TaskGroup loaders(rt);
    for (int count = 0; count < 16; ++count) loaders.spawn(load(rt, server));
    co_await loaders.join();
  });
  EXPECT_EQ(errors(ErrorCode::overloaded), 0U);
  EXPECT_EQ(server_->admission().request_bytes(), 0U);
}

// Connections that hold all the room there is for bodies of their address.
using Holders = std::vector<std::unique_ptr<TestClient>>;
Task<void> hold_room(Runtime& rt, Address server, Holders& holders) {
  const Bytes large = TestClient::query(1, "rows 1" + std::string(1'000'000, ' '));
  for (int count = 0; count < 2; ++count) {
    holders.push_back(std::make_unique<TestClient>(rt));
    const bool open = co_await holders.back()->open(server);
    CO_ASSERT_TRUE(open);
    const bool sent = co_await holders.back()->send(large.slice(0, 900'000));
    CO_ASSERT_TRUE(sent);
  }
}

TEST_F(ServerTest, ABodyForWhichNoRoomComesIsOverloadedAndTheConnectionGoesOn) {
  options_.limits.node.request_size_max = std::size_t{1} << 20;
  options_.limits.node.request_bytes_max = (std::size_t{2} << 20) + Connection::kRequestOverhead;
  tell([this](Runtime& rt, Address server) -> Task<void> {
    Holders holders;
    co_await hold_room(rt, server, holders);
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const auto began = rt.clock.now();
    const bool sent =
        co_await client.send(TestClient::query(1, "rows 1" + std::string(1'000'000, ' ')));
    CO_ASSERT_TRUE(sent);
    const auto answer = co_await client.receive(60s);
    EXPECT_EQ(TestClient::describe(answer), "error 1001");
    const auto waited = rt.clock.now() - began;
    EXPECT_GE(waited, options_.timeouts.room_timeout);
    EXPECT_LT(waited, options_.timeouts.room_timeout + 1s);
    EXPECT_EQ(co_await client.text_of(2, "echo on"), "on");
    holders.clear();
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    EXPECT_EQ(co_await client.text_of(3, "rows 1" + std::string(1'000'000, ' ')), "RESULT");
  });
}

TEST_F(ServerTest, ABodyThatWaitsForRoomDoesNotKeepTheServerFromStopping) {
  options_.limits.node.request_size_max = std::size_t{1} << 20;
  options_.timeouts.room_timeout = 1h;
  options_.timeouts.stall_timeout = 1h;
  options_.timeouts.frame_timeout = 1h;
  options_.limits.node.request_bytes_max = (std::size_t{2} << 20) + Connection::kRequestOverhead;
  start_server();
  begin([](Runtime& rt, Address server) -> Task<void> {
    Holders holders;
    co_await hold_room(rt, server, holders);
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    std::ignore = co_await client.send(TestClient::query(1, std::string(1'000'000, ' ')));
    const auto end = co_await client.receive(60s);
    EXPECT_FALSE(end.has_value());
  });
  world_.run_for(10s);
  EXPECT_EQ(statistics().errors_total(), 0U);
  server_machine_.request_stop();
  EXPECT_TRUE(
      world_.run_until([&] { return server_machine_.exits() == 1; }, options_.drain_timeout + 1s));
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 2min));
}

// Sixteen that send almost all of a body and wait have a part of the memory for requests, and not
// for long.
TEST_F(ServerTest, BodiesThatStallLeaveRoomForOthersAndAreCut) {
  constexpr int kStalled = 16;
  options_.limits.node.request_size_max = std::size_t{1} << 20;
  options_.timeouts.room_timeout = 0s;
  options_.limits.node.request_bytes_max = std::size_t{16} << 20;
  tell([this](Runtime& rt, Address server) -> Task<void> {
    const Bytes large = TestClient::query(1, "rows 1" + std::string(1'040'000, ' '));
    std::vector<std::unique_ptr<TestClient>> stalled;
    for (int count = 0; count < kStalled; ++count) {
      stalled.push_back(std::make_unique<TestClient>(rt));
      const bool open = co_await stalled.back()->open(server);
      CO_ASSERT_TRUE(open);
      const bool sent = co_await stalled.back()->send(large.slice(0, large.size() - 1));
      CO_ASSERT_TRUE(sent);
    }
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    // Three eighths of sixteen, and the one whose turn it is.
    EXPECT_LE(server_->admission().request_bytes(), std::size_t{7} << 20);
    EXPECT_GT(server_->admission().request_bytes(), std::size_t{6} << 20);
    EXPECT_EQ(errors(ErrorCode::overloaded), kStalled - 7U);
    TestClient other(rt);
    const bool open = co_await other.open(server);
    CO_ASSERT_TRUE(open);
    EXPECT_EQ(co_await other.text_of(1, "echo served"), "served");
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 20s, {}));
    EXPECT_EQ(server_->admission().request_bytes(), 0U);
    EXPECT_EQ(statistics().connections_timed_out, static_cast<std::uint64_t>(kStalled));
    EXPECT_EQ(co_await other.text_of(2, "rows 1" + std::string(1'040'000, ' ')), "RESULT");
  });
}

TEST_F(ServerTest, AClientThatDoesNotReadIsNotReadAndThenCut) {
  options_.limits.connection.response_bytes_high = 100'000;
  options_.limits.connection.requests_max = 16;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    for (int number = 0; number < 1000; ++number) {
      all.append(TestClient::query(static_cast<std::int16_t>(number), "rows 20000"));
    }
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 20s, {}));
    // Others do not notice.
    TestClient other(rt);
    const bool open_other = co_await other.open(server);
    CO_ASSERT_TRUE(open_other);
    EXPECT_EQ(co_await other.text_of(1, "echo quick"), "quick");
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 20s, {}));
  });
  // What the network's buffers hold, what waits, and what was under way when it stopped reading.
  EXPECT_LT(statistics().requests[static_cast<std::size_t>(Opcode::query)], 200U);
  EXPECT_EQ(statistics().connections_timed_out, 1U);
}

// The limits are the usual ones: a hundred megabytes are asked for in one go.
TEST_F(ServerTest, WhatIsAskedForInOneGoIsNotAllMadeBeforeItIsRead) {
  start_server();
  begin([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    for (int number = 0; number < 1000; ++number) {
      all.append(TestClient::query(static_cast<std::int16_t>(number), "rows 100000"));
    }
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 20s, {}));
  });
  world_.run_for(10s);
  EXPECT_GE(server_->admission().response_bytes(), options_.limits.connection.response_bytes_high);
  EXPECT_LT(server_->admission().response_bytes(), options_.limits.connection.response_bytes_high +
                                                       (Connection::kRequestsPerTurn * 101'000));
  EXPECT_EQ(errors(ErrorCode::overloaded), 0U);
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1min));
}

TEST_F(ServerTest, ASlowReaderGetsEverythingInTheEnd) {
  options_.limits.connection.response_bytes_high = 100'000;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    for (int number = 0; number < 100; ++number) {
      all.append(TestClient::query(static_cast<std::int16_t>(number), "rows 50000"));
    }
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    for (int number = 0; number < 100; ++number) {
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
      const auto answer = co_await client.receive(10s);
      EXPECT_EQ(TestClient::describe(answer), "RESULT");
    }
  });
}

TEST_F(ServerTest, LargeAnswersBeyondWhatMayWaitBecomeErrors) {
  options_.limits.connection.response_bytes_max = 1'000'000;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    for (int number = 0; number < 20; ++number) {
      all.append(TestClient::query(static_cast<std::int16_t>(number), "rows 200000"));
    }
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    int overloaded = 0;
    for (int number = 0; number < 20; ++number) {
      const auto answer = co_await client.receive(10s);
      if (TestClient::describe(answer) == "error 1001") ++overloaded;
    }
    EXPECT_GT(overloaded, 5);
    EXPECT_LT(overloaded, 18);
    EXPECT_EQ(co_await client.text_of(1, "echo on"), "on");
  });
}

// Asks for four megabytes on each of several connections and reads none of it.
Task<void> take_nothing(Runtime& rt, Address server) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int count = 0; count < 10; ++count) {
    clients.push_back(std::make_unique<TestClient>(rt));
    const bool open = co_await clients.back()->open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    for (int number = 0; number < 20; ++number) {
      all.append(TestClient::query(static_cast<std::int16_t>(number), "rows 200000"));
    }
    const bool sent = co_await clients.back()->send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
  }
  CO_ASSERT_OK(co_await runtime::sleep_for(rt, 10s, {}));
  TestClient other(rt);
  const bool open = co_await other.open(server);
  CO_ASSERT_TRUE(open);
  EXPECT_EQ(co_await other.text_of(1, "echo small answers pass"), "small answers pass");
  EXPECT_EQ(co_await other.text_of(2, "rows 200000"), "error 1001");
  clients.clear();
  CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
  EXPECT_EQ(co_await other.text_of(3, "rows 200000"), "RESULT");
}

TEST_F(ServerTest, AnswersThatNobodyReadsAreBoundedForAllTogether) {
  options_.limits.core.response_bytes_max = 2'000'000;
  start_server();
  begin(take_nothing);
  world_.run_for(9s);
  EXPECT_GE(server_->admission().response_bytes(), 2'000'000U);
  EXPECT_LT(server_->admission().response_bytes(), 3'000'000U);
  EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 1min));
  world_.run_for(1min);
  EXPECT_EQ(server_->admission().response_bytes(), 0U);
}

TEST_F(ServerTest, AFrameThatIsNeverFinishedIsCutAndAnIdleConnectionIsNot) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient idle(rt);
    TestClient half(rt);
    const bool open_idle = co_await idle.open(server);
    const bool open_half = co_await half.open(server);
    CO_ASSERT_TRUE(open_idle && open_half);
    const bool sent = co_await half.send(TestClient::query(1, "echo x").slice(0, 12));
    CO_ASSERT_TRUE(sent);
    const auto cut = co_await half.receive(5min);
    EXPECT_FALSE(cut.failed_with(Errc::timeout));
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 20min, {}));
    EXPECT_EQ(co_await idle.text_of(1, "echo awake"), "awake");
  });
  EXPECT_EQ(statistics().connections_timed_out, 1U);
}

TEST_F(ServerTest, AFrameThatComesByteByByteIsCutInTheEnd) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const Bytes frame = TestClient::query(1, "echo " + std::string(4000, 'x'));
    const auto began = rt.clock.now();
    for (std::size_t i = 0; i < frame.size(); ++i) {
      const bool sent = co_await client.send(frame.slice(i, 1));
      if (!sent) break;
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    }
    EXPECT_LT(rt.clock.now() - began, 70s);
  });
  EXPECT_EQ(statistics().connections_timed_out, 1U);
}

// What was sent at once gives the rest no time.
TEST_F(ServerTest, ABodyThatIsThereButForItsEndIsCutSoon) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const Bytes large = TestClient::query(1, "echo " + std::string(10'000'000, 'x'));
    const std::size_t most = large.size() - 1000;
    const bool sent = co_await client.send(large.slice(0, most));
    CO_ASSERT_TRUE(sent);
    const auto began = rt.clock.now();
    for (std::size_t at = most; at < large.size(); ++at) {
      const bool alive = co_await client.send(large.slice(at, 1));
      if (!alive) break;
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 10s, {}));
    }
    EXPECT_LT(rt.clock.now() - began, 60s);
  });
  EXPECT_EQ(statistics().connections_timed_out, 1U);
  EXPECT_EQ(server_->admission().request_bytes(), 0U);
}

TEST_F(ServerTest, AMebibyteComesThroughASlowLine) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const Bytes large = TestClient::query(1, "fail " + std::string(std::size_t{1} << 20, 'x'));
    for (std::size_t at = 0; at < large.size(); at += 20'000) {
      const bool sent =
          co_await client.send(large.slice(at, std::min<std::size_t>(20'000, large.size() - at)));
      CO_ASSERT_TRUE(sent);
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    }
    const auto answer = co_await client.receive(10s);
    EXPECT_EQ(TestClient::describe(answer), "error 2200");
  });
  EXPECT_EQ(statistics().connections_timed_out, 0U);
}

TEST_F(ServerTest, ALargeFrameMayTakeItsTime) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const Bytes frame = TestClient::query(1, "echo " + std::string(60'000, 'x'));
    const Bytes large = TestClient::query(2, "fail " + std::string(5'000'000, 'x'));
    for (std::size_t at = 0; at < large.size(); at += 40'000) {
      const bool sent =
          co_await client.send(large.slice(at, std::min<std::size_t>(40'000, large.size() - at)));
      CO_ASSERT_TRUE(sent);
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    }
    const auto answer = co_await client.receive(10s);
    EXPECT_TRUE(answer.has_value());
    const bool sent = co_await client.send(frame);
    CO_ASSERT_TRUE(sent);
    const auto next = co_await client.receive(10s);
    EXPECT_TRUE(next.has_value());
  });
  EXPECT_EQ(statistics().connections_timed_out, 0U);
}

TEST_F(ServerTest, AReaderThatIsTooSlowIsCut) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    for (int number = 0; number < 40; ++number) {
      all.append(TestClient::query(static_cast<std::int16_t>(number), "rows 1000000"));
    }
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    // Fast enough for each write alone, but 40 MB would wait for half an hour.
    int answers = 0;
    for (; answers < 40; ++answers) {
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 25s, {}));
      const auto answer = co_await client.receive(10s);
      if (!answer) break;
    }
    EXPECT_LT(answers, 30);
  });
  EXPECT_EQ(statistics().connections_timed_out, 1U);
}

TEST_F(ServerTest, AConnectionThatNeverStartsUpIsCut) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool connected = co_await client.connect(server);
    CO_ASSERT_TRUE(connected);
    const auto cut = co_await client.receive(2min);
    EXPECT_FALSE(cut.failed_with(Errc::timeout));
  });
  EXPECT_EQ(statistics().connections_timed_out, 1U);
}

TEST_F(ServerTest, AClientThatEndsItsHalfStillGetsItsAnswers) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    const bool sent = co_await client.send(TestClient::query(1, "wait 500 after all"));
    CO_ASSERT_TRUE(sent);
    client.stream().shutdown_write();
    const auto answer = co_await client.receive();
    EXPECT_EQ(TestClient::describe(answer), "after all");
    const auto end = co_await client.receive();
    EXPECT_TRUE(end.failed_with(Errc::closed));
  });
}

TEST_F(ServerTest, AClientThatLeavesInTheMiddleStopsItsRequests) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    for (int round = 0; round < 20; ++round) {
      TestClient client(rt);
      const bool open = co_await client.open(server);
      CO_ASSERT_TRUE(open);
      base::Buffer all;
      all.append(TestClient::query(1, "forever"));
      all.append(TestClient::query(2, "rows 1000000"));
      all.append(TestClient::query(3, "echo x").slice(0, 2 + static_cast<std::size_t>(round)));
      const bool sent = co_await client.send(std::move(all).freeze());
      CO_ASSERT_TRUE(sent);
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, round * 100us, {}));
    }
  });
  world_.run_for(2min);
  EXPECT_EQ(statistics().connections_current, 0U);
  EXPECT_EQ(statistics().requests_current, 0U);
  EXPECT_EQ(server_->admission().request_bytes(), 0U);
}

// ---- What its client may have given up (R3) ----

class LateTest : public ServerTest {
 protected:
  static constexpr auto kAskedAt = 2s;

  // Asks at kAskedAt, and is told "late", or loses its connection.
  static Task<void> ask_later(Runtime& rt, Address server, std::string& answer) {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, kAskedAt, {}));
    const bool sent = co_await client.send(TestClient::query(1, "echo late"));
    CO_ASSERT_TRUE(sent);
    const auto received = co_await client.receive(1min);
    answer = TestClient::describe(received);
  }
  void begin_asking() {
    start_server();
    begin([this](Runtime& rt, Address server) { return ask_later(rt, server, answer_); });
    world_.run_for(kAskedAt - 100ms);
  }
  void wait_for_the_answer() {
    EXPECT_TRUE(world_.run_until([&] { return !client_machine_.is_up(); }, 2min));
  }
  void stand_still(Duration duration) {
    begin_asking();
    server_machine_.pause();
    world_.run_for(duration);
    server_machine_.resume();
    wait_for_the_answer();
  }
  void be_cut_off(Duration duration) {
    begin_asking();
    world_.network().set_blocked(client_machine_.id(), server_machine_.id(), true);
    world_.network().set_blocked(server_machine_.id(), client_machine_.id(), true);
    world_.run_for(duration);
    world_.network().set_blocked(client_machine_.id(), server_machine_.id(), false);
    world_.network().set_blocked(server_machine_.id(), client_machine_.id(), false);
    wait_for_the_answer();
  }

  std::string answer_;
};

TEST_F(LateTest, WhatLayInASocketWhileTheProcessStoodStillIsNotExecuted) {
  stand_still(options_.timeouts.lost_after + 100ms);
  EXPECT_NE(answer_, "late");
  EXPECT_EQ(handler_->handled(), 0U);
  EXPECT_EQ(statistics().connections_timed_out, 1U);
}

TEST_F(LateTest, AfterAShortPauseItIs) {
  stand_still(options_.timeouts.lost_after / 2);
  EXPECT_EQ(answer_, "late");
}

TEST_F(LateTest, WhatAClientSentThatWasCutOffIsNotExecuted) {
  be_cut_off(options_.timeouts.lost_after + 1s);
  EXPECT_NE(answer_, "late");
  EXPECT_EQ(handler_->handled(), 0U);
}

TEST_F(LateTest, AfterAShortInterruptionItIs) {
  be_cut_off(options_.timeouts.lost_after / 2);
  EXPECT_EQ(answer_, "late");
}

TEST_F(LateTest, AClientThatHasNothingToSayKeepsItsConnection) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 5min, {}));
    const std::string answer = co_await client.text_of(1, "echo here");
    EXPECT_EQ(answer, "here");
  });
}

TEST_F(LateTest, WhatWaitedHereForLongIsRefused) {
  options_.limits.connection.requests_max = 1;
  tell([](Runtime& rt, Address server) -> Task<void> {
    TestClient client(rt);
    const bool open = co_await client.open(server);
    CO_ASSERT_TRUE(open);
    base::Buffer all;
    all.append(TestClient::query(1, "wait 4000 first"));
    all.append(TestClient::query(2, "echo second"));
    const bool sent = co_await client.send(std::move(all).freeze());
    CO_ASSERT_TRUE(sent);
    const auto first = co_await client.receive(10s);
    EXPECT_EQ(TestClient::describe(first), "first");
    const auto second = co_await client.receive(10s);
    EXPECT_EQ(TestClient::describe(second), "error 1001");
  });
  EXPECT_EQ(handler_->handled(), 1U);
}

}  // namespace
}  // namespace helenus::cql
