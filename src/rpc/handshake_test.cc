// Who is let in, who is not and learns why, and what nodes of different releases speak.
#include "rpc/handshake.h"

#include <string>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "rpc/rpc_test_support.h"

namespace helenus::rpc {

// A message that has grown: the wish came with version 2.
struct Greeting {
  std::string name;
  std::string wish;
  friend bool operator==(const Greeting&, const Greeting&) = default;
};

template <>
struct Codec<Greeting> {
  static Bytes encode(const Greeting& greeting, ProtocolVersion version) {
    base::Buffer buffer;
    base::Encoder out(buffer);
    out.prefixed(greeting.name);
    if (version >= ProtocolVersion(2)) out.prefixed(greeting.wish);
    return std::move(buffer).freeze();
  }
  static Result<Greeting> decode(const Bytes& bytes, ProtocolVersion version) {
    base::Decoder in(bytes);
    Greeting greeting;
    greeting.name = in.prefixed_text();
    if (version >= ProtocolVersion(2)) greeting.wish = in.prefixed_text();
    TRY_VOID(in.finish());
    return greeting;
  }
};

namespace {

constexpr Method<Greeting, Greeting> kGreet{{.number = verbs::kTestsFirst + 10}};

constexpr VersionRange versions(std::uint16_t oldest, std::uint16_t newest) {
  return {.oldest = ProtocolVersion(oldest), .newest = ProtocolVersion(newest)};
}

Task<Result<Greeting>> greet_back(NodeId, Greeting greeting, Until) {
  co_return Greeting{.name = greeting.name + "!", .wish = greeting.wish + "!"};
}

TEST(Handshake, AStrangerIsRefusedAndBothSidesSayWhy) {
  Cluster cluster(1, 3);
  cluster.options(0).cluster = "sparta";
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto refused = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 5s));
    EXPECT_TRUE(refused.failed_with(Errc::unavailable));
    EXPECT_TRUE(refused.error().context().contains(
        "refused: this is a node of the cluster 'troy', not of 'sparta'"))
        << refused.error().to_string();
  });
  EXPECT_EQ(cluster.logged(0, "no connection to a node", "cluster 'troy', not of 'sparta'"), 1U);
  EXPECT_EQ(cluster.logged(1, "refused a node", "cluster 'troy', not of 'sparta'"), 1U);
  EXPECT_EQ(cluster.rpc(1).statistics().connections_refused, 1U);
  // Nothing is remembered of a stranger that the node did not know before, and others go on.
  cluster.tell(2, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto answer = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 5s));
    EXPECT_TRUE(answer.has_value());
  });
  cluster.stop_all();
}

TEST(Handshake, MeetingAStrangerSaysWhy) {
  Cluster cluster(2, 2);
  cluster.options(0).cluster = "sparta";
  cluster.start_all();
  const TestNode::Story story = [&cluster](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address other) -> Task<void> {
      const auto met = co_await the_rpc.meet(other, Until::after(runtime, 5s));
      EXPECT_TRUE(met.failed_with(Errc::refused)) << met.error().to_string();
    }(rt, rpc, cluster.address(1));
  };
  cluster.tell(0, story);
  EXPECT_EQ(cluster.logged(0, "a node refused us", "cluster 'troy', not of 'sparta'"), 1U);
  EXPECT_EQ(cluster.logged(1, "refused a node", "cluster 'troy', not of 'sparta'"), 1U);
  cluster.stop_all();
}

TEST(Handshake, AnotherNodeThanTheOneWantedIsNotTalkedTo) {
  Cluster cluster(3, 2);
  cluster.start_all();
  const TestNode::Story story = [&cluster](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address other) -> Task<void> {
      CO_ASSERT_OK(the_rpc.introduce(node_of(7), other));
      const auto wrong =
          co_await the_rpc.call(node_of(7), kEcho, Bytes(), Until::after(runtime, 5s));
      EXPECT_TRUE(wrong.failed_with(Errc::unavailable));
      EXPECT_TRUE(wrong.error().context().contains("this is node"));
    }(rt, rpc, cluster.address(1));
  };
  cluster.tell(0, story);
  EXPECT_EQ(cluster.logged(1, "refused a node", "this is node"), 1U);
  cluster.stop_all();
}

TEST(Handshake, TwoNodesOfOneIdAreNoticed) {
  Cluster cluster(4, 2);
  cluster.options(0).node = node_of(1);
  cluster.start_all();
  const TestNode::Story story = [&cluster](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address other) -> Task<void> {
      const auto met = co_await the_rpc.meet(other, Until::after(runtime, 5s));
      EXPECT_TRUE(met.failed_with(Errc::refused));
      EXPECT_TRUE(met.error().context().contains("another node runs under the id"));
    }(rt, rpc, cluster.address(1));
  };
  cluster.tell(0, story);
  EXPECT_EQ(cluster.logged(1, "refused a node", "another node runs under the id"), 1U);
  cluster.stop_all();
}

TEST(Handshake, ANodeOneReleaseBehindIsUnderstood) {
  for (const std::size_t behind : {0U, 1U}) {
    Cluster cluster(5 + behind, 2);
    cluster.options(behind).versions = versions(1, 1);
    cluster.options(1 - behind).versions = versions(1, 2);
    cluster.start_all();
    for (std::size_t i = 0; i < 2; ++i) cluster.rpc(i).serve(kGreet, greet_back);
    cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
      const auto answer =
          co_await rpc.call(node_of(1), kGreet, {.name = "a", .wish = "b"}, Until::after(rt, 5s));
      CO_ASSERT_OK(answer);
      EXPECT_EQ(*answer, (Greeting{.name = "a!", .wish = ""}));
      EXPECT_EQ(rpc.peers()[0].versions[0], ProtocolVersion(1));
    });
    cluster.stop_all();
  }
}

TEST(Handshake, EqualsSpeakTheNewestVersion) {
  Cluster cluster(7, 2);
  for (std::size_t i = 0; i < 2; ++i) cluster.options(i).versions = versions(1, 2);
  cluster.start_all();
  for (std::size_t i = 0; i < 2; ++i) cluster.rpc(i).serve(kGreet, greet_back);
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const Greeting greeting{.name = "a", .wish = "b"};
    const auto answer = co_await rpc.call(node_of(1), kGreet, greeting, Until::after(rt, 5s));
    EXPECT_EQ(answer, (Greeting{.name = "a!", .wish = "b!"}));
    const auto own = co_await rpc.call(node_of(0), kGreet, greeting, Until::after(rt, 5s));
    EXPECT_EQ(own, (Greeting{.name = "a!", .wish = "b!"}));
  });
  cluster.stop_all();
}

TEST(Handshake, VersionsTooFarApartAreRefused) {
  Cluster cluster(8, 2);
  cluster.options(0).versions = versions(3, 4);
  cluster.options(1).versions = versions(1, 2);
  cluster.start_all();
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto refused = co_await rpc.call(node_of(1), kEcho, text("x"), Until::after(rt, 5s));
    EXPECT_TRUE(refused.failed_with(Errc::unavailable));
  });
  const std::string_view reason = "this node speaks versions 1 to 2 of the protocol, not 3 to 4";
  EXPECT_EQ(cluster.logged(0, "no connection to a node", reason), 1U);
  EXPECT_EQ(cluster.logged(1, "refused a node", reason), 1U);
  cluster.stop_all();
}

TEST(Handshake, APayloadThatDoesNotDecodeIsAnErrorAndNoMore) {
  Cluster cluster(9, 2);
  cluster.start_all();
  cluster.rpc(1).serve(kGreet, greet_back);
  cluster.tell(0, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto bad =
        co_await rpc.call(node_of(1), kGreet.verb, text("\x09garbage"), Until::after(rt, 5s));
    EXPECT_TRUE(bad.failed_with(Errc::corrupt));
    const auto good =
        co_await rpc.call(node_of(1), kGreet, {.name = "a", .wish = ""}, Until::after(rt, 5s));
    EXPECT_TRUE(good.has_value());
  });
  EXPECT_EQ(cluster.statistics(0, 1).connections_broken, 0U);
  cluster.stop_all();
}

TEST(Handshake, MorePeersThanMayBeKnownAreRefused) {
  Cluster cluster(10, 4);
  cluster.options(0).limits.peers_max = 3;
  cluster.start_all();
  const TestNode::Story story = [&cluster](Runtime& rt, Rpc& rpc) {
    return [](Runtime& runtime, Rpc& the_rpc, Address address) -> Task<void> {
      EXPECT_TRUE(the_rpc.introduce(node_of(8), address).failed_with(Errc::overloaded));
      the_rpc.forget(node_of(2));
      EXPECT_TRUE(the_rpc.introduce(node_of(8), address).has_value());
      EXPECT_EQ(the_rpc.peers().size(), 3U);
      const auto gone =
          co_await the_rpc.call(node_of(2), kEcho, Bytes(), Until::after(runtime, 1s));
      EXPECT_TRUE(gone.failed_with(Errc::unavailable));
    }(rt, rpc, cluster.address(2));
  };
  cluster.tell(0, story);
  cluster.tell(2, [](Runtime& rt, Rpc& rpc) -> Task<void> {
    const auto refused = co_await rpc.call(node_of(0), kEcho, Bytes(), Until::after(rt, 5s));
    EXPECT_TRUE(refused.failed_with(Errc::unavailable));
  });
  EXPECT_EQ(cluster.logged(0, "refused a node", "3 nodes are known"), 1U);
  cluster.stop_all();
}

}  // namespace
}  // namespace helenus::rpc
