// KeyspaceNumber: what a keyspace is called in keys and messages. The cluster's metadata give it,
// and give none twice (theory R2); 0 is of keyspaces that are not replicated, as the system's own.
#pragma once

#include <cstdint>

#include "base/strong.h"

namespace helenus::model {

using KeyspaceNumber = base::Strong<struct KeyspaceNumberTag, std::uint32_t>;

}  // namespace helenus::model
