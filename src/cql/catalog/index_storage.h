// What storage is told of indexes: how an entry follows from a cell (model/index_entries.h).
#pragma once

#include "base/bytes.h"
#include "storage/entry/derived_entry.h"

namespace helenus::cql {

// Of TableOptions::index. Null for what is no definition.
storage::DeriveEntries read_index_definition(const base::Bytes& definition);

}  // namespace helenus::cql
