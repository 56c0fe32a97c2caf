// A node that has the secret and the id of a member, and sends the others whatever it likes: every
// kind of message of consensus and of gossip, with fields drawn at random and documents that are
// nearly right. Nobody stops, the metadata stay as they are, and clients change them as before.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "cluster/cluster_test_support.h"
#include "consensus/message.h"
#include "membership/message.h"
#include "metadata/metadata_codec.h"
#include "rpc/verb.h"

namespace helenus::cluster::testing {
namespace {

using base::Result;
using consensus::Document;
using model::NodeId;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using namespace std::chrono_literals;

constexpr std::size_t kMembers = 4;

class Impostor final : public sim::Process {
 public:
  Impostor(Runtime& runtime, Cluster& cluster, Document document, std::uint64_t& sent)
      : runtime_(runtime),
        cluster_(cluster),
        known_(std::move(document)),
        sent_(sent),
        prng_(runtime.random.fork()),
        rpc_(runtime,
             {.cluster = "troy", .node = node_of(kMembers - 1), .secrets = {secret_of(1)}}) {}

  Task<void> run(StopToken stop) override {
    for (std::size_t i = 0; i + 1 < kMembers; ++i) {
      CO_ASSERT_OK(rpc_.introduce(node_of(i), cluster_.machine(i).address(kPort)));
    }
    while (co_await runtime::sleep_for(runtime_, 2ms, stop)) {
      const NodeId to = node_of(prng_.below(kMembers - 1));
      const bool told = prng_.chance(0.5)
                            ? rpc_.tell(to, rpc::verbs::kConsensus, any_consensus()).has_value()
                            : rpc_.tell(to, rpc::verbs::kGossip, any_gossip()).has_value();
      if (told) ++sent_;
    }
    co_await rpc_.stop();
  }

 private:
  base::Uuid any_uuid() { return base::Uuid::from_random(prng_.below(4), prng_.below(4)); }
  consensus::Ballot any_ballot() {
    const std::uint64_t round =
        prng_.chance(0.5) ? prng_.between(1, 9) : prng_.between(1, consensus::kRoundMax);
    return {.round = round, .proposer = consensus::ProposerId(any_uuid())};
  }
  consensus::Version any_version() {
    return consensus::Version(prng_.chance(0.7) ? known_.version.value() + prng_.below(3)
                                                : prng_.between(1, consensus::kVersionMax));
  }
  // The metadata without their keyspaces, garbage, or acceptors of its own choice.
  Document any_document() {
    auto metadata = *metadata::decode_cluster_metadata(known_.content);
    std::vector<NodeId> acceptors = known_.acceptors;
    base::Bytes content = known_.content;
    switch (prng_.below(4)) {
      case 0:
        acceptors = {node_of(kMembers - 1)};
        break;
      case 1:
        content = base::Bytes::copy_of(std::string_view("drop every keyspace"));
        break;
      case 2:
        metadata.tablets.pop_back();
        content = metadata::encode(metadata);
        break;
      default:
        metadata.cluster_name = "sparta";
        content = metadata::encode(metadata);
        break;
    }
    Document document = *consensus::apply({.id = consensus::ChangeId(any_uuid()),
                                           .expected = known_.version,
                                           .acceptors = std::move(acceptors),
                                           .content = std::move(content)},
                                          known_);
    if (prng_.chance(0.3)) {
      document = *consensus::apply({.id = consensus::ChangeId(any_uuid()),
                                    .expected = document.version,
                                    .acceptors = {node_of(kMembers - 1)},
                                    .content = known_.content},
                                   document);
    }
    return document;
  }
  consensus::Body any_body() {
    using namespace consensus;
    const Version version = any_version();
    switch (prng_.below(11)) {
      case 0:
        return Prepare{.version = version, .ballot = any_ballot()};
      case 1:
        return Accept{.proposal = {.ballot = any_ballot(), .document = any_document()}};
      case 2:
        return Probe{.version = version, .ticket = {}};
      case 3:
        return Learn{.document = any_document()};
      case 4:
        return Promised{.version = version, .ballot = any_ballot(), .accepted = {}};
      case 5:
        return Accepted{.version = version, .ballot = any_ballot()};
      case 6:
        return Refused{.version = version, .ballot = any_ballot(), .promised = any_ballot()};
      case 7:
        return Probed{.version = version, .ticket = {}, .accepted = {}};
      case 8:
        return Learned{.version = version};
      case 9:
        return Decided{.document = any_document()};
      default:
        return Behind{.version = version, .known = Version(prng_.below(9))};
    }
  }
  rpc::Payload any_consensus() {
    return {encode(consensus::Message{.register_id = known_.register_id, .body = any_body()})};
  }

  membership::Delta any_delta(NodeId node) {
    membership::Delta delta{.node = node,
                            .generation = prng_.between(
                                1, prng_.chance(0.5) ? 4'000'000'000 : membership::kGenerationMax),
                            .after = 0,
                            .states = {}};
    membership::Version version = prng_.below(1'000'000);
    for (std::uint8_t key = 1; key < 12; ++key) {
      if (prng_.chance(0.5)) continue;
      std::string value(prng_.below(40), '\0');
      for (char& octet : value) octet = static_cast<char>(prng_.below(256));
      delta.states.push_back({.key = static_cast<membership::StateKey>(key),
                              .version = version += prng_.between(1, 1'000'000),
                              .value = base::Bytes::copy_of(value)});
    }
    if (delta.states.empty())
      delta.states.push_back({.key = {}, .version = 1 + version, .value = {}});
    return delta;
  }
  rpc::Payload any_gossip() {
    using namespace membership;
    // Of itself, of nodes that there are not, and of others, whom it makes begin a new life.
    const NodeId node = prng_.chance(0.3) ? node_of(prng_.below(kMembers)) : NodeId(any_uuid());
    Message message{.cluster = "troy", .sender = node_of(kMembers - 1), .body = Opening{}};
    switch (prng_.below(4)) {
      case 0:
        message.body = Opening{.digest = {.arc = {},
                                          .nodes = {{.node = node,
                                                     .generation = prng_.between(1, 1ULL << 40),
                                                     .version = prng_.below(1ULL << 60)}}}};
        break;
      case 1:
        message.body = Answer{.wanted = {{.node = node}}, .deltas = {any_delta(node)}};
        break;
      case 2:
        message.body = Closing{.deltas = {any_delta(NodeId(any_uuid()))}};
        break;
      default:
        message.body = Closing{.deltas = {any_delta(node)}};
        break;
    }
    return {encode(message)};
  }

  Runtime& runtime_;
  Cluster& cluster_;
  Document known_;
  std::uint64_t& sent_;
  base::Prng prng_;
  rpc::Rpc rpc_;
};

TEST(HostileNode, ChangesNothingAndStopsNobody) {
  const std::uint64_t seeds =
      base::count_from_environment("HELENUS_CLUSTER_SEEDS", base::kSanitized ? 1 : 2);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Cluster cluster(seed, kMembers);
    cluster.start_all();
    cluster.expect_whole(kMembers);
    cluster.tell(0, [](Runtime& runtime, ClusterService& service) -> Task<void> {
      const auto changed =
          co_await service.change(add_keyspace("iliad"), runtime::Until::after(runtime, 30s));
      EXPECT_TRUE(changed.has_value());
    });
    cluster.world().run_for(5s);
    cluster.machine(kMembers - 1).request_stop();
    cluster.world().run_for(20s);
    const auto state = cluster.acceptor_state(0);
    ASSERT_TRUE(state.has_value());

    std::uint64_t sent = 0;
    sim::Machine& machine =
        cluster.world().add_machine({.name = "impostor"}, [&](Runtime& runtime) {
          return std::make_unique<Impostor>(runtime, cluster, state->decided, sent);
        });
    machine.start();
    cluster.world().run_for(20s);
    EXPECT_GT(sent, 2000U);
    for (std::size_t i = 0; i + 1 < kMembers; ++i) {
      ASSERT_TRUE(cluster.machine(i).is_up());
      EXPECT_FALSE(cluster.service(i).failure().has_value());
      EXPECT_EQ(cluster.service(i).version(), state->decided.version);
    }
    cluster.tell(1, [](Runtime& runtime, ClusterService& service) -> Task<void> {
      const auto changed =
          co_await service.change(add_keyspace("odyssey"), runtime::Until::after(runtime, 60s));
      EXPECT_TRUE(changed.has_value()) << changed.error().to_string();
    });
    EXPECT_EQ(cluster.service(1).metadata()->keyspaces.size(), 2U);
    EXPECT_EQ(cluster.service(1).metadata()->nodes.size(), kMembers);
    machine.request_stop();
    cluster.world().run_for(20s);
  }
}

}  // namespace
}  // namespace helenus::cluster::testing
