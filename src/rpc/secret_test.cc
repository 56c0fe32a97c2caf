// Nodes with a secret: who has it is let in, whatever a stranger does between two nodes ends their
// connection and nothing else, and a secret is replaced node by node.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rpc/rpc_test_support.h"
#include "sim/function_process.h"

namespace helenus::rpc {
namespace {

Task<void> call_node_one(Runtime& rt, Rpc& rpc) {
  const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 5s));
  EXPECT_TRUE(answer.has_value()) << answer.error().to_string();
}

Task<void> be_refused_by_node_one(Runtime& rt, Rpc& rpc) {
  const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 5s));
  EXPECT_TRUE(answer.failed_with(Errc::unavailable));
}

// Node 2 has what `secrets` says; nodes 0 and 1 are not troubled.
void expect_refused(std::vector<ClusterSecret> secrets, std::string_view reason) {
  Cluster cluster(1, 3);
  cluster.options(2).any_address_in_the_clear = true;
  cluster.options(2).secrets = std::move(secrets);
  cluster.start_all();
  cluster.tell(2, be_refused_by_node_one);
  cluster.tell(0, call_node_one);
  EXPECT_EQ(cluster.logged(1, "refused a node", reason), 1U) << reason;
  EXPECT_EQ(cluster.logged(2, "no connection to a node", reason), 1U) << reason;
  EXPECT_EQ(cluster.rpc(1).statistics().proofs_refused, 1U);
  EXPECT_EQ(cluster.rpc(1).statistics().connections_refused, 1U);
  EXPECT_EQ(cluster.seen(1).echoes, 1U);
  cluster.stop_all();
}

TEST(Secret, AWrongOneIsRefused) {
  expect_refused({secret_of(9)}, "the proof is not of this cluster's secret");
}

TEST(Secret, ANodeWithoutOneIsRefused) {
  expect_refused({}, "the one that dials has none");
}

TEST(Secret, ANodeWithoutOneTakesNobodyThatHasOne) {
  Cluster cluster(2, 2);
  cluster.options(1).secrets.clear();
  cluster.options(1).any_address_in_the_clear = true;
  cluster.start_all();
  cluster.tell(0, be_refused_by_node_one);
  EXPECT_EQ(cluster.logged(1, "refused a node", "this node has no cluster secret"), 1U);
  cluster.stop_all();
}

TEST(Secret, WithoutOneOnlyLoopbackIsTalkedTo) {
  Cluster cluster(3, 1);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    Rpc other(rt, {.cluster = "troy", .node = node_of(5)});
    const auto listening = other.start(rpc.address().with_port(7001));
    EXPECT_TRUE(listening.failed_with(Errc::refused));
    EXPECT_TRUE(listening.error().to_string().contains("cluster_secret_file"));
    const auto met = co_await other.meet(rpc.address(), Until::after(rt, 5s));
    EXPECT_TRUE(met.failed_with(Errc::refused)) << met.error().to_string();
    co_await other.stop();
  });
  EXPECT_EQ(cluster.rpc(0).statistics().connections_accepted, 0U);
  cluster.stop_all();
}

// One that keeps trying is told of once a minute, and counted.
TEST(Secret, ALineAMinuteTellsOfAPeerThatHasAWrongOne) {
  Cluster cluster(4, 2);
  cluster.options(0).secrets = {secret_of(9)};
  cluster.start_all();
  const TestNode::Story meet_again = [&cluster](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address other) -> Task<void> {
      for (int i = 0; i < 130; ++i) {
        const auto met = co_await the_rpc.meet(other, Until::after(runtime, 5s));
        EXPECT_TRUE(met.failed_with(Errc::refused));
        CO_ASSERT_OK(co_await runtime::sleep_for(runtime, 1s, {}));
      }
    }(rt, rpc, cluster.address(1));
  };
  cluster.tell(0, meet_again);
  EXPECT_EQ(cluster.rpc(1).statistics().proofs_refused, 130U);
  EXPECT_EQ(cluster.logged(1, "refused a node", "proof"), 3U);
  EXPECT_EQ(cluster.logged(0, "a node refused us", "proof"), 3U);
  cluster.stop_all();
}

// New behind old on every node, then new before old, then old away: at each step any two talk.
TEST(Secret, IsReplacedNodeByNode) {
  const std::vector<std::vector<ClusterSecret>> steps = {
      {secret_of(1)},
      {secret_of(1), secret_of(2)},
      {secret_of(2), secret_of(1)},
      {secret_of(2)},
  };
  for (std::size_t step = 0; step + 1 < steps.size(); ++step) {
    for (const bool dials_first : {true, false}) {
      Cluster cluster(5 + step, 2);
      cluster.options(0).secrets = steps[dials_first ? step + 1 : step];
      cluster.options(1).secrets = steps[dials_first ? step : step + 1];
      cluster.start_all();
      cluster.tell(0, call_node_one);
      cluster.stop_all();
    }
  }
}

// Somebody between two nodes: what node 0 sends goes through, but for one write that is given to
// `tamper`, which returns what goes on instead.
class Between {
 public:
  using Tamper = std::function<std::vector<Bytes>(std::vector<Bytes> writes)>;

  static Task<void> run(Runtime& rt, Address at, Address to, Tamper tamper) {
    auto listener = rt.transport.listen(at);
    CO_ASSERT_OK(listener);
    auto in = co_await (*listener)->accept(Until::after(rt, 30s));
    CO_ASSERT_OK(in);
    auto out = co_await rt.transport.connect(to, Until::after(rt, 30s));
    CO_ASSERT_OK(out);
    runtime::TaskGroup back(rt);
    back.spawn(copy(rt, **out, **in));
    co_await copy_tampered(rt, **in, **out, std::move(tamper));
    (*in)->close();
    (*out)->close();
    co_await back.join();
  }

 private:
  static Task<void> copy(Runtime& rt, runtime::Stream& from, runtime::Stream& to) {
    std::vector<std::byte> room(1 << 16);
    for (;;) {
      const auto size = co_await from.read(room, Until::after(rt, 30s));
      if (!size || *size == 0) co_return;
      const auto sent = co_await to.write(base::ByteView(room).first(*size), Until::after(rt, 30s));
      if (!sent) co_return;
    }
  }

  // Frames of the caller: a hello and a proof go as they are, the next two are held and given away.
  static Task<void> copy_tampered(Runtime& rt, runtime::Stream& from, runtime::Stream& to,
                                  Tamper tamper) {
    std::vector<std::byte> room(1 << 16);
    base::Buffer buffer;
    std::size_t frames = 0;
    std::vector<Bytes> held;
    for (;;) {
      const auto size = co_await from.read(room, Until::after(rt, 30s));
      if (!size || *size == 0) co_return;
      buffer.append(base::ByteView(room).first(*size));
      for (;;) {
        if (buffer.size() < kFrameHeadSize) break;
        const std::size_t mark = frames < 2 ? 0 : Seal::kMarkSize;
        const std::size_t whole =
            kFrameHeadSize + base::load_le<std::uint32_t>(buffer.data()) + mark;
        if (buffer.size() < whole) break;
        Bytes frame = Bytes::copy_of(buffer.view().first(whole));
        const Bytes rest = Bytes::copy_of(buffer.view().subspan(whole));
        buffer.clear();
        buffer.append(rest);
        std::vector<Bytes> go;
        if (++frames <= 2) {
          go.push_back(std::move(frame));
        } else {
          held.push_back(std::move(frame));
          if (held.size() == 2) go = tamper(std::exchange(held, {}));
        }
        for (const Bytes& bytes : go) {
          const auto sent = co_await to.write(bytes, Until::after(rt, 30s));
          if (!sent) co_return;
        }
      }
    }
  }
};

// What node 1 says when node 0's messages come through somebody who does that to them.
void expect_mark_refused(const Between::Tamper& tamper, std::size_t notes) {
  Cluster cluster(11, 2);
  cluster.start(1);
  sim::Machine& between = cluster.world().add_machine({.name = "between"}, {});
  const Address at = between.address(kTestPort);
  between.set_process(sim::FunctionProcess::factory([&, at](Runtime& rt, StopToken) {
    return Between::run(rt, at, cluster.address(1), tamper);
  }));
  between.start();
  cluster.start(0);
  cluster.world().run_for(1ms);
  const TestNode::Story story = [at](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address there) -> Task<void> {
      CO_ASSERT_OK(the_rpc.introduce(node_of(1), there));
      for (int i = 0; i < 8; ++i) {
        std::ignore = the_rpc.tell(node_of(1), kNote, text(fmt::format("note {}", i)));
        CO_ASSERT_OK(co_await runtime::sleep_for(runtime, 100ms, {}));
      }
    }(rt, rpc, at);
  };
  cluster.tell(0, story);
  EXPECT_EQ(cluster.logged(1, "closed a connection", "the mark of a frame does not match"), 1U);
  EXPECT_EQ(cluster.seen(1).notes.size(), notes);
  cluster.stop_all();
}

// The first two frames are the first note and a ping, in this order.
TEST(Secret, AFrameThatIsRepeatedEndsTheConnection) {
  expect_mark_refused(
      [](std::vector<Bytes> frames) { return std::vector<Bytes>{frames[0], frames[1], frames[1]}; },
      1);
}

TEST(Secret, FramesInAnotherOrderEndTheConnection) {
  expect_mark_refused(
      [](std::vector<Bytes> frames) { return std::vector<Bytes>{frames[1], frames[0]}; }, 0);
}

TEST(Secret, AFrameThatIsLeftOutEndsTheConnection) {
  expect_mark_refused([](std::vector<Bytes> frames) { return std::vector<Bytes>{frames[1]}; }, 0);
}

TEST(Secret, AFrameThatIsPutInEndsTheConnection) {
  expect_mark_refused(
      [](std::vector<Bytes> frames) {
        FrameBatch batch;
        batch.add(OneWay{.verb = kNote.number, .payload = text("mine")});
        base::Buffer forged;
        for (const Bytes& piece : batch.take()) forged.append(piece);
        forged.extend(Seal::kMarkSize);
        return std::vector<Bytes>{frames[0], std::move(forged).freeze(), frames[1]};
      },
      1);
}

// A data folder that was copied: two nodes under one id. The later one is refused, and knows.
TEST(Secret, TheLaterOfTwoNodesUnderOneIdIsRefused) {
  Cluster cluster(12, 3);
  cluster.options(2).node = node_of(0);
  cluster.start(1);
  cluster.start(0);
  cluster.tell(0, call_node_one);
  cluster.start(2);
  cluster.tell(2, call_node_one);
  EXPECT_FALSE(cluster.rpc(2).id_taken());
  const TestNode::Story keep_calling = [](Runtime& rt, Rpc& rpc) -> Task<void> {
    for (int i = 0; i < 40; ++i) {
      const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 1s));
      std::ignore = answer.has_value();
      CO_ASSERT_OK(co_await runtime::sleep_for(rt, 1s, {}));
    }
  };
  cluster.node(0).tell(keep_calling);
  cluster.tell(2, keep_calling);
  EXPECT_TRUE(cluster.rpc(2).id_taken());
  EXPECT_FALSE(cluster.rpc(0).id_taken());
  EXPECT_EQ(cluster.logged(1, "two nodes run under one id", ""), 1U);
  EXPECT_EQ(cluster.logged(2, "another node runs under the id of this one", ""), 1U);
  cluster.stop_all();
}

TEST(Secret, ANodeThatStartsAgainKeepsItsId) {
  Cluster cluster(13, 2);
  cluster.start_all();
  for (int i = 0; i < 3; ++i) {
    cluster.tell(0, call_node_one);
    cluster.machine(0).kill();
    cluster.start(0);
    cluster.tell(0, call_node_one);
    cluster.world().run_for(20s);
  }
  EXPECT_FALSE(cluster.rpc(0).id_taken());
  EXPECT_EQ(cluster.logged(1, "two nodes run under one id", ""), 0U);
  cluster.stop_all();
}

}  // namespace
}  // namespace helenus::rpc
