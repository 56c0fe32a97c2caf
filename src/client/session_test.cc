// A session with three scripted servers: whom it asks, what it sends again and what never, and how
// it finds nodes again that were lost.
#include "client/session.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/pager.h"
#include "client/scripted_server_test_support.h"
#include "cql/protocol/rows.h"
#include "model/value.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::client {
namespace {

using namespace client::testing;  // NOLINT: the vocabulary of these tests
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public ScriptedServers {
 protected:
  using SessionStory = std::function<Task<void>(Runtime&, Session&)>;

  SessionTest() : ScriptedServers(3) {
    options_.contact_points = {address(0), address(1), address(2)};
  }

  // Connects to all nodes, tells the story, and stops.
  void with_session(SessionStory story) {
    tell([this, story = std::move(story)](Runtime& rt) { return connected(rt, story); });
  }
  std::size_t asked(std::size_t i, const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count(script(i).texts, text));
  }
  std::size_t asked(const std::string& text) {
    return asked(0, text) + asked(1, text) + asked(2, text);
  }
  void answer_error(std::size_t i, const std::string& text, ErrorCode code) {
    script(i).answers[text] = [code](const protocol::Request& request) {
      return std::optional(
          frame_of(protocol::Response::error(code, "as scripted"), request.stream));
    };
  }

  static Task<RequestResult<ResultSet>> query(Runtime& rt, Session& session, std::string text,
                                              Route route, runtime::Duration wait = 5s) {
    return session.execute(Query{.text = std::move(text)}, {}, std::move(route),
                           Until::after(rt, wait));
  }

  SessionOptions options_;

 private:
  Task<void> connected(Runtime& rt, SessionStory story) {
    Session session(rt, options_);
    CO_ASSERT_OK(co_await session.start(Until::after(rt, 10s)));
    for (std::size_t i = 0; i < 3; ++i) {
      CO_ASSERT_OK(co_await session.wait_connected(address(i), Until::after(rt, 10s)));
    }
    co_await story(rt, session);
    co_await session.stop();
  }
};

TEST_F(SessionTest, TakesNodesInTurnOrTheOneThatIsNamed) {
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(told(co_await query(rt, session, "echo turn", {})), "turn");
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(asked(i, "echo turn"), 2U);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(told(co_await query(rt, session, "echo named", {.node = address(1)})), "named");
    }
    EXPECT_EQ(asked(1, "echo named"), 3U);
    const auto unknown = co_await query(rt, session, "echo x", {.node = address(1).with_port(1)});
    EXPECT_TRUE(unknown.failed_with(Fate::not_sent));
    EXPECT_TRUE(unknown.failed_with(Errc::unavailable));
    const auto nobody =
        co_await session.wait_connected(address(1).with_port(1), Until::after(rt, 1s));
    EXPECT_TRUE(nobody.failed_with(Errc::not_found));
  });
}

TEST_F(SessionTest, AStatementOfUnknownOutcomeIsNotSentAgain) {
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    const auto lost = co_await query(rt, session, "hang up", {});
    EXPECT_TRUE(lost.failed_with(Fate::unknown));
    EXPECT_EQ(asked("hang up"), 1U);
    const auto late = co_await query(rt, session, "silent", {});
    EXPECT_TRUE(late.failed_with(Fate::unknown));
    EXPECT_EQ(asked("silent"), 1U);
  });
}

TEST_F(SessionTest, AnIdempotentStatementGoesToAnotherNode) {
  answer_error(1, "busy", ErrorCode::overloaded);
  answer_error(0, "wrong", ErrorCode::invalid);
  script(0).answers["lost"] = [](const protocol::Request&) { return std::nullopt; };
  script(1).answers["lost"] = [](const protocol::Request&) { return std::optional(Bytes()); };
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    const Route route{.idempotent = true, .attempt_timeout = 1s};
    EXPECT_EQ(told(co_await query(rt, session, "lost", route)), "lost");
    EXPECT_EQ(asked("lost"), 3U) << "one hung up, one was silent, one answered";
    CO_ASSERT_OK(co_await session.wait_connected(address(0), Until::after(rt, 10s)));
    EXPECT_EQ(told(co_await query(rt, session, "wrong", route)), "answered 0x2200: as scripted");
    EXPECT_EQ(asked("wrong"), 1U);
    EXPECT_EQ(told(co_await query(rt, session, "busy", route)), "busy");
    EXPECT_EQ(asked("busy"), 2U);
    const Route named{.node = address(1), .idempotent = true, .attempt_timeout = 1s};
    const auto there = co_await query(rt, session, "lost", named);
    EXPECT_TRUE(there.failed_with(Fate::unknown)) << "the one named and no other";
  });
}

TEST_F(SessionTest, DoubtOfAnEarlierAttemptIsNotForgotten) {
  for (std::size_t i = 0; i < 3; ++i) answer_error(i, "doubt", ErrorCode::invalid);
  script(0).answers["doubt"] = [](const protocol::Request&) { return std::nullopt; };
  with_session([](Runtime& rt, Session& session) -> Task<void> {
    const auto result = co_await query(rt, session, "doubt", {.idempotent = true});
    CO_ASSERT_TRUE(result.failed_with(ErrorCode::invalid));
    EXPECT_TRUE(result.error().may_have_happened());
    const auto again = co_await query(rt, session, "doubt", {.idempotent = true});
    CO_ASSERT_TRUE(again.failed_with(ErrorCode::invalid));
    EXPECT_FALSE(again.error().may_have_happened());
  });
}

TEST_F(SessionTest, ANodeIsToldAPreparedStatementItDoesNotKnow) {
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    const auto one = co_await session.prepare("one", {.node = address(0)}, Until::after(rt, 5s));
    const auto two = co_await session.prepare("two", {.node = address(0)}, Until::after(rt, 5s));
    CO_ASSERT_TRUE(one.has_value() && two.has_value());
    for (std::size_t i = 0; i < 2; ++i) {
      const auto executed = co_await session.execute(Execution{.prepared = *one}, {},
                                                     {.node = address(i)}, Until::after(rt, 5s));
      EXPECT_EQ(told(executed), "done");
    }
    const Batch batch{.statements = {Execution{.prepared = *one}, Execution{.prepared = *two}}};
    for (std::size_t i = 0; i < 3; ++i) {
      const auto executed =
          co_await session.execute(batch, {}, {.node = address(i)}, Until::after(rt, 5s));
      EXPECT_EQ(told(executed), "done");
    }
    EXPECT_THAT(script(0).prepared, ElementsAre("one", "two"));
    EXPECT_THAT(script(1).prepared, ElementsAre("one", "two"));
    EXPECT_THAT(script(2).prepared, ElementsAre("one", "two"));
  });
}

TEST_F(SessionTest, AServerThatNeverLearnsAStatementIsNotAskedForEver) {
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    const auto stranger = std::make_shared<const PreparedStatement>(
        PreparedStatement{.text = "text",
                          .id = Bytes::copy_of("an id that no server gives"),
                          .markers = {},
                          .partition_key_markers = {},
                          .columns = {}});
    const auto result = co_await session.execute(Execution{.prepared = stranger}, {},
                                                 {.node = address(0)}, Until::after(rt, 5s));
    EXPECT_TRUE(result.failed_with(ErrorCode::unprepared));
    EXPECT_EQ(script(0).prepared.size(), 1U);
  });
}

TEST_F(SessionTest, ANodeThatCameBackIsConnectedAgain) {
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    server(1).kill();
    std::ignore = co_await runtime::sleep_for(rt, 1s, {});
    EXPECT_FALSE(session.nodes()[1].connected);
    EXPECT_TRUE(session.nodes()[1].problem.has_value());
    const auto gone = co_await query(rt, session, "echo x", {.node = address(1)});
    EXPECT_TRUE(gone.failed_with(Fate::not_sent));
    EXPECT_TRUE(gone.failed_with(Errc::unavailable));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(told(co_await query(rt, session, "echo y", {})), "y");
    EXPECT_EQ(asked(1, "echo y"), 0U);
    std::ignore = co_await runtime::sleep_for(rt, 1min, {});
    server(1).start();
    CO_ASSERT_OK(co_await session.wait_connected(address(1), Until::after(rt, 11s)));
    EXPECT_TRUE(session.nodes()[1].connected);
    EXPECT_FALSE(session.nodes()[1].problem.has_value());
    EXPECT_EQ(told(co_await query(rt, session, "echo z", {.node = address(1)})), "z");
  });
}

TEST_F(SessionTest, PausesBetweenAttemptsGrow) {
  with_session([this](Runtime& rt, Session&) -> Task<void> {
    script(2).startup = protocol::Response::error(ErrorCode::bootstrapping, "not yet");
    const std::size_t before = script(2).connections;
    server(2).kill();
    server(2).start();
    std::ignore = co_await runtime::sleep_for(rt, 10min, {});
    const std::size_t attempts = script(2).connections - before;
    EXPECT_GE(attempts, 60U) << "one in ten seconds at least";
    EXPECT_LE(attempts, 140U) << "and one in five at most, but for the first";
    script(2).startup = protocol::Response::of(protocol::ReadyMessage());
  });
}

Bytes status_event(protocol::StatusChangeKind kind, const Address& address, std::int16_t stream) {
  protocol::StatusChange change{.kind = kind, .node = {}};
  change.node.size = 4;
  change.node.port = address.port();
  std::ranges::copy(base::as_bytes(address.ip_bytes()), change.node.octets.begin());
  base::Buffer out;
  out.append(protocol::encode_event_frame(change).view());
  out.append(frame_of(protocol::Response::of(protocol::VoidResult()), stream).view());
  return std::move(out).freeze();
}

TEST_F(SessionTest, EventsTellWhichNodesAreUp) {
  std::size_t told_of = 0;
  options_.on_event = [&](const protocol::Event&) { ++told_of; };
  for (const auto kind : {protocol::StatusChangeKind::up, protocol::StatusChangeKind::down}) {
    script(0).answers[std::string(name_of(kind))] = [this, kind](const protocol::Request& request) {
      return std::optional(status_event(kind, address(1), request.stream));
    };
  }
  with_session([this](Runtime& rt, Session& session) -> Task<void> {
    using Kind = protocol::StatusChangeKind;
    EXPECT_EQ(session.nodes()[1].reported, std::nullopt);
    EXPECT_EQ(told(co_await query(rt, session, "DOWN", {.node = address(0)})), "done");
    EXPECT_EQ(session.nodes()[1].reported, Kind::down);
    EXPECT_TRUE(session.nodes()[1].connected);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(told(co_await query(rt, session, "echo x", {})), "x");
    EXPECT_EQ(asked(1, "echo x"), 0U) << "others are preferred";
    EXPECT_EQ(told(co_await query(rt, session, "echo x", {.node = address(1)})), "x");

    server(1).kill();
    std::ignore = co_await runtime::sleep_for(rt, 10min, {});
    server(1).start();
    std::ignore = co_await runtime::sleep_for(rt, 10ms, {});
    EXPECT_FALSE(session.nodes()[1].connected) << "it pauses";
    EXPECT_EQ(told(co_await query(rt, session, "UP", {.node = address(0)})), "done");
    CO_ASSERT_OK(co_await session.wait_connected(address(1), Until::after(rt, 1s)));
    EXPECT_EQ(session.nodes()[1].reported, Kind::up);
  });
  EXPECT_EQ(told_of, 2U);
}

TEST_F(SessionTest, StartsWithTheNodesThereAreAndSaysWhenThereAreNone) {
  server(0).kill();
  server(1).kill();
  tell([this](Runtime& rt) -> Task<void> {
    Session session(rt, options_);
    CO_ASSERT_OK(co_await session.start(Until::after(rt, 10s)));
    EXPECT_EQ(told(co_await query(rt, session, "echo x", {})), "x");
    co_await session.stop();
    const auto stopped = co_await query(rt, session, "echo x", {});
    EXPECT_TRUE(stopped.failed_with(Fate::not_sent));
    EXPECT_TRUE(stopped.failed_with(Errc::closed));
  });
  server(2).kill();
  tell([this](Runtime& rt) -> Task<void> {
    Session session(rt, options_);
    EXPECT_TRUE((co_await session.start(Until::after(rt, 10s))).failed_with(Errc::timeout));
    const auto result = co_await query(rt, session, "echo x", {});
    EXPECT_TRUE(result.failed_with(Fate::not_sent));
    EXPECT_TRUE(result.failed_with(Errc::unavailable));
    co_await session.stop();
  });
}

TEST_F(SessionTest, StoppingEndsWhatIsUnderWay) {
  with_session([](Runtime& rt, Session& session) -> Task<void> {
    const auto stop_soon = [](Runtime& there, Session& stopped) -> Task<void> {
      std::ignore = co_await runtime::sleep_for(there, 1s, {});
      co_await stopped.stop();
    };
    const auto [result, done] = co_await runtime::when_all(
        query(rt, session, "silent", {.idempotent = true}, 1h), stop_soon(rt, session));
    EXPECT_TRUE(result.failed_with(Fate::unknown)) << told(result);
  });
}

TEST_F(SessionTest, APagerAsksForPageAfterPage) {
  const std::vector<protocol::ColumnSpec> columns = {
      {.keyspace = "k", .table = "t", .name = "v", .type = model::DataType::text()}};
  const protocol::EncodedColumns encoded(columns);
  const auto page = [&](const protocol::Request& request) {
    const auto& parameters = std::get<protocol::QueryRequest>(request.message).parameters;
    const auto state = parameters.paging_state ? base::as_text(*parameters.paging_state) : "";
    protocol::RowsWriter rows(encoded, false);
    rows.cell(base::as_bytes(state));
    rows.end_row();
    const std::string next = std::string(state) + "x";
    std::optional<base::ByteView> more;
    if (next.size() <= 3) more = base::as_bytes(next);
    return std::optional(frame_of(std::move(rows).finish(more), request.stream));
  };
  for (std::size_t i = 0; i < 3; ++i) script(i).answers["pages"] = page;
  with_session([](Runtime& rt, Session& session) -> Task<void> {
    Pager pager(session, Query{.text = "pages"}, {.page_size = 1}, {});
    std::vector<std::string> values;
    while (!pager.done()) {
      const auto rows = co_await pager.next(Until::after(rt, 5s));
      CO_ASSERT_TRUE(rows.has_value());
      for (const Row row : rows->rows()) values.push_back(row.get<std::string>("v").value());
    }
    EXPECT_THAT(values, ElementsAre("", "x", "xx", "xxx"));
  });
}

}  // namespace
}  // namespace helenus::client
