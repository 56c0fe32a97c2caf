// Conflict resolution: what a reader sees of a cell, and when a version may be dropped.
//
// Causality decides first: a CellStore already holds only versions that nothing known supersedes.
// What is left is concurrent, and the table's policy settles it *when reading*, never when storage
// merges (P13). For last-writer-wins that is sound because timestamps extend causality: a write's
// timestamp exceeds that of every unstable mutation it has seen (mint in delta.h, rules (a), (b)),
// so the order below is never cyclic with causality.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"

namespace helenus::causality {

// Which of two concurrent versions of a cell defeats the other: the larger timestamp; at equal
// timestamps empty defeats value, a value that expires one that does not, the later expiry the
// earlier (Cassandra's order), then the larger bytes, then the larger dot. A total order on
// versions that does not depend on when it is asked: a version that has expired keeps its place (it
// is shown as nothing, but defeats and is defeated as before), or replicas whose clocks differ
// would drop different versions.
std::strong_ordering defeats(const Version& a, const Version& b);

// Whether a reader at `now` sees nothing in this version.
bool shows_nothing(const Version& version, WallTime now);

// What a reader sees at `now`. lww: at most one version, never an empty or expired one; siblings:
// all values, ascending by dot; counter: the total and the increments that live.
using VisibleVersions = absl::InlinedVector<const Version*, 1>;
VisibleVersions visible(const CellStore& cell, Policy policy, WallTime now);

// Causal stability: what every member *and every pending one* has seen without a gap, from complete
// pulls in this epoch, and the smallest wall clock any of them reported in those pulls. `own` is
// this replica's own clock. Nothing is stable while a watermark is missing: an absent one (nullopt)
// is a member not yet fully pulled from in this epoch.
struct Watermark {
  Clock base;
  WallTime wall;
};
struct Stability {
  Clock dots;
  std::optional<WallTime> wall;
};
Stability stability(const Clock& own, WallTime own_wall,
                    std::span<const std::optional<Watermark>> members_and_pending);

// Whether a version shows nothing for ever and need not be remembered, so that it goes as soon as
// its dot is stable.
bool is_over(const Version& version, const Stability& stable);

// The versions that may be dropped from a merge of every fragment of the cell at an instant T, with
// `stable` the stability *at T* (merge_instant in delta.h):
//   lww        a version that is stable and shows nothing for ever (empty, unless it is to be
//              remembered, or expired before the smallest wall clock of all), or is defeated by
//              another, with all that it defeats
//   siblings   a version that is stable and expired before the smallest wall clock of all
//   counter    none; what is stable is folded (counter.h)
// Law: no reader at or after stable.wall sees a difference; neither does a sync with the filled
// store of any member.
std::vector<Dot> droppable(const CellStore& cell, Policy policy, const Stability& stable);

// Removes what is droppable, from one cell or from a partition with its ranges: a stable empty
// version of a range, unless it is to be remembered, goes together with all it defeats in every
// cell of the range. A counter is folded.
void drop_stable(CellStore& cell, Policy policy, const Stability& stable);
// Of a range's store alone: what is stable and over.
void drop_over(CellStore& range_delete, const Stability& stable);
void drop_stable(PartitionStore& partition, Policy policy, const Stability& stable);

// Rule (d), explicit USING TIMESTAMP: whether a mutation at `timestamp` may write the cell, or must
// leave it out because the minting replica already knows something that it would not defeat.
// `cell` is the merge of all fragments; `covered_floor` the largest timestamp of the unstable
// mutations of this cell in the mutation log, alive or superseded since; `write` what would be
// written (its dot does not matter). At equal timestamps the order of defeats() holds;
// what is equal in all does not apply, for it is there already. An equal timestamp at the floor
// applies only where a version of that timestamp is alive to be compared with: whoever superseded
// the others of that timestamp defeats them, and is alive, or newer than the write, or was dropped
// when stable with all that could come back. A client's context is a matter of mint (delta.h): what
// it covers beyond the clock of this replica is not in `cell`, and only its floor is known.
bool explicit_write_applies(const CellStore& cell, Timestamp covered_floor, const Version& write);

}  // namespace helenus::causality
