// RowReader: from what storage holds of a row to the cells that a reader sees.
//
// A row is there if its marker or any of its cells is visible; a static row if any of its cells is.
// What is visible is for the table's policy to say (causality/resolve.h). A cell of a table with
// `conflicts = 'siblings'` that holds several values shows, in CQL, the one that would win by
// timestamp; the context that a reader is given names all of them, so that a write under it
// replaces them all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/context.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "cql/plan/row.h"
#include "model/clustering_key.h"
#include "model/schema.h"
#include "replication/request/read_request.h"

namespace helenus::cql {

// How the table settles concurrent versions.
causality::Policy policy_of(const model::Table& table);

// What of a table's rows a statement reads, and where it lies: the same for every execution, so it
// is made with the plan. Immutable.
class RowLayout {
 public:
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  // `wanted`: by the index of the column.
  RowLayout(model::TablePtr table, std::vector<bool> wanted);

  const model::Table& table() const { return *table_; }
  causality::Policy policy() const { return policy_; }
  std::span<const model::ClusteringColumn> clustering() const { return clustering_; }
  bool wants(std::size_t index) const { return wanted_[index]; }
  bool wants_partition_key() const { return wants_partition_key_; }
  bool wants_clustering() const { return wants_clustering_; }
  bool wants_static() const { return wants_static_; }
  // Whether rows of the table, or the static row, may have elements behind them
  // (model/element_key.h): then a row is more than one of storage's.
  bool has_elements() const { return rows_have_elements_ || static_has_elements_; }
  bool rows_have_elements() const { return rows_have_elements_; }
  bool static_has_elements() const { return static_has_elements_; }
  // The index of a column in Table::columns; kNoColumn for one that is gone.
  std::size_t index_of(causality::ColumnId column) const {
    return column.value() < index_by_id_.size() ? index_by_id_[column.value()] : kNoColumn;
  }

 private:
  model::TablePtr table_;
  causality::Policy policy_;
  std::vector<bool> wanted_;
  std::vector<model::ClusteringColumn> clustering_;
  std::vector<std::size_t> index_by_id_;
  bool wants_partition_key_ = false;
  bool wants_clustering_ = false;
  bool wants_static_ = false;
  bool rows_have_elements_ = false;
  bool static_has_elements_ = false;
};

// The elements of one row, while they are read one by one.
class RowElements {
 public:
  bool empty() const { return elements_.empty(); }
  std::size_t bytes() const { return bytes_; }
  void clear() {
    elements_.clear();
    bytes_ = 0;
  }

 private:
  friend class RowReader;
  struct Element {
    std::size_t column;
    CellElement cell;
    base::Bytes value;
  };
  std::vector<Element> elements_;
  std::size_t bytes_ = 0;
};

class RowReader {
 public:
  // `layout` outlives the reader. Columns that it does not want stay null.
  RowReader(const RowLayout& layout [[clang::lifetimebound]], causality::WallTime now)
      : layout_(layout), now_(now) {}

  const RowLayout& layout() const { return layout_; }

  // A reader's moment is the latest of its own clock and of what the answers say (R8).
  void not_before(causality::WallTime wall) { now_ = std::max(now_, wall); }

  // Makes a row of nulls; of one that was used before, in the memory that it has.
  void begin(Row& row) const;
  // Each sets cells of `row`, which begin() made. Errors: corrupt, of keys.
  base::Result<void> read_partition_key(const base::Bytes& partition, Row& row) const;
  base::Result<void> read_clustering(const base::Bytes& clustering, Row& row) const;
  // Returns whether the row is there; its cells are read in any case.
  bool read_regular(const causality::PartitionStore& stored, const base::Bytes& clustering,
                    Row& row) const;
  bool read_static(const causality::PartitionStore& stored, Row& row) const;

  // One element of a row, as storage has it under its key, whose part behind the row's is given.
  // Returns whether it is there. Errors: corrupt, of keys.
  base::Result<bool> read_element(const causality::PartitionStore& stored, const base::Bytes& key,
                                  base::ByteView suffix, model::ColumnKind kind,
                                  RowElements& into) const;
  // Sets the cells of `row` that the elements make up, which were read in the order of their keys,
  // or in reverse. Errors: corrupt.
  base::Result<void> read_elements(RowElements elements, bool reversed, Row& row) const;

  // What a client may be told that it has seen by reading this row, which has no elements.
  causality::Context context_of(const storage::RowRead& read, const base::Bytes& clustering) const;

 private:
  bool read_cells(const causality::PartitionStore& stored, const base::Bytes& clustering,
                  model::ColumnKind kind, Row& row) const;
  // Whether something is visible; sets the cell then.
  bool read_cell(const causality::CellStore& stored, Cell* cell) const;
  base::Result<void> read_column_elements(std::span<RowElements::Element> elements,
                                          Cell& cell) const;
  static void show(const causality::Version& version, Cell* cell);

  const RowLayout& layout_;
  causality::WallTime now_;
};

}  // namespace helenus::cql
