// What a document of the register must be for this cluster to take it: metadata of this cluster
// that are in order (metadata::validate), that may follow those before them (metadata::may_follow),
// and acceptors that follow from the metadata. Of each document, before it is voted for, learned or
// proposed again: consensus/screen.h. As acceptors are checked by how metadata::choose_acceptors
// chooses, a release that chooses otherwise has to take what both choose.
#pragma once

#include <string>

#include "base/result.h"
#include "consensus/document.h"

namespace helenus::cluster {

// `previous` is the version before it, or null where that is not known. Errors: corrupt, refused.
base::Result<void> check_metadata(const std::string& cluster_name,
                                  const consensus::Document& document,
                                  const consensus::Document* previous);

}  // namespace helenus::cluster
