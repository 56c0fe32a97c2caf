// The register scenario: one value kept by three or five replicas, read and written by clients
// through majorities (H. Attiya, A. Bar-Noy, D. Dolev, Sharing Memory Robustly in Message-Passing
// Systems, 1995; with several writers). It survives whatever its budget permits, and the history
// must be linearizable.
//
//   write   ask a majority for the latest version; store the value under a larger one at a majority
//   read    ask a majority for the latest version; store it at a majority before returning it
//
// A replica acknowledges what is durable, keeps the larger version whatever comes later, and tells
// "I cannot read it" from "there is nothing". Each of these is one line, and a policy takes it
// away: the wrong registers (toys/) are this one with a line missing.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/scenario.h"

namespace helenus::sim {

struct RegisterPolicy {
  bool acks_before_sync = false;  // answers, then writes
  bool trusts_order = false;      // what comes last is the latest
  bool error_is_absence = false;  // a register that cannot be read is an empty one
};

std::unique_ptr<Scenario> make_register_scenario(RegisterPolicy policy);

}  // namespace helenus::sim
