// JSON: texts of it to values of CQL and back, as INSERT JSON, SELECT JSON, fromJson and toJson do.
//
//   int, varint, double, decimal   numbers; texts with a number in them, too
//   text, uuid, date, inet, ...    strings, as in a literal of CQL; a blob as 0xcafe
//   list, set, tuple               arrays
//   map                            objects, whose keys are strings: those of an int as "1"
//   user-defined types             objects, by the names of their fields
//
// A text is a stranger's: how deep it nests is limited, its numbers stay texts until their type is
// known, and of members with one name the last one counts. Messages are Cassandra's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/pace.h"
#include "base/result.h"
#include "model/data_type.h"
#include "model/value.h"

namespace helenus::model {

inline constexpr std::size_t kJsonDepthMax = 64;

struct JsonValue {
  enum class Kind : std::uint8_t { null, boolean, integer, floating, string, array, object };
  Kind kind = Kind::null;
  std::string text;                // of a string; of a number and a boolean as it is written
  std::vector<std::string> names;  // of an object's members, as many as there are parts
  std::vector<JsonValue> parts;    // of an array or object
};

// At that pace, if there is one. Errors: invalid_argument; of the pace.
base::Result<JsonValue> parse_json(std::string_view text, base::Pace* pace = nullptr);

// A value of the type, sorted where it must be (normalise() in value.h); nothing for null. Errors:
// invalid_argument; of the pace.
base::Result<OptionalBytes> from_json(const DataType& type, const JsonValue& json,
                                      base::Pace* pace = nullptr);

// Requires: the bytes validate (those that do not are shown as a blob's text).
std::string to_json(const DataType& type, base::ByteView bytes);

// A string of JSON, with its quotes.
std::string json_string(std::string_view text);
// The name of a column or field, as it stands before a colon: in quotes of its own within those of
// JSON unless it is in lower case.
std::string json_name(std::string_view name);
// What such a name means: without its own quotes, or in lower case.
std::string name_of_json(std::string_view name);

}  // namespace helenus::model
