// Values of CQL as bytes: what is a value of a type, how two compare, how one prints.
//
// A value is kept and sent in the encoding of the native protocol, from the frame to the disk. Null
// is the absence of bytes (an empty optional); zero bytes are a value ("empty") that most types
// admit and that sorts before all others. Functions that read bytes treat them as a stranger's:
// they never read beyond the end, and never allocate more than the bytes there can justify. Those
// that look through all elements of a value do so at a pace, if they are given one; it is asked
// after each of them, and its errors end the work.
//
// Encodings: integers and floats big-endian; date u32 days where 2^31 is 1970-01-01; time i64
// nanoseconds since midnight; timestamp i64 milliseconds since 1970; varint big-endian two's
// complement; decimal an i32 scale and a varint; duration three zig-zag variable-length integers;
// a collection an i32 count and then elements as i32 size and bytes (keys and values alternating
// in a map); a tuple or user-defined type its elements as i32 size (-1: null) and bytes, where last
// ones may be missing; a vector its floats, one behind the other.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/pace.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/data_type.h"

namespace helenus::model {

using OptionalBytes = std::optional<base::Bytes>;
using OptionalView = std::optional<base::ByteView>;

// The most bytes of a varint, or of a decimal's digits: about 9,800 decimal digits. Cassandra has
// no limit of its own here; turning numbers into decimal digits takes quadratic time.
inline constexpr std::size_t kVarintBytesMax = 4096;

// ---- any type

// Whether `bytes` is a value of `type`, in all its depth. Errors: invalid_argument with Cassandra's
// words ("Expected 4 or 0 byte int (3)"). Sets and maps need not be sorted: see normalise().
base::Result<void> validate(const DataType& type, base::ByteView bytes, base::Pace* pace = nullptr);

// The value as it is stored: validated, and within it every set and map sorted by its elements or
// keys, where of equal ones the last stays. Returns `bytes` itself when nothing had to move.
// Errors: as validate().
base::Result<base::Bytes> normalise(const DataType& type, const base::Bytes& bytes,
                                    base::Pace* pace = nullptr);

// The order of Cassandra's type: what ORDER BY, clustering and comparisons go by. Weak: decimals
// 1.0 and 1.00 are equivalent, so are all NaN. Counters compare as bigint; durations have no order
// and compare as bytes. Requires: both validate (bytes that do not compare somehow, safely).
std::weak_ordering compare(const DataType& type, base::ByteView a, base::ByteView b);

// Whether values of this type have an order that keys go by: no duration in it, and no vector. Only
// such types are allowed in keys, in sets and as keys of maps.
bool is_ordered(const DataType& type);

// The value as a literal of CQL, as Cassandra prints it: 1, 'it''s', 0xcafe, {'a': 1}, (1, null),
// {street: 'x'}. Text goes in quotes; the empty value of a type whose literals cannot be empty
// prints as nothing. Requires: the bytes validate (those that do not print as a blob).
std::string to_text(const DataType& type, base::ByteView bytes);

// ---- native values

base::Bytes boolean_value(bool value);
base::Bytes tinyint_value(std::int8_t value);
base::Bytes smallint_value(std::int16_t value);
base::Bytes int_value(std::int32_t value);
base::Bytes bigint_value(std::int64_t value);  // counter, timestamp and time are encoded alike
base::Bytes varint_value(std::int64_t value);
base::Bytes float_value(float value);
base::Bytes double_value(double value);
base::Bytes text_value(std::string_view value);  // ascii and blob are encoded alike
base::Bytes uuid_value(const base::Uuid& value);
base::Bytes date_value(std::int64_t days_since_epoch);  // Requires: within +-2^31.

struct Duration {
  std::int32_t months = 0;
  std::int32_t days = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const Duration&, const Duration&) = default;
};
// Requires: none of the three is of another sign than the others.
base::Bytes duration_value(const Duration& value);

// The number within a value of exactly its size. Errors: invalid_argument for any other size, so
// also for the empty value.
base::Result<bool> read_boolean(base::ByteView bytes);
base::Result<std::int8_t> read_tinyint(base::ByteView bytes);
base::Result<std::int16_t> read_smallint(base::ByteView bytes);
base::Result<std::int32_t> read_int(base::ByteView bytes);
base::Result<std::int64_t> read_bigint(base::ByteView bytes);
base::Result<float> read_float(base::ByteView bytes);
base::Result<double> read_double(base::ByteView bytes);
base::Result<base::Uuid> read_uuid(base::ByteView bytes);
base::Result<Duration> read_duration(base::ByteView bytes);

// ---- composed values

using MapEntry = std::pair<base::Bytes, base::Bytes>;
using MapEntryView = std::pair<base::ByteView, base::ByteView>;

// Elements as they come. Require, all: every element and the sum stay below 2^31 bytes.
base::Bytes compose_list(std::span<const base::Bytes> elements);
// Sorted by `element`; of equal ones the last stays. Requires: they validate.
base::Bytes compose_set(const DataType& element, std::vector<base::Bytes> elements);
// Sorted by key; of entries with equal keys the last stays. Requires: keys validate.
base::Bytes compose_map(const DataType& key, std::vector<MapEntry> entries);
// A tuple, or the fields of a user-defined type.
base::Bytes compose_tuple(std::span<const OptionalBytes> elements);
// Of floats, as values. Requires: each has kVectorElementSize bytes.
base::Bytes compose_vector(std::span<const base::Bytes> elements);

inline constexpr std::size_t kVectorElementSize = sizeof(float);
// The floats of a vector; none of what is none. They borrow.
std::vector<base::ByteView> split_vector(base::ByteView bytes);
// The elements of a list or set. They borrow from `bytes`. Errors: invalid_argument on bytes that
// are no collection; elements are not validated.
base::Result<std::vector<base::ByteView>> split_collection(base::ByteView bytes,
                                                           base::Pace* pace = nullptr);
base::Result<std::vector<MapEntryView>> split_map(base::ByteView bytes, base::Pace* pace = nullptr);
// How many elements or entries a collection says that it has; 0 for what is none. It may be wrong.
std::size_t count_of_collection(base::ByteView bytes);
// Exactly `element_count` elements; those missing at the end are null. Errors: also on more.
base::Result<std::vector<OptionalView>> split_tuple(std::size_t element_count,
                                                    base::ByteView bytes);

}  // namespace helenus::model
