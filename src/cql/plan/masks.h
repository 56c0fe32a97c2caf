// mask_null, mask_default, mask_replace, mask_inner, mask_outer, mask_hash: what hides a value, in
// whole or in part. Names are without underscores.
#pragma once

#include <span>
#include <string_view>

#include "cql/errors/query_error.h"
#include "cql/plan/functions.h"
#include "cql/plan/generic_functions.h"

namespace helenus::cql {

bool is_mask(std::string_view name);
// Requires: is_mask(name). Errors: invalid.
QueryResult<Function> mask_function(std::string_view name, std::span<const ArgumentHint> hints,
                                    const model::DataType* receiver);

}  // namespace helenus::cql
