// Index entries: where the cells of a table are found by value (theory R23, docs/adr/0053).
//
// An entry is a cell of a table of storage's own, one for each index, in the tablet of the row:
//
//   partition   the first key of the tablet, padded to 12 bytes ‖ 01 ‖ the value (kValueSizeMax)
//   row         the partition of the row ‖ the clustering key of the row
//   column      how many bytes of that are the partition
//
// The value is encoded as an ascending clustering column of its type (clustering_key.h), so that
// the entries of a tablet lie in the order of their values, and those of one value in the order of
// their rows. Where the clustering key is empty the candidate is the whole partition: its only row,
// or all rows of a partition whose static column it is. Longer values and keys are cut: an entry is
// a hint, whoever follows it reads the row and looks.
//
// A value that mentions a user-defined type, which may get more fields, is cut to nothing: such an
// index finds the rows that have a value at all.
//
// The format is that of data files (docs/formats/keys.md). Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/delta.h"
#include "model/clustering_key.h"
#include "model/schema.h"

namespace helenus::model {

struct IndexedCell {
  base::Bytes partition;
  causality::CellChange cell;
};

// What an entry says: look there.
struct IndexCandidate {
  enum class What : std::uint8_t {
    row,
    partition,
    prefix,  // every partition whose key begins so
  };
  What what = What::row;
  base::Bytes partition;
  base::Bytes clustering = {};  // of a row
  friend bool operator==(const IndexCandidate&, const IndexCandidate&) = default;
};

class IndexEntries {
 public:
  static constexpr std::size_t kValueSizeMax = 1024;
  // Of a row of an index.
  static constexpr std::size_t kCandidateSizeMax = 64000;

  // Requires: the index is one of the table's.
  IndexEntries(const Table& table, const Index& index);

  // What storage keeps to derive entries by: the index, and of its table what it takes to read keys
  // and values.
  static base::Bytes define(const Keyspace& keyspace, const Table& table, const Index& index);
  // Errors: corrupt, unsupported.
  static base::Result<IndexEntries> read(base::ByteView definition);

  // Adds the entries of these cells of a partition. Cells of which no value can be read have none.
  void derive(base::ByteView tablet_from, base::ByteView partition,
              std::span<const causality::CellChange> cells, std::vector<IndexedCell>& into) const;

  // What is encoded of a value that is looked for: of the column, or, by the target, of an element,
  // a key or a value. Of both of them for entries. Errors: invalid_argument.
  base::Result<base::Bytes> encode(base::ByteView value) const;
  base::Result<base::Bytes> encode(base::ByteView key, base::ByteView value) const;
  // Whether values lie in their order.
  bool is_ordered() const;

  // Where entries of such an encoded value lie in a tablet.
  static base::Bytes partition_of(base::ByteView tablet_from, base::ByteView encoded);
  // Errors: corrupt.
  static base::Result<IndexCandidate> candidate_of(base::ByteView row, causality::ColumnId column);

 private:
  base::Result<base::Bytes> encoded(const DataType& type, base::ByteView value) const;
  std::optional<base::Bytes> value_of(const causality::CellChange& cell, std::size_t row_size,
                                      base::ByteView partition) const;
  std::optional<base::Bytes> element_of(const causality::CellChange& cell,
                                        std::size_t row_size) const;

  ColumnKind kind_;
  std::size_t position_;
  causality::ColumnId column_;
  IndexTarget target_;
  DataType type_;
  std::size_t partition_columns_;
  std::vector<ClusteringColumn> clustering_;
};

}  // namespace helenus::model
