#include "sim/tcp.h"

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

using base::Errc;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

constexpr std::uint16_t kPort = 7;

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  base::Prng dice(5);
  for (char& c : text) c = static_cast<char>(dice.next());
  return text;
}

// What one side of a test saw.
struct Seen {
  std::string received;
  bool ended = false;
  std::optional<Errc> read_error;
  std::optional<Errc> write_error;
  std::optional<Errc> connect_error;
  bool connected = false;
  bool written = false;
  WorldTime read_ended_at;
  WorldTime write_ended_at;
};

Task<void> read_all(World& world, runtime::Stream& stream, Seen& seen) {
  std::vector<std::byte> memory(10'000);
  for (;;) {
    const auto count = co_await stream.read(memory, Until::forever());
    seen.read_ended_at = world.now();
    if (!count) {
      seen.read_error = count.error().code();
      co_return;
    }
    seen.ended = *count == 0;
    if (seen.ended) co_return;
    seen.received += base::as_text(base::ByteView(memory).first(*count));
  }
}

Task<void> serve_one(World& world, Runtime& rt, MachineId self, Seen& seen) {
  const auto listener = rt.transport.listen(world.machine(self).address(kPort));
  auto stream = co_await (*listener)->accept(Until::forever());
  co_await read_all(world, **stream, seen);
  const auto slept = co_await runtime::sleep_for(rt, 1h, {});
  EXPECT_TRUE(slept.has_value());
}

Task<void> send(World& world, Runtime& rt, MachineId to, std::string text, Seen& seen) {
  auto stream = co_await rt.transport.connect(world.machine(to).address(kPort), Until::forever());
  if (!stream) {
    seen.connect_error = stream.error().code();
    co_return;
  }
  seen.connected = true;
  const auto written = co_await (*stream)->write(base::as_bytes(text), Until::forever());
  seen.write_ended_at = world.now();
  if (!written) seen.write_error = written.error().code();
  seen.written = written.has_value();
  (*stream)->shutdown_write();
  co_await read_all(world, **stream, seen);
}

// A server (machine 0) that reads, and a client (machine 1) that sends.
class TcpTest : public testing::Test {
 protected:
  void build(std::uint64_t seed, std::string text, WorldOptions options = {}) {
    world_ = std::make_unique<World>(seed, options);
    world_->add_machine({.name = "server"},
                        FunctionProcess::factory([this](Runtime& rt, StopToken) {
                          return serve_one(*world_, rt, 0, server_);
                        }));
    world_->add_machine({.name = "client"},
                        FunctionProcess::factory([this, text](Runtime& rt, StopToken) {
                          return send(*world_, rt, 0, text, client_);
                        }));
    server().start();
    world_->run_for(1ms);
  }
  Machine& server() { return world_->machine(0); }
  Machine& client() { return world_->machine(1); }

  Seen server_;
  Seen client_;
  std::unique_ptr<World> world_;
};

TEST_F(TcpTest, BytesArriveWholeAndInOrderWhateverHappensToPackets) {
  const std::string text = pattern(500'000);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    server_ = client_ = {};
    build(seed, text, {.network = {.segment_size = 1460}});
    world_->network().faults = {.loss = 0.1, .duplication = 0.1, .reordering = 0.3};
    client().start();
    world_->run_for(10min);
    ASSERT_TRUE(client_.written) << "seed " << seed;
    ASSERT_TRUE(server_.ended);
    ASSERT_TRUE(server_.received == text);
    const NetworkCounts& counts = world_->network().counts();
    EXPECT_GT(counts.lost, 10);
    EXPECT_GT(counts.duplicated, 10);
    EXPECT_GT(counts.reordered, 10);
    EXPECT_EQ(counts.cut_off, 0);
  }
}

TEST_F(TcpTest, WithoutFaultsNothingIsLostDoubledOrReordered) {
  build(1, pattern(500'000));
  client().start();
  world_->run_for(1min);
  EXPECT_TRUE(server_.ended);
  const NetworkCounts& counts = world_->network().counts();
  EXPECT_EQ(counts.lost + counts.duplicated + counts.reordered + counts.cut_off, 0);
}

TEST_F(TcpTest, AWriterWaitsForAReaderWhoIsPaused) {
  build(1, pattern(1'000'000));
  client().start();
  world_->run_until([&] { return !server_.received.empty(); }, 1min);
  server().pause();
  world_->run_for(10min);
  const std::size_t before = server_.received.size();
  EXPECT_FALSE(client_.written);
  EXPECT_FALSE(client_.write_error) << "a window that stays shut is no failure";
  server().resume();
  world_->run_for(1min);
  EXPECT_TRUE(client_.written);
  EXPECT_GT(server_.received.size(), before);
  EXPECT_EQ(server_.received.size(), 1'000'000);
}

TEST_F(TcpTest, NobodyListeningRefusesAndNobodyThereIsSilent) {
  build(1, "x");
  server().kill();
  client().start();
  world_->run_for(1s);
  EXPECT_EQ(client_.connect_error, Errc::refused);

  client_ = {};
  server().power_loss();
  client().start();
  world_->run_for(5s);
  EXPECT_FALSE(client_.connect_error);
  world_->run_for(5min);
  EXPECT_EQ(client_.connect_error, Errc::timeout);
}

TEST_F(TcpTest, AConnectionIsMadeOnceTheServerIsBack) {
  build(1, "x");
  server().power_loss();
  client().start();
  world_->run_for(5s);
  server().start();
  world_->run_for(1min);
  EXPECT_TRUE(client_.written);
  EXPECT_EQ(server_.received, "x");
}

TEST_F(TcpTest, ThePeerOfAKilledProcessIsToldAndOfALostMachineNot) {
  build(1, "hello");
  client().start();
  world_->run_for(1s);
  EXPECT_EQ(server_.received, "hello");
  server().kill();
  world_->run_for(1s);
  EXPECT_TRUE(client_.ended || client_.read_error.has_value());

  server_ = client_ = {};
  build(2, "hello");
  client().start();
  world_->run_for(1s);
  server().power_loss();
  world_->run_for(1h);
  EXPECT_FALSE(client_.ended);
  EXPECT_FALSE(client_.read_error) << "who only listens never finds out";
}

TEST_F(TcpTest, WhatAKilledProcessHadWrittenIsStillSent) {
  build(1, pattern(100'000));
  client().start();
  ASSERT_TRUE(world_->run_until([&] { return client_.written; }, 1min));
  client().kill();
  world_->run_for(1min);
  EXPECT_EQ(server_.received.size(), 100'000);
  EXPECT_TRUE(server_.ended);
}

TEST_F(TcpTest, ASenderToALostMachineGivesUpInTheEnd) {
  build(1, pattern(5'000'000));
  client().start();
  world_->run_until([&] { return !server_.received.empty(); }, 1min);
  server().power_loss();
  world_->run_for(5s);
  EXPECT_FALSE(client_.write_error);
  world_->run_for(10min);
  EXPECT_EQ(client_.write_error, Errc::connection_lost);
}

TEST_F(TcpTest, AMachineThatIsBackDoesNotKnowItsOldConnections) {
  build(1, pattern(5'000'000));
  client().start();
  world_->run_until([&] { return !server_.received.empty(); }, 1min);
  server().power_loss();
  server().start();
  world_->run_for(10s);
  EXPECT_EQ(client_.write_error, Errc::connection_lost) << "a reset, long before giving up";
}

TEST_F(TcpTest, AOneWayPartitionStopsOneWayOnly) {
  for (const bool data_is_cut : {true, false}) {
    server_ = client_ = {};
    build(1, pattern(1'000'000));
    client().start();
    world_->run_until([&] { return !server_.received.empty(); }, 1min);
    const std::size_t before = server_.received.size();
    world_->network().set_blocked(data_is_cut ? 1 : 0, data_is_cut ? 0 : 1, true);
    world_->run_for(1s);
    // Without acknowledgements the sender stops as well, a window later.
    EXPECT_LT(server_.received.size(), 1'000'000);
    if (!data_is_cut) EXPECT_GT(server_.received.size(), before);
    EXPECT_GT(world_->network().counts().cut_off, 0);
    world_->network().heal_partitions();
    world_->run_for(1min);
    EXPECT_EQ(server_.received.size(), 1'000'000) << "it goes on when healed in time";
  }
}

TEST_F(TcpTest, ASymmetricPartitionOutlastsPatience) {
  build(1, pattern(1'000'000));
  client().start();
  world_->run_until([&] { return !server_.received.empty(); }, 1min);
  world_->network().partition(std::vector<std::uint32_t>{0, 1});
  EXPECT_TRUE(world_->network().blocked(0, 1));
  EXPECT_TRUE(world_->network().blocked(1, 0));
  world_->run_for(10min);
  EXPECT_EQ(client_.write_error, Errc::connection_lost);
  world_->network().heal_partitions();
  EXPECT_FALSE(world_->network().blocked(0, 1));
}

TEST(Network, ABridgeHearsBothHalvesThatDoNotHearEachOther) {
  World world(1);
  for (int i = 0; i < 5; ++i) world.add_machine({}, {});
  world.network().partition(std::vector<std::uint32_t>{0, 0, Network::kEveryGroup, 1, 1});
  for (MachineId other : {0U, 1U, 3U, 4U}) {
    EXPECT_FALSE(world.network().blocked(2, other));
    EXPECT_FALSE(world.network().blocked(other, 2));
  }
  EXPECT_TRUE(world.network().blocked(0, 3));
  EXPECT_TRUE(world.network().blocked(4, 1));
  EXPECT_FALSE(world.network().blocked(0, 1));
}

TEST_F(TcpTest, AResetBreaksBothEnds) {
  build(1, "hello");
  client().start();
  world_->run_for(1s);
  EXPECT_TRUE(world_->tcp().reset_one());
  world_->run_for(1ms);
  // The client had ended its half, so the server was done reading; the client was not.
  EXPECT_EQ(client_.read_error, Errc::connection_lost);
  EXPECT_FALSE(world_->tcp().reset_one()) << "there was only one";
}

TEST_F(TcpTest, ASlowLinkIsSlow) {
  build(1, pattern(1'000'000));
  client().start();
  ASSERT_TRUE(world_->run_until([&] { return server_.ended; }, 1min));
  const Duration quick = server_.read_ended_at.since_origin();
  server_ = client_ = {};
  build(1, pattern(1'000'000));
  world_->network().set_slowness(1, 0, 100);
  client().start();
  ASSERT_TRUE(world_->run_until([&] { return server_.ended; }, 10min));
  EXPECT_GT(server_.read_ended_at.since_origin(), 10 * quick);
}

Task<void> send_byte(World& world, Runtime& rt, std::string text) {
  Seen seen;
  co_await send(world, rt, 0, std::move(text), seen);
}

Task<void> note_bytes(Runtime& rt, std::unique_ptr<runtime::Stream> stream, std::string& notes) {
  std::array<std::byte, 1> memory;
  const auto count = co_await stream->read(memory, Until::forever());
  if (count && *count == 1) notes += static_cast<char>(memory[0]);
  const auto slept = co_await runtime::sleep_for(rt, 1h, {});
  EXPECT_TRUE(slept.has_value());
}

TEST(Tcp, TwoConnectionsBetweenTheSameMachinesKeepNoOrder) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    World world(seed);
    std::string notes;
    world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
                        const auto listener = rt.transport.listen(world.machine(0).address(kPort));
                        runtime::TaskGroup group(rt);
                        for (;;) {
                          auto stream = co_await (*listener)->accept(Until::forever());
                          group.spawn(note_bytes(rt, *std::move(stream), notes));
                        }
                      }));
    world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
                        runtime::TaskGroup group(rt);
                        group.spawn(send_byte(world, rt, "a"));
                        group.spawn(send_byte(world, rt, "b"));
                        co_await group.join();
                      }));
    world.machine(0).start();
    world.run_for(1ms);
    world.machine(1).start();
    world.run_for(1s);
    orders.insert(notes);
  }
  EXPECT_EQ(orders, (std::set<std::string>{"ab", "ba"}));
}

TEST(Tcp, AnAddressOfNobodyIsUnavailable) {
  World world(1);
  std::optional<Errc> error;
  world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
                      const auto stream = co_await rt.transport.connect(
                          runtime::Address::v4({203, 0, 113, 7}, 1), Until::forever());
                      error = stream.error().code();
                    }));
  world.machine(0).start();
  world.run_for(1s);
  EXPECT_EQ(error, Errc::unavailable);
}

Task<void> connect_and_count(World& world, Runtime& rt, int& connected) {
  const auto stream =
      co_await rt.transport.connect(world.machine(0).address(kPort), Until::after(rt, 10s));
  if (!stream) co_return;
  ++connected;
  const auto slept = co_await runtime::sleep_for(rt, 1h, {});
  EXPECT_TRUE(slept.has_value());
}

TEST(Tcp, ABacklogThatIsFullLetsNobodyElseIn) {
  World world(1);
  int connected = 0;
  world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
                      const auto listener =
                          rt.transport.listen(world.machine(0).address(kPort), {.backlog = 3});
                      const auto slept = co_await runtime::sleep_for(rt, 1h, {});
                      EXPECT_TRUE(slept.has_value());
                    }));
  world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
                      runtime::TaskGroup group(rt);
                      for (int i = 0; i < 10; ++i) {
                        group.spawn(connect_and_count(world, rt, connected));
                      }
                      co_await group.join();
                    }));
  world.machine(0).start();
  world.run_for(1ms);
  world.machine(1).start();
  world.run_for(1min);
  EXPECT_EQ(connected, 3);
}

TEST(Tcp, BothFamiliesAndTheLoopbackLeadToTheMachine) {
  World world(1);
  std::vector<std::string> peers;
  world.add_machine({}, FunctionProcess::factory([&](Runtime& rt, StopToken) -> Task<void> {
                      const Machine& self = world.machine(0);
                      const auto v4 = rt.transport.listen(runtime::Address::v4({}, kPort));
                      const auto v6 = rt.transport.listen(runtime::Address::v6({}, kPort + 1));
                      for (const auto& to : {self.address(kPort), self.address_v6(kPort + 1),
                                             runtime::Address::v4({127, 0, 0, 1}, kPort)}) {
                        const auto stream = co_await rt.transport.connect(to, Until::after(rt, 1s));
                        EXPECT_TRUE(stream.has_value()) << to.to_string();
                        if (stream) peers.push_back((*stream)->local_address().ip_text());
                      }
                    }));
  world.machine(0).start();
  world.run_for(10s);
  EXPECT_EQ(peers, (std::vector<std::string>{"10.0.0.1", "fd00::1", "127.0.0.1"}));
}

}  // namespace
}  // namespace helenus::sim
