// What a replica of a tablet lacks of another one's entries: a run of fragments that, merged with
// what is here, make the union of the two (S4, S5).
//
// The union of two replicas keeps a version that both have, and one that only one of them has and
// the clock of the other has not seen; what the other has seen and has not is superseded, or was
// dropped as stable. Let `theirs` be the entries of the other replica and `claim` its clock, of one
// moment; `ours` those here and `clock` the clock here, of one moment. Then the fragments have
//
//   - of a version of theirs that `clock` has not seen: the version, with their context, filled
//   with
//     the dots here that it would meet: of the cell, of the row's deletes, of the partition's
//     ranges. What of those is in the claim and not theirs the version has superseded, though their
//     context no longer says so (strip).
//   - of a version of a cell of ours that is in the claim and not theirs: its dot, as a context of
//     this cell. Also where the other one has nothing of the row, or of the partition.
//   - of the contexts of their cells what names a version of ours, and what `clock` has not seen;
//   the
//     contexts of their deletes of rows and ranges whole, unless ours say the same.
//
// A range delete of ours, or a delete of a row, that is in the claim and not theirs stays. No cell
// shows the difference. It was superseded, or is stable, at the other one, which shows what lies in
// its range by what superseded it; each version that comes from there names it, as above; each that
// both have has its place beside it already; and it goes here when it is found stable, as it is at
// every replica. It cannot be named for a range as a whole: the mutation that deleted a range may
// have written a cell in it, under the same dot, which both have.
//
// Nothing here names a dot that is in no clock of the two, or in theirs alone and theirs: so
// nothing of ours goes but by a clock that says so.
//
// Counters that were folded do not join by dots: theirs is taken whole, with what only is here
// (R14, causality/counter.h). So nothing here is folded from the comparison on until the fragments
// are in, and later in no merge without them.
//
// In memory: one entry of each, and the ranges of one partition of each, without their contexts.
// Cost of a row: the ranges of its partition that are here and that the other one has let go of.
#pragma once

#include <memory>

#include "causality/clock.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "storage/read/entry_source.h"

namespace helenus::storage {

struct DifferenceOf {
  std::unique_ptr<EntrySource> theirs;
  causality::Clock claim;
  std::unique_ptr<EntrySource> ours;
  causality::Clock clock;
};

// Is sought once, to the beginning, and then moves forward. The runtime outlives it.
std::unique_ptr<EntrySource> difference(runtime::Runtime& runtime, DifferenceOf of,
                                        runtime::StopToken stop);

}  // namespace helenus::storage
