// Where on the ring a key lies: the two partitioners, and Position, the place they give it.
//
//   partitioner   position of a key             as drivers read it
//   murmur3       its token (murmur3.h)         decimal
//   ordered       the routing key itself        hexadecimal
//
// A position is a byte string and the ring goes by the order of bytes, a prefix before what it
// begins; behind the greatest position comes the least. A Murmur3 token is written big-endian with
// its sign bit flipped, so both rings are one kind of ring. The ordered partitioner is Cassandra's
// ByteOrderedPartitioner: partitions lie in the order of their keys, and a range of keys is a range
// of the ring.
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "model/token.h"

namespace helenus::ring {

enum class Partitioner : unsigned char { murmur3, ordered };

// A value. A Murmur3 position and a short key take no memory of their own.
class Position {
 public:
  // No more than a routing key's size (model/partition_key.h).
  static constexpr std::size_t kSizeMax = 65525;

  Position() = default;  // the least of all: the empty key of the ordered partitioner
  static Position of_token(model::Token token);
  // Requires: bytes.size() <= kSizeMax.
  static Position of_bytes(base::ByteView bytes);

  base::ByteView bytes() const [[clang::lifetimebound]] { return base::as_bytes(bytes_); }
  // Requires: made by of_token, or of just as many bytes.
  model::Token token() const;

  friend auto operator<=>(const Position&, const Position&) = default;

 private:
  explicit Position(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string bytes_;
};

// The place of a routing key. Requires: routing_key.size() <= Position::kSizeMax.
Position position_of(Partitioner partitioner, base::ByteView routing_key);

// "org.apache.cassandra.dht.Murmur3Partitioner": what drivers choose their token class by.
std::string_view class_name_of(Partitioner partitioner);
// By the whole name of the class or its last part. Errors: invalid_argument.
base::Result<Partitioner> parse_partitioner(std::string_view name);

// As in system.local's `tokens`. Requires: a position of this partitioner.
std::string to_text(Partitioner partitioner, const Position& position);

inline constexpr std::size_t kTokensMax = 65536;
inline constexpr std::size_t kTokensDefault = 256;

// The tokens a ring is created with, in ascending order: they cut it into `count` ranges that
// differ in size by one part in 2^64, the last one ends at its greatest token. For the ordered
// partitioner they suit keys with random first bytes; others need tokens chosen from the keys.
// Requires: 0 < count <= kTokensMax.
std::vector<Position> evenly_spread_tokens(std::size_t count);

}  // namespace helenus::ring
