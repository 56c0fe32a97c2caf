// The register as nodes use it: stores over rpc and files on simulated machines, with clients of
// their own, through loss, partitions, pauses, jumping clocks, kills and power losses. What the
// clients saw must be what one register can have shown (history_test_support.h).
//
// HELENUS_CONSENSUS_SEEDS=200 asks for more worlds than usual, HELENUS_CONSENSUS_NODES=100 for
// larger ones; a failure prints its seed.
#include "consensus/paxos_store.h"

#include <map>
#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "consensus/history_test_support.h"
#include "consensus/network_test_support.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "sim/faults.h"
#include "sim/nemesis.h"
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
using testing::IsEmpty;
using namespace std::chrono_literals;

// A sanitizer makes each world several times as dear, and its faults do not hide in one alone.
constexpr std::uint64_t kShare = base::kSanitized ? 3 : 1;

constexpr std::uint16_t kPort = 7000;
const std::string kPath = "/acceptor";

using Story = std::function<Task<void>(Runtime&, PaxosStore&)>;

// What is outside of the machines: no crash touches it.
struct Outside {
  explicit Outside(std::uint64_t founders) : founding(founding_document(founders)) {}

  const Document founding;
  History history{founding};
  std::vector<std::pair<NodeId, runtime::Address>> nodes;
  bool moves_acceptors = false;
  bool clients_work = true;
  bool clients_read = false;  // once, when the work has come to its end
  std::uint64_t changes = 0;
  std::map<NodeId, bool> created;
  std::map<NodeId, Story> stories;      // what a node does when it is up, instead of the work
  std::map<NodeId, Version> last_read;  // after the work
};

// One life of a node: an Rpc, a store, and a client that works with it.
class StoreNode final : public sim::Process {
 public:
  StoreNode(Runtime& runtime, Outside& outside, NodeId self)
      : runtime_(runtime),
        outside_(outside),
        self_(self),
        prng_(runtime.random.fork()),
        rpc_(runtime, {.cluster = "troy", .node = self, .any_address_in_the_clear = true}) {}

  Task<void> run(StopToken stop) override {
    CO_ASSERT_OK(co_await create());
    for (const auto& [node, address] : outside_.nodes) {
      if (node != self_) CO_ASSERT_OK(rpc_.introduce(node, address));
      if (node == self_) CO_ASSERT_OK(rpc_.start(address));
    }
    auto opened = co_await PaxosStore::open(runtime_, rpc_, options());
    CO_ASSERT_OK(opened);
    store_ = *std::move(opened);
    outside_.history.saw(store_->known());
    co_await work(stop);
    co_await store_->stop();
    co_await rpc_.stop();
  }

  PaxosStore* store() { return store_.get(); }

 private:
  PaxosStore::Options options() const {
    PaxosStore::Options options{.path = kPath, .contacts = {}};
    for (const auto& acceptor : outside_.founding.acceptors) options.contacts.push_back(acceptor);
    options.proposer.round_timeout = 100ms;
    return options;
  }

  Task<Result<void>> create() {
    if (outside_.created[self_]) co_return {};
    const bool founds = outside_.founding.names(self_);
    CO_TRY_VOID(co_await PersistentAcceptor::create(
        runtime_, kPath,
        founds ? AcceptorState::founding(self_, outside_.founding) : AcceptorState::blank(self_)));
    outside_.created[self_] = true;
    co_return {};
  }

  Task<void> work(StopToken stop) {
    while (!stop.stop_requested()) {
      const auto pause = runtime::Duration(1ms) * static_cast<int>(prng_.between(0, 80));
      if (!co_await runtime::sleep_for(runtime_, pause, stop)) break;
      if (auto story = outside_.stories.extract(self_)) {
        co_await story.mapped()(runtime_, *store_);
      }
      if (!outside_.clients_work) {
        if (outside_.clients_read) co_await read_at_last(stop);
      } else if (store_->known().is_blank() || prng_.chance(0.4)) {
        co_await read(stop);
      } else {
        co_await change(stop);
      }
    }
  }

  Task<void> read(StopToken stop) {
    const auto operation = outside_.history.invoke(std::nullopt);
    const auto document = co_await store_->read(Until::after(runtime_, 2s, stop));
    if (!document) co_return;
    outside_.history.complete(operation, {.kind = Outcome::Kind::read, .document = *document});
  }

  Task<void> read_at_last(StopToken stop) {
    if (outside_.last_read.contains(self_)) co_return;
    const auto operation = outside_.history.invoke(std::nullopt);
    const auto document = co_await store_->read(Until::after(runtime_, 60s, stop));
    if (!document) co_return;
    outside_.history.complete(operation, {.kind = Outcome::Kind::read, .document = *document});
    outside_.last_read.emplace(self_, document->version);
  }

  Task<void> change(StopToken stop) {
    const Document known = store_->known();
    const ChangeId id = change_id(++outside_.changes);
    const Change change{.id = id,
                        .expected = known.version,
                        .acceptors = next_acceptors(known),
                        .content = appended(known.content, id)};
    const auto operation = outside_.history.invoke(change);
    for (bool first = true; !stop.stop_requested(); first = false) {
      const auto changed = co_await store_->change(change, Until::after(runtime_, 1s, stop));
      if (changed) {
        outside_.history.complete(operation,
                                  {.kind = Outcome::Kind::changed, .document = *changed});
        co_return;
      }
      if (changed.failed_with(Errc::already_exists)) {
        outside_.history.complete(operation,
                                  {.kind = Outcome::Kind::conflict, .document = store_->known()});
        co_return;
      }
      if (changed.failed_with(Errc::unavailable) && first) {
        outside_.history.complete(
            operation, {.kind = Outcome::Kind::unavailable, .document = store_->known()});
        co_return;
      }
      if (prng_.chance(0.3)) co_return;
    }
  }

  std::vector<NodeId> next_acceptors(const Document& known) {
    if (!outside_.moves_acceptors || prng_.chance(0.7)) return known.acceptors;
    std::vector<NodeId> nodes;
    for (const auto& [node, address] : outside_.nodes) nodes.push_back(node);
    prng_.shuffle(nodes);
    nodes.resize(prng_.between(1, std::min<std::size_t>(nodes.size(), 5)));
    return nodes;
  }

  Runtime& runtime_;
  Outside& outside_;
  const NodeId self_;
  base::Prng prng_;
  rpc::Rpc rpc_;
  std::unique_ptr<PaxosStore> store_;
};

class StoreCluster {
 public:
  StoreCluster(std::uint64_t seed, std::uint64_t nodes, std::uint64_t founders)
      : world_(seed), outside_(founders) {
    for (std::uint64_t i = 1; i <= nodes; ++i) {
      sim::Machine& machine = world_.add_machine({}, [this, i](Runtime& runtime) {
        return std::make_unique<StoreNode>(runtime, outside_, node_id(i));
      });
      outside_.nodes.emplace_back(node_id(i), machine.address(kPort));
      targets_.push_back(machine.id());
    }
  }
  void start() {
    for (const auto id : targets_) world_.machine(id).start();
  }

  // Faults of the kinds and rates that the seed draws.
  void suffer(const sim::FaultBudget& budget, runtime::Duration duration) {
    base::Prng swarm = base::Prng::for_purpose(world_.seed(), "swarm");
    std::map<sim::Fault, std::uint64_t> happened;
    suffer(sim::FaultPlan::draw(budget, targets_, swarm), duration, happened);
  }
  // Adds up how often those kinds happened that `happened` has.
  void suffer(const sim::FaultPlan& plan, runtime::Duration duration,
              std::map<sim::Fault, std::uint64_t>& happened) {
    SCOPED_TRACE(plan.to_string());
    sim::Nemesis nemesis(world_, plan, targets_);
    nemesis.start();
    world_.run_for(duration);
    nemesis.stop();
    for (auto& [fault, times] : happened) times += nemesis.happened(fault);
  }

  // Everybody reads, and all read the same version.
  void settle() {
    outside_.clients_work = false;
    world_.run_for(10s);
    outside_.clients_read = true;
    EXPECT_TRUE(
        world_.run_until([&] { return outside_.last_read.size() == outside_.nodes.size(); }, 5min))
        << outside_.last_read.size() << " of " << outside_.nodes.size() << " could read";
    std::set<Version> versions;
    for (const auto& [node, version] : outside_.last_read) versions.insert(version);
    EXPECT_EQ(versions.size(), 1U);
    EXPECT_THAT(outside_.history.complaints(), IsEmpty());
  }

  void stop() {
    for (const auto id : targets_) world_.machine(id).request_stop();
    EXPECT_TRUE(world_.run_until(
        [&] {
          return std::ranges::none_of(targets_,
                                      [&](auto id) { return world_.machine(id).is_up(); });
        },
        1min));
  }

  // Runs the story on that node to its end.
  void tell(std::uint64_t node, Story story) {
    bool is_over = false;
    outside_.stories.emplace(node_id(node), [&](Runtime& runtime, PaxosStore& store) -> Task<void> {
      co_await story(runtime, store);
      is_over = true;
    });
    EXPECT_TRUE(world_.run_until([&] { return is_over; }, 5min)) << "waits for ever";
  }
  sim::Machine& machine(std::uint64_t node) { return world_.machine(targets_[node - 1]); }

  sim::World& world() { return world_; }
  Outside& outside() { return outside_; }
  const History& history() const { return outside_.history; }

 private:
  sim::World world_;
  Outside outside_;
  std::vector<sim::MachineId> targets_;
};

constexpr sim::FaultBudget kBudget{
    .permitted = sim::kNetworkFaults | sim::kProcessFaults | sim::kClockFaults |
                 sim::FaultSet{sim::Fault::slow_disk, sim::Fault::slow_sync},
    .liars_max = 0};

void check_clusters(std::uint64_t seeds, std::uint64_t nodes, std::uint64_t founders,
                    bool moves_acceptors) {
  std::size_t changed = 0;
  std::size_t lost = 0;
  const std::uint64_t wanted =
      base::count_from_environment("HELENUS_CONSENSUS_SEEDS", (seeds + kShare - 1) / kShare);
  for (std::uint64_t seed = 1; seed <= wanted && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    StoreCluster cluster(seed, nodes, founders);
    cluster.outside().moves_acceptors = moves_acceptors;
    cluster.start();
    cluster.suffer(kBudget, 6s);
    cluster.settle();
    cluster.stop();
    changed += cluster.history().count(Outcome::Kind::changed);
    lost += cluster.history().count(Outcome::Kind::conflict);
  }
  // Faults that let nothing happen would prove nothing.
  EXPECT_GT(changed, wanted * 5);
  EXPECT_GT(lost, wanted);
}

TEST(PaxosStore, IsLinearizableThroughFaultsOfThreeNodes) {
  check_clusters(6, 3, 3, false);
}

TEST(PaxosStore, IsLinearizableWhileItsAcceptorsAreReplacedUnderFaults) {
  check_clusters(4, 5, 3, true);
}

TEST(PaxosStore, IsLinearizableInALargerCluster) {
  check_clusters(1, base::number_from_environment("HELENUS_CONSENSUS_NODES", 30 / kShare), 5, true);
}

// Not left to what seeds draw: acceptors that lose what they did not sync, nodes that stand still
// and clocks that jump, in halves of a network that loses packets.
TEST(PaxosStore, IsLinearizableWhenEverythingGoesWrongAtOnce) {
  const std::uint64_t seeds = base::count_from_environment("HELENUS_CONSENSUS_SEEDS", 2);
  std::size_t changed = 0;
  std::map<sim::Fault, std::uint64_t> happened = {
      {sim::Fault::packet_loss, 0}, {sim::Fault::symmetric_partition, 0},
      {sim::Fault::kill, 0},        {sim::Fault::power_loss, 0},
      {sim::Fault::pause, 0},       {sim::Fault::clock_jump, 0}};
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    StoreCluster cluster(seed, 5, 3);
    cluster.outside().moves_acceptors = true;
    cluster.start();
    cluster.suffer(sim::FaultPlan::everything(kBudget.permitted), 20s, happened);
    cluster.settle();
    cluster.stop();
    changed += cluster.history().count(Outcome::Kind::changed);
  }
  EXPECT_GT(changed, seeds * 5);
  for (const auto& [fault, times] : happened) EXPECT_GT(times, 0U) << sim::name_of(fault);
}

// The quiet stories.
TEST(PaxosStore, ConcurrentChangesOfTwoNodesHaveOneOrder) {
  StoreCluster cluster(1, 3, 3);
  cluster.start();
  cluster.world().run_for(3s);
  cluster.settle();
  cluster.stop();
  EXPECT_GT(cluster.history().count(Outcome::Kind::changed), 20U);
  EXPECT_GT(cluster.history().count(Outcome::Kind::conflict), 5U);
}

class PaxosStoreStory : public testing::Test {
 protected:
  PaxosStoreStory() {
    cluster_.outside().clients_work = false;
    cluster_.start();
  }
  ~PaxosStoreStory() override { cluster_.stop(); }

  static Change some_change(const Document& known, std::uint64_t number) {
    return {.id = change_id(number),
            .expected = known.version,
            .acceptors = known.acceptors,
            .content = appended(known.content, change_id(number))};
  }

  StoreCluster cluster_{1, 4, 3};  // the fourth node founds nothing
};

TEST_F(PaxosStoreStory, ANodeThatKnowsNothingFindsTheDocumentByItsContacts) {
  cluster_.tell(4, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    EXPECT_TRUE(store.known().is_blank());
    const auto document = co_await store.read(Until::after(runtime, 2s));
    CO_ASSERT_OK(document);
    EXPECT_EQ(document->version, Version(1));
    const auto changed =
        co_await store.change(some_change(*document, 1), Until::after(runtime, 2s));
    CO_ASSERT_OK(changed);
    EXPECT_EQ(changed->version, Version(2));
    const auto again = co_await store.change(some_change(*document, 1), Until::after(runtime, 2s));
    CO_ASSERT_OK(again);
    const auto late = co_await store.change(some_change(*document, 2), Until::after(runtime, 2s));
    EXPECT_TRUE(late.failed_with(Errc::already_exists));
    Change without_acceptors = some_change(*changed, 3);
    without_acceptors.acceptors.clear();
    const auto invalid = co_await store.change(without_acceptors, Until::after(runtime, 2s));
    EXPECT_TRUE(invalid.failed_with(Errc::invalid_argument));
  });
}

TEST_F(PaxosStoreStory, WhoHearsOfANewerVersionFetchesIt) {
  cluster_.tell(1, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    CO_ASSERT_OK(co_await store.change(some_change(store.known(), 1), Until::after(runtime, 2s)));
  });
  cluster_.tell(4, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    const auto nobody_says = co_await store.wait_newer(Version(1), Until::after(runtime, 1s));
    EXPECT_TRUE(nobody_says.failed_with(Errc::timeout));
    store.heard_of(node_id(1), Version(2));
    const auto newer = co_await store.wait_newer(Version(1), Until::after(runtime, 2s));
    CO_ASSERT_OK(newer);
    EXPECT_EQ(newer->version, Version(2));
  });
  // It is durable there: another life knows it without asking.
  cluster_.world().run_for(1s);
  cluster_.machine(4).power_loss();
  cluster_.machine(4).start();
  cluster_.tell(4, [](Runtime&, PaxosStore& store) -> Task<void> {
    EXPECT_EQ(store.known().version, Version(2));
    co_return;
  });
}

TEST_F(PaxosStoreStory, WithoutAMajorityNothingIsReadOrChangedAndTheReasonIsGiven) {
  cluster_.world().run_for(1s);
  cluster_.machine(2).power_loss();
  cluster_.machine(3).power_loss();
  cluster_.tell(1, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    const auto read = co_await store.read(Until::after(runtime, 2s));
    EXPECT_TRUE(read.failed_with(Errc::unavailable));
    EXPECT_THAT(read.error().to_string(),
                testing::HasSubstr("fewer than 2 of the 3 acceptors of version 1"));
    const auto changed =
        co_await store.change(some_change(store.known(), 1), Until::after(runtime, 2s));
    EXPECT_TRUE(changed.failed_with(Errc::unavailable));
  });
  cluster_.machine(2).start();
  cluster_.tell(1, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    CO_ASSERT_OK(co_await store.read(Until::after(runtime, 10s)));
  });
}

TEST_F(PaxosStoreStory, AnOperationThatIsStoppedEndsAtOnceAndTheNextGoesOn) {
  cluster_.world().run_for(1s);
  cluster_.machine(2).power_loss();
  cluster_.machine(3).power_loss();
  cluster_.tell(1, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    runtime::StopSource stop;
    runtime::TaskGroup others(runtime);
    others.spawn([](Runtime& rt, runtime::StopSource& source) -> Task<void> {
      EXPECT_TRUE(co_await runtime::sleep_for(rt, 100ms, {}));
      source.request_stop();
    }(runtime, stop));
    const auto began = runtime.clock.now();
    const auto read = co_await store.read(Until::after(runtime, 1h, stop.token()));
    EXPECT_TRUE(read.failed_with(Errc::cancelled));
    EXPECT_LT(runtime.clock.now() - began, 200ms);
    co_await others.join();
  });
  cluster_.machine(3).start();
  cluster_.tell(1, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    CO_ASSERT_OK(co_await store.read(Until::after(runtime, 10s)));
  });
}

TEST_F(PaxosStoreStory, WhoStopsLetsNobodyWait) {
  cluster_.world().run_for(1s);
  cluster_.machine(2).power_loss();
  cluster_.machine(3).power_loss();
  cluster_.tell(1, [](Runtime& runtime, PaxosStore& store) -> Task<void> {
    runtime::TaskGroup others(runtime);
    others.spawn([](PaxosStore& it) -> Task<void> {
      const auto read = co_await it.read(Until::forever());
      EXPECT_TRUE(read.failed_with(Errc::closed));
    }(store));
    others.spawn([](PaxosStore& it) -> Task<void> {
      const auto newer = co_await it.wait_newer(Version(1), Until::forever());
      EXPECT_TRUE(newer.failed_with(Errc::closed));
    }(store));
    EXPECT_TRUE(co_await runtime::sleep_for(runtime, 100ms, {}));
    co_await store.stop();
    co_await others.join();
    EXPECT_TRUE((co_await store.read(Until::forever())).failed_with(Errc::closed));
  });
}

}  // namespace
}  // namespace helenus::consensus
