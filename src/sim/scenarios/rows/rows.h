// Nodes that replicate rows, and clients that write, read and delete them while everything fails:
// no acknowledged write is lost, nothing deleted, refused or expired is seen; when the faults are
// over every request succeeds, and all nodes come to show the same rows.
//
// A run in which no request met a fault proves little: `Sighting` says how many did.
#pragma once

#include <cstddef>
#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

struct RowsScenarioOptions {
  std::size_t nodes_min = 1;
  std::size_t nodes_max = 1;
  // Wrong on purpose: nodes acknowledge what is not on their disks yet.
  bool acks_before_sync = false;
  // Nodes acknowledge what is not on their disks yet, and one at a time loses its power: what it
  // had acknowledged the others give back to it (R10).
  bool periodic_sync = false;
  // So many nodes at most join while clients write; some of them leave again.
  std::size_t late_max = 0;
  // One node at a time loses its power, and with it all that it keeps of rows: others give it back
  // (R12).
  bool loses_disks = false;
  // Wrong on purpose: clients read at ONE, and take it for what they read at QUORUM.
  bool reads_too_few = false;
};

std::unique_ptr<Scenario> make_rows_scenario(const RowsScenarioOptions& options);

}  // namespace helenus::sim
