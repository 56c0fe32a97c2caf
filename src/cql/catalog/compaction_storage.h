// What storage is told of how the files of a table are merged.
#pragma once

#include "model/table_options.h"
#include "storage/manifest/manifest.h"

namespace helenus::cql {

// Of a table's option `compaction`, which was checked when the statement was.
storage::CompactionStrategy compaction_of(const model::OptionMap& options);

}  // namespace helenus::cql
