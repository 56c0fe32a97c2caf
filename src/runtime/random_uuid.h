// draw_uuid: a version 4 UUID that nobody can guess.
#pragma once

#include "base/uuid.h"
#include "runtime/random.h"

namespace helenus::runtime {

inline base::Uuid draw_uuid(Random& random) {
  base::Uuid::Octets octets;
  random.fill_secret(octets);
  return base::Uuid::from_random(octets);
}

}  // namespace helenus::runtime
