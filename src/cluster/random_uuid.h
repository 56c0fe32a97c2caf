// draw_uuid: a UUID that nobody can guess, of the node's secret randomness.
#pragma once

#include "base/uuid.h"
#include "runtime/random.h"
#include "runtime/runtime.h"

namespace helenus::cluster {

inline base::Uuid draw_uuid(runtime::Runtime& runtime) {
  base::Uuid::Octets random;
  runtime.random.fill_secret(random);
  return base::Uuid::from_random(random);
}

}  // namespace helenus::cluster
