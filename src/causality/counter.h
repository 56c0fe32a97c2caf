// Counter cells: increments that fold into a total, and deletes of them.
//
//   version        what it is
//   increment      one dot of an operation, with the operation's name if it has one
//   total          the sum of what was folded, under the dot of one increment of it
//   reset          a delete: kept with its whole context until its dot is stable
//   dead           an increment that a delete names: it tells the operation's name
//   folded         what a total that was copied from elsewhere holds, in place of it
//
// The value of a cell is its total and the increments that live, those of one operation once (C3,
// C4); none of an operation of which any dot is dead (C7).
//
// Folding. A merge of every fragment of a cell at an instant T (merge_instant in delta.h) may add
// increments to the total whose dots are stable at T, those of one operation together. No two
// replicas fold at one moment, so a folded increment looks like a deleted one to whoever compares
// dots. That is harmless where it stays, and answers of several replicas are merged by another rule
// than dots (R14, merge_counters).
//
// Safety. Let e be stable at T for replica A: every member m has shown a clock c with e in it, and
// all of c is in A's clock, so in the fragments of the merge.
//   1. Deletes. One that A has not seen at T was minted after its minter showed c, so its context
//      has all of c, and everything that was stable at T. It supersedes the total, whichever of the
//      folded dots the total has, and rightly so. One that A has seen was in the merge: what it
//      names was not folded. So a total is superseded like any version, by whichever contexts come,
//      in whatever order fragments are merged.
//   2. Aliases. Whoever knows an operation mints no second dot of it, and later refuses its id
//      (C2). m knew e when it showed c: a dot of the same operation that m minted before is in c,
//      and after that m minted none. So A has every dot of the operation that there will ever be:
//      folding drops them all, and the name is needed no more. Nothing is asked of the floor.
//   3. Others. What A folded is in every member's clock. So one that lacks it has folded it, too,
//      or has it as a delete: no answer has it as news.
// A cell has one total at a replica: it is made by a merge of all fragments, and what comes later
// has none. Only a copy brings a second one (counter_difference), of other increments, until the
// next merge of all fragments makes them one.
//
// Deletes keep their context whole, neither stripped nor filled, until they are stable: another
// replica that has not seen the delete may have folded what it names (R14). Stripped, its total
// would stay; filled, the delete would take what it never saw. For the same reason no context
// supersedes a reset or a dead increment. Their number is that of the deletes, and of the
// increments with names that they took, which some member has not seen yet.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "causality/clock.h"
#include "causality/dot_store.h"
#include "causality/resolve.h"

namespace helenus::causality {

// Whether it carries an amount.
constexpr bool adds_up(VersionKind kind) {
  return kind == VersionKind::increment || kind == VersionKind::total;
}

// Whether it holds anything of a counter.
bool is_counter(const CellStore& cell);

// The total and the increments that live: of one operation the one with the least dot. Ascending.
VisibleVersions living(const CellStore& cell);

// Their sum, wrapping like any 64-bit integer.
std::int64_t counter_value(const CellStore& cell);

// Adds what is stable to the total, and drops what is stable of dead increments and deletes. Law:
// the value does not change; folding twice by one stability is folding once. Requires: `cell` is
// the merge of every fragment at an instant T, what is superseded by ranges dropped; `stable` is
// the stability at T.
void fold(CellStore& cell, const Stability& stable);

// What a replica answered of a cell: the merge of all fragments, ranges included, and the clock of
// that moment, which the cell may be newer than, never older.
struct CounterAnswer {
  CellStore cell;
  Clock clock;
};

// R14: the first answer is taken whole, with its total; of the others what its clock has not seen
// and no context names; all contexts act on all of it. Law: the value is that of a replica that has
// seen what any of them has. Requires: at least one.
CellStore merge_counters(std::span<const CounterAnswer> answers);

// What makes of `ours` the union with `theirs` when the two are merged as fragments: theirs is
// taken whole, and of ours stays what `claim`, the clock that theirs was read with, has not seen
// (C10). None if what ours has folded is not in the claim: then theirs is not whole.
//
// Safety. Whatever either has folded is in the claim, so it is in theirs, folded or not, or was
// deleted by what theirs has seen. So ours gives up its total, and every increment that is in the
// claim and not among those of theirs: what is folded takes their place, which tells of no death,
// as a context would, and has no part in the dot of a later total. What theirs has as an increment
// under the dot of our total comes as a total of its own, and one of two totals under one dot wins
// by its timestamp; totals are not added up here, since a delete that only ours has seen may name
// one of them: it is not stable, has its context whole, and takes from theirs what it names.
// Between the comparison and the merge ours must not fold: a total made meanwhile would hold what
// the union has from theirs.
std::optional<CellStore> counter_difference(const CellStore& theirs, const Clock& claim,
                                            const CellStore& ours);

// Whether a replica with this clock lacks something of a cell, be it of a counter or not, by what
// another one answered.
bool lacks(const Clock& clock, const CellStore& answer);

}  // namespace helenus::causality
