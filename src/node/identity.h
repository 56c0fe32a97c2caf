// The identity of a node: made once, when its data folder is new, and kept in the file `identity`
// of that folder (docs/formats/identity.md).
//
// Invariant: a folder that once gave an identity never gives another. A file that is there but
// cannot be read or decoded is an error, never a reason to make a new one.
//
// What a node needs besides and must never lose is made before its identity: its vote on the
// cluster's metadata (cluster/cluster_service.h). So where there is an identity and no such file it
// was lost, and is not made again.
#pragma once

#include <functional>
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
// Errors: corrupt; unsupported (another version).
base::Result<Identity> decode_identity(base::ByteView bytes);

// Makes durable what has to be there before the node's identity is. May be called again for a node
// whose identity did not become durable, or for another one.
using Prepare = std::function<runtime::Task<base::Result<void>>(model::NodeId node)>;

// Reads the identity of a data folder, or makes one; returns when it is durable and prepared, so
// that it may be told to others. Requires: the folder itself is durable.
runtime::Task<base::Result<Identity>> load_or_create_identity(runtime::Runtime& runtime,
                                                              std::string data_directory,
                                                              Prepare prepare);

}  // namespace helenus::node
