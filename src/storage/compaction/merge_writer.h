// MergeWriter: writes the merge of some fragments of a table as one sstable: what a flush does with
// one memtable and a compaction with several files.
//
// Safety (S3, docs/adr/0013). Contexts are stripped and stable versions dropped only for a key of
// which the merge holds every fragment that existed at an instant T, and only by what was known at
// T. Fragments that came later do not matter; one outside the merge that is as old as T does, if
// it may hold
//   for a row          the row, deletes of it included, or a range delete of its partition
//   for ranged deletes anything of the partition
// A partition with ranged deletes in the merge is judged as a whole, rows and ranges alike, because
// a range that is dropped as stable goes together with all that it defeats. So all ranges of a
// partition are gathered before the first of them is written: those of one partition must fit
// memory while it is merged, its rows need not. Each row is then judged by those that hold it, and
// the ranges are laid out anew (range_delete_key.h). A fragment outside the merge that has any of
// the partition has one under the partition's own key: to look for that one is enough.
//
// Before anything else, ranges inside others that have seen them go
// (PartitionStore::apply_range_deletes, where the argument is), by whatever is known: no cell
// changes by that. So the deletes of all rows before a mark that moves on do not gather while a
// peer is away.
//
// Ranges that do not overlap say nothing about one another: they are judged in groups that do not.
// The effort follows what overlaps (range_sweep.h), and is done in steps, with others running in
// between. What the ranges around a row say of it is kept from row to row, and changed by those
// that begin and end between the two (ranges_around.h). What is not done in steps is one row, and
// one entry: both are decoded as a whole.
//
// Memory: if there are more ranges than ranges_bytes_max, those of the partition are written as
// they come, merged by their keys and no further, and its rows are merged and not judged: nothing
// of the partition is stripped or dropped, and nothing is lost. A later merge may find fewer.
//
// Two instants come into question. The freeze of the newest input: only files outside the merge
// with fragments as old as that count. And the moment the compaction began, *now*, by whose
// knowledge more may go: that is what frees a table without new writes of its deletes. Then all
// that the table has outside the merge counts, memtables too. It is looked up when the key's turn
// comes, not when the compaction begins, and may: a fragment that was there at the beginning is
// there still, if not in the same place. A flush moves it from a memtable to a file and another
// compaction from file to file, each in one step; and neither drops it, for both see that this
// merge's inputs hold the key. What came in the meantime only makes the answer more careful.
// Counters are not folded, nor anything of theirs dropped, while a file outside the merge is a
// copy: it names what it takes the place of, and would not find it in a total. Nor while a copy is
// being compared with what is here. What is known now becomes part of a file, so the log must be
// durable up to now before the file is entered (S1), as before a flush. The file still says that it
// holds the freezes of its inputs, and what was known at the last of them: memtables may hold what
// is older than now.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "causality/range_sweep.h"
#include "causality/ranges_around.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "storage/compaction/named_above.h"
#include "storage/entry/entry.h"
#include "storage/manifest/knowledge.h"
#include "storage/read/entry_source.h"
#include "storage/read/table_view.h"
#include "storage/sstable/sstable_writer.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

// A tablet's part of the key space.
struct TabletRange {
  TabletId id;
  KeyRange range;
};

struct MergePlan {
  TableId table;
  causality::Policy policy = causality::Policy::lww;
  FreezeNumber freeze_first;
  FreezeNumber freeze_last;
  // What was known at freeze_last. A tablet that is not in it is left as it is.
  Knowledge knowledge;
  std::vector<TabletRange> tablets;  // ascending by range, disjoint
  // Of tablets that were dropped: nothing in them is left.
  std::vector<KeyRange> gone = {};
  // The files outside the merge that have fragments as old as freeze_last.
  SstableList others;
  // Of a compaction: what was known when it began; the files of the table that are merged, and the
  // table, by which to find what is outside.
  Knowledge knowledge_now = {};
  // What the ranges of one partition may take of memory, about, to be judged: all forms of them
  // that the merge holds at a time.
  std::size_t ranges_bytes_max = std::size_t{64} << 20;
  FileSet inputs = {};
  std::shared_ptr<const TableStore> store = nullptr;
  // Of one of several files that come of a merge: where it ends, between two partitions; and
  // whether the source stands where the file before it ended.
  std::uint64_t file_bytes_max = UINT64_MAX;
  bool goes_on = false;
  std::uint32_t level = 0;  // of the file
  // Told how many keys were read, now and then.
  std::shared_ptr<std::uint64_t> keys_done = nullptr;
  // Of a table of counters: the same table, by which to find copies outside. Outlives the merge.
  const TableStore* counters = nullptr;
  // It is one (SstableMetadata::is_copy).
  bool is_copy = false;
};

struct MergeCounts {
  std::uint64_t keys_read = 0;
  std::uint64_t keys_whole = 0;            // of which everything was at hand: stripped
  std::uint64_t keys_gone = 0;             // of which nothing was left
  std::uint64_t partitions_unsettled = 0;  // that had more ranges than ranges_bytes_max
  // What was done with ranges, in units of about the same effort: one of them taken up, or looked
  // at for a row.
  std::uint64_t range_steps = 0;
};

class MergeWriter {
 public:
  MergeWriter(runtime::Runtime& runtime, MergePlan plan);

  // Goes through the source from its beginning, or from where it stands, and adds what is left to
  // the writer: all of it, or as much as goes into a file. Lets others run now and then. Errors: of
  // reading and of writing; cancelled.
  runtime::Task<base::Result<void>> run(EntrySource& source, SstableWriter& writer,
                                        runtime::StopToken stop);

  // What the file is to carry. Requires: run() succeeded.
  SstableMetadata metadata() const;
  const MergeCounts& counts() const { return counts_; }

 private:
  // After so much of entries it asks whether its slice is over: some ten microseconds.
  static constexpr std::size_t kBytesPerLook = std::size_t{4} << 10;
  // Of ranges that are judged among others: each looks at some dozens of them at most.
  static constexpr std::size_t kRangesPerLook = 64;
  // What a step of finding the ranges around a row counts for.
  static constexpr std::size_t kBytesPerStep = kBytesPerLook / 32;

  // An entry of ranges as it was read.
  struct Gathered {
    std::string key;
    Entry entry;
  };
  // Ranges that overlap, one with the other, and no others.
  struct RangeGroup {
    std::vector<causality::RangeDelete> deleted_ranges;  // ascending
    std::optional<causality::RowKey> end;  // of the last to end; none: there is no end
  };
  using EntriesByPath = absl::btree_map<std::string, Entry>;

  base::Result<void> take_ranges(EntrySource& source);
  base::Result<void> take_row(EntrySource& source);
  void begin_partition(base::ByteView partition);
  void find_knowledge(TabletId tablet);
  // Settles and writes what was gathered of the partition's ranges. Requires: there is something.
  runtime::Task<base::Result<void>> end_ranges(SstableWriter& writer, runtime::StopToken stop);
  // From what was gathered.
  runtime::Task<base::Result<std::vector<RangeGroup>>> group_ranges(runtime::StopToken stop);
  // What is left of all of them.
  runtime::Task<base::Result<std::vector<causality::RangeDelete>>> apply_range_deletes(
      runtime::StopToken stop);
  // What is left of a group.
  runtime::Task<base::Result<std::vector<causality::RangeDelete>>> apply_group(
      RangeGroup& group, runtime::StopToken stop);
  runtime::Task<base::Result<EntriesByPath>> lay_out(
      std::vector<causality::RangeDelete> deleted_ranges, runtime::StopToken stop);
  runtime::Task<base::Result<void>> write_ranges(EntriesByPath by_path, SstableWriter& writer,
                                                 runtime::StopToken stop);
  // Writes what was gathered as it is: there is too much of it.
  runtime::Task<base::Result<void>> write_as_gathered(SstableWriter& writer,
                                                      runtime::StopToken stop);
  // Has a row's turn come: finds the ranges of the partition that hold it. Rows come in their
  // order. Requires: known_of_partition_.
  runtime::Task<base::Result<void>> find_around(base::ByteView clustering, runtime::StopToken stop);
  // Gives up groups of ranges that end before the row.
  runtime::Task<base::Result<void>> pass_groups(base::ByteView clustering, runtime::StopToken stop);
  // Takes what was done around rows since the last time into account.
  void count_around();
  void count_ranges(std::size_t deleted_ranges, std::size_t bytes);
  void apply_ranges_to_row(base::ByteView key);
  // Adds the entry to the file unless it is empty.
  runtime::MaybeTask<base::Result<void>> write(RowKey key, SstableWriter& writer);
  // Whether it is time to let others run.
  bool step_is_over();
  void count_written();
  void note_progress();
  // Of any table but one of counters: always.
  bool may_fold() const;
  // What is known at the first instant, the latest first, at which nobody else holds it; null if
  // there is none.
  const TabletKnowledge* knowledge_for_row(base::ByteView key) const;
  const TabletKnowledge* knowledge_for_partition() const;
  bool files_hold(base::ByteView key) const;
  bool outside_holds(base::ByteView key) const;
  bool outside_holds_partition() const;

  runtime::Runtime& runtime_;
  const MergePlan plan_;
  MergeCounts counts_;
  std::uint64_t keys_told_ = 0;
  std::uint64_t ranges_written_ = 0;
  std::uint64_t cells_written_ = 0;
  causality::Timestamp newest_write_ = causality::kTimestampMin;
  GarbageByTablet garbage_;
  NamedAbove named_;

  // The partition under way.
  std::string partition_;
  std::string ranges_key_;
  std::size_t tablet_index_ = 0;
  std::optional<TabletId> tablet_;
  const TabletKnowledge* known_at_freeze_ = nullptr;  // null: nothing, or not to be gone by
  const TabletKnowledge* known_now_ = nullptr;
  const TabletKnowledge* known_of_partition_ = nullptr;
  std::vector<Gathered> gathered_;
  std::size_t gathered_bytes_ = 0;
  bool has_ranges_ = false;
  bool unsettled_ = false;  // it has too many
  // As merged, before anything was stripped or dropped; ascending.
  std::vector<RangeGroup> range_groups_;
  std::size_t group_ = 0;                   // where the rows have come
  std::optional<std::size_t> swept_group_;  // what the sweep is of
  causality::RangeSweep sweep_;
  std::optional<causality::RangesAround> around_;  // the row; none: nothing is
  std::uint64_t around_steps_ = 0;                 // of these, that are accounted for
  bool ranges_in_files_ = false;
  bool ranges_outside_ = false;
  bool partition_gone_ = false;

  Entry entry_;
  base::Buffer encoded_;
  std::size_t step_bytes_ = 0;
};

}  // namespace helenus::storage
