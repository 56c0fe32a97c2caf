// KeyTarget: the row, or the column of a row, that a path names in the schema of this moment.
// Pure.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "causality/delta.h"
#include "cql/catalog/catalog_snapshot.h"
#include "keyvalue/key_path.h"
#include "keyvalue/refusal.h"
#include "model/schema.h"
#include "storage/ids/table_id.h"

namespace helenus::keyvalue {

struct KeyTarget {
  model::TablePtr table;
  storage::TableId storage;
  causality::Policy policy = causality::Policy::lww;
  base::Bytes partition;
  base::Bytes clustering;
  // Null: the row. It lives as long as the table.
  const model::Column* column = nullptr;

  bool keeps_siblings() const { return policy == causality::Policy::siblings; }
};

// The names of a path are the values of all clustering columns, in their order, and then the name
// of a regular column. Where the table has one regular column alone, that may be left out: with
// PRIMARY KEY (key, super, column) and one value, `family:super:column` is the value.
// Refused: 404 for a keyspace, a table or a column that there is not; 400 for a key that is no
// value of its type, and for what has no form here (keys of several columns, static columns,
// counters, collections).
HttpResult<KeyTarget> find_target(const KeyPath& path, const cql::CatalogSnapshot& catalog);

}  // namespace helenus::keyvalue
