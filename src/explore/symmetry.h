// Symmetry: states that differ only in names are one state.
//
// No rule looks at the number of a replica, a cell, a row or a mutation for its own sake, so a
// consistent renaming of a state is a state that behaves alike: whatever one can do, the other can
// do under the new names, and an invariant that breaks in one breaks in the other. An exhaustive
// search therefore visits one state of each class and finds a violation iff there is one. The names
// that may be exchanged:
//
//   replicas   that begin alike: members that are all crashable or all not. Actors go with them
//   cells      of a row with each other, and rows with each other
//   mutations  are numbered as they were minted, but rules look at the order of two of them only if
//              one actor minted both (counters), or, in an 'lww' table, if they tie by timestamp
//              and kind (the larger number then stands for the larger bytes). Mutations that are
//              neither may be renumbered: minted in either order they give one state
//
// The representative is the renaming with the smallest fingerprint among those of replicas and
// cells that put replicas which begin alike into the order of their *signatures* (numbers that no
// renaming changes: how much each has seen, minted, pulled, holds), each with its mutations in the
// one order that puts, at every place, the smallest actor whose mutation need not wait for another
// (the lexicographic normal form of a trace).
//
// Also forgotten is what no rule and no invariant will look at again (in searches of the rules as
// they are; a mutant may look anywhere):
//
//   of a freeze      its clock (recovery syncs first), and of what was known then all but the
//                    versions and contexts in layers frozen by then: a merge looks up nothing else
//   watermarks       of dots that are alive in no layer here and in no log, once everybody has them
//   a past           and what a cell reflects: mutations of other cells, where no client reads
//   acknowledgements that can no longer count (an older epoch), or no longer be broken (everybody
//                    has the mutation and nobody can lose it)
//   epochs           that nobody is in, and replicas that know they were removed
//
// That all this holds is a test, not a hope: it takes random steps beside the same steps under
// other names and without the forgotten, and compares (Symmetry in explore_test.cc).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "explore/action.h"
#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

// New names by old ones.
struct Renaming {
  std::array<std::uint8_t, kReplicasMax> replica;
  std::array<std::uint8_t, kActorsMax> actor;
  std::array<std::uint8_t, kTables> table;
  // The slots of a table, by its old number; its scope slot keeps its name.
  std::array<std::array<std::uint8_t, kCellsPerTable>, kTables> slot;
  std::array<std::uint8_t, kEventsMax> event;
};

Renaming identity_renaming();
State renamed(const State& state, const Renaming& names);
Action renamed(const Action& action, const Renaming& names);
// The state without what no rule and no invariant will look at again.
State without_the_forgotten(const State& state, const Scope& scope);
// The renaming with its events replaced by those of the normal form of what it gives.
Renaming with_events_in_normal_form(const State& state, const Scope& scope, Renaming names);

class Symmetry {
 public:
  explicit Symmetry(const Scope& scope);
  // Every renaming of replicas and cells, the identity first.
  std::span<const Renaming> renamings() const { return renamings_; }
  // The same for all states of a class, and in all likelihood for no other state.
  base::Hash128 fingerprint(const State& state) const;

 private:
  bool in_order_of_signatures(const Renaming& names,
                              const std::array<std::uint64_t, kReplicasMax>& signatures) const;

  const Scope& scope_;
  std::vector<Renaming> renamings_;
  // Of each replica, which others begin alike.
  std::array<Mask, kReplicasMax> alike_{};
};

}  // namespace helenus::explore
