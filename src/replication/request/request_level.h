// RequestLevel: at which level a request is done, and how far it got.
#pragma once

#include <cstdint>

#include "model/consistency.h"

namespace helenus::replication {

// How far a request got: what an error of CQL tells.
struct LevelReport {
  std::uint32_t required = 1;
  std::uint32_t received = 0;  // of an unavailable one: those that are up
  std::uint32_t failed = 0;
  friend bool operator==(const LevelReport&, const LevelReport&) = default;
};

struct RequestLevel {
  model::Consistency level = model::Consistency::one;
  LevelReport* report = nullptr;  // told if there is one
  // Whether replicas whose answers lack something get it before a read of several is answered: then
  // what one read has shown, later ones at such a level show too.
  bool repairs = true;
};

}  // namespace helenus::replication
