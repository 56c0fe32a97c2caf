// ExplicitRangeDeleteFilter: what a delete of a range of rows with an explicit timestamp comes to,
// beside what is there (rule (d), delta.h). ExplicitTimestampFilter shows it what is there, and
// mints what it leaves.
//
// A delete is minted with a context that covers all its replica has seen: in every cell it names it
// replaces whatever is there, newer or not, and at the next merge what was newer is gone from disk.
// So it may name a cell only where it wins. That goes for cells that are not there, too: a delete
// of a range that is remembered (docs/adr/0031) holds for rows that nobody wrote, and is all there
// is of them once a merge has taken the rows that it deleted.
//
// Let there(c) be the versions of a cell c, stored or not, when the earlier writes of the request
// are laid over what storage has: the versions of c itself and of the deletes of its row and of
// ranges that hold it, without those that the context of any of these names.
//
// Invariant, for every cell c of the range:
//   1. c is named     =>  the delete defeats every version of there(c);
//   2. c is not named =>  something in there(c) is newer; or c is not there, in a row where
//      something else is newer, and its column was not given; or c is not there, and there would
//      be more pieces or cells than allowed.
//
// Safety. By 1 no version that defeats the delete is in a place where the delete's context holds:
// neither a read nor a merge, which go by the contexts that hold for a cell, strips or supersedes
// it for the sake of the delete. What is newer thus goes on beating what it beat, for as long as it
// is remembered. By 2 the delete itself beats what is older and comes later, in all places where
// nothing newer does so already. What is newer may be forgotten first, for an older delete is not
// kept beneath it: then both are.
//
// Where a range counts. A version of a range holds in all of it but where another one's context
// names it: a later delete of a part of the range, or what a merge has left of such a delete, a
// context without a version (PartitionStore::strip goes on naming versions of ranges that overlap).
// So rows that are not there are told apart by the ranges alone, and a row that is there by
// everything that holds for it.
//
// Pure. Cost: ranges that are newer times those that overlap them, up to a limit beyond which a
// newer one counts as holding in all of its range (which keeps 1); and a lookup a row. It is asked
// step by step, for others to run in between; finish() goes through the rows once.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "causality/range_index.h"
#include "replication/explicit_timestamps/batch_overlay.h"
#include "replication/request/partition_write.h"

namespace helenus::replication {

// Whether an explicit write may replace what is there; see causality::explicit_write_applies.
bool wins(const causality::Version& write, const causality::CellStore& there);
bool wins(const causality::Version& write, const causality::Version& there);
// Also over what of the cell is in the mutation log, alive or not.
bool wins(const causality::Version& write, const causality::CellStore& there,
          causality::Timestamp covered_floor);

// Where the delete wins.
struct FilteredRangeDelete {
  std::vector<causality::RowRange> deleted_ranges;
  std::vector<causality::CellChange> cells;  // in none of these ranges
};

class ExplicitRangeDeleteFilter {
 public:
  // How many ranges that overlap newer ones are looked at.
  static constexpr std::size_t kOverlapsMax = std::size_t{1} << 15;
  // Into how many pieces a delete is taken, and how many cells that are not there it names, before
  // it deletes what is there alone.
  static constexpr std::size_t kPiecesMax = 4096;
  static constexpr std::size_t kAbsentMax = std::size_t{1} << 16;

  // Of a delete of the range as this empty version, after the writes before it. What is referred to
  // outlives the judgement.
  ExplicitRangeDeleteFilter(const causality::RowRange& row_range,
                            const causality::Version& deletion, const RowColumns& columns,
                            const BatchOverlay& before);
  ExplicitRangeDeleteFilter(const ExplicitRangeDeleteFilter&) = delete;
  ExplicitRangeDeleteFilter& operator=(const ExplicitRangeDeleteFilter&) = delete;

  // The ranges of the partition, as storage has them, at least those that overlap the range; those
  // of exactly one row may be missing. They outlive the judgement. Called once, before the rest.
  void take_ranges(const causality::RangeIndex& ranges);
  // The next version of these that is newer: where it holds. Returns how many ranges it looked at;
  // nothing when there is none. Called before rows are taken, until it returns nothing.
  std::optional<std::size_t> take_newer_range();
  // A row of the range of which storage has something, with all ranges that hold it. Once each,
  // ascending. Returns how many cells it looked at.
  std::size_t take_row(const causality::RowKey& row, const causality::PartitionStore& stored);
  // The next row of the range that the writes before wrote and that was not taken, as take_row();
  // nothing when there is none. Called when all rows that storage has are taken.
  std::optional<std::size_t> take_row_of_overlay();
  // How many cells and ranges that are there were taken.
  std::size_t size() const { return size_; }

  // Requires: all ranges and rows were taken.
  FilteredRangeDelete finish(std::size_t ranges_max, std::size_t cells_max) &&;

 private:
  // A row in which something is there.
  struct Row {
    bool is_deleted = false;  // as a whole: nothing is newer
    // Where the delete wins: cells that are there, and, unless it is deleted as a whole, others.
    std::vector<causality::CellChange> there;
    std::vector<causality::CellChange> absent;
  };

  struct NewerVersion {
    const causality::RangeDelete* range;
    const causality::Version* version;
  };

  std::vector<causality::RowRange> where_it_holds(const NewerVersion& newer);
  // Whether rows that are not there are deleted in this place.
  bool deletes_at(const causality::RowKey& row) const;
  // The columns of the row that have something of their own.
  std::vector<causality::ColumnId> columns_there(const causality::RowKey& row,
                                                 const causality::PartitionStore& stored) const;
  // All others that it may have.
  std::vector<causality::ColumnId> columns_beside(
      const causality::RowKey& row, const std::vector<causality::ColumnId>& there) const;
  causality::CellChange deletion_of(const causality::RowKey& row, causality::ColumnId column) const;

  const causality::RowRange& row_range_;
  const causality::Version& deletion_;
  const RowColumns& columns_;
  const BatchOverlay& before_;
  const causality::RangeIndex* ranges_ = nullptr;
  std::vector<causality::RowRange> laid_;  // what the overlay deletes in place of storage's ranges
  std::vector<NewerVersion> newer_versions_;
  std::size_t newer_taken_ = 0;              // of these
  std::vector<causality::RowRange> newer_;   // ranges in which something is; ascending in the end
  std::vector<causality::RowRange> pieces_;  // the range without these; ascending, disjoint
  std::map<causality::RowKey, Row> rows_;
  std::vector<causality::RowRange> newer_rows_;  // those that are not deleted as a whole
  std::optional<causality::RowKey> overlay_at_;  // the last row that was looked at there
  std::size_t size_ = 0;
  std::size_t absent_ = 0;  // cells that are not there and would be named
  std::size_t overlaps_ = 0;
};

}  // namespace helenus::replication
