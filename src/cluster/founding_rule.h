// Who founds a cluster: a function of the seeds and of what they answered.
//
// The seeds of a new cluster are the same on all its nodes. The node with the least address among
// them founds it, alone, and only when every other seed has said that it knows of no cluster; all
// others wait until some seed knows one, and join. So a seed that lost its disk finds the cluster
// that is there, and no two nodes found. A node without seeds, or whose list names just itself,
// founds at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/node_id.h"
#include "runtime/address.h"

namespace helenus::cluster {

// What the other seeds said when they were asked for the newest version they know.
struct SeedAnswers {
  std::vector<model::NodeId> informed;  // know of a cluster
  std::vector<std::string> silent;      // were not reached: address and reason
};

struct FoundingStep {
  enum class Kind : std::uint8_t { fetch_metadata, found, wait };
  Kind kind = Kind::wait;
  std::string waits_for{};  // only of wait: "192.0.2.1:7000 to found the cluster"

  friend bool operator==(const FoundingStep&, const FoundingStep&) = default;
};

// The next step of a node at `self` that is in no cluster.
FoundingStep next_founding_step(const runtime::Address& self,
                                std::span<const runtime::Address> seeds,
                                const SeedAnswers& answers);

}  // namespace helenus::cluster
