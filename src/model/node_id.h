// NodeId: who a node is, for ever; drivers see it as its host id.
#pragma once

#include "base/strong.h"
#include "base/uuid.h"

namespace helenus::model {

using NodeId = base::Strong<struct NodeIdTag, base::Uuid>;

}  // namespace helenus::model
