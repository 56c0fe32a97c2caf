// The partition's part of a key: from the values of the partition-key columns to the bytes storage
// orders partitions by, and back.
//
//   routing key       what drivers hash: the value of a single column as it is; of several, for
//                     each: u16 size, bytes, 0x00
//   partition bytes   the keyspace's number (u32, big-endian), the token, big-endian with the sign
//                     bit flipped (8 bytes), then the routing key's size (u16, big-endian), then
//                     the routing key
//   row key           partition bytes, then the clustering key (clustering_key.h)
//
// Partition bytes are prefix-free, so the rows of two partitions never interleave, and sort by
// keyspace, then by token as signed numbers do. So the tablets of all keyspaces, which are domains
// of causality of their own (theory R1), are ranges that do not overlap, and a partition says by
// itself which tablet it is of (docs/adr/0038).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/keyspace_number.h"
#include "model/token.h"

namespace helenus::model {

// Storage's limit on a whole row key, of which fourteen bytes are keyspace, token and a size.
inline constexpr std::size_t kRowKeySizeMax = 65535;
inline constexpr std::size_t kPartitionHeadSize = 14;
inline constexpr std::size_t kRoutingKeySizeMax = kRowKeySizeMax - kPartitionHeadSize;

// Errors: invalid_argument when the key gets longer than kRoutingKeySizeMax ("Key length of 70000
// is longer than maximum of 65521"), or when the only column is empty ("Key may not be empty").
// Requires: at least one value.
base::Result<base::Bytes> make_routing_key(std::span<const base::ByteView> values);
// The same errors, and nothing made. A single value that passes is its own routing key.
base::Result<void> check_routing_key(std::span<const base::ByteView> values);
// The values of `column_count` columns; they borrow from `routing_key`. Errors: corrupt.
base::Result<std::vector<base::ByteView>> split_routing_key(std::size_t column_count,
                                                            base::ByteView routing_key);

// Requires: routing_key.size() <= kRoutingKeySizeMax.
base::Bytes make_partition(KeyspaceNumber keyspace, Token token, base::ByteView routing_key);

// Parts of a row key; they borrow from it. `clustering` is empty for a static row, and for the only
// row of a partition in a table without clustering columns.
struct RowKeyParts {
  KeyspaceNumber keyspace;
  Token token;
  base::ByteView routing_key;
  base::ByteView partition;  // the partition bytes
  base::ByteView clustering;
};
// Errors: corrupt when the bytes do not begin with partition bytes.
base::Result<RowKeyParts> split_row_key(base::ByteView row_key);

// The row key of a clustering key within a partition. Errors: invalid_argument when longer than
// kRowKeySizeMax.
base::Result<base::Bytes> make_row_key(base::ByteView partition, base::ByteView clustering);

// The least bytes a partition of this token can begin with: every row key of a smaller token of the
// keyspace sorts before, those of this token and larger ones do not. The tokens (a, b] are the row
// keys in [first_key_after(a), first_key_after(b)).
base::Bytes first_key_of(KeyspaceNumber keyspace, Token token);
// The same for the next larger token. Past the largest token it is the next keyspace's first key.
base::Bytes first_key_after(KeyspaceNumber keyspace, Token token);
// The least bytes of a partition of the keyspace. Every partition of it sorts at or behind, and
// before the next number's. Requires of first_key_after and this: a number below the greatest.
base::Bytes first_key_of(KeyspaceNumber keyspace);

}  // namespace helenus::model
