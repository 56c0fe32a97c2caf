// A member that sends whatever it likes: every kind of message with fields drawn at random, some of
// them taken from what it is told. Nobody stops, nobody adopts what was not decided, and the
// register can be changed meanwhile and afterwards.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "consensus/network_test_support.h"
#include "consensus/paxos_store.h"
#include "rpc/cluster_secret.h"
#include "rpc/verb.h"
#include "runtime/contract/world.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::consensus {
namespace {

using base::Errc;
using base::Result;
using model::NodeId;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

constexpr std::uint16_t kHostilePort = 7000;
constexpr std::uint64_t kHonest = 3;
constexpr std::uint64_t kHostile = 4;  // the number of the node that is

rpc::Options rpc_options(NodeId node) {
  rpc::Key key;
  key.fill(std::byte{1});
  return {.cluster = "troy", .node = node, .secrets = {rpc::ClusterSecret(key)}};
}

struct Town {
  std::map<NodeId, runtime::Address> nodes;
  Document founding = founding_document(kHonest);
  std::map<NodeId, PaxosStore*> stores;
  std::map<NodeId, bool> created;
  std::uint64_t attempts = 0;
  std::uint64_t changes = 0;
  std::uint64_t messages = 0;
};

// The contents of this register begin with those of the version before; nobody else may decide.
Result<void> check_content(const Document& document, const Document* previous) {
  if (document.content.size() % base::Uuid::kSize != 0) {
    return base::Error(Errc::corrupt, "no content of this register");
  }
  if (previous == nullptr) return {};
  const bool may_follow =
      document.content.size() == previous->content.size() + base::Uuid::kSize &&
      base::equal(document.content.view().first(previous->content.size()), previous->content) &&
      document.acceptors == previous->acceptors;
  if (!may_follow) return base::Error(Errc::refused, "does not follow");
  return {};
}

class HonestNode final : public sim::Process {
 public:
  HonestNode(Runtime& runtime, Town& town, NodeId self)
      : runtime_(runtime), town_(town), self_(self), rpc_(runtime, rpc_options(self)) {}
  ~HonestNode() override { town_.stores.erase(self_); }

  Task<void> run(StopToken stop) override {
    if (!std::exchange(town_.created[self_], true)) {
      CO_ASSERT_OK(co_await PersistentAcceptor::create(
          runtime_, "/acceptor", AcceptorState::founding(self_, town_.founding)));
    }
    for (const auto& [node, address] : town_.nodes) {
      if (node != self_) CO_ASSERT_OK(rpc_.introduce(node, address));
    }
    CO_ASSERT_OK(rpc_.start(town_.nodes.at(self_)));
    auto opened = co_await PaxosStore::open(
        runtime_, rpc_, {.path = "/acceptor", .contacts = {}, .check = check_content});
    CO_ASSERT_OK(opened);
    store_ = *std::move(opened);
    town_.stores[self_] = store_.get();
    while (co_await runtime::sleep_for(runtime_, 500ms, stop)) {
      if (self_ == node_id(1)) co_await change_once(stop);
    }
    co_await store_->stop();
    co_await rpc_.stop();
  }

 private:
  Task<void> change_once(StopToken stop) {
    const auto read = co_await store_->read(Until::after(runtime_, 20s, stop));
    if (!read) {
      EXPECT_TRUE(stop.stop_requested()) << read.error().to_string();
      co_return;
    }
    const ChangeId id = change_id(1000 + town_.attempts++);
    const auto changed = co_await store_->change({.id = id,
                                                  .expected = read->version,
                                                  .acceptors = read->acceptors,
                                                  .content = appended(read->content, id)},
                                                 Until::after(runtime_, 20s, stop));
    if (changed) ++town_.changes;
  }

  Runtime& runtime_;
  Town& town_;
  const NodeId self_;
  rpc::Rpc rpc_;
  std::unique_ptr<PaxosStore> store_;
};

class HostileNode final : public sim::Process {
 public:
  HostileNode(Runtime& runtime, Town& town)
      : runtime_(runtime),
        town_(town),
        prng_(runtime.random.fork()),
        rpc_(runtime, rpc_options(node_id(kHostile))) {}

  Task<void> run(StopToken stop) override {
    rpc_.serve(rpc::verbs::kConsensus,
               [this](rpc::Incoming incoming) { return hear(std::move(incoming)); });
    for (const auto& [node, address] : town_.nodes) {
      if (node != node_id(kHostile)) CO_ASSERT_OK(rpc_.introduce(node, address));
    }
    CO_ASSERT_OK(rpc_.start(town_.nodes.at(node_id(kHostile))));
    while (co_await runtime::sleep_for(runtime_, 2ms, stop)) {
      const Message message{
          .register_id = prng_.chance(0.9) ? town_.founding.register_id : RegisterId(uuid_of(4, 2)),
          .body = any_body()};
      const NodeId to = node_id(prng_.between(1, kHonest));
      if (rpc_.tell(to, rpc::verbs::kConsensus, rpc::Payload(encode(message)))) ++town_.messages;
    }
    co_await rpc_.stop();
  }

 private:
  // What others say is used against them.
  Task<Result<base::Bytes>> hear(rpc::Incoming incoming) {
    const auto message = decode_message(incoming.payload);
    if (!message) co_return base::Bytes();
    if (const auto* decided = std::get_if<Decided>(&message->body)) seen_ = decided->document;
    if (const auto* refused = std::get_if<Refused>(&message->body)) ballot_ = refused->promised;
    if (const auto* promised = std::get_if<Promised>(&message->body)) {
      ballot_ = promised->ballot;
      if (promised->accepted) proposal_ = promised->accepted;
    }
    if (const auto* probed = std::get_if<Probed>(&message->body)) {
      if (probed->accepted) proposal_ = probed->accepted;
    }
    if (const auto* probe = std::get_if<Probe>(&message->body)) ticket_ = probe->ticket;
    co_return base::Bytes();
  }

  Version any_version() {
    const std::uint64_t near = seen_.version.value() + prng_.between(0, 3);
    return Version(prng_.chance(0.8) ? std::max<std::uint64_t>(near, 1)
                                     : prng_.between(1, kVersionMax));
  }
  Ballot any_ballot() {
    if (prng_.chance(0.4)) return ballot_;
    const std::uint64_t round =
        prng_.chance(0.5) ? prng_.between(1, 20) : prng_.between(1, kRoundMax);
    return {.round = round, .proposer = proposer_id(prng_.between(1, 3))};
  }
  // Something is wrong with each: its content, its acceptors, its trail, or that it skips a
  // version.
  Document any_document() {
    if (prng_.chance(0.1)) return seen_;
    if (prng_.chance(0.2) && proposal_) return proposal_->document;
    const std::uint64_t fault = prng_.below(4);
    const ChangeId id = change_id(prng_.between(1, 50));
    const auto changed = [&](const Document& document, std::vector<NodeId> acceptors) {
      return *apply({.id = id,
                     .expected = document.version,
                     .acceptors = std::move(acceptors),
                     .content = fault == 0 ? base::Bytes::copy_of("drop everything")
                                           : appended(document.content, id)},
                    document);
    };
    Document document =
        changed(seen_, fault == 1 ? std::vector<NodeId>{node_id(kHostile)} : seen_.acceptors);
    if (fault == 2) document = changed(document, {node_id(kHostile), node_id(1)});
    if (fault == 3) document.trail.insert(document.trail.begin(), change_id(77));
    if (fault == 3) document.trail.resize(document.trail.size() - 1);
    if (document.trail.size() <= 1 && fault == 3) document.acceptors = {node_id(kHostile)};
    if (prng_.chance(0.2)) document.register_id = RegisterId(uuid_of(4, 2));
    return document;
  }
  std::optional<Proposal> any_accepted(Version version) {
    Proposal proposal{.ballot = any_ballot(), .document = any_document()};
    proposal.ballot.round = std::max<std::uint64_t>(proposal.ballot.round, 1);
    if (prng_.chance(0.3) || proposal.document.version != version) return std::nullopt;
    return proposal;
  }
  Body any_body() {
    const Version version = any_version();
    switch (prng_.below(12)) {
      case 0:
        return Prepare{.version = version, .ballot = any_ballot()};
      case 1: {
        Ballot ballot = any_ballot();
        ballot.round = std::max<std::uint64_t>(ballot.round, 1);
        return Accept{.proposal = {.ballot = ballot, .document = any_document()}};
      }
      case 2:
        return Probe{.version = version, .ticket = ticket_};
      case 3:
        return Learn{.document = any_document()};
      case 4:
        return Promised{
            .version = version, .ballot = any_ballot(), .accepted = any_accepted(version)};
      case 5:
        return Accepted{.version = version, .ballot = any_ballot()};
      case 6:
        return Refused{.version = version, .ballot = any_ballot(), .promised = any_ballot()};
      case 7:
        return Probed{.version = version, .ticket = ticket_, .accepted = any_accepted(version)};
      case 8:
        return Learned{.version = version};
      case 9:
        return Decided{.document = any_document()};
      case 10:
        return Probe{.version = Version(1), .ticket = {}};
      default:
        return Behind{.version = version, .known = Version(prng_.below(10))};
    }
  }

  Runtime& runtime_;
  Town& town_;
  base::Prng prng_;
  rpc::Rpc rpc_;
  Document seen_ = town_.founding;
  Ballot ballot_{.round = 1, .proposer = proposer_id(1)};
  std::optional<Proposal> proposal_;
  Ticket ticket_;
};

// Every content is the ids of changes that the honest client made, and no two nodes hold different
// documents of a version.
bool is_honest(const base::Bytes& id, const Town& town) {
  for (std::uint64_t i = 0; i <= town.attempts; ++i) {
    if (base::equal(id, change_id(1000 + i).value().bytes())) return true;
  }
  return false;
}

TEST(HostileMember, ChangesNothingAndStopsNobody) {
  const std::uint64_t seeds =
      base::count_from_environment("HELENUS_CONSENSUS_SEEDS", base::kSanitized ? 1 : 6);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Town town;
    sim::World world(seed, {});
    for (std::uint64_t i = 1; i <= kHonest; ++i) {
      world.add_machine({.name = fmt::format("n{}", i)}, [&town, i](Runtime& runtime) {
        return std::make_unique<HonestNode>(runtime, town, node_id(i));
      });
    }
    world.add_machine({.name = "hostile"}, [&town](Runtime& runtime) {
      return std::make_unique<HostileNode>(runtime, town);
    });
    for (std::uint64_t i = 0; i <= kHonest; ++i) {
      town.nodes[node_id(i + 1)] =
          world.machine(static_cast<sim::MachineId>(i)).address(kHostilePort);
    }
    for (std::uint64_t i = 0; i <= kHonest; ++i) {
      world.machine(static_cast<sim::MachineId>(i)).start();
    }
    world.run_for(30s);
    EXPECT_GT(town.messages, 5000U) << "seed " << seed;
    EXPECT_GE(town.changes, 3U) << "seed " << seed;
    ASSERT_EQ(town.stores.size(), kHonest) << "a node stopped, seed " << seed;
    std::map<Version, Document> held;
    for (const auto& [node, store] : town.stores) {
      EXPECT_FALSE(store->failure().has_value());
      const Document& document = store->known();
      EXPECT_EQ(document.acceptors, town.founding.acceptors);
      EXPECT_EQ(document.content.size(), (document.version.value() - 1) * base::Uuid::kSize);
      for (std::size_t at = 0; at < document.content.size(); at += base::Uuid::kSize) {
        EXPECT_TRUE(is_honest(document.content.slice(at, base::Uuid::kSize), town)) << seed;
      }
      const auto [place, is_new] = held.emplace(document.version, document);
      EXPECT_EQ(place->second, document) << "seed " << seed;
    }
    for (std::uint64_t i = 0; i <= kHonest; ++i) {
      world.machine(static_cast<sim::MachineId>(i)).request_stop();
    }
    world.run_for(20s);
  }
}

}  // namespace
}  // namespace helenus::consensus
