// Clustering keys: the values of clustering columns as bytes whose memcmp order is the order of the
// rows, column by column, descending columns inverted.
//
// Each column's encoding is prefix-free, so the keys that begin with given values are exactly the
// keys that begin with the encoding of those values: a slice of a partition is a range of bytes.
// The empty key is the static row's and sorts before all others; a key with at least one value is
// never empty, and never begins with two zero bytes. In a table without clustering columns the
// empty key is the only row's.
//
// Encodings can be decoded. What compares equal has one encoding, and one of the equal values comes
// back, in place of the other's spelling: decimals without trailing zeros behind the point (1.00
// comes back as 1), varints in their shortest form, all NaN as the one of Java, true as 1. That is
// identity as Cassandra has it, where the first spelling written stays; here it is the same
// spelling everywhere.
//
// The format is that of data files: it never changes for a type. Layout in clustering_key.cc.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/data_type.h"

namespace helenus::model {

struct ClusteringColumn {
  DataType type;  // ordered (value.h), and not multi-cell
  bool descending = false;
};

// The values of the first `values.size()` columns; sets and maps in them need not be sorted.
// Requires: no more values than columns. Errors: invalid_argument when a value does not validate.
base::Result<base::Bytes> encode_clustering(std::span<const ClusteringColumn> columns,
                                            std::span<const base::ByteView> values);

// The values in a key, at most one per column. Errors: corrupt on bytes that are no values of these
// columns.
base::Result<std::vector<base::Bytes>> decode_clustering(std::span<const ClusteringColumn> columns,
                                                         base::ByteView key);

// The keys k with from <= k, and k < to if there is a `to`; else all to the partition's end.
struct ClusteringRange {
  base::Bytes from;
  std::optional<base::Bytes> to;
  friend bool operator==(const ClusteringRange&, const ClusteringRange&) = default;
};

// Every row but the static one and its elements. Requires: the table has clustering columns.
ClusteringRange all_clustered_rows();
// The rows that begin with these encoded values, all their continuations included. An empty prefix
// is the whole partition, static row included.
ClusteringRange rows_with_prefix(const base::Bytes& prefix);

// One side of a slice: (b, c) >= (1, 2) has values 1, 2 and is inclusive.
struct ClusteringBound {
  std::span<const base::ByteView> values;  // at least one
  bool inclusive = true;
};

// The rows whose first columns equal `equal`, and whose next columns, compared as a tuple of values
// (not in the stored order), lie between the bounds; an absent bound does not bind. Where ascending
// and descending columns mix in a tuple that takes several ranges: they come disjoint, not empty,
// and in the stored order. Errors: as encode_clustering().
// Requires: equal.size() plus the values of either bound are no more than the columns.
base::Result<std::vector<ClusteringRange>> slice(std::span<const ClusteringColumn> columns,
                                                 std::span<const base::ByteView> equal,
                                                 const std::optional<ClusteringBound>& lower,
                                                 const std::optional<ClusteringBound>& upper);

// The least bytes greater than all that begin with `prefix`; nothing if it is all 0xff.
std::optional<base::Bytes> successor_of_prefix(base::ByteView prefix);

}  // namespace helenus::model
