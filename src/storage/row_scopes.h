// RowScopes: the deletes of ranges of a partition that may hold a row, as a reader has loaded them
// (scope_place.h), and kept from row to row as long as they serve.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/dot_store.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/entry.h"
#include "storage/scope_place.h"
#include "storage/table_view.h"

namespace helenus::storage {

class RowScopes {
 public:
  // Whether everything is loaded that may hold the row.
  bool serves(base::ByteView partition, base::ByteView row) const;
  // Loads what is missing. Both keys must outlive the wait. After an error it serves no row.
  // Errors: those of TableView::find.
  runtime::Task<base::Result<void>> load(const TableView& view, base::ByteView partition,
                                         base::ByteView row, runtime::Until until,
                                         ReadTrace& trace);
  // Adds those that hold the row. Requires: nothing loaded yet, or serves() the row.
  void add_to(causality::PartitionStore& partition, const causality::RowKey& row) const;

 private:
  // What lies at one depth under the digits that a row begins with.
  struct Level {
    ScopeDepth depth = 0;
    bool loaded = false;
    bool too_short = false;  // the row has not so many digits
    std::string row;         // one that begins so
    Entry entry;

    bool serves(base::ByteView key) const;
  };

  std::optional<std::string> partition_;
  Entry together_;
  std::vector<Level> levels_;
};

}  // namespace helenus::storage
