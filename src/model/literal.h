// Literals of CQL to values: "12", 'text', 0xcafe, 1h30m, ... for a type they are meant for.
//
// As lenient as Cassandra: a string literal is good for dates, timestamps, addresses and more, in
// many forms. A literal is a stranger's text: its length is bounded by the statement's, nothing is
// read past its end, and no number in it makes us allocate.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "model/data_type.h"

namespace helenus::model {

enum class LiteralKind : std::uint8_t {
  integer,   // -12
  floating,  // 1.5e3, NaN, -Infinity
  string,    // the text within the quotes, '' already made one
  boolean,   // true, FALSE
  uuid,      // 550e8400-e29b-41d4-a716-446655440000
  blob,      // 0xcafe
  duration,  // 1h30m, P1Y2M, ...
};

// INTEGER, FLOAT, STRING, ...: as Cassandra's messages name a kind.
std::string_view name_of(LiteralKind kind);

// Whether a literal of this kind may stand for a value of the type; else the planner answers
// "Invalid STRING constant (x) for \"c\" of type int". False for all composed types.
bool accepts(const DataType& type, LiteralKind kind);

// The value the literal stands for. `text` is as written, without a string's quotes. Requires:
// accepts(type, kind). Errors: invalid_argument with Cassandra's words ("Unable to make byte from
// '300'").
base::Result<base::Bytes> parse_literal(const DataType& type, LiteralKind kind,
                                        std::string_view text);

}  // namespace helenus::model
