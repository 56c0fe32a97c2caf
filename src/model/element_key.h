// Keys of elements: where the elements of a collection, or the fields of a user-defined type, lie
// if its column is not frozen. Each is a row of storage's own, behind the row that it is of:
//
//   key of the row ‖ 00 00 ‖ id of the column (u32) ‖ name of the element
//
//   set, map   the element or the key, as a clustering column of its type
//   list       its name (16 bytes), which says where it stands
//   user type  the number of the field (u16)
//
// Two zero bytes begin no clustering key (clustering_key.h), and of the keys of a table none begins
// another. So the elements of a row sort directly behind it, those of the static row before all
// other rows, those of a column in the order of their type; and what deletes a range that ends
// behind a row (rows_with_prefix) deletes its elements, too.
//
// The format is that of data files. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/dot_store.h"
#include "model/clustering_key.h"
#include "model/data_type.h"

namespace helenus::model {

// Whether what follows a row's key is the key of one of its elements.
inline bool is_element_suffix(base::ByteView behind_row) {
  return behind_row.size() >= 2 && behind_row[0] == std::byte{0} && behind_row[1] == std::byte{0};
}

struct ElementKey {
  causality::ColumnId column;
  base::ByteView name;
};
// Errors: corrupt.
base::Result<ElementKey> read_element_suffix(base::ByteView behind_row);

// How much of the key of a row or of an element is the key of the row. `columns` are all clustering
// columns. Errors: corrupt.
base::Result<std::size_t> row_size_of(std::span<const ClusteringColumn> columns,
                                      base::ByteView key);

// What stands behind the key of the row: of an element, and of all elements of the column.
base::Bytes element_suffix(causality::ColumnId column, base::ByteView name);
ClusteringRange element_suffixes(causality::ColumnId column);
// The keys between those of the static row's first element and the first other row's.
ClusteringRange static_rows();

// The name of an element of a set or of a key of a map. Errors: invalid_argument when the value
// does not validate.
base::Result<base::Bytes> element_name(const DataType& type, base::ByteView value);
// And back: one of the values that compare equal, as in clustering_key.h. Errors: corrupt.
base::Result<base::Bytes> named_element(const DataType& type, base::ByteView name);

base::Bytes field_name(std::size_t field);
// Errors: corrupt.
base::Result<std::size_t> named_field(base::ByteView name);

// A row's key with something behind it.
base::Bytes joined_key(const base::Bytes& row, const base::Bytes& suffix);

}  // namespace helenus::model
