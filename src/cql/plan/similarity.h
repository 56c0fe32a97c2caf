// similarity_cosine, similarity_euclidean and similarity_dot_product: how near two vectors of
// floats are to each other, the same as 1. Names are without underscores.
#pragma once

#include <span>
#include <string_view>

#include "cql/errors/query_error.h"
#include "cql/plan/functions.h"
#include "cql/plan/generic_functions.h"

namespace helenus::cql {

bool is_similarity(std::string_view name);
// Requires: is_similarity(name). Errors: invalid.
QueryResult<Function> similarity_function(std::string_view name,
                                          std::span<const ArgumentHint> hints);

}  // namespace helenus::cql
