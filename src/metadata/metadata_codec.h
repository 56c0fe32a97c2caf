// The bytes of a cluster's metadata: docs/formats/cluster-metadata.md.
//
// Equal values have equal bytes, and no others are read: what decodes encodes to what it came from.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "metadata/cluster_metadata.h"

namespace helenus::metadata {

// Requires: valid.
base::Bytes encode(const ClusterMetadata& metadata);

// What comes back is valid. Errors: corrupt; unsupported for another version.
base::Result<ClusterMetadata> decode_cluster_metadata(base::ByteView bytes);

}  // namespace helenus::metadata
