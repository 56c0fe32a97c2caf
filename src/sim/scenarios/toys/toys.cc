#include "sim/scenarios/toys/toys.h"

#include <array>

#include "sim/scenarios/counters/counters.h"
#include "sim/scenarios/mint.h"
#include "sim/scenarios/register.h"
#include "sim/scenarios/rows/rows.h"
#include "sim/scenarios/siblings/siblings.h"

namespace helenus::sim {

namespace {

constexpr std::array<ScenarioInfo, 8> kToys = {{
    {.name = "toy-ack-before-sync",
     .description = "a register that acknowledges before it syncs",
     .expected_to_fail = true,
     .make = [] { return make_register_scenario({.acks_before_sync = true}); }},
    {.name = "toy-trusts-order",
     .description = "a register that takes what comes last for the latest",
     .expected_to_fail = true,
     .make = [] { return make_register_scenario({.trusts_order = true}); }},
    {.name = "toy-error-is-absence",
     .description = "a register that takes what it cannot read for nothing",
     .expected_to_fail = true,
     .make = [] { return make_register_scenario({.error_is_absence = true}); }},
    {.name = "toy-trusts-image",
     .description = "a mint that goes on where its disk says, an older image or not",
     .expected_to_fail = true,
     .make = [] { return make_mint_scenario({.trusts_image = true}); }},
    {.name = "toy-rows-in-memory",
     .description = "a node that acknowledges rows before its log is on the disk",
     .expected_to_fail = true,
     .make =
         [] {
           return make_rows_scenario({.nodes_min = 1, .nodes_max = 1, .acks_before_sync = true});
         }},
    {.name = "toy-rows-at-one",
     .description = "clients that read at ONE what was written at QUORUM",
     .expected_to_fail = true,
     .make =
         [] {
           return make_rows_scenario({.nodes_min = 3, .nodes_max = 5, .reads_too_few = true});
         }},
    {.name = "toy-siblings-at-one",
     .description = "clients that read concurrent values at ONE and write them at QUORUM",
     .expected_to_fail = true,
     .make = [] { return make_siblings_scenario({.reads_too_few = true}); }},
    {.name = "toy-counters-no-ids",
     .description = "clients that try increments again without operation ids",
     .expected_to_fail = true,
     .make = [] { return make_counters_scenario({.without_ids = true}); }},
}};

}  // namespace

std::span<const ScenarioInfo> toys() {
  return kToys;
}

}  // namespace helenus::sim
