// Two nodes over real sockets, each on an address and an event loop of its own.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rpc/rpc.h"
#include "rpc/rpc_test_support.h"
#include "runtime/native/native_host.h"
#include "runtime/run_on.h"
#include "runtime/when_all.h"

namespace helenus::rpc {
namespace {

using runtime::CoreId;
using runtime::Event;
using runtime::native::NativeHost;

constexpr Verb kReady{.number = verbs::kTestsFirst + 20};
constexpr Verb kLeave{.number = verbs::kTestsFirst + 21};

Options options_of(std::uint64_t number, std::string cluster = "troy") {
  return {.cluster = std::move(cluster), .node = node_of(number)};
}

Task<Result<Bytes>> set(Event& event) {
  event.set();
  co_return Bytes();
}

Task<void> call_many(Runtime& rt, Rpc& rpc, NodeId to) {
  std::vector<Task<Result<Bytes>>> calls;
  for (std::size_t i = 0; i < 200; ++i) {
    calls.push_back(rpc.call(to, kEcho, text(std::string(i * 500, 'x')), Until::after(rt, 30s)));
  }
  const auto answers = co_await runtime::when_all(std::move(calls));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i].has_value());
    if (answers[i]) EXPECT_EQ(answers[i]->size(), i * 500);
  }
}

// Node 1, which knows where node 0 is and is known to nobody.
Task<Result<int>> be_node_one(Runtime& rt, Address zero, Until until) {
  Seen seen;
  TestHandlers handlers(rt, seen);
  Event leave(rt);
  Rpc rpc(rt, options_of(1));
  handlers.serve_all(rpc);
  rpc.serve(kLeave, [&leave](Incoming) { return set(leave); });
  CO_TRY_VOID(rpc.start(Address::v4({127, 0, 0, 2}, 0)));
  const auto met = co_await rpc.meet(zero, until);
  EXPECT_EQ(met, node_of(0));
  co_await call_many(rt, rpc, node_of(0));
  EXPECT_TRUE(rpc.tell(node_of(0), kReady, Bytes()).has_value());
  const auto left = co_await leave.wait(until);
  co_await rpc.stop();
  if (!left) co_return left.error();
  EXPECT_EQ(seen.waits_timed_out + seen.waits_cancelled, seen.waits_begun);
  co_return 0;
}

Task<void> run_node_one(Runtime& rt, Address zero) {
  const auto work = [zero](Runtime& there, Until until) { return be_node_one(there, zero, until); };
  const auto ended = co_await runtime::run_on<int>(rt, CoreId(1), work, Until::after(rt, 60s));
  EXPECT_TRUE(ended.has_value()) << ended.error().to_string();
}

Task<void> be_a_stranger(Runtime& rt, Address zero) {
  Rpc stranger(rt, options_of(2, "sparta"));
  CO_ASSERT_OK(stranger.introduce(node_of(0), zero));
  const auto refused = co_await stranger.call(node_of(0), kEcho, Bytes(), Until::after(rt, 30s));
  EXPECT_TRUE(refused.failed_with(Errc::unavailable));
  EXPECT_TRUE(refused.error().context().contains("cluster 'troy', not of 'sparta'"))
      << refused.error().to_string();
  co_await stranger.stop();
}

Task<int> be_node_zero(Runtime& rt, StopToken) {
  Seen seen;
  TestHandlers handlers(rt, seen);
  Event ready(rt);
  Rpc rpc(rt, options_of(0));
  handlers.serve_all(rpc);
  rpc.serve(kReady, [&ready](Incoming) { return set(ready); });
  const auto started = rpc.start(Address::v4({127, 0, 0, 1}, 0));
  EXPECT_TRUE(started.has_value());
  runtime::TaskGroup other(rt);
  other.spawn(run_node_one(rt, rpc.address()));
  const auto is_ready = co_await ready.wait(Until::after(rt, 30s));
  EXPECT_TRUE(is_ready.has_value());
  // Its handshake said where it is.
  co_await call_many(rt, rpc, node_of(1));
  const auto late = co_await rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 50ms));
  EXPECT_TRUE(late.failed_with(Errc::timeout));
  co_await be_a_stranger(rt, rpc.address());
  EXPECT_GE(rpc.statistics_of_peer(node_of(1))->round_trip_us.count(), 1U);
  EXPECT_TRUE(rpc.tell(node_of(1), kLeave, Bytes()).has_value());
  co_await other.join();
  co_await rpc.stop();
  EXPECT_EQ(rpc.statistics().connections_current, 0U);
  EXPECT_EQ(rpc.statistics().connections_refused, 1U);
  co_return 0;
}

TEST(RpcNative, TwoHostsTalkOverRealSockets) {
  auto host = NativeHost::open({.cores = 2, .handle_signals = false});
  ASSERT_TRUE(host.has_value()) << host.error().to_string();
  EXPECT_EQ((*host)->run(be_node_zero), 0);
}

}  // namespace
}  // namespace helenus::rpc
