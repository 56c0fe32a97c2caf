// A schema as bytes, for disk and for other nodes, and its version.
//
// One byte of format version, then keyspaces in the order of their names. A user-defined type is
// written once, where it is declared; columns and other types mention it by name. Equal schemas
// have equal bytes, and no others are read. The format is append-only: a reader takes every version
// up to its own.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/schema.h"

namespace helenus::model {

base::Bytes encode(const Schema& schema);

// Every invariant of a Table holds of what comes back. Errors: corrupt; unsupported for a version
// from the future.
base::Result<Schema> decode_schema(base::ByteView bytes);

// What system.local's schema_version says: a UUID (version 8) that is a function of the content
// alone, so nodes with equal schemas agree on it. Costs an encoding: keep it with the snapshot.
base::Uuid schema_version(const Schema& schema);

}  // namespace helenus::model
