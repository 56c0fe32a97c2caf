// Connections that do not behave: each ends with a line in the log, and nothing else is touched.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/crc32c.h"
#include "rpc/frame_test_support.h"
#include "rpc/rpc_test_support.h"
#include "sim/function_process.h"

namespace helenus::rpc {
namespace {

// Node 1 serves, node 0 calls it all the time, and a third machine misbehaves.
class HostileTest : public testing::Test {
 public:
  using Attack = std::function<Task<void>(Runtime&, Address victim)>;

 protected:
  HostileTest() : machine_(cluster_.world().add_machine({.name = "attacker"}, {})) {
    // Frames are made by hand here; secret_test.cc has those that are marked.
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      cluster_.options(i).secrets.clear();
      cluster_.options(i).any_address_in_the_clear = true;
    }
    cluster_.options(1).limits.strangers_max = 4;
    cluster_.options(1).limits.silence_max = 5s;
  }

  // What node 1 says in its log when it closes the connection. Node 0's calls go on meanwhile, over
  // one and the same connection.
  void expect_closed(const Attack& attack, std::string_view reason) {
    if (cluster_.machine(0).state() == sim::Machine::State::down) cluster_.start_all();
    const std::size_t logged = cluster_.logged(1, "closed a connection", reason);
    const std::uint64_t bad = cluster_.rpc(1).statistics().connections_bad;
    machine_.set_process(
        sim::FunctionProcess::factory([&attack, address = cluster_.address(1)](
                                          Runtime& rt, StopToken) { return attack(rt, address); }));
    machine_.start();
    cluster_.tell(0, call_for_a_while);
    EXPECT_TRUE(cluster_.world().run_until([&] { return !machine_.is_up(); }, 1min));
    cluster_.world().run_for(1s);
    EXPECT_EQ(cluster_.logged(1, "closed a connection", reason), logged + 1) << reason;
    EXPECT_EQ(cluster_.rpc(1).statistics().connections_bad, bad + 1);
    EXPECT_EQ(cluster_.rpc(1).statistics().connections_current, 1U);
    EXPECT_EQ(cluster_.statistics(0, 1).dials, 1U);
    EXPECT_EQ(cluster_.statistics(0, 1).connections_broken, 0U);
  }
  ~HostileTest() override { cluster_.stop_all(); }

  // The third machine begins; it goes down when it has ended. The attack captures nothing.
  void attack_with(Attack attack) {
    machine_.set_process(
        sim::FunctionProcess::factory([attack = std::move(attack), address = cluster_.address(1)](
                                          Runtime& rt, StopToken) { return attack(rt, address); }));
    machine_.start();
  }

  static Task<void> call_for_a_while(Runtime& rt, Rpc& rpc) {
    for (int i = 0; i < 20; ++i) {
      const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 1s));
      EXPECT_TRUE(answer.has_value());
      const auto slept = co_await runtime::sleep_for(rt, 50ms, {});
      EXPECT_TRUE(slept.has_value());
    }
  }

  Cluster cluster_{1, 2};
  sim::Machine& machine_;
};

Bytes bytes_of(const Frame& frame) {
  FrameBatch batch;
  batch.add(frame);
  base::Buffer all;
  for (const Bytes& piece : batch.take()) all.append(piece);
  return std::move(all).freeze();
}

Hello hello_of(std::uint64_t number) {
  return {.versions = kVersions,
          .cluster = "troy",
          .from = node_of(number),
          .life = 1,
          .to = {},
          .lane = Lane::data,
          .address = {},
          .body_size_max = kFrameBodySizeMaxDefault};
}

// The bytes of frames, read from a stream.
Task<Result<Frame>> read_frame(runtime::Stream& stream, FrameReader& reader, Until until) {
  for (;;) {
    CO_TRY(const std::optional<Bytes> body, reader.next());
    if (body) co_return decode_body(*body);
    CO_TRY(const std::size_t size, co_await stream.read(reader.room(), until));
    if (size == 0) co_return Error(Errc::closed);
    reader.commit(size);
  }
}

// Sends the bytes, after a handshake if one is wanted, and reads until the other side hangs up.
Task<void> send_and_wait(Runtime& rt, Address victim, bool shakes_hands, Bytes bytes) {
  const Until until = Until::after(rt, 30s);
  const auto stream = co_await rt.transport.connect(victim, until);
  CO_ASSERT_OK(stream);
  FrameReader reader(kFrameBodySizeMaxDefault);
  if (shakes_hands) {
    const Bytes hello = bytes_of(hello_of(66));
    const auto sent = co_await (*stream)->write(hello, until);
    CO_ASSERT_OK(sent);
    const auto welcome = co_await read_frame(**stream, reader, until);
    CO_ASSERT_OK(welcome);
    EXPECT_TRUE(std::holds_alternative<Welcome>(*welcome));
  }
  const auto sent = co_await (*stream)->write(bytes, until);
  EXPECT_TRUE(sent.has_value());
  for (;;) {
    const auto frame = co_await read_frame(**stream, reader, until);
    if (frame) continue;
    EXPECT_FALSE(frame.failed_with(Errc::timeout)) << "the connection was not closed";
    co_return;
  }
}

HostileTest::Attack stranger(Bytes bytes) {
  return [bytes](Runtime& rt, Address victim) { return send_and_wait(rt, victim, false, bytes); };
}
HostileTest::Attack peer(Bytes bytes) {
  return [bytes](Runtime& rt, Address victim) { return send_and_wait(rt, victim, true, bytes); };
}

TEST_F(HostileTest, GarbageInsteadOfAHandshake) {
  expect_closed(stranger(text("GET / HTTP/1.1\r\nHost: troy\r\n\r\n")), "not a frame");
}

TEST_F(HostileTest, AFrameThatIsNoHandshake) {
  expect_closed(stranger(bytes_of(Ping{.number = 1})), "before a handshake");
}

TEST_F(HostileTest, AHandshakeLargerThanAnyIs) {
  expect_closed(stranger(head_of_frame(1025, 0)), "a frame of 1025 bytes, where 1024 are the most");
}

TEST_F(HostileTest, AHandshakeOfNoVersion) {
  base::Buffer body;
  body.append(bytes_of(hello_of(66)).slice(kFrameHeadSize));
  body.mutable_view()[5] = std::byte{0};
  base::Buffer frame;
  frame.append(head_of_frame(static_cast<std::uint32_t>(body.size()), base::crc32c(body.view())));
  frame.append(body.view());
  expect_closed(stranger(std::move(frame).freeze()), "a version out of range");
}

TEST_F(HostileTest, AHandshakeThatNeverEnds) {
  expect_closed(stranger(bytes_of(hello_of(66)).slice(0, 20)), "no handshake within the time");
}

TEST_F(HostileTest, GarbageAfterTheHandshake) {
  expect_closed(peer(text("some words that are no frame")), "not a frame");
}

TEST_F(HostileTest, ADamagedBody) {
  base::Buffer damaged;
  damaged.append(bytes_of(Request{.id = 1, .verb = kEcho.number, .payload = text("abc")}));
  damaged.mutable_view().back() ^= std::byte{1};
  expect_closed(peer(std::move(damaged).freeze()), "the checksum of a frame does not match");
  EXPECT_EQ(cluster_.seen(1).echoes, 20U);
}

TEST_F(HostileTest, AFrameAboveTheLimit) {
  expect_closed(peer(head_of_frame((16U << 20) + 1, 0)), "where 16777216 are the most");
}

TEST_F(HostileTest, AFrameOutOfTurn) {
  expect_closed(peer(bytes_of(hello_of(66))), "'hello' out of turn");
  expect_closed(peer(bytes_of(Answer{.id = 1, .payload = {}})), "'answer' out of turn");
  expect_closed(peer(bytes_of(Goodbye())), "'goodbye' out of turn");
}

TEST_F(HostileTest, TwoRequestsOfOneNumber) {
  const Bytes request = bytes_of(Request{.id = 5, .verb = kWait.number, .payload = {}});
  base::Buffer twice;
  twice.append(request);
  twice.append(request);
  expect_closed(peer(std::move(twice).freeze()), "two requests of the number 5");
  EXPECT_EQ(cluster_.seen(1).waits_cancelled, 1U);
}

TEST_F(HostileTest, APartOfAFrameAndThenSilence) {
  expect_closed(
      peer(bytes_of(Request{.id = 1, .verb = kEcho.number, .payload = text("abc")}).slice(0, 15)),
      "silent for too long");
}

// Connects so many times and says nothing.
Task<void> connect_and_wait(Runtime& rt, Address victim, int connections, Duration wait) {
  std::vector<std::unique_ptr<runtime::Stream>> streams;
  for (int i = 0; i < connections; ++i) {
    auto stream = co_await rt.transport.connect(victim, Until::after(rt, 5s));
    if (stream) streams.push_back(*std::move(stream));
  }
  const auto slept = co_await runtime::sleep_for(rt, wait, {});
  EXPECT_TRUE(slept.has_value());
}

// More strangers than may wait at once: the last ones have the places, a node that is known
// meanwhile goes on.
TEST_F(HostileTest, ManyConnectionsThatSayNothing) {
  cluster_.start_all();
  cluster_.tell(0, call_for_a_while);
  attack_with([](Runtime& rt, Address victim) { return connect_and_wait(rt, victim, 20, 10s); });
  cluster_.tell(0, call_for_a_while);
  EXPECT_TRUE(cluster_.world().run_until([&] { return !machine_.is_up(); }, 1min));
  const std::size_t evicted =
      cluster_.logged(1, "closed a connection", "too many connections without a handshake");
  EXPECT_EQ(evicted + cluster_.rpc(1).statistics().connections_refused, 16U);
  EXPECT_EQ(cluster_.logged(1, "closed a connection", "no handshake within the time"), 4U);
  EXPECT_EQ(cluster_.rpc(1).statistics().connections_current, 1U);
  EXPECT_EQ(cluster_.statistics(0, 1).dials, 1U);
}

// A node that is not connected yet finds a place, however fast others take them.
TEST_F(HostileTest, StrangersThatSayNothingKeepNobodyOut) {
  cluster_.start_all();
  attack_with([](Runtime& rt, Address victim) -> Task<void> {
    for (int i = 0; i < 200; ++i) co_await connect_and_wait(rt, victim, 10, 5ms);
  });
  cluster_.world().run_for(100ms);
  cluster_.tell(0, call_for_a_while);
  EXPECT_TRUE(machine_.is_up()) << "the attack was over before";
  EXPECT_EQ(cluster_.statistics(0, 1).dials, 1U);
  EXPECT_EQ(cluster_.statistics(0, 1).dials_failed, 0U);
  EXPECT_TRUE(cluster_.world().run_until([&] { return !machine_.is_up(); }, 1min));
}

// A scanner that comes again and again fills no disk: after the first lines there is one now and
// then, which tells how many there were.
TEST_F(HostileTest, StrangersCauseFewLinesInTheLog) {
  cluster_.options(1).limits.stranger_lines = {.burst = 10, .interval = 10s};
  cluster_.start_all();
  attack_with([](Runtime& rt, Address victim) -> Task<void> {
    for (int i = 0; i < 300; ++i) {
      co_await send_and_wait(rt, victim, false, text("GET / HTTP/1.1\r\n\r\n"));
    }
    const auto slept = co_await runtime::sleep_for(rt, 20s, {});
    EXPECT_TRUE(slept.has_value());
    co_await send_and_wait(rt, victim, false, text("GET / HTTP/1.1\r\n\r\n"));
  });
  EXPECT_TRUE(cluster_.world().run_until([&] { return !machine_.is_up(); }, 1min));
  EXPECT_EQ(cluster_.rpc(1).statistics().connections_bad, 301U);
  const std::size_t lines = cluster_.logged(1, "closed a connection", "");
  EXPECT_GE(lines, 11U);
  EXPECT_LE(lines, 14U);
  EXPECT_EQ(cluster_.logged(1, "lines like the next one were left out", ""), 1U);
}

// A peer that asks and does not read: what is held for it has a limit, and it is given up.
TEST_F(HostileTest, APeerThatTakesNoAnswers) {
  cluster_.options(1).limits.answer_bytes_high = 100'000;
  cluster_.start_all();
  const auto attack = [](Runtime& rt, Address victim) -> Task<void> {
    const auto stream = co_await rt.transport.connect(victim, Until::after(rt, 5s));
    CO_ASSERT_OK(stream);
    const Bytes hello = bytes_of(hello_of(66));
    const auto shaken = co_await (*stream)->write(hello, Until::after(rt, 5s));
    CO_ASSERT_OK(shaken);
    const Bytes payload = text(std::string(10'000, 'x'));
    for (std::uint64_t id = 1;; ++id) {
      const Bytes request = bytes_of(Request{.id = id, .verb = kEcho.number, .payload = payload});
      const auto sent = co_await (*stream)->write(request, Until::after(rt, 30s));
      if (sent) continue;
      EXPECT_FALSE(sent.failed_with(Errc::timeout));
      co_return;
    }
  };
  attack_with(attack);
  cluster_.tell(0, call_for_a_while);
  EXPECT_TRUE(cluster_.world().run_until([&] { return !machine_.is_up(); }, 1min));
  EXPECT_EQ(cluster_.logged(1, "closed a connection", "the node takes nothing"), 1U);
  EXPECT_EQ(cluster_.statistics(0, 1).dials, 1U);
}

// What a caller makes of something that only looks like a node: it answers a hello with a welcome
// and then with these bytes.
Task<void> pretend(Runtime& rt, Address address, Bytes first, Bytes then) {
  const Until until = Until::after(rt, 30s);
  auto listener = rt.transport.listen(address);
  CO_ASSERT_OK(listener);
  const auto stream = co_await (*listener)->accept(until);
  CO_ASSERT_OK(stream);
  FrameReader reader(kFrameBodySizeMaxDefault);
  const auto hello = co_await read_frame(**stream, reader, until);
  CO_ASSERT_OK(hello);
  const auto greeted = co_await (*stream)->write(first, until);
  CO_ASSERT_OK(greeted);
  if (!then.empty()) {
    const auto sent = co_await (*stream)->write(then, until);
    CO_ASSERT_OK(sent);
  }
  for (;;) {
    const auto frame = co_await read_frame(**stream, reader, until);
    if (!frame) break;
  }
}

class PretenderTest : public HostileTest {
 protected:
  // Node 0 calls something at the address of node 7.
  void expect_failure(Bytes first, Bytes then, std::string_view reason) {
    cluster_.start_all();
    const Address address = machine_.address(kTestPort);
    machine_.set_process(sim::FunctionProcess::factory(
        [=](Runtime& rt, StopToken) { return pretend(rt, address, first, then); }));
    machine_.start();
    cluster_.world().run_for(1ms);
    const TestNode::Story story = [=](Runtime& rt, Rpc& rpc) {
      return [](Runtime& runtime, Rpc& the_rpc, Address at, std::string why) -> Task<void> {
        CO_ASSERT_OK(the_rpc.introduce(node_of(7), at));
        const auto answer =
            co_await the_rpc.call(node_of(7), kEcho, text("x"), Until::after(runtime, 20s));
        EXPECT_FALSE(answer.has_value());
        EXPECT_TRUE(answer.error().context().contains(why)) << answer.error().to_string();
      }(rt, rpc, address, std::string(reason));
    };
    cluster_.tell(0, story);
    cluster_.tell(0, call_for_a_while);
  }

  static Bytes welcome(std::uint64_t number = 7, std::uint16_t version = 1) {
    return bytes_of(Welcome{.version = ProtocolVersion(version),
                            .node = node_of(number),
                            .body_size_max = kFrameBodySizeMaxDefault});
  }
};

TEST_F(PretenderTest, IsSomethingElse) {
  expect_failure(text("220 mail.troy ESMTP"), {}, "not a frame");
}
TEST_F(PretenderTest, IsAnotherNode) {
  expect_failure(welcome(8), {}, "it is node");
}
TEST_F(PretenderTest, SpeaksAVersionThatWasNotOffered) {
  expect_failure(welcome(7, 9), {}, "version 9, which was not offered");
}
TEST_F(PretenderTest, GreetsWithTheWrongFrame) {
  expect_failure(bytes_of(Pong{.number = 1}), {}, "a frame of the kind 'pong'");
}
TEST_F(PretenderTest, AnswersWithGarbage) {
  expect_failure(welcome(), text("some words that are no frame"), "not a frame");
}
TEST_F(PretenderTest, AsksBack) {
  expect_failure(welcome(), bytes_of(Request{.id = 1, .verb = 1, .payload = {}}),
                 "'request' out of turn");
}
TEST_F(PretenderTest, AnswersWhatNobodyAskedAndThenNothing) {
  expect_failure(welcome(), bytes_of(Answer{.id = 12345, .payload = {}}), "silent for too long");
  EXPECT_EQ(cluster_.statistics(0, 7).answers_late, 1U);
}

}  // namespace
}  // namespace helenus::rpc
