// The mint scenario: a node that numbers what it does. A number is a pair (actor, counter) and must
// never be given out twice, whatever happens to the disk that remembers where it stopped: an older
// image of it may come back with the power. So the node goes on counting only where it knows that
// the power stayed on; after any doubt it takes a new actor.
#pragma once

#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

// What the toy leaves out.
struct MintPolicy {
  bool trusts_image = false;  // goes on where the disk says, whatever happened to the power
};

std::unique_ptr<Scenario> make_mint_scenario(MintPolicy policy);

}  // namespace helenus::sim
