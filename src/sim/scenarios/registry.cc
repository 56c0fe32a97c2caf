#include "sim/scenarios/registry.h"

#include <algorithm>

#include "sim/scenarios/append_log.h"
#include "sim/scenarios/cluster/founding.h"
#include "sim/scenarios/cluster/schema.h"
#include "sim/scenarios/consensus/messages.h"
#include "sim/scenarios/counters/counters.h"
#include "sim/scenarios/cql/statements.h"
#include "sim/scenarios/echo.h"
#include "sim/scenarios/mint.h"
#include "sim/scenarios/node_identity.h"
#include "sim/scenarios/register.h"
#include "sim/scenarios/rows/rows.h"
#include "sim/scenarios/siblings/siblings.h"
#include "sim/scenarios/storage/storage.h"
#include "sim/scenarios/toys/toys.h"

namespace helenus::sim {

namespace {

std::vector<ScenarioInfo> rows_scenarios() {
  return {
      {.name = "rows",
       .description = "rows of nodes that fail: nothing acknowledged is lost, nothing returns",
       .is_dear = true,
       .make = [] { return make_rows_scenario({.nodes_min = 3, .nodes_max = 9}); }},
      {.name = "rows-periodic",
       .description = "the same, and nodes acknowledge before it is on the disk: what one loses "
                      "the others give back",
       .is_dear = true,
       .make =
           [] {
             return make_rows_scenario({.nodes_min = 3, .nodes_max = 6, .periodic_sync = true});
           }},
      {.name = "rows-restored",
       .description = "the same, and nodes lose all that they have of rows: others give it back",
       .is_dear = true,
       .make = [] {
         return make_rows_scenario({.nodes_min = 3, .nodes_max = 5, .loses_disks = true});
       }}};
}

}  // namespace

const std::vector<ScenarioInfo>& all_scenarios() {
  static const std::vector<ScenarioInfo> kScenarios = [] {
    std::vector<ScenarioInfo> scenarios{
        {.name = "echo",
         .description = "frames sent back as they came, over an unreliable network",
         .make = make_echo_scenario},
        {.name = "append-log",
         .description = "a log on one node: what was acknowledged is recovered",
         .make = make_append_log_scenario},
        {.name = "mint",
         .description = "numbers that are never given out twice, whatever the disk remembers",
         .make = [] { return make_mint_scenario({}); }},
        {.name = "node",
         .description = "a node as the server runs it: who it is survives everything",
         .make = make_node_identity_scenario},
        {.name = "register",
         .description = "a replicated register: what clients see is linearizable",
         .make = [] { return make_register_scenario({}); }},
        {.name = "cluster-founding",
         .description = "nodes found one cluster and no second, and all become its members",
         .is_dear = true,
         .make = make_founding_scenario},
        {.name = "cluster-schema",
         .description = "a schema changed from all sides: what was acknowledged is in all nodes",
         .is_dear = true,
         .make = make_schema_scenario},
        {.name = "ring",
         .description = "the same, and nodes join and leave while clients write",
         .is_dear = true,
         .make =
             [] { return make_rows_scenario({.nodes_min = 3, .nodes_max = 5, .late_max = 2}); }},
        {.name = "siblings",
         .description = "concurrent values of nodes that fail: each stays until it is replaced",
         .is_dear = true,
         .make = [] { return make_siblings_scenario({}); }},
        {.name = "counters",
         .description =
             "counters of nodes that fail: each operation counts once, however often tried",
         .is_dear = true,
         .make = [] { return make_counters_scenario({}); }},
        {.name = "consensus-messages",
         .description = "the consensus register by messages alone: linearizable",
         .is_dear = true,
         .run = run_consensus_messages},
        {.name = "cql-statements",
         .description = "random statements to a node that dies, beside a reference",
         .is_dear = true,
         .run = run_cql_statements},
        {.name = "cql-statements-of-three",
         .description = "random statements to three nodes that die, at QUORUM, beside a reference",
         .is_dear = true,
         .run = run_cql_statements_of_three},
    };
    for (const auto& more : {rows_scenarios(), engine_history_scenarios(), engine_crash_scenarios(),
                             log_scenarios()}) {
      scenarios.insert(scenarios.end(), more.begin(), more.end());
    }
    scenarios.insert(scenarios.end(), toys().begin(), toys().end());
    return scenarios;
  }();
  return kScenarios;
}

const ScenarioInfo* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(all_scenarios(), name, &ScenarioInfo::name);
  return found == all_scenarios().end() ? nullptr : &*found;
}

}  // namespace helenus::sim
