// MergeWriter: writes the merge of some fragments of a table as one sstable: what a flush does with
// one memtable and a compaction with several files.
//
// Safety (S3, docs/adr/0013). Contexts are stripped and stable versions dropped only for a key of
// which the merge holds every fragment that existed at the instant T of its newest input's freeze,
// and only by what was known at T. Fragments that came later do not matter; a file outside the
// merge that has fragments as old as T does, if it may hold
//   for a row          the row, or a range-scoped delete of its partition
//   for scoped deletes anything of the partition
// A partition with scoped deletes in the merge is judged as a whole, rows and scopes alike, because
// a scope that is dropped as stable goes together with all that it defeats.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "storage/entry.h"
#include "storage/entry_source.h"
#include "storage/knowledge.h"
#include "storage/sstable_writer.h"
#include "storage/table_view.h"

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
};

struct MergeCounts {
  std::uint64_t keys_read = 0;
  std::uint64_t keys_whole = 0;  // of which everything was at hand: stripped
  std::uint64_t keys_gone = 0;   // of which nothing was left
};

class MergeWriter {
 public:
  MergeWriter(runtime::Runtime& runtime, MergePlan plan);

  // Goes through the source from its beginning and adds what is left to the writer. Lets others run
  // now and then. Errors: of reading and of writing; cancelled.
  runtime::Task<base::Result<void>> run(EntrySource& source, SstableWriter& writer,
                                        runtime::StopToken stop);

  // What the file is to carry. Requires: run() succeeded.
  SstableMetadata metadata() const;
  const MergeCounts& counts() const { return counts_; }

 private:
  // Entries are merged this long without letting others run.
  static constexpr std::size_t kBytesPerTurn = std::size_t{64} << 10;

  base::Result<void> take(EntrySource& source);
  void begin_partition(base::ByteView partition);
  void settle_scopes();
  void settle_row(base::ByteView key, base::ByteView clustering);
  bool others_hold(base::ByteView key) const;
  bool others_hold_partition() const;

  runtime::Runtime& runtime_;
  const MergePlan plan_;
  MergeCounts counts_;
  std::uint64_t scopes_written_ = 0;

  // The partition under way.
  std::string partition_;
  std::string scopes_key_;
  const TabletKnowledge* known_ = nullptr;
  std::size_t tablet_index_ = 0;
  causality::PartitionStore scopes_;  // as merged, before anything was stripped or dropped
  bool scopes_elsewhere_ = false;
  bool partition_whole_ = false;
  bool partition_gone_ = false;

  Entry entry_;
  base::Buffer encoded_;
};

}  // namespace helenus::storage
