// TableId: the engine's number for a table: where its rows lie. Given once in the life of a
// cluster, by its metadata, and never given again, so that what is left of a dropped table cannot
// be taken for another's.
#pragma once

#include <cstdint>

#include "base/strong.h"

namespace helenus::storage {

using TableId = base::Strong<struct TableIdTag, std::uint64_t>;

}  // namespace helenus::storage
