#include "sim/scenarios/cluster/founding.h"

#include <optional>
#include <vector>

#include "cluster/metadata_ledger_test_support.h"
#include "metadata/cluster_metadata.h"
#include "sim/scenarios/test_cluster.h"

namespace helenus::sim {

namespace {

constexpr std::size_t kNodes = 5;
constexpr std::size_t kSeeds = 3;

class FoundingScenario final : public Scenario {
 public:
  FaultBudget budget() const override {
    return {.permitted = kNetworkFaults | kProcessFaults | kClockFaults | FaultSet{Fault::buggify}};
  }

  void setup(World& world, base::Prng&) override {
    cluster_.emplace(world, TestCluster::Options{.cores = std::vector<std::uint16_t>(kNodes, 1),
                                                 .seeds = kSeeds});
    cluster_->on_metadata(
        [this](std::size_t, consensus::Version version, const cluster::MetadataPtr& metadata) {
          ledger_.saw(version.value(), metadata);
        });
    cluster_->start_all();
  }

  std::vector<MachineId> targets() const override { return cluster_->ids(); }
  Duration safety_phase() const override { return 10s; }
  bool quiet() const override { return cluster_->is_quiet(); }

  void check(Violations& violations) override {
    if (!cluster_->is_quiet()) violations.add(cluster_->phases());
    for (const std::string& what : cluster_->failed_starts()) {
      violations.add("a start failed: " + what);
    }
    violations.add_all(ledger_.violations());
  }
  void add_to(base::Digest& digest) const override { digest.add(ledger_.versions()); }

 private:
  // Called by const functions that look on.
  mutable std::optional<TestCluster> cluster_;
  cluster::testing::MetadataLedger ledger_;
};

}  // namespace

std::unique_ptr<Scenario> make_founding_scenario() {
  return std::make_unique<FoundingScenario>();
}

}  // namespace helenus::sim
