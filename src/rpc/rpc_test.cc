// What nodes see of one another: calls, one-way messages, deadlines, cancellation, limits.
#include "rpc/rpc.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rpc/rpc_test_support.h"
#include "runtime/when_all.h"

namespace helenus::rpc {
namespace {

Task<void> echo_once(Runtime& rt, Rpc& rpc) {
  const auto answer = co_await rpc.call(node_of(1), kEcho, text("hello"), Until::after(rt, 5s));
  CO_ASSERT_OK(answer);
  EXPECT_EQ(answer->text(), "hello");
}

// The error of a call to node 1.
Task<Error> failing_call(Runtime& rt, Rpc& rpc, Verb verb, Bytes payload = {}) {
  const auto answer = co_await rpc.call(node_of(1), verb, payload, Until::after(rt, 5s));
  EXPECT_FALSE(answer.has_value());
  co_return answer ? Error(Errc::internal, "no error") : answer.error();
}

TEST(Rpc, CallsAndIsAnswered) {
  Cluster cluster(1, 2);
  cluster.start_all();
  cluster.tell(0, echo_once);
  const PeerStatistics& caller = cluster.statistics(0, 1);
  EXPECT_EQ(caller.requests_sent, 1U);
  EXPECT_EQ(caller.requests_current, 0U);
  EXPECT_EQ(caller.answer_us.count(), 1U);
  EXPECT_EQ(caller.dials, 1U);
  EXPECT_TRUE(caller.calls_failed.empty());
  const PeerStatistics& callee = cluster.statistics(1, 0);
  EXPECT_EQ(callee.requests_received, 1U);
  EXPECT_EQ(callee.connections_accepted, 1U);
  EXPECT_EQ(callee.handlers_current, 0U);
  EXPECT_GT(callee.bytes_received, 0U);
  cluster.stop_all();
}

TEST(Rpc, MeasuresRoundTripsWithoutBeingAsked) {
  Cluster cluster(2, 2);
  cluster.start_all();
  cluster.tell(0, echo_once);
  cluster.world().run_for(21s);
  const PeerStatistics& statistics = cluster.statistics(0, 1);
  EXPECT_GE(statistics.round_trip_us.count(), 10U);
  EXPECT_LE(statistics.round_trip_us.quantile(0.5), 10'000U);
  ASSERT_TRUE(statistics.round_trip_smoothed.has_value());
  EXPECT_GT(*statistics.round_trip_smoothed, 50us);
  EXPECT_LT(*statistics.round_trip_smoothed, 20ms);
  EXPECT_GT(statistics.bytes_received, 10 * kFrameHeadSize);
  cluster.stop_all();
}

TEST(Rpc, CallsRunSideBySide) {
  Cluster cluster(3, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto began_at = rt.clock.now();
    std::vector<Task<Result<Bytes>>> calls;
    calls.push_back(rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 1s)));
    for (int i = 0; i < 100; ++i) {
      calls.push_back(rpc.call(node_of(1), kEcho, text(std::to_string(i)), Until::after(rt, 1s)));
    }
    const auto answers = co_await runtime::when_all(std::move(calls));
    EXPECT_TRUE(answers[0].failed_with(Errc::timeout));
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(answers[static_cast<std::size_t>(i) + 1]->text(), std::to_string(i));
    }
    EXPECT_LT(rt.clock.now() - began_at, 1100ms);
  });
  EXPECT_EQ(cluster.statistics(0, 1).dials, 1U);
  cluster.stop_all();
}

TEST(Rpc, CarriesLargePayloads) {
  Cluster cluster(4, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const Bytes large = text(std::string(std::size_t{5} << 20, 'x'));
    const auto answer = co_await rpc.call(node_of(1), kEcho, large, Until::after(rt, 60s));
    CO_ASSERT_OK(answer);
    EXPECT_EQ(*answer, large);
    const Bytes larger = text(std::string(kFrameBodySizeMaxDefault, 'x'));
    const auto refused = co_await rpc.call(node_of(1), kEcho, larger, Until::after(rt, 60s));
    EXPECT_TRUE(refused.failed_with(Errc::invalid_argument));
  });
  cluster.stop_all();
}

// Half a mebibyte a second: each way takes longer than silence may last.
TEST(Rpc, ALargePayloadOnASlowNetworkIsNotTakenForSilence) {
  Cluster cluster(4, 2,
                  {.network = {.ns_per_kib = 2'000'000, .segment_size = 1400},
                   .tcp = {.receive_buffer_size = 64 << 10}});
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const Bytes large = text(std::string(std::size_t{7} << 20, 'x'));
    const auto began_at = rt.clock.now();
    const auto answer = co_await rpc.call(node_of(1), kEcho, large, Until::after(rt, 300s));
    CO_ASSERT_OK(answer);
    EXPECT_EQ(*answer, large);
    EXPECT_GT(rt.clock.now() - began_at, 25s);
  });
  EXPECT_EQ(cluster.statistics(0, 1).dials, 1U);
  cluster.stop_all();
}

TEST(Rpc, ADeadlineTravelsWithTheRequest) {
  Cluster cluster(5, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 300ms));
    EXPECT_TRUE(answer.failed_with(Errc::timeout));
  });
  cluster.world().run_for(1s);
  EXPECT_EQ(cluster.seen(1).waits_timed_out, 1U);
  EXPECT_LE(cluster.seen(1).longest_wait, 301ms);
  EXPECT_EQ(cluster.statistics(1, 0).answers_dropped, 1U);
  EXPECT_EQ(cluster.statistics(0, 1).answers, 0U);
  EXPECT_EQ(cluster.statistics(0, 1).calls_failed.at(Errc::timeout), 1U);
  cluster.stop_all();
}

TEST(Rpc, ACancelledRequestStopsItsHandler) {
  Cluster cluster(6, 2);
  cluster.start_all();
  runtime::StopSource stop;
  const TestNode::Story story = [&stop](Runtime&, Rpc& rpc) {
    return [](Rpc& the_rpc, StopToken token) -> Task<void> {
      const auto answer =
          co_await the_rpc.call(node_of(1), kWait, Bytes(), {.stop = std::move(token)});
      EXPECT_TRUE(answer.failed_with(Errc::cancelled));
    }(rpc, stop.token());
  };
  cluster.node(0).tell(story);
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_begun == 1; }, 1s));
  cluster.world().run_for(1h);
  EXPECT_EQ(cluster.seen(1).waits_cancelled, 0U);
  cluster.world().after(0s, [&] { stop.request_stop(); });
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_cancelled == 1; }, 1s));
  cluster.world().run_for(1s);
  EXPECT_FALSE(cluster.node(0).is_telling());
  EXPECT_EQ(cluster.statistics(1, 0).requests_cancelled, 1U);
  EXPECT_EQ(cluster.statistics(0, 1).answers, 0U);
  EXPECT_EQ(cluster.statistics(0, 1).requests_current, 0U);
  cluster.stop_all();
}

TEST(Rpc, OneWayMessagesComeInOrder) {
  Cluster cluster(7, 2, {.shuffle = false});
  cluster.start_all();
  cluster.tell(0, [](Runtime&, Rpc& rpc) -> Task<void> {
    for (int i = 0; i < 50; ++i) {
      CO_ASSERT_OK(rpc.tell(node_of(1), kNote, text(std::to_string(i))));
    }
    co_return;
  });
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).notes.size() == 50; }, 5s));
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(cluster.seen(1).notes[i], std::to_string(i));
  EXPECT_EQ(cluster.statistics(0, 1).one_way_sent, 50U);
  EXPECT_EQ(cluster.statistics(1, 0).one_way_received, 50U);
  cluster.stop_all();
}

TEST(Rpc, TellsTheCallerWhatWentWrong) {
  Cluster cluster(8, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const Error failed = co_await failing_call(rt, rpc, kFail);
    EXPECT_EQ(failed.code(), Errc::no_space);
    EXPECT_TRUE(failed.to_string().ends_with("answered: as asked")) << failed.to_string();
    const Error unknown = co_await failing_call(rt, rpc, kNobodys);
    EXPECT_EQ(unknown.code(), Errc::unsupported);
    const auto stranger = co_await rpc.call(node_of(9), kEcho, Bytes(), Until::after(rt, 1s));
    EXPECT_TRUE(stranger.failed_with(Errc::unavailable));
    const auto untold = rpc.tell(node_of(9), kNote, Bytes());
    EXPECT_TRUE(untold.failed_with(Errc::unavailable));
    co_await echo_once(rt, rpc);
  });
  EXPECT_EQ(cluster.statistics(0, 1).connections_broken, 0U);
  EXPECT_EQ(cluster.statistics(0, 1).calls_failed.at(Errc::unsupported), 1U);
  cluster.stop_all();
}

TEST(Rpc, AnUnknownOneWayMessageIsIgnored) {
  Cluster cluster(9, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    CO_ASSERT_OK(rpc.tell(node_of(1), kNobodys, text("x")));
    co_await echo_once(rt, rpc);
  });
  EXPECT_EQ(cluster.statistics(1, 0).one_way_ignored, 1U);
  cluster.stop_all();
}

TEST(Rpc, TalksToItselfWithoutAConnection) {
  Cluster cluster(10, 1);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(0), kEcho, text("me"), Until::after(rt, 1s));
    EXPECT_EQ(answer->text(), "me");
    const auto late = co_await rpc.call(node_of(0), kWait, Bytes(), Until::after(rt, 1s));
    EXPECT_TRUE(late.failed_with(Errc::timeout));
    const auto nobody = co_await rpc.call(node_of(0), kNobodys, Bytes(), Until::after(rt, 1s));
    EXPECT_TRUE(nobody.failed_with(Errc::unsupported));
    EXPECT_TRUE(rpc.tell(node_of(0), kNote, text("myself")));
  });
  cluster.world().run_for(1ms);
  EXPECT_EQ(cluster.seen(0).notes, std::vector<std::string>{"myself"});
  EXPECT_EQ(cluster.rpc(0).statistics().connections_accepted, 0U);
  cluster.stop_all();
}

TEST(Rpc, MeetsWhoeverIsAtAnAddress) {
  Cluster cluster(11, 3);
  cluster.start(0);
  cluster.start(1);
  const TestNode::Story story = [&cluster](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address other, Address own,
              Address nobody) -> Task<void> {
      the_rpc.forget(node_of(1));
      const auto met = co_await the_rpc.meet(other, Until::after(runtime, 5s));
      EXPECT_EQ(met, node_of(1));
      co_await echo_once(runtime, the_rpc);
      EXPECT_EQ(co_await the_rpc.meet(own, Until::after(runtime, 5s)), node_of(0));
      const auto refused = co_await the_rpc.meet(nobody, Until::after(runtime, 5s));
      EXPECT_FALSE(refused.has_value());
    }(rt, rpc, cluster.address(1), cluster.address(0), cluster.address(2));
  };
  cluster.tell(0, story);
  cluster.machine(0).request_stop();
  cluster.machine(1).request_stop();
  cluster.world().run_for(10s);
  EXPECT_FALSE(cluster.machine(0).is_up());
}

TEST(Rpc, AForgottenNodeIsNotCalled) {
  Cluster cluster(12, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    co_await echo_once(rt, rpc);
    rpc.forget(node_of(1));
    const Error gone = co_await failing_call(rt, rpc, kEcho);
    EXPECT_EQ(gone.code(), Errc::unavailable);
  });
  cluster.world().run_for(1s);
  EXPECT_EQ(cluster.statistics(0, 1).connections_current, 0U);
  EXPECT_EQ(cluster.statistics(1, 0).connections_current, 0U);
  // It calls us, and so we know it again.
  cluster.tell(1, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(0), kEcho, text("x"), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value());
  });
  cluster.tell(0, echo_once);
  cluster.stop_all();
}

TEST(Rpc, RefusesMoreThanMayWaitForAPeer) {
  Cluster cluster(13, 2);
  cluster.options(0).limits.calls_max = 2;
  cluster.options(0).limits.one_way_waiting_max = 3;
  cluster.options(0).limits.bytes_waiting_max = 1000;
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    std::vector<Task<Result<Bytes>>> calls;
    for (int i = 0; i < 3; ++i) {
      calls.push_back(rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 100ms)));
    }
    const auto began_at = rt.clock.now();
    const auto answers = co_await runtime::when_all(std::move(calls));
    EXPECT_TRUE(answers[0].failed_with(Errc::timeout));
    EXPECT_TRUE(answers[1].failed_with(Errc::timeout));
    EXPECT_TRUE(answers[2].failed_with(Errc::overloaded));
    EXPECT_GE(rt.clock.now() - began_at, 100ms);
    const Error large = co_await failing_call(rt, rpc, kEcho, text(std::string(1001, 'x')));
    EXPECT_EQ(large.code(), Errc::overloaded);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(rpc.tell(node_of(1), kNote, Bytes()));
    EXPECT_TRUE(rpc.tell(node_of(1), kNote, Bytes()).failed_with(Errc::overloaded));
    co_await echo_once(rt, rpc);
  });
  EXPECT_EQ(cluster.statistics(0, 1).one_way_dropped, 1U);
  cluster.stop_all();
}

TEST(Rpc, RefusesMoreHandlersThanOneConnectionMayHave) {
  Cluster cluster(14, 2);
  cluster.options(1).limits.handlers_max = 4;
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    std::vector<Task<Result<Bytes>>> calls;
    for (int i = 0; i < 10; ++i) {
      calls.push_back(rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 1s)));
    }
    const auto answers = co_await runtime::when_all(std::move(calls));
    EXPECT_EQ(std::ranges::count_if(answers,
                                    [](const auto& a) { return a.failed_with(Errc::overloaded); }),
              6);
    const auto slept = co_await runtime::sleep_for(rt, 1s, {});
    EXPECT_TRUE(slept.has_value());
    co_await echo_once(rt, rpc);
  });
  EXPECT_EQ(cluster.statistics(1, 0).requests_refused, 6U);
  cluster.stop_all();
}

TEST(Rpc, AnAnswerThatFitsNoFrameIsAnError) {
  Cluster cluster(15, 2);
  cluster.options(0).limits.body_size_max = 4096;
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const Error large = co_await failing_call(rt, rpc, kEcho, text(std::string(5000, 'x')));
    EXPECT_EQ(large.code(), Errc::invalid_argument);
    co_await echo_once(rt, rpc);
  });
  cluster.stop_all();
}

TEST(Rpc, RefusesMoreAnswersThanMayWaitToBeRead) {
  Cluster cluster(15, 2);
  cluster.options(1).limits.answer_bytes_max = 250'000;
  cluster.start_all();
  cluster.world().network().set_slowness(cluster.machine(1).id(), cluster.machine(0).id(), 100);
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    std::vector<Task<Result<Bytes>>> calls;
    for (int i = 0; i < 40; ++i) {
      const Bytes payload = text(std::string(100'000, 'x'));
      calls.push_back(rpc.call(node_of(1), kEcho, payload, Until::after(rt, 60s)));
    }
    const auto answers = co_await runtime::when_all(std::move(calls));
    const auto refused = std::ranges::count_if(
        answers, [](const auto& answer) { return answer.failed_with(Errc::timeout); });
    EXPECT_GE(refused, 1);
    EXPECT_EQ(std::ranges::count_if(answers, [](const auto& answer) { return !!answer; }),
              40 - refused);
    co_await echo_once(rt, rpc);
  });
  cluster.stop_all();
}

TEST(Rpc, StopsWhenItsHandlersHaveEnded) {
  Cluster cluster(16, 2);
  cluster.start_all();
  const TestNode::Story story = [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kWait, Bytes(), Until::after(rt, 2s));
    EXPECT_TRUE(answer.failed_with(Errc::timeout)) << answer.error().to_string();
  };
  cluster.node(0).tell(story);
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_begun == 1; }, 1s));
  const auto began_at = cluster.world().now();
  cluster.machine(1).request_stop();
  EXPECT_TRUE(cluster.world().run_until([&] { return !cluster.machine(1).is_up(); }, 1min));
  EXPECT_GT(cluster.world().now() - began_at, 1s);
  EXPECT_LT(cluster.world().now() - began_at, 3s);
  EXPECT_EQ(cluster.seen(1).waits_timed_out, 1U);
  EXPECT_EQ(cluster.statistics(0, 1).connections_broken, 0U);
  // A node that is gone fails calls, and does not hold them.
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const Error gone = co_await failing_call(rt, rpc, kEcho);
    EXPECT_EQ(gone.code(), Errc::unavailable);
  });
  cluster.stop_all();
}

TEST(Rpc, StopsHandlersThatDoNotEnd) {
  Cluster cluster(17, 2);
  cluster.start_all();
  const TestNode::Story story = [](Runtime&, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kWait, Bytes(), Until::forever());
    EXPECT_TRUE(answer.failed_with(Errc::connection_lost)) << answer.error().to_string();
  };
  cluster.node(0).tell(story);
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_begun == 1; }, 1s));
  cluster.machine(1).request_stop();
  EXPECT_TRUE(cluster.world().run_until([&] { return !cluster.machine(1).is_up(); }, 1min));
  EXPECT_EQ(cluster.seen(1).waits_cancelled, 1U);
  cluster.world().run_for(1s);
  EXPECT_FALSE(cluster.node(0).is_telling());
  cluster.stop_all();
}

TEST(Rpc, StoppingFailsItsOwnCalls) {
  Cluster cluster(18, 2);
  cluster.start_all();
  const TestNode::Story story = [](Runtime&, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kWait, Bytes(), Until::forever());
    EXPECT_TRUE(answer.failed_with(Errc::connection_lost)) << answer.error().to_string();
    const auto after = co_await rpc.call(node_of(1), kEcho, Bytes(), Until::forever());
    EXPECT_TRUE(after.failed_with(Errc::closed));
    EXPECT_TRUE(rpc.tell(node_of(1), kNote, Bytes()).failed_with(Errc::closed));
  };
  cluster.node(0).tell(story);
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_begun == 1; }, 1s));
  cluster.machine(0).request_stop();
  EXPECT_TRUE(cluster.world().run_until([&] { return !cluster.machine(0).is_up(); }, 1s));
  EXPECT_TRUE(cluster.world().run_until([&] { return cluster.seen(1).waits_cancelled == 1; }, 1s));
  cluster.stop_all();
}

// What lies in the sockets of a process that stands still, and is read when it goes on.
std::uint64_t runs_after_a_pause(bool believes_remaining_time, Duration pause) {
  Cluster cluster(31, 2);
  cluster.options(1).believes_remaining_time = believes_remaining_time;
  cluster.start_all();
  cluster.tell(0, echo_once);
  cluster.machine(1).pause();
  const TestNode::Story story = [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kCount, text("1"), Until::after(rt, 2s));
    EXPECT_TRUE(answer.has_value() || answer.failed_with(Errc::timeout));
  };
  cluster.node(0).tell(story);
  cluster.world().run_for(pause);
  cluster.machine(1).resume();
  cluster.world().run_for(10s);
  EXPECT_FALSE(cluster.node(0).is_telling());
  const std::uint64_t runs = cluster.seen(1).runs.contains("1") ? cluster.seen(1).runs["1"] : 0;
  EXPECT_EQ(cluster.statistics(1, 0).requests_late, 1 - runs);
  cluster.stop_all();
  return runs;
}

TEST(Rpc, ARequestIsNotExecutedAfterItsDeadlineWhereverItLay) {
  EXPECT_EQ(runs_after_a_pause(false, 3s), 0U);
  EXPECT_EQ(runs_after_a_pause(false, 1s), 1U);
}

// Planted: without its age it would be.
TEST(Rpc, RemainingTimeThatBeginsAnewExecutesItLate) {
  EXPECT_EQ(runs_after_a_pause(true, 3s), 1U);
}

TEST(Rpc, StoppingSendsWhatWaits) {
  Cluster cluster(19, 2);
  cluster.start_all();
  cluster.tell(0, echo_once);
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto note = co_await rpc.call(node_of(1), kNote, text("warm"), Until::after(rt, 5s));
    CO_ASSERT_OK(note);
    CO_ASSERT_OK(rpc.tell(node_of(1), kNote, text("I leave")));
  });
  cluster.machine(0).request_stop();
  cluster.world().run_for(2s);
  EXPECT_FALSE(cluster.machine(0).is_up());
  EXPECT_EQ(cluster.seen(1).notes, (std::vector<std::string>{"warm", "I leave"}));
  cluster.stop_all();
}

}  // namespace
}  // namespace helenus::rpc
