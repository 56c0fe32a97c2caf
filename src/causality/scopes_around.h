// ScopesAround: what the scopes that hold a row say of every cell of it, worked out once for all
// rows that the same scopes hold, so that a row inside very many of them is judged without asking
// each one.
//
// Law. settle() does to a row and its deletes what drop_stable and PartitionStore::strip do in a
// partition of that row, its deletes as a scope of their own, and these scopes: the same versions
// go and stay. It may keep more of a context, which is always allowed (CellStore::strip).
//
// Why that is safe. A version of a scope that is dropped as stable takes along all that it defeats
// in every cell; if one cell kept what the others lose, it would come back there. So what defeats a
// version is never guessed at: the versions of all scopes are ranked, those that some scope's
// context names apart, and looked at from the strongest on, past those that the cell itself or the
// row's deletes supersede, until one settles the matter.
//
// Borrows the scopes and the knowledge, which must not change. A value otherwise.
// Cost: O(k log k) to make for k versions; a cell looks at the strongest and at those it has itself
// superseded, unless these are all, as of a cell that was written after the last delete.
#pragma once

#include <span>
#include <vector>

#include "causality/clock.h"
#include "causality/dot_store.h"
#include "causality/resolve.h"

namespace helenus::causality {

class ScopesAround {
 public:
  // `known`, `stable`: as for strip and drop_stable. Requires: all scopes hold the rows that will
  // be settled.
  ScopesAround(std::span<const ScopedStore* const> scopes, Policy policy, const Clock& known,
               const Stability& stable);

  // Drops what is stable in a row and in what deletes of exactly this row say of all of its cells,
  // and strips the rest.
  void settle(RowStore& row, CellStore& row_deletes) const;

 private:
  std::vector<Dot> droppable_of(const CellStore& cell, const CellStore& row_deletes) const;

  const Policy policy_;
  const Clock& known_;
  const Stability& stable_;
  Clock context_;                       // of all scopes
  std::vector<const Version*> ranked_;  // that no scope supersedes, the strongest first
  std::vector<const Version*> stable_ranked_;
  Clock up_to_last_;            // of each actor all dots up to the last of those
  bool has_row_alone_ = false;  // a scope is of this row and no other
  bool spares_too_many_ = false;
  std::vector<Dot> spared_;  // what stays of all scopes; unless they are too many
};

}  // namespace helenus::causality
