#include "sim/scenarios/consensus/messages.h"

#include <array>

#include "consensus/network_test_support.h"

namespace helenus::sim {

namespace {

using consensus::Outcome;

struct Kind {
  std::string_view name;
  consensus::World::Options options;
};

std::array<Kind, 4> kinds() {
  return {{{"messages alone", {.nodes = 3, .crashes = false, .moves_acceptors = false}},
           {"crashes", {.nodes = 3, .moves_acceptors = false}},
           {"acceptors are replaced", {.nodes = 5}},
           {"every third message is lost", {.nodes = 4, .loss = 0.33, .repeat = 0.3}}}};
}

}  // namespace

// Through its faults and back to health.
RunOutcome run_consensus_messages(const RunOptions& options) {
  const auto all = kinds();
  const Kind& kind = all[options.seed % all.size()];
  RunOutcome outcome;
  outcome.plan = kind.name;
  consensus::World world(options.seed / all.size() + 1, kind.options);
  world.run_for(1500ms);
  world.heal();
  const auto reads = world.read_everywhere();
  outcome.violations.expect(reads.size() == world.node_count(), "{} of {} could read", reads.size(),
                            world.node_count());
  base::Digest digest;
  for (const Outcome& read : reads) {
    outcome.violations.expect(read.kind == Outcome::Kind::read, "a read in health is not answered");
    digest.add(read.document.version.value());
  }
  for (const std::string& what : world.history().complaints()) outcome.violations.add(what);
  const auto sighting = [&](std::string name, Outcome::Kind seen, std::uint64_t wanted) {
    const std::uint64_t count = world.history().count(seen);
    digest.add(count);
    outcome.sightings.push_back({std::move(name), count, wanted});
  };
  sighting("changes", Outcome::Kind::changed, 1);
  sighting("conflicts", Outcome::Kind::conflict, 0);
  sighting("reads", Outcome::Kind::read, kind.options.nodes);
  outcome.virtual_time = 1500ms;
  outcome.state_hash = digest.value();
  return outcome;
}

}  // namespace helenus::sim
