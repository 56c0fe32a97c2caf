// Numbers of all types, whichever they are: what casts and aggregates calculate with.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "model/data_type.h"

namespace helenus::cql {

bool is_number(model::TypeKind kind);
// Of a size of its own.
bool is_integer(model::TypeKind kind);
bool is_floating(model::TypeKind kind);

// A number of any type as casts take it, which is as Java's Number does.
struct Number {
  std::int64_t integer = 0;  // the lowest 64 bits of its whole part; of a floating one the nearest
  double floating = 0;       // the nearest
  bool is_floating = false;
};

// Requires: is_number(kind). Errors: invalid_argument for bytes that are no such number.
base::Result<Number> read_number(model::TypeKind kind, base::ByteView bytes);
// The number as a value of that type. A floating one that is out of range becomes the nearest int
// or bigint; what is narrower has the lowest bits of that int. Requires: is_number(kind). Errors:
// invalid_argument for a decimal of what is no number or infinite.
base::Result<base::Bytes> number_value(model::TypeKind kind, const Number& number);

// The number as a varint or a decimal, exactly. A decimal of what is of a size of its own is that
// of the nearest double, as Java makes it: 1 becomes 1.0. Requires: `wanted` is one of both,
// is_number(kind). Errors: invalid_argument for what is no such number, and for a decimal of what
// is infinite or no number.
base::Result<base::Bytes> exact_number(model::TypeKind wanted, model::TypeKind kind,
                                       const base::Bytes& bytes);

// Require: is_integer(kind), is_floating(kind). Errors: invalid_argument for bytes of another size.
base::Result<std::int64_t> read_integer(model::TypeKind kind, base::ByteView bytes);
base::Result<double> read_floating(model::TypeKind kind, base::ByteView bytes);

// The number as a value of that type, narrowed as Java does: the lowest bits of an integer, the
// nearest of a floating number.
base::Bytes integer_value(model::TypeKind kind, std::int64_t value);
// Requires: is_floating(kind).
base::Bytes floating_value(model::TypeKind kind, double value);

}  // namespace helenus::cql
