// Superseded: which files a read of one row need not open, since a delete that it has merged
// already has seen everything that they can say of the row.
//
//   memtables ──▶ newer files ──▶ ... a delete of the row, with the context it was written in
//                                     └─▶ covers what an older file names: the file is left out
//
// Why that is safe, for every cell of the row. Let d be the delete of the row, or of a range that
// holds it, and C its context; memtables and files keep it whole as long as something older may
// hold the row (S3). Let F be a file of which no entry names a dot outside of C
// (SstableMetadata::named). What F has of the cell are versions, all in C, and contexts, all within
// C. In the merge with F the versions are dropped by C, and the contexts add nothing to it; the
// same holds for the deletes of ranges that F has. So the cell of the merge without F is the cell
// of the merge with it, versions and context alike: nobody who is given it sees a difference, at
// any consistency level, whether d is stable or not (theory §6: this is not "the newest wins").
// Counters are exempt from contexts (dot_store.h): of them all files are read.
//
// What merging adds to the memtables meanwhile only makes C larger.
#pragma once

#include <span>
#include <vector>

#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "storage/entry/entry.h"
#include "storage/ids/table_id.h"
#include "storage/manifest/knowledge.h"

namespace helenus::storage {

class Superseded {
 public:
  // Of a row of this tablet.
  Superseded(causality::Policy policy, TabletId tablet)
      : counts_(policy != causality::Policy::counter), tablet_(tablet) {}

  // What some source has under the row's key.
  void add(const Entry& entry) { add(entry.row_deletes().context()); }
  // What some source has of ranges that hold the row.
  void add(std::span<const causality::RangeDelete> around) {
    for (const causality::RangeDelete& each : around) add(each.store.context());
  }
  // Whether the file adds nothing to the row.
  bool covers(const SstableMetadata& file) const;

 private:
  void add(const causality::Clock& context);

  const bool counts_;
  const TabletId tablet_;
  // Of deletes that hold for every cell of the row. Each is looked at by itself: of two deletes
  // that have seen different things none may have seen all.
  std::vector<causality::Clock> contexts_;
};

}  // namespace helenus::storage
