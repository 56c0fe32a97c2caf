// Delta: what one mutation puts into the log and on the wire, and how it is born and applied.
//
// One dot and one context for the whole mutation, encoded once, however many cells it touches. A
// write or a delete of a cell names the cell; a delete of a row, a range or the partition names a
// range; an increment names a cell and an amount, and has an empty context because it supersedes
// nothing. Applying a delta reads nothing: it becomes a fragment that is merged with what is there.
//
//   delta                 version it adds            what its context does
//   write                 value                      supersedes what it names, in its cells
//   delete, 'lww'         empty                      the same; the empty version hides, by time,
//                                                    what is concurrent, until it is stable
//   delete, a counter     reset                      the same; kept whole until it is stable
//   delete, otherwise     none                       the same
//   increment             increment                  (empty)
//
// An increment keeps the operation id of its mutation: two dots of one operation are aliases, and
// count once (counter.h).
//
// A mutation may delete a range and write cells inside it (CQL replaces a collection so, or a row):
// its cells override its ranges. In an 'lww' table the empty version of its ranges then is one tick
// older than the cells', so that whatever defeats or outlives such a cell does the same to the
// range beneath. Where no cell lies in a range all of it has one timestamp: a delete beats a write
// of the same one elsewhere, as in Cassandra.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "causality/clock.h"
#include "causality/context.h"
#include "causality/dot_store.h"
#include "causality/operation.h"

namespace helenus::causality {

// How a table settles concurrent versions. Fixed at creation.
enum class Policy : std::uint8_t {
  lww,       // the largest timestamp, when reading; timestamps extend causality
  siblings,  // all of them, to the client
  counter,   // their sum
};

// One cell of a mutation. `kind` empty is a delete of the cell, remembered until it expires.
struct CellChange {
  RowKey row;
  ColumnId column;
  VersionKind kind = VersionKind::value;
  std::optional<WallTime> expires;
  std::int64_t amount = 0;
  base::Bytes value;
  friend bool operator==(const CellChange&, const CellChange&) = default;
};

struct Delta {
  Dot dot;
  Context context;
  Timestamp timestamp;
  std::optional<OperationId> operation;
  // Strictly ascending by (row, column).
  std::vector<CellChange> cells;
  // Row, range and partition deletes; strictly ascending.
  std::vector<RowRange> deleted_ranges;
  // Until when these are remembered (Version::expires); absent without ranges.
  std::optional<WallTime> remembered_until = std::nullopt;
  friend bool operator==(const Delta&, const Delta&) = default;
};

// A mutation before it has a dot.
struct Mutation {
  // The client's context, when it gave one (authenticated and with its epoch adopted by now).
  std::optional<Context> context;
  // The driver's timestamp or the server's, which minting may raise; or, when
  // `timestamp_is_explicit`, that of a USING TIMESTAMP (statement or batch clause), which it may
  // not.
  Timestamp timestamp;
  bool timestamp_is_explicit = false;
  std::optional<OperationId> operation;
  std::vector<CellChange> cells;
  std::vector<RowRange> deleted_ranges;
  std::optional<WallTime> remembered_until = std::nullopt;  // of the ranges
};

// Mints the next dot of `actor` in `clock` and fixes the context at birth (S2):
//   siblings   the client's context as it is, an empty one too (the write then is a sibling of
//              all there is); without one everything the clock has seen
//   lww        the client's united with everything the clock has seen, always (rule (a)); the
//              timestamp is raised above `floor` and the context's own floor (rule (b)), by two
//              when the mutation has cells in its ranges
//   counter    a delete takes the clock; an increment takes nothing
// `floor` is the largest timestamp of the unstable mutations of these cells and ranges that the
// clock covers; they are in the mutation log (kTimestampMin when there are none).
// Law: the context does not contain the dot; in an 'lww' table the mutation defeats (resolve.h)
// every unstable mutation of its cells that the context covers; what is minted encodes and decodes.
//
// An explicit timestamp keeps Cassandra's meaning (rule (d)): it is never raised. The caller has
// left out what it does not win (cells by explicit_write_applies in resolve.h; a range is cut
// around the rows in which something is newer), and mint refuses it
//   - below `floor`: something was not left out;
//   - not above the floor of a client's context that the clock does not cover.
// Why that suffices: let e be an unstable mutation of a cell of the write that its context covers.
// If e is in the clock, it is in the log or alive in the cell, and the caller compared the two. If
// it is in the client's context alone, its timestamp is at most that context's floor, and the write
// was refused unless it is above; at the floor itself it might meet a delete, or larger bytes, that
// nobody here can compare it with. A context that the clock covers adds nothing to it: the write is
// the blind one of this replica, and the context's floor, which spans all the cells its client
// read, must not keep the write of one cell out for the sake of another.
//
// Errors: invalid_argument for a context that claims dots never minted here, for a mutation that
// changes nothing, names a cell twice, mixes increments with other changes, deletes a range without
// rows, lets an increment expire or exceeds the limits, for an explicit timestamp below
// `floor`, and when no larger timestamp is left; unavailable for an explicit timestamp that a
// context from elsewhere forbids here: a replica that has what the context covers can judge it.
base::Result<Delta> mint(Clock& clock, ActorId actor, Epoch epoch, Policy policy, Mutation mutation,
                         Timestamp floor);

// The timestamp of what the delta's ranges delete: the delta's, or one tick older if any of its
// cells lies in any of its ranges, as in CQL, where replacing a collection deletes it and writes
// its elements at once. Whoever keeps the ranges of a delta apart from its cells gives them this
// one.
Timestamp timestamp_of_range_deletes(const Delta& delta);
// The same of a mutation, whose cells are ascending, if it is given its timestamp as it is.
Timestamp timestamp_of_range_deletes(const Mutation& mutation);

// The delta as a fragment: what a memtable merges. Law: merging the fragments of a set of deltas in
// any order, in any grouping, any number of times gives one result.
PartitionStore fragment_of(const Delta& delta, Policy policy);
// The same of a delta that changes cells of one row alone: that row's part of the fragment.
// Requires: no ranges, one row.
RowStore row_fragment_of(Delta delta, Policy policy);

enum class Applied : std::uint8_t { now, before };

// Applies a delta to a replica (S3): nothing when its dot is in the clock; otherwise merges its
// fragment into the memtable, without reading older fragments, and adds the dot. The memtable keeps
// the whole context: stripping here gives false siblings.
Applied apply(Clock& clock, PartitionStore& memtable, const Delta& delta, Policy policy);

// One fragment of a partition: a memtable, a frozen memtable or an sstable.
struct FragmentSpan {
  // Freezes of a table are numbered; a memtable that is not frozen yet has kNotFrozen. What a
  // compaction wrote spans the freezes of all its inputs: the oldest thing in it may be older than
  // an sstable that was left out.
  std::uint64_t first_freeze = 0;
  std::uint64_t last_freeze = 0;
  // False when the fragment surely has nothing of the key, nor a range that the key lies in.
  bool may_hold_key = true;
};
inline constexpr std::uint64_t kNotFrozen = std::numeric_limits<std::uint64_t>::max();

enum class MergeInstant : std::uint8_t {
  none,           // may be merged, may not be stripped
  newest_freeze,  // by what was known at the freeze of the newest input
  now,            // by what is known now, and by what was known then
};

// By whose knowledge a merge of `inputs` (of one key, none empty) may be stripped and stable
// versions dropped, with `others` left out (S3, docs/adr/0013). The rule: the merge must hold every
// fragment of the key that existed at an instant T; then strip goes by the durable base of the
// clock at T and drop_stable by the stability at T, never by later ones. A key and the ranges it
// lies in are judged by the same knowledge. The flush of a memtable is the merge of that fragment.
MergeInstant merge_instant(std::span<const FragmentSpan> inputs,
                           std::span<const FragmentSpan> others);

}  // namespace helenus::causality

template <>
struct fmt::formatter<helenus::causality::Delta> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const helenus::causality::Delta& delta,
                                       fmt::format_context& ctx) const;
};
