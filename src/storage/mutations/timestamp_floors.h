// TimestampFloors: above which timestamp a write of an 'lww' table must lie (theory §2, rule (b)).
//
// A write's timestamp is raised above that of every mutation of its cells that it covers and that
// is not stable yet. A write covers everything its replica has seen, so what matters is: of the
// unstable mutations in the mutation log, those that touch a cell the write touches.
//
// Why more than necessary is sound. Rules (a) to (c) hold for whatever timestamps clients give: no
// clock is trusted. A write that is raised further than the rule asks is the write of a client
// whose clock was that much ahead. What is lost is fairness, not convergence: it defeats concurrent
// writes that it need not have defeated. So a floor may stand for more cells than were touched and
// stay longer than it must; it may never be too low or go too early. That buys:
//   - Rows, not cells, by a hash of 64 bits; two rows with one hash share a floor.
//   - A delete of a range counts for all rows of its partition, and is raised above all of it; a
//     delete of one row is of that row.
//   - Two generations instead of a count for each row: a generation goes at once, when every dot in
//     it is stable. In a healthy cluster that is a second or so of writes.
//   - A bound. When a generation is full, or all tablets together take too much, the older one is
//     folded into one floor for the whole tablet, and so is what a start finds in files without
//     reading them. One client whose clock is far ahead then drags all rows of the tablet along
//     until those dots are stable; before, only the rows that it wrote. That is why rows are kept
//     apart as long as they fit.
//   - Folded floors by age: as many of one fold as of two, four, eight together. Each goes when its
//     own dots are stable, so that a tablet under steady load, of which something is unstable at
//     any time, forgets floors no later than after twice the time they had to stay; one floor for
//     all would only ever grow.
//   - Of each actor only the largest counter: what is stable has no gaps.
//
// Explicit timestamps (rule (d)) need the exact floor of one cell: Engine::covered_floor reads the
// mutation log for it, and only where the floor here does not settle the matter.
//
// Pure. Cost: a write is two lookups in hash maps, and two more to ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "base/bytes.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "storage/ids/table_id.h"

namespace helenus::storage {

class TimestampFloors {
 public:
  // About 50 bytes each, twice.
  static constexpr std::size_t kRowsMaxDefault = std::size_t{1} << 15;

  explicit TimestampFloors(std::size_t rows_max = kRowsMaxDefault) : rows_max_(rows_max) {}

  // A mutation that is not stable.
  void add(TableId table, base::ByteView partition, const causality::Delta& delta);
  // Mutations of which only the dots and the largest timestamp are known.
  void add(const causality::Clock& dots, causality::Timestamp largest);

  // No less than the largest timestamp of the unstable mutations that touch what a mutation with
  // these cells and ranges touches; kTimestampMin when there are none.
  causality::Timestamp of(TableId table, base::ByteView partition,
                          std::span<const causality::CellChange> cells,
                          std::span<const causality::RowRange> deleted_ranges) const;
  // The same for reading a row: what a context made of it must carry (docs/adr/0012).
  causality::Timestamp of_row(TableId table, base::ByteView partition, base::ByteView row) const;

  // The same for anything of the tablet.
  causality::Timestamp of_everything() const;

  // These dots are stable.
  void collect(const causality::Clock& stable);

  // Everything is stable.
  void clear();
  // Takes less memory by folding rows into the tablet's floor: the older generation, or all.
  void shrink();

  std::size_t row_count() const { return young_.rows.size() + old_.rows.size(); }
  // What rows take.
  std::size_t memory_bytes() const { return young_.memory_bytes() + old_.memory_bytes(); }
  // Of the whole tablet; kTimestampMin when rows are told apart.
  causality::Timestamp folded() const { return folded_floor_; }
  // How many floors it is made of: about twice the logarithm of the folds.
  std::size_t folded_count() const { return folded_.size(); }

 private:
  struct Dots {
    causality::Clock up_to;  // of each actor all counters up to the largest
    causality::Timestamp largest = causality::kTimestampMin;
    bool empty() const { return up_to.empty(); }
  };
  struct Folded {
    Dots dots;
    std::uint64_t folds = 1;
  };
  struct PartitionFloor {
    causality::Timestamp any = causality::kTimestampMin;
    causality::Timestamp deleted_ranges = causality::kTimestampMin;
  };
  struct Generation {
    Dots dots;
    absl::flat_hash_map<std::uint64_t, causality::Timestamp> rows;
    absl::flat_hash_map<std::uint64_t, PartitionFloor> partitions;

    bool full(std::size_t rows_max) const {
      return rows.size() >= rows_max || partitions.size() >= rows_max;
    }
    causality::Timestamp row(std::uint64_t partition_hash, std::uint64_t row_hash) const;
    causality::Timestamp partition(std::uint64_t partition_hash) const;
    std::size_t memory_bytes() const {
      return rows.capacity() * sizeof(std::pair<std::uint64_t, causality::Timestamp>) +
             partitions.capacity() * sizeof(std::pair<std::uint64_t, PartitionFloor>);
    }
  };

  void fold(const Dots& dots);
  void find_folded_floor();

  const std::size_t rows_max_;
  Generation young_;
  Generation old_;
  // From the oldest to the newest; the numbers of folds only fall, at most two alike, so that there
  // are few.
  std::vector<Folded> folded_;
  causality::Timestamp folded_floor_ = causality::kTimestampMin;
};

}  // namespace helenus::storage
