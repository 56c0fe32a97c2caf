// An AdminServer on one simulated machine and its clients on another.
#include "admin/admin_server.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::admin {
namespace {

using base::Errc;
using base::Result;
using runtime::Address;
using runtime::Duration;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Stream;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7070;
// More than the buffers between the two machines hold.
constexpr std::size_t kLargeBodySize = std::size_t{4} << 20;

Task<HttpResponse> answer(const HttpRequest& request) {
  if (request.path == "/large") co_return {.body = std::string(kLargeBodySize, 'x')};
  if (request.path == "/v1/kv/echo") co_return {.body = std::string(request.body.text()) + "\n"};
  if (request.path == "/hello") co_return {.body = "hello " + request.query + "\n"};
  co_return {.status = 404, .body = "nothing\n"};
}

Task<void> serve(Runtime& rt, Address address, StopToken stop) {
  AdminServer server(rt, answer);
  CO_ASSERT_OK(server.start(address));
  EXPECT_EQ(server.address(), address);
  runtime::Event never(rt);
  const auto stopped = co_await never.wait({.stop = stop});
  EXPECT_TRUE(stopped.failed_with(Errc::cancelled));
  co_await server.stop();
  co_await server.stop();
}

using Story = std::function<Task<void>(Runtime&, Address server)>;

class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest()
      : server_(world_.add_machine({.name = "server"}, {})),
        client_(world_.add_machine({.name = "client"}, {})) {
    server_.set_process(sim::FunctionProcess::factory([this](Runtime& rt, StopToken stop) {
      return serve(rt, server_.address(kPort), std::move(stop));
    }));
    server_.start();
  }

  // Runs the story on the client's machine to its end.
  void tell(const Story& story) {
    begin(story);
    EXPECT_TRUE(world_.run_until([&] { return !client_.is_up(); }, 1h)) << "waits for ever";
  }
  void begin(Story story) {
    client_.set_process(
        sim::FunctionProcess::factory([story = std::move(story), address = server_.address(kPort)](
                                          Runtime& rt, StopToken) { return story(rt, address); }));
    client_.start();
  }

  sim::World world_{1};
  sim::Machine& server_;
  sim::Machine& client_;
};

Until soon(Runtime& rt) {
  return Until::after(rt, 1s);
}

Task<std::unique_ptr<Stream>> connected(Runtime& rt, Address server) {
  auto stream = co_await rt.transport.connect(server, soon(rt));
  EXPECT_TRUE(stream.has_value());
  co_return stream ? *std::move(stream) : nullptr;
}

Task<void> send(Runtime& rt, Stream& stream, std::string text) {
  const auto sent = co_await stream.write(base::as_bytes(text), soon(rt));
  EXPECT_TRUE(sent.has_value());
}

// Reads until `end` has come, or the stream ends, or nothing comes any more.
Task<std::string> received(Runtime& rt, Stream& stream, std::string end) {
  std::string text;
  std::vector<std::byte> chunk(4096);
  while (end.empty() || !text.ends_with(end)) {
    const auto got = co_await stream.read(chunk, soon(rt));
    if (!got) text += "[" + got.error().to_string() + "]";
    if (!got || *got == 0) break;
    text += base::as_text(std::span(chunk).first(*got));
  }
  co_return text;
}

// One request on a connection of its own, to the end of the stream.
Task<std::string> ask(Runtime& rt, Address server, std::string request) {
  const auto stream = co_await connected(rt, server);
  if (stream == nullptr) co_return "";
  co_await send(rt, *stream, std::move(request));
  co_return co_await received(rt, *stream, "");
}

std::string ok(std::string_view body, bool keep_alive) {
  return encode(HttpResponse{.body = std::string(body)}, keep_alive, true);
}

TEST_F(AdminServerTest, AnswersThroughItsHandler) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto found = co_await ask(rt, server, "GET /hello?you HTTP/1.0\r\n\r\n");
    EXPECT_EQ(found, ok("hello you\n", false));
    const auto missing = co_await ask(rt, server, "GET /else HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(missing.starts_with("HTTP/1.1 404 Not Found\r\n")) << missing;
    EXPECT_TRUE(missing.ends_with("\r\n\r\nnothing\n")) << missing;
  });
}

TEST_F(AdminServerTest, AnswersHeadWithoutTheBody) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto answer = co_await ask(rt, server, "HEAD /hello?x HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(answer.contains("Content-Length: 8\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("Connection: close\r\n\r\n")) << answer;
  });
}

TEST(AdminRule, ChangesAreForThoseOnThisMachine) {
  const Address far = Address::v4({10, 0, 0, 1}, 1);
  for (const Address here : {Address::v4({127, 0, 0, 1}, 1), Address::v4({127, 9, 9, 9}, 1)}) {
    EXPECT_FALSE(refuse({.method = "POST"}, here));
    EXPECT_EQ(refuse({.method = "POST", .from_page = true}, here)->status, 403);
    const auto answer = refuse({.method = "DELETE"}, here);
    EXPECT_EQ(answer->status, 405);
    EXPECT_EQ(answer->allow, "GET, HEAD, POST");
  }
  for (const Address there : {far, Address::v4({128, 0, 0, 1}, 1)}) {
    EXPECT_EQ(refuse({.method = "POST"}, there)->status, 403);
    EXPECT_EQ(refuse({.method = "DELETE"}, there)->status, 403);
  }
  for (const char* method : {"GET", "HEAD"}) {
    EXPECT_FALSE(refuse({.method = method, .from_page = true}, far));
  }
}

TEST_F(AdminServerTest, AChangeFromAnotherMachineDoesNotReachTheHandler) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto answer = co_await ask(rt, server, "POST /hello?x HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 Forbidden\r\n")) << answer;
    EXPECT_FALSE(answer.contains("hello")) << answer;
  });
}

TEST_F(AdminServerTest, RefusesWhatItDoesNotDoAndCloses) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto method = co_await ask(rt, server, "DELETE /hello HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(method.starts_with("HTTP/1.1 403 Forbidden\r\n")) << method;
    EXPECT_TRUE(method.contains("\r\nConnection: close\r\n")) << method;
    const auto nonsense = co_await ask(rt, server, "hello\r\n\r\n");
    EXPECT_TRUE(nonsense.starts_with("HTTP/1.1 400 Bad Request\r\n")) << nonsense;
    const auto body = co_await ask(rt, server, "GET /hello HTTP/1.1\r\nContent-Length: 1\r\n\r\n!");
    EXPECT_TRUE(body.starts_with("HTTP/1.1 501 Not Implemented\r\n")) << body;
  });
}

TEST_F(AdminServerTest, ARequestThatNeverEndsIsRefusedAtTheLimit) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const std::string endless = "GET / HTTP/1.1\r\nX: " + std::string(kHttpRequestSizeMax, 'x');
    const auto answer = co_await ask(rt, server, endless);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 Bad Request\r\n")) << answer;
  });
}

TEST_F(AdminServerTest, ServesOneRequestAfterAnotherOnAConnection) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    for (const char* name : {"a", "b", "c"}) {
      co_await send(rt, *stream, std::string("GET /hello?") + name + " HTTP/1.1\r\n\r\n");
      const auto expected = ok(std::string("hello ") + name + "\n", true);
      EXPECT_EQ(co_await received(rt, *stream, std::string(name) + "\n"), expected);
    }
  });
}

TEST_F(AdminServerTest, AnswersPipelinedRequestsInOrder) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    std::string requests, expected;
    for (int number = 0; number < 500; ++number) {
      requests += fmt::format("GET /hello?{} HTTP/1.1\r\nHost: h\r\n\r\n", number);
      expected += ok(fmt::format("hello {}\n", number), true);
    }
    requests += "GET /hello?end HTTP/1.1\r\nConnection: close\r\n\r\n";
    expected += ok("hello end\n", false);
    EXPECT_EQ(co_await ask(rt, server, requests), expected);
  });
}

TEST_F(AdminServerTest, ARequestMayComeByteByByte) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    for (const char byte : std::string("GET /hello?slow HTTP/1.0\r\n\r\n")) {
      co_await send(rt, *stream, std::string(1, byte));
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 10ms, {}));
    }
    EXPECT_EQ(co_await received(rt, *stream, ""), ok("hello slow\n", false));
  });
}

TEST_F(AdminServerTest, AnAnswerReachesAClientThatIsStillSending) {
  // Under several schedules: a broken stream loses what was not yet read, or does not.
  tell([](Runtime& rt, Address server) -> Task<void> {
    for (int attempt = 0; attempt < 20; ++attempt) {
      const std::string body(100'000, 'x');
      const auto answer =
          co_await ask(rt, server, "POST /hello HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + body);
      EXPECT_TRUE(answer.starts_with("HTTP/1.1 501 Not Implemented\r\n")) << answer;
      EXPECT_TRUE(answer.ends_with("a body\n")) << answer;
    }
  });
}

TEST(AdminRule, RowsArePutAndDeletedByWhomTheirHandlerServes) {
  const Address far = Address::v4({10, 0, 0, 1}, 1);
  const std::string path = std::string(kDataPath) + "ks/t/k";
  for (const char* method : {"GET", "PUT", "DELETE", "POST", "PATCH"}) {
    EXPECT_FALSE(refuse({.method = method, .path = path}, far)) << method;
  }
  EXPECT_EQ(refuse({.method = "PUT", .path = path, .from_page = true}, far)->status, 403);
  const auto with_body = [&](const char* method, std::size_t size) {
    return HttpRequest{.method = method, .path = path, .body_size = size};
  };
  EXPECT_FALSE(refuse(with_body("PUT", AdminServer::kBodySizeMax), far));
  EXPECT_EQ(refuse(with_body("PUT", AdminServer::kBodySizeMax + 1), far)->status, 413);
  EXPECT_EQ(refuse(with_body("DELETE", 1), far)->status, 501);
}

TEST_F(AdminServerTest, ReadsABodyHoweverItComesAndTheNextRequestBehindIt) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const std::string head = "PUT /v1/kv/echo HTTP/1.1\r\nContent-Length: 5\r\n\r\n";
    EXPECT_EQ(co_await ask(rt, server,
                           head + "abcde" + head + "12345" + "GET /hello?you HTTP/1.0\r\n\r\n"),
              ok("abcde\n", true) + ok("12345\n", true) + ok("hello you\n", false));
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    for (const char byte : head + "abcde") {
      co_await send(rt, *stream, std::string(1, byte));
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 10ms, {}));
    }
    EXPECT_EQ(co_await received(rt, *stream, "abcde\n"), ok("abcde\n", true));
  });
}

TEST_F(AdminServerTest, SaysThatABodyMayCome) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    const std::string head = "PUT /v1/kv/echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: ";
    co_await send(rt, *stream, head + "3\r\n\r\n");
    EXPECT_EQ(co_await received(rt, *stream, "\r\n\r\n"), kHttpContinue);
    co_await send(rt, *stream, "abc");
    EXPECT_EQ(co_await received(rt, *stream, "abc\n"), ok("abc\n", true));
    const auto large = co_await ask(rt, server, head + "1048577\r\n\r\n");
    EXPECT_TRUE(large.starts_with("HTTP/1.1 413 ")) << large;
  });
}

TEST_F(AdminServerTest, BodiesThatDoNotComeHoldNobodyUpForEver) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const std::string head = "PUT /v1/kv/echo HTTP/1.1\r\nContent-Length: ";
    std::vector<std::unique_ptr<Stream>> slow;
    for (std::size_t size = 0; size < AdminServer::kBodiesSizeMax;
         size += AdminServer::kBodySizeMax) {
      slow.push_back(co_await connected(rt, server));
      CO_ASSERT_TRUE(slow.back() != nullptr);
      co_await send(rt, *slow.back(),
                    fmt::format("{}{}\r\n\r\nx", head, AdminServer::kBodySizeMax));
    }
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    // Those without a body are served meanwhile, and one with a body when the slow ones are cut.
    EXPECT_EQ(co_await ask(rt, server, "GET /hello?me HTTP/1.0\r\n\r\n"), ok("hello me\n", false));
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, 5s, {}));
    co_await send(rt, *stream, head + "3\r\n\r\nabc");
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, AdminServer::kRequestTimeout - 3s, {}));
    EXPECT_EQ(co_await received(rt, *stream, "abc\n"), ok("abc\n", true));
  });
}

TEST_F(AdminServerTest, AClientThatNeverStopsSendingIsCut) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    co_await send(rt, *stream, "POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n");
    const std::string chunk(64 * 1024, 'x');
    std::size_t size = 0;
    for (;;) {
      const auto sent = co_await stream->write(base::as_bytes(chunk), soon(rt));
      if (!sent) break;
      size += chunk.size();
      CO_ASSERT_TRUE(size < std::size_t{16} << 20);
    }
    EXPECT_GE(size, AdminServer::kLingerSizeMax);
  });
}

TEST_F(AdminServerTest, AClientThatSendsTooSlowlyIsCutAndOthersAreServed) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto slow = co_await connected(rt, server);
    CO_ASSERT_TRUE(slow != nullptr);
    const auto begin = rt.clock.now();
    co_await send(rt, *slow, "GET /hello HTTP/1.1\r\nX: ");
    EXPECT_EQ(co_await ask(rt, server, "GET /hello?me HTTP/1.0\r\n\r\n"), ok("hello me\n", false));
    std::vector<std::byte> chunk(16);
    // A byte now and then does not help: it is the whole request that has a deadline.
    for (;;) {
      const auto got = co_await slow->read(chunk, Until::after(rt, 5s));
      if (!got.failed_with(Errc::timeout)) break;
      co_await send(rt, *slow, "x");
    }
    EXPECT_GE(rt.clock.now() - begin, AdminServer::kRequestTimeout - 1s);
    EXPECT_LT(rt.clock.now() - begin, AdminServer::kRequestTimeout + 6s);
  });
}

TEST_F(AdminServerTest, AnIdleConnectionIsEndedAfterAWhile) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    std::vector<std::byte> chunk(16);
    const auto got = co_await stream->read(chunk, Until::after(rt, 1h));
    CO_ASSERT_OK(got);
    EXPECT_EQ(*got, 0U) << "an orderly end";
  });
}

TEST_F(AdminServerTest, AClientThatDoesNotTakeItsAnswerIsCut) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto stream = co_await connected(rt, server);
    CO_ASSERT_TRUE(stream != nullptr);
    co_await send(rt, *stream, "GET /large HTTP/1.1\r\n\r\n");
    CO_ASSERT_OK(co_await runtime::sleep_for(rt, AdminServer::kRequestTimeout + 5s, {}));
    const auto answer = co_await received(rt, *stream, "");
    EXPECT_LT(answer.size(), kLargeBodySize);
  });
}

TEST_F(AdminServerTest, AClientThatTakesItsTimeGetsALargeAnswer) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    const auto answer = co_await ask(rt, server, "GET /large HTTP/1.0\r\n\r\n");
    EXPECT_GT(answer.size(), kLargeBodySize);
  });
}

TEST_F(AdminServerTest, ConnectionsBeyondTheLimitWaitForOneToLeave) {
  tell([](Runtime& rt, Address server) -> Task<void> {
    std::vector<std::unique_ptr<Stream>> idle;
    for (std::size_t count = 0; count < AdminServer::kConnectionsMax; ++count) {
      idle.push_back(co_await connected(rt, server));
      CO_ASSERT_TRUE(idle.back() != nullptr);
    }
    const auto late = co_await connected(rt, server);
    CO_ASSERT_TRUE(late != nullptr);
    co_await send(rt, *late, "GET /hello?late HTTP/1.0\r\n\r\n");
    std::vector<std::byte> chunk(4096);
    const auto early = co_await late->read(chunk, soon(rt));
    EXPECT_TRUE(early.failed_with(Errc::timeout));
    idle.pop_back();
    EXPECT_EQ(co_await received(rt, *late, ""), ok("hello late\n", false));
  });
}

// Opens connections in every state there is and keeps them.
Task<void> crowd(Runtime& rt, Address server, std::size_t count) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (std::size_t number = 0; number < count; ++number) {
    streams.push_back(co_await connected(rt, server));
    CO_ASSERT_TRUE(streams.back() != nullptr);
    if (number % 3 == 1) co_await send(rt, *streams.back(), "GET /he");
    if (number % 3 == 2) co_await send(rt, *streams.back(), "GET /large HTTP/1.1\r\n\r\n");
  }
  runtime::Event never(rt);
  const auto waited = co_await never.wait(Until::forever());
  EXPECT_TRUE(waited.has_value());
}

TEST_F(AdminServerTest, StoppingEndsEveryConnection) {
  begin([](Runtime& rt, Address server) { return crowd(rt, server, 30); });
  world_.run_for(10s);
  server_.request_stop();
  EXPECT_TRUE(world_.run_until([&] { return server_.exits() == 1; }, 1s));
}

TEST_F(AdminServerTest, AFullServerMayCrash) {
  begin([](Runtime& rt, Address server) {
    return crowd(rt, server, AdminServer::kConnectionsMax + 10);
  });
  world_.run_for(10s);
  ASSERT_TRUE(client_.is_up());
  server_.kill();
  server_.start();
  client_.kill();
  tell([](Runtime& rt, Address server) -> Task<void> {
    EXPECT_EQ(co_await ask(rt, server, "GET /hello?again HTTP/1.0\r\n\r\n"),
              ok("hello again\n", false));
  });
}

TEST_F(AdminServerTest, ATakenAddressIsRefused) {
  tell([](Runtime& rt, Address) -> Task<void> {
    AdminServer first(rt, answer);
    AdminServer second(rt, answer);
    CO_ASSERT_OK(first.start(Address::v4({127, 0, 0, 1}, 1234)));
    EXPECT_TRUE(second.start(first.address()).failed_with(Errc::address_in_use));
    co_await second.stop();
    co_await first.stop();
  });
}

}  // namespace
}  // namespace helenus::admin
