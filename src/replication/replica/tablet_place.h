// TabletPlace: where a tablet is, as seen from one core.
#pragma once

#include "runtime/cores.h"

namespace helenus::replication {

class Replica;

struct TabletPlace {
  runtime::CoreId core;
  Replica* replica = nullptr;  // of that core
  bool here = false;           // it is this core
};

}  // namespace helenus::replication
