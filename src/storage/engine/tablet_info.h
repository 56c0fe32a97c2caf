// TabletInfo: which tablet a core has, for those above.
#pragma once

#include "causality/dot.h"
#include "storage/ids/key_range.h"

namespace helenus::storage {

struct TabletInfo {
  TabletId id;
  KeyRange range;
  causality::ActorId actor;
};

// A name to mint under from now on.
struct TabletName {
  TabletId id;
  causality::ActorId actor;
};

}  // namespace helenus::storage
