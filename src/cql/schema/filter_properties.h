// The map `filter` of a table: which filters its files get.
#pragma once

#include <optional>

#include "cql/errors/query_error.h"
#include "model/table_options.h"
#include "storage/sstable/filter_options.h"

namespace helenus::cql {

// The map as it was given, which is also how it is shown. Errors: 2300 for a class that is not
// there, and for what a class cannot be told.
QueryResult<model::OptionMap> read_filter(const model::OptionMap& given);

// What the map means for files; nothing where the node's settings hold. Of a map that an earlier
// version let pass, what makes sense.
std::optional<storage::TableFilter> filter_of(const model::OptionMap& options);

}  // namespace helenus::cql
