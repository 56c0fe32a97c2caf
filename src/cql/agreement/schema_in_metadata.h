// The schema as part of the cluster's metadata: how it is put there, and what a node's catalog is
// told of it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "cql/catalog/catalog.h"
#include "metadata/cluster_metadata.h"
#include "model/node_id.h"
#include "model/schema.h"

namespace helenus::cql {

// The metadata with another schema. Altered replication that moves no data is in force at once.
// Errors: as those of metadata::change_schema.
base::Result<metadata::ClusterMetadata> with_schema(const metadata::ClusterMetadata& metadata,
                                                    model::Schema schema);

// What the metadata of this version say to the catalog of node `self`. Requires: valid.
DecidedSchema decided_schema(const metadata::ClusterMetadata& metadata, std::uint64_t version,
                             model::NodeId self);

}  // namespace helenus::cql
