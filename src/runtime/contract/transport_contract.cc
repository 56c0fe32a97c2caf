// What Transport, Listener and Stream promise, in any world.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/prng.h"
#include "runtime/contract/contract.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "runtime/when_all.h"

namespace helenus::runtime::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportContract);

namespace {

using base::Buffer;
using base::ByteView;
using base::Errc;
using base::Result;

const Until kForever = Until::forever();

Until expired() {
  return {.deadline = MonotonicTime()};
}

// Long enough for a wait to be under way, short enough for a test.
Until soon(Runtime& runtime) {
  return Until::after(runtime, 5ms);
}

Buffer noise(std::size_t size, std::uint64_t seed) {
  Buffer buffer(size);
  fill_with_noise(buffer.extend(size), seed);
  return buffer;
}

// Two streams that are each other's ends, and the listener they met at.
struct Pair {
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

Task<Result<std::unique_ptr<Stream>>> accept_one(Listener& listener) {
  co_return co_await listener.accept(kForever);
}

Task<Result<Pair>> make_pair(Runtime& runtime, Address loopback) {
  Pair pair;
  CO_TRY(pair.listener, runtime.transport.listen(loopback));
  auto [client, server] = co_await when_all(
      runtime.transport.connect(pair.listener->address(), kForever), accept_one(*pair.listener));
  CO_TRY(pair.client, std::move(client));
  CO_TRY(pair.server, std::move(server));
  co_return pair;
}

// Reads exactly that many bytes; fewer only if the other side has ended.
Task<Result<std::string>> read_text(Stream& stream, std::size_t size) {
  std::string text(size, '?');
  std::size_t filled = 0;
  while (filled < size) {
    const auto into = std::as_writable_bytes(std::span(text)).subspan(filled);
    CO_TRY(const std::size_t count, co_await stream.read(into, kForever));
    if (count == 0) break;
    filled += count;
  }
  text.resize(filled);
  co_return text;
}

Task<Result<void>> write_text(Stream& stream, std::string text) {
  co_return co_await stream.write(base::as_bytes(text), kForever);
}

Task<Result<void>> write_until_it_fails(Stream& stream) {
  const Buffer block = noise(64 * 1024, 1);
  for (;;) CO_TRY_VOID(co_await stream.write(block.view(), kForever));
}

Task<Result<void>> read_until_it_ends(Stream& stream) {
  Buffer memory(64 * 1024);
  memory.extend(64 * 1024);
  for (;;) {
    CO_TRY(const std::size_t count, co_await stream.read(memory.mutable_view(), kForever));
    if (count == 0) co_return {};
  }
}

}  // namespace

// Listening and connecting

TEST_P(TransportContract, ListeningOnPortZeroTellsThePortChosen) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto one = rt.transport.listen(loopback);
    const auto other = rt.transport.listen(loopback);
    CO_ASSERT_OK(one);
    CO_ASSERT_OK(other);
    EXPECT_NE((*one)->address().port(), 0);
    EXPECT_NE((*one)->address(), (*other)->address());
    EXPECT_EQ((*one)->address().ip_text(), loopback.ip_text());
    co_return;
  });
}

TEST_P(TransportContract, AnAddressIsListenedOnOnce) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    auto first = rt.transport.listen(loopback);
    CO_ASSERT_OK(first);
    const Address address = (*first)->address();
    const auto second = rt.transport.listen(address);
    EXPECT_TRUE(second.failed_with(Errc::address_in_use));
    const auto sharing = rt.transport.listen(address, {.shared_between_cores = true});
    EXPECT_TRUE(sharing.failed_with(Errc::address_in_use));
    (*first)->close();
    EXPECT_TRUE(rt.transport.listen(address).has_value());
    co_return;
  });
}

TEST_P(TransportContract, DestroyingAListenerFreesItsAddress) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    const Address address = (*listener)->address();
    listener->reset();
    EXPECT_TRUE(rt.transport.listen(address).has_value());
    co_return;
  });
}

TEST_P(TransportContract, AnAddressOfAnotherMachineCannotBeListenedOn) {
  tell([](Runtime& rt, Address) -> Task<void> {
    // 203.0.113.0/24 is set aside for documentation.
    const auto listener = rt.transport.listen(Address::v4({203, 0, 113, 7}, 0));
    EXPECT_TRUE(listener.failed_with(Errc::invalid_argument));
    co_return;
  });
}

TEST_P(TransportContract, ConnectingWhereNobodyListensIsRefused) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    const Address address = (*listener)->address();
    (*listener)->close();
    const auto stream = co_await rt.transport.connect(address, kForever);
    EXPECT_TRUE(stream.failed_with(Errc::refused));
    EXPECT_NE(stream.error().context().find(address.to_string()), std::string_view::npos);
  });
}

TEST_P(TransportContract, BothEndsKnowBothAddresses) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    EXPECT_EQ(pair->client->peer_address(), pair->listener->address());
    EXPECT_EQ(pair->server->local_address(), pair->listener->address());
    EXPECT_EQ(pair->client->local_address(), pair->server->peer_address());
    pair->client->close();
    EXPECT_EQ(pair->client->peer_address(), pair->listener->address());
  });
}

TEST_P(TransportContract, AConnectionCanComeFromAChosenAddress) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    const auto [client, server] = co_await when_all(
        rt.transport.connect((*listener)->address(), kForever, loopback), accept_one(**listener));
    CO_ASSERT_OK(client);
    CO_ASSERT_OK(server);
    EXPECT_EQ((*server)->peer_address().ip_text(), loopback.ip_text());
    const auto from_elsewhere = co_await rt.transport.connect((*listener)->address(), kForever,
                                                              Address::v4({203, 0, 113, 7}, 0));
    EXPECT_TRUE(from_elsewhere.failed_with(Errc::invalid_argument));
  });
}

TEST_P(TransportContract, ConnectionsWaitInTheBacklogToBeAccepted) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    std::vector<std::unique_ptr<Stream>> clients;
    for (int i = 0; i < 20; ++i) {
      auto client = co_await rt.transport.connect((*listener)->address(), kForever);
      CO_ASSERT_OK(client);
      CO_ASSERT_OK(co_await write_text(**client, std::string(1, static_cast<char>('a' + i))));
      clients.push_back(*std::move(client));
    }
    std::string seen;
    for (int i = 0; i < 20; ++i) {
      const auto server = co_await (*listener)->accept(kForever);
      CO_ASSERT_OK(server);
      const auto text = co_await read_text(**server, 1);
      CO_ASSERT_OK(text);
      seen += *text;
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, "abcdefghijklmnopqrst");
  });
}

// Reading and writing

TEST_P(TransportContract, BytesArriveInOrderBothWays) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    CO_ASSERT_OK(co_await write_text(*pair->client, "hello "));
    CO_ASSERT_OK(co_await write_text(*pair->client, "server"));
    CO_ASSERT_OK(co_await write_text(*pair->server, "hello client"));
    EXPECT_THAT(co_await read_text(*pair->server, 12), Holds("hello server"));
    EXPECT_THAT(co_await read_text(*pair->client, 12), Holds("hello client"));
  });
}

TEST_P(TransportContract, AReadTakesWhatIsThereAndNoMoreThanFits) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    CO_ASSERT_OK(co_await write_text(*pair->client, "abcdef"));
    std::array<std::byte, 4> small{};
    const auto first = co_await pair->server->read(small, kForever);
    CO_ASSERT_OK(first);
    CO_ASSERT_TRUE(*first >= 1 && *first <= 4);
    EXPECT_EQ(base::as_text(ByteView(small).first(*first)), std::string("abcd").substr(0, *first));
    EXPECT_THAT(co_await read_text(*pair->server, 6 - *first),
                Holds(std::string("abcdef").substr(*first)));
  });
}

TEST_P(TransportContract, AGatheringWriteJoinsItsPieces) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    std::vector<std::string> texts;
    std::string expected;
    for (std::size_t i = 0; i < Stream::kPiecesMax; ++i) {
      texts.emplace_back(i % 7, static_cast<char>('a' + i % 26));  // Some are empty.
      expected += texts.back();
    }
    std::vector<ByteView> pieces;
    for (const auto& text : texts) pieces.push_back(base::as_bytes(text));
    CO_ASSERT_OK(co_await pair->client->write(pieces, kForever));
    EXPECT_THAT(co_await read_text(*pair->server, expected.size()), Holds(expected));
  });
}

TEST_P(TransportContract, AnEmptyWriteSucceeds) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    CO_ASSERT_OK(co_await pair->client->write(ByteView(), kForever));
    CO_ASSERT_OK(co_await pair->client->write(std::span<const ByteView>(), kForever));
    const std::array<ByteView, 2> nothing{};
    CO_ASSERT_OK(co_await pair->client->write(nothing, kForever));
    CO_ASSERT_OK(co_await write_text(*pair->client, "x"));
    EXPECT_THAT(co_await read_text(*pair->server, 1), Holds("x"));
  });
}

namespace {

constexpr std::size_t kBigSize = 16U << 20;

// In gathering writes of odd sizes, then the end.
Task<void> send_big(Stream& stream, std::uint64_t seed) {
  const Buffer data = noise(kBigSize, seed);
  base::Prng prng(seed);
  std::size_t sent = 0;
  while (sent < data.size()) {
    std::vector<ByteView> pieces;
    const std::size_t piece_count = 1 + prng.below(Stream::kPiecesMax);
    for (std::size_t i = 0; i < piece_count; ++i) {
      const std::size_t size = std::min<std::size_t>(prng.below(100'000), data.size() - sent);
      pieces.push_back(data.view().subspan(sent, size));
      sent += size;
    }
    CO_ASSERT_OK(co_await stream.write(pieces, kForever));
  }
  stream.shutdown_write();
}

Task<void> receive_big(Stream& stream, std::uint64_t seed) {
  const Buffer expected = noise(kBigSize, seed);
  Buffer received(kBigSize + 1);
  received.extend(kBigSize + 1);
  std::size_t filled = 0;
  for (;;) {
    CO_ASSERT_TRUE(filled <= kBigSize);
    const auto into = received.mutable_view().subspan(filled);
    const auto count = co_await stream.read(into, kForever);
    CO_ASSERT_OK(count);
    if (*count == 0) break;
    filled += *count;
  }
  received.truncate(filled);
  EXPECT_TRUE(base::equal(received.view(), expected.view()));
}

}  // namespace

TEST_P(TransportContract, ALargeTransferBothWaysAtOnceArrivesWhole) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    std::vector<Task<void>> tasks;
    tasks.push_back(send_big(*pair->client, 1));
    tasks.push_back(send_big(*pair->server, 2));
    tasks.push_back(receive_big(*pair->server, 1));
    tasks.push_back(receive_big(*pair->client, 2));
    co_await when_all(std::move(tasks));
  });
}

namespace {

Task<void> write_big_and_tell(Stream& stream, bool& written) {
  const Buffer data = noise(kBigSize, 5);
  CO_ASSERT_OK(co_await stream.write(data.view(), kForever));
  written = true;
}

}  // namespace

TEST_P(TransportContract, AWriterWaitsForAReaderWhoDoesNotRead) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    bool written = false;
    TaskGroup group(rt);
    group.spawn(write_big_and_tell(*pair->client, written));
    for (int turn = 0; turn < 1000; ++turn) CO_ASSERT_OK(co_await yield_now(rt));
    EXPECT_FALSE(written);
    const auto text = co_await read_text(*pair->server, kBigSize);
    CO_ASSERT_OK(text);
    EXPECT_EQ(base::crc32c(base::as_bytes(*text)), base::crc32c(noise(kBigSize, 5).view()));
    co_await group.join();
    EXPECT_TRUE(written);
  });
}

namespace {

Task<void> drain(Stream& stream, bool& ended) {
  CO_ASSERT_OK(co_await read_until_it_ends(stream));
  ended = true;
}

Task<void> ping_pong(Stream& here, Stream& there, int& rounds, const bool& ended) {
  while (!ended) {
    CO_ASSERT_OK(co_await write_text(here, "ping"));
    const auto text = co_await read_text(there, 4);
    CO_ASSERT_OK(text);
    CO_ASSERT_TRUE(*text == "ping");
    ++rounds;
  }
}

}  // namespace

TEST_P(TransportContract, ABusyStreamLeavesRoomForAQuietOne) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto busy = co_await make_pair(rt, loopback);
    const auto quiet = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(busy);
    CO_ASSERT_OK(quiet);
    bool ended = false;
    int rounds = 0;
    std::vector<Task<void>> tasks;
    tasks.push_back(send_big(*busy->client, 1));
    tasks.push_back(drain(*busy->server, ended));
    tasks.push_back(ping_pong(*quiet->client, *quiet->server, rounds, ended));
    co_await when_all(std::move(tasks));
    EXPECT_GE(rounds, 3);
  });
}

namespace {

Task<void> echo(std::unique_ptr<Stream> stream) {
  std::array<std::byte, 512> memory;
  for (;;) {
    const auto count = co_await stream->read(memory, kForever);
    CO_ASSERT_OK(count);
    if (*count == 0) co_return;
    CO_ASSERT_OK(co_await stream->write(ByteView(memory).first(*count), kForever));
  }
}

Task<void> serve_echoes(Runtime& rt, Listener& listener) {
  TaskGroup connections(rt);
  for (;;) {
    auto stream = co_await listener.accept(kForever);
    if (stream.failed_with(Errc::closed)) break;
    if (stream) {
      connections.spawn(echo(*std::move(stream)));
    } else {
      ADD_FAILURE() << stream.error().to_string();
    }
  }
  co_await connections.join();
}

Task<void> talk(Runtime& rt, Address address, int number, int& done) {
  const auto stream = co_await rt.transport.connect(address, kForever);
  CO_ASSERT_OK(stream);
  for (int round = 0; round < 10; ++round) {
    const std::string text = fmt::format("client {} round {}", number, round);
    CO_ASSERT_OK(co_await write_text(**stream, text));
    const auto answer = co_await read_text(**stream, text.size());
    CO_ASSERT_OK(answer);
    CO_ASSERT_TRUE(*answer == text);
  }
  (*stream)->shutdown_write();
  EXPECT_THAT(co_await read_text(**stream, 1), Holds(""));
  ++done;
}

}  // namespace

TEST_P(TransportContract, ManyConnectionsTalkAtOnce) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    constexpr int kConnections = 300;
    const auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    int done = 0;
    TaskGroup server(rt);
    TaskGroup clients(rt);
    server.spawn(serve_echoes(rt, **listener));
    for (int i = 0; i < kConnections; ++i) {
      clients.spawn(talk(rt, (*listener)->address(), i, done));
    }
    co_await clients.join();
    (*listener)->close();
    co_await server.join();
    EXPECT_EQ(done, kConnections);
  });
}

// Ends

TEST_P(TransportContract, EndingOneHalfLeavesTheOther) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    CO_ASSERT_OK(co_await write_text(*pair->client, "last words"));
    pair->client->shutdown_write();
    EXPECT_THAT(co_await read_text(*pair->server, 100), Holds("last words"));
    EXPECT_THAT(co_await read_text(*pair->server, 1), Holds("")) << "the end stays the end";
    CO_ASSERT_OK(co_await write_text(*pair->server, "answer"));
    EXPECT_THAT(co_await read_text(*pair->client, 6), Holds("answer"));
    pair->server->shutdown_write();
    EXPECT_THAT(co_await read_text(*pair->client, 1), Holds(""));
  });
}

TEST_P(TransportContract, NothingCanBeWrittenToAHalfThatWasEnded) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    pair->client->shutdown_write();
    pair->client->shutdown_write();
    const auto written = co_await write_text(*pair->client, "too late");
    EXPECT_TRUE(written.failed_with(Errc::closed));
    EXPECT_THAT(co_await read_text(*pair->server, 1), Holds(""));
  });
}

TEST_P(TransportContract, AClosedStreamServesNothingMore) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    pair->client->close();
    pair->client->close();
    pair->client->shutdown_write();
    EXPECT_TRUE((co_await read_text(*pair->client, 1)).failed_with(Errc::closed));
    EXPECT_TRUE((co_await write_text(*pair->client, "x")).failed_with(Errc::closed));
  });
}

TEST_P(TransportContract, TheOtherSideOfAClosedStreamReadsToTheEnd) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    CO_ASSERT_OK(co_await write_text(*pair->client, "sent before closing"));
    pair->client->close();
    EXPECT_THAT(co_await read_text(*pair->server, 100), Holds("sent before closing"));
  });
}

TEST_P(TransportContract, DestroyingAStreamClosesIt) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    pair->client.reset();
    EXPECT_THAT(co_await read_text(*pair->server, 1), Holds(""));
  });
}

TEST_P(TransportContract, WritingToSomebodyWhoHasGoneFailsInTheEnd) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    pair->server->close();
    const auto written = co_await write_until_it_fails(*pair->client);
    EXPECT_TRUE(written.failed_with(Errc::connection_lost)) << written.error().to_string();
    // What is broken stays broken, and never looks like an end.
    const auto again = co_await write_text(*pair->client, "x");
    EXPECT_TRUE(again.failed_with(Errc::connection_lost));
    const auto read = co_await read_until_it_ends(*pair->client);
    EXPECT_TRUE(read.failed_with(Errc::connection_lost));
  });
}

TEST_P(TransportContract, ClosingWithUnreadBytesBreaksTheOtherSide) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    CO_ASSERT_OK(co_await write_text(*pair->client, "never read"));
    std::array<std::byte, 1> first_byte;
    CO_ASSERT_OK(co_await pair->server->read(first_byte, kForever));
    pair->server->close();
    const auto read = co_await read_until_it_ends(*pair->client);
    EXPECT_TRUE(read.failed_with(Errc::connection_lost));
    EXPECT_TRUE((co_await read_until_it_ends(*pair->client)).failed_with(Errc::connection_lost));
  });
}

namespace {

Task<void> close_after_a_turn(Runtime& rt, Stream& stream) {
  for (int turn = 0; turn < 3; ++turn) CO_ASSERT_OK(co_await yield_now(rt));
  stream.close();
}

Task<void> expect_read(Errc code, Stream& stream, Until until) {
  std::array<std::byte, 16> memory;
  const auto count = co_await stream.read(memory, until);
  EXPECT_TRUE(count.failed_with(code));
}

// More than any buffer on the way holds, so that without a reader the write cannot end.
std::vector<std::byte> too_much() {
  return std::vector<std::byte>(64U << 20);
}

Task<void> expect_blocked_write(Errc code, Stream& stream, Until until) {
  const std::vector<std::byte> bytes = too_much();
  const auto written = co_await stream.write(ByteView(bytes), until);
  EXPECT_TRUE(written.failed_with(code));
}

Task<void> expect_accept(Errc code, Listener& listener, Until until) {
  const auto stream = co_await listener.accept(until);
  EXPECT_TRUE(stream.failed_with(code));
}

}  // namespace

TEST_P(TransportContract, ClosingEndsWhatIsPending) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    std::vector<Task<void>> tasks;
    tasks.push_back(expect_read(Errc::closed, *pair->client, kForever));
    tasks.push_back(expect_blocked_write(Errc::closed, *pair->client, kForever));
    tasks.push_back(close_after_a_turn(rt, *pair->client));
    co_await when_all(std::move(tasks));
  });
}

namespace {

Task<void> close_listener_after_a_turn(Runtime& rt, Listener& listener) {
  for (int turn = 0; turn < 3; ++turn) CO_ASSERT_OK(co_await yield_now(rt));
  listener.close();
}

}  // namespace

TEST_P(TransportContract, ClosingAListenerEndsItsAccept) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    const Address address = (*listener)->address();
    co_await when_all(expect_accept(Errc::closed, **listener, kForever),
                      close_listener_after_a_turn(rt, **listener));
    co_await expect_accept(Errc::closed, **listener, kForever);
    (*listener)->close();
    EXPECT_EQ((*listener)->address(), address);
    const auto stream = co_await rt.transport.connect(address, kForever);
    EXPECT_TRUE(stream.failed_with(Errc::refused));
  });
}

TEST_P(TransportContract, ClosingAListenerLeavesItsConnections) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    pair->listener.reset();
    CO_ASSERT_OK(co_await write_text(*pair->client, "still"));
    EXPECT_THAT(co_await read_text(*pair->server, 5), Holds("still"));
  });
}

// Cut waits

TEST_P(TransportContract, AWaitThatIsOverBeforeItBeginsTakesNothing) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    StopSource stop;
    stop.request_stop();
    const Until stopped{.stop = stop.token()};
    CO_ASSERT_OK(co_await write_text(*pair->client, "whole"));
    for (const auto& [until, code] :
         {std::pair(expired(), Errc::timeout), std::pair(stopped, Errc::cancelled)}) {
      co_await expect_read(code, *pair->server, until);
      const auto written = co_await pair->client->write(base::as_bytes("lost"), until);
      EXPECT_TRUE(written.failed_with(code));
      co_await expect_accept(code, *pair->listener, until);
      const auto stream = co_await rt.transport.connect(pair->listener->address(), until);
      EXPECT_TRUE(stream.failed_with(code));
    }
    pair->client->shutdown_write();
    EXPECT_THAT(co_await read_text(*pair->server, 100), Holds("whole"));
  });
}

TEST_P(TransportContract, AReadThatTimesOutTakesNothing) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    const MonotonicTime before = rt.clock.now();
    const Until until = soon(rt);
    co_await expect_read(Errc::timeout, *pair->server, until);
    EXPECT_GE(rt.clock.now(), until.deadline);
    EXPECT_GT(rt.clock.now(), before);
    CO_ASSERT_OK(co_await write_text(*pair->client, "after"));
    EXPECT_THAT(co_await read_text(*pair->server, 5), Holds("after"));
  });
}

TEST_P(TransportContract, AWriteThatNobodyTakesTimesOut) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    const std::vector<std::byte> bytes = too_much();
    const auto written = co_await pair->client->write(ByteView(bytes), soon(rt));
    EXPECT_TRUE(written.failed_with(Errc::timeout));
    // Part of it may have been sent, so more would be taken for its rest.
    const auto more = co_await write_text(*pair->client, "more");
    EXPECT_FALSE(more.has_value());
    pair->client->close();
  });
}

TEST_P(TransportContract, AnAcceptThatTimesOutLosesNobody) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    co_await expect_accept(Errc::timeout, **listener, soon(rt));
    const auto client = co_await rt.transport.connect((*listener)->address(), kForever);
    CO_ASSERT_OK(client);
    const auto server = co_await (*listener)->accept(kForever);
    CO_ASSERT_OK(server);
    EXPECT_EQ((*server)->peer_address(), (*client)->local_address());
  });
}

namespace {

Task<void> stop_after_a_turn(Runtime& rt, StopSource& stop) {
  for (int turn = 0; turn < 3; ++turn) CO_ASSERT_OK(co_await yield_now(rt));
  stop.request_stop();
}

}  // namespace

TEST_P(TransportContract, AStopEndsEveryWait) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto pair = co_await make_pair(rt, loopback);
    CO_ASSERT_OK(pair);
    StopSource stop;
    const Until until{.stop = stop.token()};
    std::vector<Task<void>> tasks;
    tasks.push_back(expect_read(Errc::cancelled, *pair->client, until));
    tasks.push_back(expect_blocked_write(Errc::cancelled, *pair->client, until));
    tasks.push_back(expect_accept(Errc::cancelled, *pair->listener, until));
    tasks.push_back(stop_after_a_turn(rt, stop));
    co_await when_all(std::move(tasks));
    // Nothing was taken from the half that was read.
    CO_ASSERT_OK(co_await write_text(*pair->server, "later"));
    EXPECT_THAT(co_await read_text(*pair->client, 5), Holds("later"));
  });
}

namespace {

Task<void> connect_or_be_cut(Runtime& rt, Address address, Until until, Errc cut) {
  const auto stream = co_await rt.transport.connect(address, until);
  if (!stream) EXPECT_EQ(stream.error().code(), cut);
}

}  // namespace

TEST_P(TransportContract, AConnectCutUnderWayEndsOneWayOrTheOther) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const auto listener = rt.transport.listen(loopback);
    CO_ASSERT_OK(listener);
    const Address address = (*listener)->address();
    for (int turn = 0; turn < 20; ++turn) {
      co_await connect_or_be_cut(rt, address, Until::after(rt, Duration(turn * 2000)),
                                 Errc::timeout);
      StopSource stop;
      TaskGroup group(rt);
      group.spawn(connect_or_be_cut(rt, address, {.stop = stop.token()}, Errc::cancelled));
      if (turn % 2 == 0) CO_ASSERT_OK(co_await yield_now(rt));
      stop.request_stop();
      co_await group.join();
    }
  });
}

// Cores

TEST_P(TransportContract, CoresCanShareAnAddress) {
  tell([](Runtime& rt, Address loopback) -> Task<void> {
    const ListenOptions shared{.shared_between_cores = true};
    const auto one = rt.transport.listen(loopback, shared);
    CO_ASSERT_OK(one);
    const auto other = rt.transport.listen((*one)->address(), shared);
    CO_ASSERT_OK(other);
    EXPECT_EQ((*one)->address(), (*other)->address());
    const auto alone = rt.transport.listen((*one)->address());
    EXPECT_TRUE(alone.failed_with(Errc::address_in_use));
    co_return;
  });
}

}  // namespace helenus::runtime::contract
