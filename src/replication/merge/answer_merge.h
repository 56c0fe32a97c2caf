// What several replicas answered, as one that has seen all of it would have answered.
//
//   merge(row, answers)        one row, read by its name
//   AnswerMerge                some rows of a tablet, one after the other (R6)
//
// One row. Every answer is the merge of all fragments of the row at its replica, and the clock of
// that moment (S4). In each cell what is sent is fill(cell, clock), deletes of ranges included, and
// what is shown is the sync of all of these: a version is there if all have it, or if those that
// have it not have neither seen its dot nor a delete whose context names it. Deletes that hide
// concurrent versions by time are versions themselves and stay beside them. Then the cells are
// stripped of what the union of the clocks covers, as a replica's own would be (law of strip).
// Ranges need not be kept: they have acted on every cell that there is, and hide nothing in a cell
// that is nowhere.
//
// Counters are folded at each replica at another moment: what one has in its total another still
// has as an increment, or has as one that is deleted. So of them one answer is taken whole, and
// others add what its clock has not seen (R14, causality/counter.h); a replica whose page lacks a
// row that others have is always asked for it, since a delete of a range may be why.
//
// Some rows. An answer covers the span from where the request begins to its last row, or to the end
// of the request's partitions if there is no more; the merge ends at the least end of all. A row
// that one answer lacks inside its span is a deleted one, if that replica's clock has seen all that
// others have of it. If it has not, then a delete of a range that replica has, and that no row of
// its answer lies in, may still hide the row: so that replica is asked for the row by its name
// (needed()), which brings the ranges around it. That is rare: it is a write on its way.
//
// Law: for any spans, what is shown equals what reading the join of the stores would show.
//
// Pure.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "replication/messages/messages.h"
#include "replication/request/rows_request.h"
#include "storage/read/row_read.h"

namespace helenus::replication {

// Requires: at least one answer; all are of that row.
storage::RowRead merge(const base::Bytes& row, std::span<const storage::RowRead> answers);
// Whether a replica lacks a mutation of the row that others have seen, by its answer (what is
// stored there, and its clock), by the merge, and by all answers: some version of theirs, deletes
// and those of ranges included, has a dot that it has not seen; or the merge has other values than
// it has.
bool lacks_some(const base::Bytes& row, const causality::PartitionStore& merged,
                const causality::PartitionStore& stored, const causality::Clock& clock,
                std::span<const causality::PartitionStore* const> answers);

// What any of the answers to one request has, in its direction, up to the least end; for hints.
// Requires: at least one page.
RowsAnswer unite(bool backwards, std::vector<RowsAnswer> pages);

class AnswerMerge {
 public:
  // Requires: at least one page; all answer the same request, which reads in that direction.
  AnswerMerge(bool backwards, std::vector<RowsAnswer> pages);

  // By page: the rows that its replica must be asked for. Empty ones need not be.
  const std::vector<std::vector<RowName>>& needed() const { return needed_; }
  // What the replica of that page said of the rows it was asked for, in their order.
  // Requires: as many as needed() has for it.
  void supply(std::size_t page, std::vector<storage::RowRead> rows);

  // The rows up to the least end, deleted ones too: so whoever goes on behind the last one gets on.
  // Requires: everything needed was supplied.
  RowsAnswer take();
  // By page: the partitions of which its replica lacks something (lacks_some). Requires: taken.
  const std::vector<std::set<base::Bytes>>& differing() const { return differing_; }

 private:
  // In the order of reading.
  struct Before {
    bool backwards = false;
    bool operator()(const RowName& a, const RowName& b) const;
  };
  // By page; null where a page has not got the row.
  using Versions = std::vector<const causality::PartitionStore*>;

  const std::vector<RowsAnswer> pages_;
  bool more_ = false;
  std::map<RowName, Versions, Before> rows_;
  std::vector<std::vector<RowName>> needed_;
  std::vector<std::map<RowName, storage::RowRead, Before>> supplied_;
  std::vector<std::set<base::Bytes>> differing_;
};

}  // namespace helenus::replication
