// Numbers of the fixed-size types, whichever they are: what casts and aggregates calculate with.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "model/data_type.h"

namespace helenus::cql {

bool is_integer(model::TypeKind kind);
bool is_floating(model::TypeKind kind);

// Require: is_integer(kind), is_floating(kind). Errors: invalid_argument for bytes of another size.
base::Result<std::int64_t> read_integer(model::TypeKind kind, base::ByteView bytes);
base::Result<double> read_floating(model::TypeKind kind, base::ByteView bytes);

// The number as a value of that type, narrowed as Java does: the lowest bits of an integer, the
// nearest of a floating number.
base::Bytes integer_value(model::TypeKind kind, std::int64_t value);
// Requires: is_floating(kind).
base::Bytes floating_value(model::TypeKind kind, double value);

}  // namespace helenus::cql
