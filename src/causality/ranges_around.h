// RangesAround: what the ranges that hold a row say of every cell of it, kept from row to row while
// ranges come and go, so that a row inside very many of them is judged without asking each one.
//
// Law. apply_range_deletes_to_rows() does to a row and its deletes what drop_stable and
// PartitionStore::strip do in a partition of that row, its deletes as a range of their own, and
// these ranges: the same versions go and stay. It may keep more of a context, which is always
// allowed (CellStore::strip).
//
// Why that is safe. A version of a range that is dropped as stable takes along all that it defeats
// in every cell; if one cell kept what the others lose, it would come back there. So what defeats a
// version is never guessed at: the versions of all ranges are ranked, and looked at from the
// strongest on, past those that the context of some range, the cell itself or the row's deletes
// supersede, until one settles the matter. A version that others supersede stays in its rank for
// the day when they go; it rarely is in the way, since whoever superseded it has a larger
// timestamp.
//
// Borrows the ranges and the knowledge, which must not change. A value otherwise.
// Cost: a range that comes or goes takes its versions and the ranges of its context, each by the
// logarithm of what is there, or so (clock_union.h), however many others there are. A cell looks at
// the strongest version, and past those that are superseded; at none if it has itself superseded
// all, as one that was written after the last delete. steps() counts these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include "causality/clock.h"
#include "causality/clock_union.h"
#include "causality/dot_store.h"
#include "causality/resolve.h"

namespace helenus::causality {

class RangesAround {
 public:
  // `known`, `stable`: as for strip and drop_stable.
  RangesAround(Policy policy, const Clock& known, const Stability& stable)
      : policy_(policy), known_(known), stable_(stable) {}

  // A range that holds the rows that are settled from now on.
  void add(const RangeDelete& range_delete);
  // One that does so no longer. Requires: it was added, and not removed since.
  void remove(const RangeDelete& range_delete);

  // Drops what is stable in a row and in what deletes of exactly this row say of all of its cells,
  // and strips the rest. Requires: the ranges that are there are those that hold the row.
  void apply_to(RowStore& row, CellStore& row_deletes);

  // What was done so far, in units of about the same effort.
  std::uint64_t steps() const { return steps_; }

 private:
  struct Stronger {
    bool operator()(const Version* a, const Version* b) const {
      if (const auto order = defeats(*a, *b); order != 0) return order > 0;
      return std::less<>()(a, b);  // one version in two ranges
    }
  };
  using Ranked = absl::btree_set<const Version*, Stronger>;

  static std::uint64_t effort_of(const RangeDelete& range_delete);
  // Whether the context names the version of every range.
  bool names_all(const Clock& context) const;
  std::vector<Dot> superseded(std::span<const Version> versions) const;
  void drop_superseded(RowStore& row, CellStore& row_deletes) const;
  std::vector<Dot> droppable_of(const CellStore& cell, const CellStore& row_deletes);
  // The strongest of them that exists for a cell with such a store and may be chosen, if it is
  // stronger than `than`; else `than`, which may be none.
  template <class MayBeChosen>
  const Version* stronger_of(const Ranked& ranked, const CellStore& own, const Version* than,
                             MayBeChosen may_be_chosen);

  Policy policy_;
  const Clock& known_;
  const Stability& stable_;
  ClockUnion context_;  // of all ranges
  Ranked ranked_;       // of all ranges, the strongest first
  Ranked stable_ranked_;
  // All dots, by actor.
  absl::btree_map<ActorId, absl::btree_multiset<Counter>> dots_;
  absl::btree_multiset<Dot> staying_;  // of versions that are not over
  std::size_t of_row_alone_ = 0;       // ranges of this row and no other
  std::uint64_t steps_ = 0;
};

}  // namespace helenus::causality
