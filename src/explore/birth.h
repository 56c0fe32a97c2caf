// How a mutation is born: the context it is given and the timestamp it gets (S2, and the rules (a),
// (b) and (d) of last-writer-wins), as pure functions on the state.
#pragma once

#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

inline bool touches(const Event& event, Mask cells) {
  return (event.cells & cells) != 0;
}

// Rule (b): the largest timestamp of the unstable mutations of `cells` at replica `r` that a
// context covers; 0 when there are none. They are in its mutation log: no read.
int floor_of_log(const State& state, int r, Mask cells, Events covered);

// What a client that read `cells` at `r` is given: the dots that every cell reflects, and as its
// floor the largest timestamp of the unstable mutations and of the versions shown. And what that
// client truly saw. See causality::context_of_read and causality::Context.
struct ReadContext {
  Events context;
  Events past;
  int floor;
};
ReadContext context_of_read(const State& state, const Scope& scope, int r, Mask cells);
// What a replica contributes to a quorum delete: its whole clock.
ReadContext context_of_clock(const State& state, int r, Mask cells);

// What a mutation that is minted now is like: whether it defeats a value that expires at the same
// timestamp. A delete does, and a value that expires, too; a value that stays does not.
enum class Strength : std::uint8_t { stays, defeats_expiring };

// Whether a mutation that is minted now would defeat a known one: the larger timestamp; then empty
// beats value; then one that expires; then the larger bytes, which the one minted later has. Two
// deletes are the same.
bool would_defeat(int timestamp, Strength strength, const Event& known);

// Rule (d): the cells of an explicit-timestamp write through `r` in which it defeats all that is
// known there, stored or in the mutation log; see causality::explicit_write_applies.
Mask cells_it_wins(const State& state, const Scope& scope, int r, Mask cells, int timestamp,
                   Strength strength);
// Rule (d) under a client's context: whether the context covers something that `r` has not seen and
// that the explicit timestamp may not defeat; see causality::mint.
bool forbids_explicit(const State& state, const Scope& scope, int r, const ReadContext& client,
                      int timestamp);

// The premise of last-writer-wins, for the oracle: whether the timestamp is below that of a
// mutation of `cells` in `past` that is unstable in truth, that is, not yet seen by everyone who
// speaks. Who is silent has nothing of its own to compare.
bool below_unstable_past(const State& state, Events past, Mask cells, int timestamp);

}  // namespace helenus::explore
