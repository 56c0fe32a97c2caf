// One connection: many requests at once, waits that are cut, limits, silence, and servers that
// break every rule.
#include "client/connection.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/prng.h"
#include "base/test_scale.h"
#include "client/scripted_server_test_support.h"
#include "cql/protocol/rows.h"
#include "model/value.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::client {
namespace {

using namespace client::testing;  // NOLINT: the vocabulary of these tests
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ConnectionTest : public ScriptedServers {
 protected:
  using ConnectionStory = std::function<Task<void>(Runtime&, Connection&)>;

  // Opens a connection, tells the story, and closes it.
  void with_connection(ConnectionStory story) {
    tell([this, story = std::move(story)](Runtime& rt) { return connected(rt, story); });
  }
  // What the query of that text is answered with: whatever bytes.
  void answer(const std::string& text, std::function<Bytes(const protocol::Request&)> with) {
    script().answers[text] = [with = std::move(with)](const protocol::Request& request) {
      return std::optional(with(request));
    };
  }
  void answer_message(const std::string& text, protocol::ResponseMessage message) {
    answer(text, [message = std::move(message)](const protocol::Request& request) {
      return frame_of(protocol::Response::of(message), request.stream);
    });
  }

  static Task<RequestResult<ResultSet>> query(Connection& connection, std::string text,
                                              Until until) {
    return connection.execute(Query{.text = std::move(text)}, {}, std::move(until));
  }
  static Task<std::string> ask(Runtime& rt, Connection& connection, std::string text,
                               runtime::Duration wait = 5s) {
    const auto result = co_await query(connection, std::move(text), Until::after(rt, wait));
    co_return told(result);
  }

  ConnectionOptions options_;
  std::vector<protocol::Event> events_;

 private:
  Task<void> connected(Runtime& rt, ConnectionStory story) {
    const auto sink = [this](const protocol::Event& event) { events_.push_back(event); };
    auto opened = co_await Connection::open(rt, address(), options_, Until::after(rt, 5s), sink);
    CO_ASSERT_OK(opened);
    co_await story(rt, **opened);
    co_await (*opened)->stop();
    EXPECT_EQ((*opened)->requests_in_flight(), 0U);
  }
};

TEST_F(ConnectionTest, AnswersFindTheirRequestsInAnyOrder) {
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    EXPECT_EQ(connection.supported().options.front().first, "CQL_VERSION");
    std::vector<Task<std::string>> asked;
    for (int i = 0; i < 300; ++i) {
      asked.push_back(ask(rt, connection, fmt::format("hold {}", i)));
    }
    asked.push_back(ask(rt, connection, "release"));
    const auto answers = co_await runtime::when_all(std::move(asked));
    for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(answers[i], std::to_string(i));
    EXPECT_EQ(connection.requests_in_flight(), 0U);
  });
}

TEST_F(ConnectionTest, AServerThatRefusesIsAnErrorWithItsWords) {
  script().startup = protocol::Response::error(ErrorCode::overloaded, "too many of you");
  tell([this](Runtime& rt) -> Task<void> {
    const auto opened = co_await Connection::open(rt, address(), {}, Until::after(rt, 5s));
    EXPECT_TRUE(opened.failed_with(Errc::refused));
    EXPECT_THAT(opened.error().to_string(), HasSubstr("too many of you"));
  });
  script().startup = protocol::Response::of(protocol::AuthenticateMessage{.authenticator = "x"});
  tell([this](Runtime& rt) -> Task<void> {
    const auto opened = co_await Connection::open(rt, address(), {}, Until::after(rt, 5s));
    EXPECT_TRUE(opened.failed_with(Errc::unsupported));
    const auto nobody =
        co_await Connection::open(rt, address().with_port(1), {}, Until::after(rt, 5s));
    EXPECT_TRUE(nobody.failed_with(Errc::refused));
  });
}

TEST_F(ConnectionTest, OpeningHasADeadline) {
  server().pause();
  tell([this](Runtime& rt) -> Task<void> {
    const auto opened = co_await Connection::open(rt, address(), {}, Until::after(rt, 1s));
    EXPECT_TRUE(opened.failed_with(Errc::timeout)) << opened.error().to_string();
  });
}

TEST_F(ConnectionTest, CompressesIfTheServerOffersIt) {
  const std::string text = "echo " + std::string(10'000, 'x');
  options_.compression = protocol::Compression::lz4;
  with_connection([text](Runtime& rt, Connection& connection) -> Task<void> {
    EXPECT_EQ(co_await ask(rt, connection, text), text.substr(5));
  });
  EXPECT_EQ(script().compressed_requests, 0U);
  script().compression = protocol::Compression::lz4;
  with_connection([text](Runtime& rt, Connection& connection) -> Task<void> {
    EXPECT_EQ(co_await ask(rt, connection, text), text.substr(5));
  });
  EXPECT_EQ(script().compressed_requests, 1U);
}

TEST_F(ConnectionTest, UsesItsKeyspace) {
  options_.keyspace = "My \"own\"";
  with_connection([](Runtime&, Connection&) -> Task<void> { co_return; });
  EXPECT_EQ(script().texts, std::vector<std::string>{"USE \"My \"\"own\"\"\""});
}

TEST_F(ConnectionTest, CarriesPayloadWarningsAndEvents) {
  answer("all", [](const protocol::Request& request) {
    auto response = protocol::Response::of(protocol::VoidResult());
    response.prefix.warnings = {"careful"};
    response.prefix.payload = {
        {.key = "helenus-context",
         .value = Bytes::copy_of(request.payload_of("helenus-context").value())}};
    base::Buffer out;
    const protocol::Event event = protocol::StatusChange{
        .kind = protocol::StatusChangeKind::down, .node = {.octets = {}, .size = 4, .port = 1}};
    out.append(protocol::encode_event_frame(event).view());
    encode_frame(response, request.stream, protocol::Compression::none, out);
    return std::move(out).freeze();
  });
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    const auto registered = co_await connection.register_for({protocol::EventKind::status_change},
                                                             Until::after(rt, 5s));
    EXPECT_TRUE(registered.has_value());
    RequestOptions options;
    options.payload = {{.key = "helenus-context", .value = Bytes::copy_of("seen")}};
    const auto result =
        co_await connection.execute(Query{.text = "all"}, options, Until::after(rt, 5s));
    CO_ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->payload("helenus-context"), Bytes::copy_of("seen"));
    EXPECT_EQ(result->warnings(), std::vector<std::string>{"careful"});
  });
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(std::get<protocol::StatusChange>(events_[0]).kind, protocol::StatusChangeKind::down);
}

TEST_F(ConnectionTest, ErrorsOfTheServerKeepTheirNumbers) {
  const std::vector<ErrorMessage> errors = {
      {ErrorCode::syntax_error, "what?"},
      {protocol::UnavailableDetails{
           .consistency = model::Consistency::quorum, .required = 2, .alive = 1},
       "few"},
      {protocol::WriteTimeoutDetails{.consistency = model::Consistency::all,
                                     .received = 1,
                                     .block_for = 3,
                                     .write_type = protocol::WriteType::cas},
       "late"},
      {protocol::ReadTimeoutDetails{.consistency = model::Consistency::all,
                                    .received = 1,
                                    .block_for = 3,
                                    .data_present = true},
       "late"},
      {protocol::ReadFailureDetails{.consistency = model::Consistency::all,
                                    .received = 1,
                                    .block_for = 3,
                                    .failures = 2,
                                    .data_present = true},
       "broken"},
      {protocol::WriteFailureDetails{.consistency = model::Consistency::all,
                                     .received = 1,
                                     .block_for = 3,
                                     .failures = 2,
                                     .write_type = protocol::WriteType::batch},
       "broken"},
      {protocol::AlreadyExistsDetails{.keyspace = "k", .table = "t"}, "there"},
      {protocol::UnpreparedDetails{.id = Bytes::copy_of("id")}, "who?"}};
  for (const ErrorMessage& error : errors) {
    answer_message("fail", error);
    with_connection([error](Runtime& rt, Connection& connection) -> Task<void> {
      const auto result = co_await query(connection, "fail", Until::after(rt, 5s));
      EXPECT_TRUE(result.failed_with(Fate::answered));
      EXPECT_TRUE(result.failed_with(error.code));
      CO_ASSERT_TRUE(!result.has_value() && result.error().answer() != nullptr);
      EXPECT_EQ(*result.error().answer(), error);
      EXPECT_TRUE(connection.is_open());
    });
  }
}

// ---- Deadlines and limits ----

TEST_F(ConnectionTest, AWaitThatIsCutLeavesTheOutcomeUnknownAndItsStreamTaken) {
  with_connection([this](Runtime& rt, Connection& connection) -> Task<void> {
    const auto held = co_await query(connection, "hold x", Until::after(rt, 1s));
    EXPECT_TRUE(held.failed_with(Fate::unknown));
    EXPECT_TRUE(held.failed_with(Errc::timeout));
    EXPECT_EQ(connection.answers_owed(), 1U);
    const std::int16_t taken = script().streams.back();
    EXPECT_EQ(co_await ask(rt, connection, "echo y"), "y");
    EXPECT_NE(script().streams.back(), taken);
    EXPECT_EQ(co_await ask(rt, connection, "release"), "release") << "and not x, which came late";
    EXPECT_EQ(connection.answers_owed(), 0U);
    EXPECT_EQ(connection.requests_in_flight(), 0U);
  });
}

TEST_F(ConnectionTest, AStopCutsAWaitToo) {
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    runtime::StopSource stop;
    const auto stop_soon = [](Runtime& there, runtime::StopSource& source) -> Task<void> {
      std::ignore = co_await runtime::sleep_for(there, 1s, {});
      source.request_stop();
    };
    const auto [result, done] = co_await runtime::when_all(
        query(connection, "silent", {.stop = stop.token()}), stop_soon(rt, stop));
    EXPECT_TRUE(result.failed_with(Fate::unknown));
    EXPECT_TRUE(result.failed_with(Errc::cancelled));
  });
}

TEST_F(ConnectionTest, ADeadlineThatHasPassedSendsNothing) {
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    const auto late = co_await query(connection, "late", {.deadline = rt.clock.now()});
    EXPECT_TRUE(late.failed_with(Fate::not_sent));
    EXPECT_TRUE(late.failed_with(Errc::timeout));
    EXPECT_EQ(co_await ask(rt, connection, "echo x"), "x");
  });
  EXPECT_EQ(script().texts, std::vector<std::string>{"echo x"});
}

TEST_F(ConnectionTest, WhatWaitsBehindAServerThatTakesNothingIsNotSent) {
  with_connection([this](Runtime& rt, Connection& connection) -> Task<void> {
    server().pause();
    const std::string large(std::size_t{8} << 20, 'x');
    const auto [sent, waiting] = co_await runtime::when_all(
        query(connection, large, Until::after(rt, 2s)),
        [](Runtime& there, Connection& through) -> Task<RequestResult<ResultSet>> {
          std::ignore = co_await runtime::sleep_for(there, 500ms, {});
          auto result = co_await query(through, "echo x", Until::after(there, 1s));
          co_return result;
        }(rt, connection));
    EXPECT_TRUE(sent.failed_with(Fate::unknown)) << told(sent);
    EXPECT_TRUE(waiting.failed_with(Fate::not_sent)) << told(waiting);
    EXPECT_TRUE(waiting.failed_with(Errc::timeout));
    server().resume();
    EXPECT_EQ(co_await ask(rt, connection, "echo y"), "y") << "it goes on";
  });
}

TEST_F(ConnectionTest, RequestsAndBytesAreLimited) {
  options_.requests_in_flight_max = 3;
  options_.request_size_max = 2000;
  options_.bytes_waiting_max = 3000;
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    const auto too_large = co_await query(connection, std::string(2000, 'x'), Until::after(rt, 5s));
    EXPECT_TRUE(too_large.failed_with(Fate::not_sent));
    EXPECT_TRUE(too_large.failed_with(Errc::invalid_argument));
    const auto unprepared =
        co_await connection.prepare(std::string(2001, 'x'), Until::after(rt, 5s));
    EXPECT_TRUE(unprepared.failed_with(Errc::invalid_argument));

    std::vector<Task<std::string>> asked;
    for (int i = 0; i < 4; ++i) asked.push_back(ask(rt, connection, "silent", 1s));
    const auto answers = co_await runtime::when_all(std::move(asked));
    EXPECT_EQ(answers[2], "outcome unknown: timeout");
    EXPECT_THAT(answers[3], StartsWith("not sent: overloaded: 3 requests are in flight"));
  });
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    const std::string text = "echo " + std::string(1700, 'x');
    const auto [first, second] =
        co_await runtime::when_all(ask(rt, connection, text), ask(rt, connection, text));
    EXPECT_EQ(first, text.substr(5));
    EXPECT_THAT(second, StartsWith("not sent: overloaded: "));
  });
}

TEST_F(ConnectionTest, AServerThatOwesTooManyAnswersIsGivenUp) {
  options_.answers_owed_max = 2;
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(connection.is_open());
      EXPECT_EQ(co_await ask(rt, connection, "silent", 1s), "outcome unknown: timeout");
    }
    EXPECT_FALSE(connection.is_open());
    EXPECT_EQ(connection.closed_by()->code(), Errc::connection_lost);
  });
}

// ---- Ends ----

TEST_F(ConnectionTest, WhatIsSentWhenItEndsIsUnknownAndWhatComesLaterIsNotSent) {
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    const auto [silent, hung_up] =
        co_await runtime::when_all(query(connection, "silent", Until::after(rt, 5s)),
                                   query(connection, "hang up", Until::after(rt, 5s)));
    EXPECT_TRUE(silent.failed_with(Fate::unknown));
    EXPECT_TRUE(silent.failed_with(Errc::connection_lost));
    EXPECT_TRUE(hung_up.failed_with(Fate::unknown));
    EXPECT_FALSE(connection.is_open());
    const auto later = co_await query(connection, "echo x", Until::after(rt, 5s));
    EXPECT_TRUE(later.failed_with(Fate::not_sent));
    CO_ASSERT_OK(co_await connection.wait_closed(Until::after(rt, 1s)));
  });
}

TEST_F(ConnectionTest, AKillIsNoticedAtOnce) {
  with_connection([this](Runtime& rt, Connection& connection) -> Task<void> {
    world_.after(1s, [this] { server().kill(); });
    const auto before = rt.clock.now();
    const auto result = co_await query(connection, "silent", Until::after(rt, 1h));
    EXPECT_TRUE(result.failed_with(Fate::unknown));
    EXPECT_LT(rt.clock.now() - before, 2s);
  });
}

TEST_F(ConnectionTest, ClosingHereEndsWhatIsUnderWay) {
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    const auto close_soon = [](Runtime& there, Connection& closed) -> Task<void> {
      std::ignore = co_await runtime::sleep_for(there, 1s, {});
      closed.close();
      closed.close();
    };
    const auto [result, done] = co_await runtime::when_all(
        query(connection, "silent", Until::after(rt, 1h)), close_soon(rt, connection));
    EXPECT_TRUE(result.failed_with(Fate::unknown));
    EXPECT_TRUE(result.failed_with(Errc::closed));
  });
}

TEST_F(ConnectionTest, AServerThatIsSilentForTooLongIsGivenUp) {
  with_connection([this](Runtime& rt, Connection& connection) -> Task<void> {
    std::ignore = co_await runtime::sleep_for(rt, 10min, {});
    EXPECT_TRUE(connection.is_open()) << "it answers heartbeats";
    EXPECT_EQ(connection.requests_in_flight(), 0U);
    server().pause();
    const auto before = rt.clock.now();
    const auto result = co_await query(connection, "echo x", Until::after(rt, 1h));
    EXPECT_TRUE(result.failed_with(Fate::unknown));
    EXPECT_TRUE(result.failed_with(Errc::connection_lost));
    EXPECT_LE(rt.clock.now() - before, 16s);
    server().resume();
  });
}

TEST_F(ConnectionTest, AMachineWithoutPowerIsNoticed) {
  with_connection([this](Runtime& rt, Connection& connection) -> Task<void> {
    server().power_loss();
    CO_ASSERT_OK(co_await connection.wait_closed(Until::after(rt, 16s)));
  });
}

// ---- Hostile servers ----

Bytes raw(std::initializer_list<int> octets) {
  base::Buffer out;
  for (const int octet : octets) out.push_back(static_cast<std::byte>(octet));
  return std::move(out).freeze();
}

TEST_F(ConnectionTest, FramesThatCannotBeReadEndTheConnection) {
  const auto echo_on = [](std::int16_t stream) {
    return frame_of(protocol::Response::of(protocol::VoidResult()), stream);
  };
  const std::vector<std::function<Bytes(const protocol::Request&)>> broken = {
      [](const auto&) { return Bytes::copy_of(std::string(100, '\xff')); },
      [](const auto&) { return Bytes::copy_of("HTTP/1.1 400 Bad Request\r\n\r\n"); },
      // Another version; a negative size.
      [](const auto&) { return raw({0x85, 0, 0, 0, 0x08, 0, 0, 0, 4, 0, 0, 0, 1}); },
      [](const auto&) { return raw({0x84, 0, 0, 0, 0x08, 0xff, 0, 0, 0}); },
      // Answers to nobody, on odd streams, and twice.
      [&](const protocol::Request& request) {
        return echo_on(static_cast<std::int16_t>(request.stream + 1));
      },
      [&](const auto&) { return echo_on(-2); },
      [&](const auto&) { return echo_on(protocol::kEventStream); },
      [](const auto&) { return raw({0x84, 0, 0xff, 0xff, 0x0c, 0, 0, 0, 1, 7}); },
  };
  for (const auto& bytes : broken) {
    answer("break", bytes);
    with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
      const auto result = co_await query(connection, "break", Until::after(rt, 5s));
      EXPECT_TRUE(result.failed_with(Fate::unknown)) << told(result);
      EXPECT_TRUE(result.failed_with(Errc::corrupt)) << told(result);
      EXPECT_FALSE(connection.is_open());
    });
  }
  answer("twice", [&](const protocol::Request& request) {
    base::Buffer out;
    for (int i = 0; i < 2; ++i) out.append(echo_on(request.stream).view());
    return std::move(out).freeze();
  });
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    EXPECT_EQ(co_await ask(rt, connection, "twice"), "done");
    CO_ASSERT_OK(co_await connection.wait_closed(Until::after(rt, 1s)));
  });
}

TEST_F(ConnectionTest, BodiesThatCannotBeReadFailTheirRequestAlone) {
  options_.response_size_max = 1000;
  answer_message("unexpected", protocol::ReadyMessage());
  answer_message("prepared", protocol::PreparedResult());
  answer_message("large", protocol::SetKeyspaceResult{.keyspace = std::string(2000, 'x')});
  answer("cut", [](const protocol::Request& request) {
    const Bytes whole = frame_of(protocol::Response::of(protocol::VoidResult()), request.stream);
    base::Buffer cut;
    cut.append(whole.view().first(protocol::kHeaderSize + 2));
    cut.mutable_view()[protocol::kHeaderSize - 1] = std::byte{2};
    return std::move(cut).freeze();
  });
  answer("compressed", [](const protocol::Request& request) {
    const Bytes whole = frame_of(protocol::Response::of(protocol::VoidResult()), request.stream);
    base::Buffer flagged;
    flagged.append(whole.view());
    flagged.mutable_view()[1] |= std::byte{protocol::kFlagCompressed};
    return std::move(flagged).freeze();
  });
  answer_message("no columns", protocol::RowsResult{.column_count = 0,
                                                    .columns = {},
                                                    .paging_state = std::nullopt,
                                                    .row_count = 1 << 30,
                                                    .rows = {}});
  with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
    for (const std::string text :
         {"unexpected", "prepared", "large", "cut", "compressed", "no columns"}) {
      const auto result = co_await query(connection, text, Until::after(rt, 5s));
      EXPECT_TRUE(result.failed_with(Fate::unknown)) << text << ": " << told(result);
      EXPECT_TRUE(result.failed_with(Errc::corrupt)) << text << ": " << told(result);
      EXPECT_TRUE(connection.is_open()) << text;
    }
    EXPECT_EQ(co_await ask(rt, connection, "echo x"), "x");
  });
}

// A good answer with some bytes changed, and perhaps cut or doubled.
Bytes mutated(const protocol::Request& request, base::Prng& prng) {
  base::Buffer out;
  const Bytes good = frame_of(protocol::Response::of(protocol::SetKeyspaceResult{.keyspace = "ks"}),
                              request.stream);
  const auto copies = prng.between(1, 3);
  for (std::uint64_t i = 0; i < copies; ++i) out.append(good.view());
  const auto changes = prng.between(1, 4);
  for (std::uint64_t i = 0; i < changes; ++i) {
    out.mutable_view()[prng.below(out.size())] = static_cast<std::byte>(prng.below(256));
  }
  out.truncate(prng.between(1, out.size()));
  return std::move(out).freeze();
}

TEST_F(ConnectionTest, WhateverAServerSendsARequestEnds) {
  base::Prng prng(7);
  answer("any", [&](const protocol::Request& request) { return mutated(request, prng); });
  const std::size_t rounds = base::count_from_environment("HELENUS_CLIENT_ROUNDS", 100);
  for (std::size_t i = 0; i < rounds; ++i) {
    with_connection([](Runtime& rt, Connection& connection) -> Task<void> {
      for (int request = 0; request < 5 && connection.is_open(); ++request) {
        const auto result = co_await query(connection, "any", Until::after(rt, 1s));
        EXPECT_TRUE(result || result.error().fate() != Fate::not_sent || !connection.is_open());
      }
    });
    if (HasFailure()) FAIL() << "round " << i;
  }
}

}  // namespace
}  // namespace helenus::client
