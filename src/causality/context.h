// Context: what a writer had seen when it wrote, fixed at birth (S2).
//
// The dots it had seen, the epoch in which it saw them (a replica adopts a higher epoch before it
// mints under the context, or closed actors in it would cover dots nobody has seen), and the
// *floor*: the largest timestamp among the mutations it covers that were not yet stable where they
// were read. A replica that mints under a client's context may not have those mutations yet, so the
// context must bring the floor along for the rules (b) and (d) of last-writer-wins (docs/adr/0012,
// docs/adr/0020).
//
// A context serves writes of the cells it was read with: its dots cover, and its floor leaves out,
// what happened to others (docs/adr/0011). The dot of the write itself is never in it (S3).
#pragma once

#include "base/result.h"
#include "causality/clock.h"
#include "causality/dot.h"

namespace helenus::causality {

struct Context {
  Epoch epoch;
  Timestamp floor = kTimestampMin;
  Clock dots;
  friend bool operator==(const Context&, const Context&) = default;
};

// Everything that either had seen. Law: commutative, associative, idempotent.
Context join(const Context& a, const Context& b);

// Refuses a client's context that claims dots of the minting replica's own actor `own` that `clock`
// says were never minted, or that closes it (S2): minting under it would supersede the future.
base::Result<void> check_claims(const Context& context, ActorId own, const Clock& clock);

}  // namespace helenus::causality

// "{1.1:1-7} in epoch 4 above 1700000000".
template <>
struct fmt::formatter<helenus::causality::Context> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const helenus::causality::Context& context,
                                       fmt::format_context& ctx) const;
};
