// TableIndexer: brings into an index what its table had before the index was made.
//
//   an index is made ─▶ writes bring their entries (WritePath) ─▶ the table is read, from what it
//   had then ─▶ entries ─▶ flush ─▶ the manifest says that it is built ─▶ it is read
//
// What must never lie (R23):
//   - For every version of a cell that the table has, an index that is built has the entry that it
//     says. Writes that are applied after the index is in its shard bring
//     theirs; the rest is in the view of the table that is taken after that.
//   - Entries are in no log. What is built from files is in a file before the manifest says so; and
//     what writes have brought is in a file before the log lets their records go, since an index is
//     frozen, and flushed, before its table is (flusher.h).
//   - An index that is not built answers nobody.
//
// A start begins anew with a shard that was not finished, and goes on with the others.
//
// Owns: nothing. Borrows: the state, ManifestChanges, Flusher. Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/task.h"
#include "storage/engine/engine_state.h"
#include "storage/engine/flusher.h"
#include "storage/engine/manifest_changes.h"
#include "storage/entry/derived_entry.h"
#include "storage/read/table_cursor.h"
#include "storage/table/table_store.h"

namespace helenus::storage {

class TableIndexer {
 public:
  TableIndexer(EngineState& state, ManifestChanges& manifests, Flusher& flusher)
      : state_(state), manifests_(manifests), flusher_(flusher) {}

  // Runs once.
  runtime::Task<void> build_loop();

 private:
  // How many rows are looked at before others get their turn.
  static constexpr std::size_t kRowsPerTurn = 128;

  struct Job {
    Shard* shard = nullptr;
    std::shared_ptr<TableStore> index;
    std::shared_ptr<TableStore> table;
  };
  std::vector<Job> jobs() const;
  runtime::Task<base::Result<void>> build(Job job);
  runtime::Task<base::Result<void>> build_tablet(const Job& job, TabletId tablet);
  // Adds what the cursor stands on.
  base::Result<void> add_row(const Job& job, const Tablet& tablet, TableCursor& cursor,
                             DerivedEntry& last);
  // Others get their turn, and flushes theirs.
  runtime::Task<base::Result<void>> pause(const Job& job, TabletId tablet);

  EngineState& state_;
  ManifestChanges& manifests_;
  Flusher& flusher_;
};

}  // namespace helenus::storage
