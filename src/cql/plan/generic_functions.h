// Functions whose types follow from those of their arguments: of numbers (abs, exp, log, log10,
// round), of collections (map_keys, collection_max and their kin), masks (mask_inner and its kin)
// and similarities of vectors.
//
// What they give, and the words in which they are refused, are those of Cassandra 5.0. Names are
// without underscores, as in functions.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cql/errors/query_error.h"
#include "cql/plan/functions.h"
#include "cql/plan/operand.h"
#include "model/data_type.h"

namespace helenus::cql {

// What is known of an argument before the function is.
struct ArgumentHint {
  std::optional<model::DataType> type;  // of its own; none of a marker or null
  Operand operand;
  std::string text;  // for messages
};

bool is_generic_function(std::string_view name);

// The function of that name for such arguments; `receiver` is what its result is for, or null.
// Requires: is_generic_function(name). Errors: invalid.
QueryResult<Function> generic_function(std::string_view name, std::span<const ArgumentHint> hints,
                                       const model::DataType* receiver);

}  // namespace helenus::cql
