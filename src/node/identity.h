// The identity of a node: made once, when its data folder is new, and kept in the file `identity`
// of that folder (docs/formats/identity.md).
//
// Invariant: a folder that once gave an identity never gives another. A file that is there but
// cannot be read or decoded is an error, never a reason to make a new one.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "model/node_id.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::node {

struct Identity {
  model::NodeId node;
  runtime::WallTime created;
  friend bool operator==(const Identity&, const Identity&) = default;
};

base::Bytes encode(const Identity& identity);
// Errors: corrupt; unsupported (a newer version).
base::Result<Identity> decode_identity(base::ByteView bytes);

// Reads the identity of a data folder, or makes one; returns when it is durable, so that it may be
// told to others. Requires: the folder itself is durable.
runtime::Task<base::Result<Identity>> load_or_create_identity(runtime::Runtime& runtime,
                                                              std::string data_directory);

}  // namespace helenus::node
