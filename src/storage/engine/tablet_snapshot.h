// TabletSnapshot: all that a tablet replica has at one moment, for another replica to take
// (tablet_transfer.h); TabletFeed: the same, as it comes from elsewhere.
//
// Law (S4): the entries are exactly those of the moment of the claim. What is not in them, and is
// among the claim's dots, is superseded, or dropped as stable.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/result.h"
#include "causality/clock.h"
#include "causality/dot.h"
#include "runtime/gate.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/ids/key_range.h"
#include "storage/ids/table_id.h"
#include "storage/mutations/operation_hold.h"
#include "storage/read/entry_source.h"
#include "storage/read/table_view.h"

namespace helenus::storage {

// What taking the entries makes true.
struct TabletClaim {
  causality::Clock clock;
  // No less than the timestamp of any mutation of these dots that is not stable (rule (b)).
  causality::Timestamp floor = causality::kTimestampMin;
  // What had expired before it may be missing (R8).
  causality::WallTime dropped_before = {};
  // Of the operations that are known by their ids.
  causality::OperationTime newest_operation = kNoOperation;
  // Of which tables there are entries, or would be: of others the claim says nothing. Ascending.
  std::vector<TableId> tables = {};
};

class TabletFeed {
 public:
  TabletFeed() = default;
  TabletFeed(const TabletFeed&) = delete;
  TabletFeed& operator=(const TabletFeed&) = delete;
  virtual ~TabletFeed() = default;

  virtual const TabletClaim& claim() const = 0;
  // Those of one of the claim's tables, from the first one on: it is sought once, to the beginning,
  // and then moves forward. One at a time; goes before the feed does.
  virtual std::unique_ptr<EntrySource> entries(TableId table) = 0;
  // All of them were taken, and lie in files. Before they are compared with what is here, whatever
  // else can be had may come.
  virtual runtime::Task<base::Result<void>> received() { co_return base::Result<void>(); }
};

// What taking a copy did.
struct IngestReport {
  std::uint64_t dots = 0;            // ranges of dots that had not been seen
  std::uint64_t bytes_received = 0;  // of files
  std::uint64_t bytes_installed = 0;
};

class TabletSnapshot {
 public:
  using Views = absl::btree_map<TableId, TableView>;

  TabletSnapshot(runtime::Gate::Pass pass, TabletClaim claim, KeyRange range, Views views)
      : pass_(std::move(pass)),
        claim_(std::move(claim)),
        range_(std::move(range)),
        views_(std::move(views)) {}

  const TabletClaim& claim() const { return claim_; }
  // False: there are surely no entries of the table.
  bool may_have(TableId table) const { return views_.contains(table); }
  // Those of a table of the claim. The snapshot outlives them.
  std::unique_ptr<EntrySource> entries(TableId table, const runtime::Until& until) const;

 private:
  runtime::Gate::Pass pass_;
  const TabletClaim claim_;
  const KeyRange range_;
  const Views views_;  // of those that may have entries
};

// The part of a run that lies in a tablet's range.
std::unique_ptr<EntrySource> entries_in(KeyRange range, std::unique_ptr<EntrySource> entries);
// None at all.
std::unique_ptr<EntrySource> no_entries();

}  // namespace helenus::storage
