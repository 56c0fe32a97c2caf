// What only the operating system can do to streams: limits, routes, the cores of one process.
#include <array>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/call_on.h"
#include "runtime/event.h"
#include "runtime/native/socket.h"
#include "runtime/native/test_support.h"
#include "runtime/sleep.h"
#include "runtime/transport.h"
#include "runtime/when_all.h"

namespace helenus::runtime::native {
namespace {

using base::Errc;
using base::Result;

const Until kForever = Until::forever();
const Address kLoopback = Address::v4({127, 0, 0, 1}, 0);
constexpr uid_t kNobody = 65534;

void run_one_core(Task<int> (*story)(Runtime&)) {
  EXPECT_EQ(run_host({.cores = 1, .handle_signals = false},
                     [story](Runtime& rt, StopToken) { return story(rt); }),
            0);
}

// Out of descriptors

Task<int> accept_without_descriptors(Runtime& rt) {
  const auto listener = rt.transport.listen(kLoopback);
  EXPECT_TRUE(listener.has_value());
  if (!listener) co_return 1;
  const auto client = co_await rt.transport.connect((*listener)->address(), kForever);
  EXPECT_TRUE(client.has_value());
  std::vector<Descriptor> hoard;
  do {
    hoard.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  } while (hoard.back().valid());
  EXPECT_TRUE((co_await (*listener)->accept(kForever)).failed_with(Errc::overloaded));
  const auto outgoing = co_await rt.transport.connect((*listener)->address(), kForever);
  EXPECT_TRUE(outgoing.failed_with(Errc::overloaded));
  EXPECT_TRUE(rt.transport.listen(kLoopback).failed_with(Errc::overloaded));
  hoard.clear();
  const auto later = co_await (*listener)->accept(kForever);
  EXPECT_TRUE(later.has_value()) << "the connection has waited";
  co_return 0;
}

void expect_overload_without_descriptors() {
  const rlimit few{.rlim_cur = 64, .rlim_max = 64};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  run_one_core(accept_without_descriptors);
}

TEST(NativeTransportDeathTest, WithoutDescriptorsConnectionsWait) {
  if (!kCanRunOutOfDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors itself";
  IN_CHILD_PROCESS(expect_overload_without_descriptors());
}

// Peers that vanish

TEST(NativeTransport, APeerThatVanishedIsNoticed) {
  const auto listener = make_socket(kLoopback);
  const auto client = make_socket(kLoopback);
  ASSERT_TRUE(listener.has_value() && client.has_value());
  ASSERT_TRUE(bind_socket(*listener, kLoopback, "bind").has_value());
  ASSERT_EQ(::listen(listener->number(), 1), 0);
  const int connecting = begin_connect(*client, local_address_of(*listener));
  ASSERT_TRUE(connecting == 0 || connecting == EINPROGRESS);
  pollfd waiting{.fd = listener->number(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
  const Accepted accepted = accept_connection(*listener);
  ASSERT_TRUE(accepted.socket.valid());
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(accepted.socket.number(), level, name, &value, &size), 0);
    return value;
  };
  EXPECT_NE(option(SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE) +
                (option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT)),
            kVanishedAfterSeconds);

  set_lost_after(accepted.socket, 8s);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 8000);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 2);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 2);
  set_lost_after(accepted.socket, 2s);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 1);
}

// Ways that lead nowhere

Task<int> connect_to_a_full_backlog(Runtime& rt) {
  const auto listener = rt.transport.listen(kLoopback, {.backlog = 1});
  EXPECT_TRUE(listener.has_value());
  if (!listener) co_return 1;
  std::vector<std::unique_ptr<Stream>> clients;
  for (int i = 0; i < 10; ++i) {
    auto client = co_await rt.transport.connect((*listener)->address(), Until::after(rt, 30ms));
    if (client) {
      clients.push_back(*std::move(client));
      continue;
    }
    EXPECT_TRUE(client.failed_with(Errc::timeout)) << client.error().to_string();
    co_return 0;
  }
  ADD_FAILURE() << "the backlog has no end";
  co_return 1;
}

TEST(NativeTransport, AConnectThatNobodyAnswersTimesOut) {
  run_one_core(connect_to_a_full_backlog);
}

Task<int> connect_without_a_route(Runtime& rt) {
  const auto stream = co_await rt.transport.connect(Address::v4({10, 1, 2, 3}, 9), kForever);
  EXPECT_TRUE(stream.failed_with(Errc::unavailable)) << stream.error().to_string();
  co_return 0;
}

void expect_no_route() {
  ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
  run_one_core(connect_without_a_route);
}

TEST(NativeTransportDeathTest, WithoutARouteThePeerIsUnavailable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can leave the network";
  IN_CHILD_PROCESS(expect_no_route());
}

Task<int> connect_to_myself(Runtime& rt) {
  auto listener = rt.transport.listen(kLoopback);
  EXPECT_TRUE(listener.has_value());
  if (!listener) co_return 1;
  const Address address = (*listener)->address();
  listener->reset();
  const auto stream = co_await rt.transport.connect(address, kForever, address);
  EXPECT_TRUE(stream.failed_with(Errc::refused));
  co_return 0;
}

TEST(NativeTransport, APortThatCallsItselfIsRefused) {
  run_one_core(connect_to_myself);
}

Task<int> listen_on_a_reserved_port(Runtime& rt) {
  const auto listener = rt.transport.listen(Address::v4({127, 0, 0, 1}, 1));
  EXPECT_TRUE(listener.failed_with(Errc::permission_denied));
  co_return 0;
}

void expect_reserved_port() {
  if (::geteuid() == 0) ASSERT_TRUE(::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
  run_one_core(listen_on_a_reserved_port);
}

TEST(NativeTransportDeathTest, AReservedPortNeedsRights) {
  int first_free = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> first_free;
  if (first_free <= 1) GTEST_SKIP() << "this machine reserves no ports";
  IN_CHILD_PROCESS(expect_reserved_port());
}

Task<int> talk_over_v6(Runtime& rt) {
  const auto address = Address::parse("[::1]:0");
  const auto listener = rt.transport.listen(*address);
  if (listener.failed_with(Errc::invalid_argument)) co_return 77;
  EXPECT_TRUE(listener.has_value());
  const auto client = co_await rt.transport.connect((*listener)->address(), kForever);
  EXPECT_TRUE(client.has_value());
  const auto server = co_await (*listener)->accept(kForever);
  EXPECT_TRUE(server.has_value());
  if (!client || !server) co_return 1;
  EXPECT_EQ((*server)->peer_address(), (*client)->local_address());
  EXPECT_EQ((*client)->peer_address().family(), Address::Family::v6);
  co_return 0;
}

TEST(NativeTransport, SpeaksIpv6) {
  const int outcome = run_host({.cores = 1, .handle_signals = false},
                               [](Runtime& rt, StopToken) { return talk_over_v6(rt); });
  if (outcome == 77) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(outcome, 0);
}

// Fairness

Task<void> count_turns(Runtime& rt, const bool& done, int& turns) {
  while (!done) {
    const auto yielded = co_await yield_now(rt);
    EXPECT_TRUE(yielded.has_value());
    ++turns;
  }
}

Task<void> read_byte_by_byte(Stream& stream, std::size_t count, bool& done) {
  std::byte byte;
  for (std::size_t i = 0; i < count; ++i) {
    const auto read = co_await stream.read(base::MutableByteView(&byte, 1), kForever);
    EXPECT_TRUE(read.has_value());
  }
  done = true;
}

Task<int> read_without_waiting(Runtime& rt) {
  const auto listener = rt.transport.listen(kLoopback);
  EXPECT_TRUE(listener.has_value());
  if (!listener) co_return 1;
  const auto client = co_await rt.transport.connect((*listener)->address(), kForever);
  const auto server = co_await (*listener)->accept(kForever);
  EXPECT_TRUE(client.has_value() && server.has_value());
  if (!client || !server) co_return 1;
  const std::string bytes(32 << 10, 'x');
  const auto written = co_await (*client)->write(base::as_bytes(bytes), kForever);
  EXPECT_TRUE(written.has_value());
  bool done = false;
  int turns = 0;
  co_await when_all(read_byte_by_byte(**server, bytes.size(), done), count_turns(rt, done, turns));
  EXPECT_GE(turns, static_cast<int>(bytes.size() / Loop::kImmediateMax / 2));
  co_return 0;
}

TEST(NativeTransport, AReaderThatNeverHasToWaitLetsOthersRun) {
  run_one_core(read_without_waiting);
}

// Cores that share an address

constexpr int kConnections = 200;

Task<Result<int>> accept_until_stopped(Runtime& there, Address address,
                                       std::atomic<int>& accepted) {
  const auto listener = there.transport.listen(address, {.shared_between_cores = true});
  if (!listener) co_return listener.error();
  int count = 0;
  while (accepted < kConnections) {
    const auto stream = co_await (*listener)->accept(Until::after(there, 10ms));
    if (stream) {
      ++count;
      ++accepted;
    }
  }
  co_return count;
}

Task<void> serve_on(Runtime& rt, CoreId core, Address address, std::atomic<int>& accepted,
                    std::vector<int>& counts) {
  const auto count = co_await call_on<int>(
      rt, core,
      [address, &accepted](Runtime& there) {
        return accept_until_stopped(there, address, accepted);
      },
      kForever);
  EXPECT_TRUE(count.has_value());
  counts.push_back(count.value_or(-1));
}

Task<int> share_an_address(Runtime& rt) {
  // Keeps the address while the cores come and go.
  const auto first = rt.transport.listen(kLoopback, {.backlog = 1, .shared_between_cores = true});
  EXPECT_TRUE(first.has_value());
  if (!first) co_return 1;
  const Address address = (*first)->address();
  std::atomic<int> accepted = 0;
  std::vector<int> counts;
  TaskGroup group(rt);
  for (std::uint32_t core = 0; core < rt.cores.count(); ++core) {
    group.spawn(serve_on(rt, CoreId(core), address, accepted, counts));
  }
  (*first)->close();
  std::vector<std::unique_ptr<Stream>> clients;
  while (accepted < kConnections) {
    auto client = co_await rt.transport.connect(address, kForever);
    if (client) clients.push_back(*std::move(client));
    const auto yielded = co_await yield_now(rt);
    EXPECT_TRUE(yielded.has_value());
  }
  co_await group.join();
  for (const int count : counts) EXPECT_GT(count, 0);
  co_return 0;
}

TEST(NativeTransport, ConnectionsToASharedAddressSpreadOverTheCores) {
  EXPECT_EQ(run_host({.cores = 3, .handle_signals = false},
                     [](Runtime& rt, StopToken) { return share_an_address(rt); }),
            0);
}

Task<int> listen_shared(Runtime& rt, Address address) {
  const auto listener = rt.transport.listen(address, {.shared_between_cores = true});
  EXPECT_TRUE(listener.failed_with(Errc::address_in_use));
  co_return 0;
}

Task<int> listen_while_another_host_tries(Runtime& rt) {
  const auto listener = rt.transport.listen(kLoopback, {.shared_between_cores = true});
  EXPECT_TRUE(listener.has_value());
  if (!listener) co_return 1;
  const Address address = (*listener)->address();
  run_host({.cores = 1, .handle_signals = false},
           [address](Runtime& other, StopToken) { return listen_shared(other, address); });
  co_return 0;
}

TEST(NativeTransport, AnAddressSharedBetweenCoresIsNotSharedWithAnotherHost) {
  run_one_core(listen_while_another_host_tries);
}

}  // namespace
}  // namespace helenus::runtime::native
