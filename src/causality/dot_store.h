// Dot stores: the versions of a cell, a row and a partition with the context they were written in,
// and the paper's verbs on them.
//
// A store is a set of versions, each under its dot, and a context: dots known to be superseded
// *here*. It is at once what a whole replica holds for a cell, what one LSM fragment holds of it,
// and what one write adds to it: they differ only in how much they hold, and all meet by `sync`.
//
// Invariant: no version's dot is in its store's own context (S3: the dot is apart from the
// context), records apart. A version then survives a sync exactly when no context on either side
// names it, and sync is commutative, associative and idempotent: fragments merge in any order.
//
// Records of a counter's deletes (is_record) are exempt from contexts: an increment with a name
// that a context supersedes becomes one, and a store that has a reset keeps its whole context
// (counter.h says why).
//
// A range delete is a cell store that holds for every cell in its range.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "base/bytes.h"
#include "causality/clock.h"
#include "causality/dot.h"
#include "causality/flat_map.h"

namespace helenus::causality {

enum class VersionKind : std::uint8_t {
  value,
  deletion,   // a delete in an 'lww' table: hides concurrent older versions until it is stable, and
              // for longer if it is to be remembered
  increment,  // adds `amount`; supersedes nothing
  // Of a counter, in a store alone and never in a delta (counter.h):
  total,   // the sum of increments that were folded, under the dot of one of them
  reset,   // a delete: kept with its whole context until it is stable
  dead,    // an increment that was deleted, kept for the sake of its operation's other dots
  folded,  // takes the place of an increment or total that a total from elsewhere holds
};

// Whether it says what was deleted: no context supersedes it, and it goes when it is stable.
constexpr bool is_record(VersionKind kind) {
  return kind == VersionKind::reset || kind == VersionKind::dead;
}

struct Version {
  Dot dot;
  Timestamp timestamp;
  VersionKind kind = VersionKind::value;
  // After this moment a reader sees nothing; absent for ever-lasting versions. Of an empty one:
  // until when it is remembered, though it be stable, so that it is there when a write with an
  // explicit older timestamp is judged (resolve.h); absent if it need not be.
  std::optional<WallTime> expires;
  std::int64_t amount = 0;
  // Of an increment: the name of its operation (OperationId), if it has one. A dead one has it.
  base::Bytes value;
  friend bool operator==(const Version&, const Version&) = default;
};

// Nearly every cell has one.
using Versions = absl::InlinedVector<Version, 1>;

// The versions of one cell.
class CellStore {
 public:
  CellStore() = default;
  // Requires: no version's dot is in the context, those of records apart; dots differ.
  CellStore(Versions versions, Clock context);

  bool empty() const { return versions_.empty() && context_.empty(); }
  // Ascending by dot.
  std::span<const Version> versions() const { return versions_; }
  const Clock& context() const { return context_; }
  const Version* find(const Dot& dot) const;

  friend bool operator==(const CellStore&, const CellStore&) = default;

  // Adds a version that happened after everything the store holds dots of. Law: afterwards the
  // version is there and nothing else changed. Requires: its dot is neither a version's nor in the
  // context.
  void add(Version version);
  // Drops the versions that `seen` names and remembers that they are superseded. Law: discard(seen)
  // is sync with an empty store whose context is `seen`; discarding twice is discarding once.
  void discard(const Clock& seen);
  // Merges another store of the same cell into this one. Law: see sync below.
  void absorb(const CellStore& other);
  // The same; takes over what it can.
  void absorb(CellStore&& other);
  // Forgets the part of the context that `known` covers. Law: fill(strip(s, c), c') = fill(s, c')
  // for every c' that covers c; the versions do not change, so no reader sees a difference.
  // When it is allowed: merge_instant in delta.h; `known` is the durable *base* of the
  // replica's clock at the instant T, never a newer clock. A store that has a reset is left as it
  // is.
  void strip(const Clock& known);
  // The same, but that it goes on naming those of `spared` that it names.
  void strip(const Clock& known, std::span<const Dot> spared);
  // Takes out the versions that `seen` names without remembering it: another store does that holds
  // for the cell. Records stay, and an increment that has a name becomes one.
  void drop_superseded(const Clock& seen);
  // The same for whatever says whether it names a dot.
  template <class Names>
  void drop_named(Names names) {
    const auto goes = [&](Version& version) {
      if (is_record(version.kind) || !names(version.dot)) return false;
      return !bury(version);
    };
    versions_.erase(std::remove_if(versions_.begin(), versions_.end(), goes), versions_.end());
  }
  // Whether it has a delete of a counter.
  bool holds_reset() const;
  // The same store with other versions. Requires: as of the constructor.
  void replace_versions(Versions versions) {
    *this = CellStore(std::move(versions), std::move(context_));
  }
  // Takes versions out without a trace: their dots must be covered by the clock the store will be
  // filled with, as at stability (resolve.h), or be named by another store that holds for the cell.
  void forget(std::span<const Dot> dots);

 private:
  // Makes a superseded increment a record of its operation's death; false if it has no name.
  static bool bury(Version& version);
  // Merges versions, which the iterators give for copying or moving, and the context they came
  // with.
  template <class Iterator>
  void absorb_from(Iterator first, Iterator last, const Clock& context);

  Versions versions_;
  Clock context_;
};

// Both stores together: the union of the versions that neither context names, the union of the
// contexts. Law: commutative, associative, idempotent; the empty store is neutral. Requires: I0,
// one dot is one version in both; save that a mutation that deleted a range and wrote a cell in it
// has two in that cell, of which the written one stands (delta.h).
CellStore sync(const CellStore& a, const CellStore& b);

// `store` without the part of its context that `known` covers; see CellStore::strip.
CellStore strip(CellStore store, const Clock& known);

// What may be sent of a cell: the store with everything the sender's clock has seen in its context,
// live dots apart. `store` is the merge of *all* fragments and `clock` the sender's whole clock of
// that very moment, all actors, exceptions too (S4). Law: sync(fill(a, ca), fill(b, cb)) holds a
// version iff both have it, or one has it and neither the other's clock nor its context names it.
// The receiver merges it without the versions that its own clock has seen (`unseen`): those are
// alive in its store already, or superseded there.
CellStore fill(CellStore store, const Clock& clock);

// An object as a receiver takes it: without the versions its clock has seen. The receiver must take
// the dots that the object reflects into its clock in the same step (docs/adr/0014). Law: merging
// unseen(o, c) into a store whose clock is c, stripped or not, gives what merging o into the
// unstripped store gives.
CellStore unseen(CellStore object, const Clock& clock);

// Cells of a row by column, and what a clustering key orders rows by.
using ColumnId = base::Strong<struct ColumnIdTag, std::uint32_t>;
using RowKey = base::Bytes;

// The rows from `from` up to but not including `to`; an absent bound is none. A row delete is the
// range from its key to its key followed by a zero byte; a partition delete has no bounds.
struct RowRange {
  std::optional<RowKey> from;
  std::optional<RowKey> to;
  bool contains(const RowKey& row) const { return (!from || *from <= row) && (!to || row < *to); }
  // Whether every row of `other` is here too.
  bool contains(const RowRange& other) const;
  // Whether a row may lie in both.
  bool overlaps(const RowRange& other) const;
  friend auto operator<=>(const RowRange&, const RowRange&) = default;
};
RowRange range_of_row(const RowKey& row);

// One cell store for every cell of the rows in its range: a row, range or partition delete.
struct RangeDelete {
  RowRange range;
  CellStore store;
  friend bool operator==(const RangeDelete&, const RangeDelete&) = default;
};

// The cells of one row.
class RowStore {
 public:
  bool empty() const { return cells_.empty(); }
  const FlatMap<ColumnId, CellStore>& cells() const { return cells_; }
  // The store of a column; empty when there is none.
  const CellStore& cell(ColumnId column) const;

  void reserve(std::size_t cells) { cells_.reserve(cells); }
  // Keeps the memory.
  void clear() { cells_.clear(); }
  void absorb(ColumnId column, CellStore cell);
  void absorb(RowStore other);
  void strip(const Clock& known);
  void strip(const Clock& known, std::span<const Dot> spared);
  // Takes out the versions that `seen` names without remembering it: a range remembers it.
  void drop_superseded(const Clock& seen);
  void forget(ColumnId column, std::span<const Dot> dots);
  // Lets `change` change each cell; empty ones go.
  template <class Change>
  void update_cells(Change change) {
    for (auto& [column, cell] : cells_) change(cell);
    cells_.erase_if([](const auto& entry) { return entry.second.empty(); });
  }

  friend bool operator==(const RowStore&, const RowStore&) = default;

 private:
  FlatMap<ColumnId, CellStore> cells_;
};

// What a client may be given as the context of a row it read, so that one context serves a write of
// several cells: the dots that *every* cell read reflects. `clock` is the clock the cells were read
// with; a dot that only some of the cells know to be superseded is left out, or a write of both
// cells would overwrite a version its writer never saw (docs/adr/0011).
Clock context_of_read(std::span<const CellStore* const> cells, const Clock& clock);

// A partition, or a fragment of one: rows and range deletes.
class PartitionStore {
 public:
  bool empty() const { return rows_.empty() && range_deletes_.empty(); }
  const FlatMap<RowKey, RowStore>& rows() const { return rows_; }
  std::span<const RangeDelete> range_deletes() const { return range_deletes_; }

  // What this fragment knows of one cell: its own store and those of all ranges it lies in.
  CellStore cell(const RowKey& row, ColumnId column) const;

  void absorb(const RowKey& row, ColumnId column, CellStore cell);
  void absorb(const RowKey& row, RowStore store);
  void absorb(const RangeDelete& range_delete);
  // Law: commutative, associative, idempotent, as sync is for every cell.
  void absorb(const PartitionStore& other);
  // Lets every range act on the rows stored beside it. Law: no cell() changes.
  void apply_range_deletes_to_rows();
  // Lets every range act on the ranges inside it. A version of the inner one goes if the context of
  // the outer one names it, or if the outer one has it too; when none is left, the inner context
  // goes if the outer one covers it, and stays otherwise. Law: no cell() changes, neither its
  // versions nor its context, nor that of any merge with other fragments. So it is allowed at any
  // time, and nothing is forgotten that anybody must learn: the version that goes is shown by no
  // cell, since in each cell that the inner range holds the outer context names it; and whoever
  // brings it again meets that context, or, once that has been stripped, a clock that has seen its
  // dot. What it hid by its timestamp is for the outer one to hide: that is what superseding it
  // means. (A delete of all rows before a mark that moves on: one is left, and not all of them.)
  // Not every such version is found: the effort for a range is bounded.
  void apply_range_deletes();
  // Strips every cell and every range. The caller vouches that this store is the merge of every
  // fragment of the *partition* that existed at T (merge_instant in delta.h). Law: no
  // version of any cell() changes; fill after strip loses nothing. A range's versions cannot be
  // taken out for a part of it, so a cell's context goes on naming those that it supersedes, and so
  // does the context of another range that overlaps. The plain form: it compares each row and each
  // range with all ranges. For very many: range_sweep.h, ranges_around.h.
  void strip(const Clock& known);
  // Takes versions of one cell, or of all ranges, out without a trace; see CellStore::forget.
  void forget(const RowKey& row, ColumnId column, std::span<const Dot> dots);
  void forget_range_deletes(std::span<const Dot> dots);
  // Lets `change` change each cell of each row, without the ranges; empty ones go.
  template <class Change>
  void update_cells(Change change) {
    for (auto& [row, store] : rows_) store.update_cells(change);
    rows_.erase_if([](const auto& entry) { return entry.second.empty(); });
  }

  friend bool operator==(const PartitionStore&, const PartitionStore&) = default;

 private:
  FlatMap<RowKey, RowStore> rows_;
  // Ascending by range, one entry a range.
  std::vector<RangeDelete> range_deletes_;
};

}  // namespace helenus::causality

template <>
struct fmt::formatter<helenus::causality::Version> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const helenus::causality::Version& version,
                                       fmt::format_context& ctx) const;
};
template <>
struct fmt::formatter<helenus::causality::CellStore> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const helenus::causality::CellStore& cell,
                                       fmt::format_context& ctx) const;
};
template <>
struct fmt::formatter<helenus::causality::RowRange> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const helenus::causality::RowRange& row_range,
                                       fmt::format_context& ctx) const;
};
