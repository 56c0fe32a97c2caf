// The rules of a replica (S1-S15), as pure functions on the state.
//
// This is the executable form of docs/theory.md, section 2. Each function names the rule it states,
// and the places where a mutant departs from it are visible as such.
#pragma once

#include <cstdint>

#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

// Every dot the replica treats as seen, those of closed actors included.
Events seen_by(const State& state, const Replica& replica);
// The contiguous part: for each actor the dots before its first gap; all dots of closed actors.
Events base_of(const State& state, Events clock, Mask closed);
inline Events base_of(const State& state, const Replica& replica) {
  return base_of(state, replica.clock, replica.closed);
}

// Members and pending replicas of the epoch that `replica` (number `self`) has adopted, but itself.
Mask others_of(const State& state, int self);
// What every member and pending one has seen, from complete pulls in this epoch (c).
Events stable_at(const State& state, const Scope& scope, int self);
// Whether the wall clocks of all of them have passed the expiry.
bool expired_everywhere(const State& state, const Scope& scope, int self);

// R4: what of the replica's clock survives a loss of its tail, and the contiguous part of that,
// which is all that peers may take as its watermark. An actor that was closed in the tail is open
// again without it.
Events synced_clock(const State& state, const Scope& scope, int self);
Events synced_base(const State& state, const Scope& scope, int self);

// Both fragments together: causality::sync.
Fragment merged(const Fragment& a, const Fragment& b);
// The versions of a cell without the deletes of a scope by mutations that also wrote the cell: what
// they wrote stands (docs/adr/0016).
Events standing(const State& state, Events versions);
// Everything the replica holds of a cell: all layers, and the scopes above the cell.
Fragment read_cell(const State& state, const Replica& replica, int cell);
// What is sent for a cell: the whole of it under the sender's clock of that moment (S4).
Fragment filled(const State& state, const Scope& scope, int sender, int cell);
// The same of a cell that was read already.
Fragment filled(const State& state, const Scope& scope, int sender, const Fragment& whole);

// Which version defeats which: timestamp, then empty, then one that expires, then number. For
// last-writer-wins.
bool defeats(const State& state, int a, int b);
// What a reader whose wall clock reads `wall` sees of a set of concurrent versions.
Events visible(const State& state, const Scope& scope, Events versions, int wall);

// S3: merges the mutation's fragment into the memtable, notes it in the mutation log, adds the dot.
void apply_mutation(State& state, const Scope& scope, int replica, int event);
// S10: a higher epoch is adopted before anything else; watermarks and pulls begin anew. What was
// taken before is synced first: what is told in the new epoch then has all of an actor that is
// closed in it, and whoever closes by that misses nothing (R11).
void adopt(State& state, const Scope& scope, int replica, int epoch);
// S9: closes removed actors once every other member was fully pulled from in this epoch.
void close_removed(State& state, const Scope& scope, int replica);
// S7: forgets mutations that every member and pending one has.
void collect_log(State& state, int replica);
// Makes everything so far survive a crash.
void sync_log(State& state, int replica);

// A flush or compaction: merges inputs, drops what is stable and strips what is known, as far as
// S3 permits. A slot may be stripped by what was known at an instant T if the inputs are every
// fragment of it that existed at T. That instant is *now* when no other layer at all holds the
// slot, else the freeze of the newest input when nothing frozen by then was left out.
struct MergePlan {
  const Layer* input[kSstablesMax + 2];
  int inputs = 0;
  // Left out, and holding something that was frozen before the newest input.
  const Layer* older[kSstablesMax];
  int olders = 0;
  // Left out and newer, memtables included.
  const Layer* newer[kSstablesMax + 2];
  int newers = 0;
  Freeze at_freeze;
  Freeze now;
};
// Whether the layer has something of the slot, or a scope that the slot lies in.
bool holds(const Layer& layer, int slot);
// By whose knowledge a slot may be stripped and dropped from: that of no instant, of the freeze of
// the newest input, or of now as well. See causality::merge_instant.
enum class Instant : std::uint8_t { none, newest_freeze, now };
Instant instant_of(const MergePlan& plan, int slot);
Layer merge_layers(const State& state, const Scope& scope, const MergePlan& plan);
bool is_empty(const Layer& layer);
// What the replica knows at this moment.
Freeze freeze_now(const State& state, const Scope& scope, int replica);

// Whether `receiver` refuses what `actor` sends: it was removed in the receiver's epoch (S9).
bool fenced(const State& state, const Scope& scope, int receiver, int actor);

// Merges an object, one cell as its sender held it, into the memtable.
void take_object(State& state, int to, int from, int cell, const Fragment& object);
// S4, S5, S8: takes over a member's state: objects filled at the sender, claims, its log.
void reconcile(State& state, const Scope& scope, int to, int from, Events claim, Events log);

}  // namespace helenus::explore
