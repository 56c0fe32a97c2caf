// RequestLevel: at which level a request is done, and how far it got; RequestNotes: who is told
// what happens to it.
#pragma once

#include <cstdint>
#include <string>

#include "model/consistency.h"
#include "replication/request/speculation.h"

namespace helenus::replication {

// How far a request got: what an error of CQL tells.
struct LevelReport {
  std::uint32_t required = 1;
  std::uint32_t received = 0;  // of an unavailable one: those that are up
  std::uint32_t failed = 0;
  friend bool operator==(const LevelReport&, const LevelReport&) = default;
};

// For whoever traces a request. Told on the core that coordinates it, while it lasts.
class RequestNotes {
 public:
  virtual void note(std::string activity) = 0;

 protected:
  ~RequestNotes() = default;
};

struct RequestLevel {
  model::Consistency level = model::Consistency::one;
  LevelReport* report = nullptr;  // told if there is one
  // Whether replicas whose answers lack something get it before a read of several is answered: then
  // what one read has shown, later ones at such a level show too.
  bool repairs = true;
  // Of scans of what are hints (R23): what any replica answers is answered, whatever the others
  // have seen; and nothing is repaired.
  bool unites_answers = false;
  // Whether digests of what others show are enough beside one full answer (R7): of tables where the
  // newest write wins, when nobody wants a context.
  bool takes_digests = false;
  // Of reads.
  Speculation speculation = {};
  RequestNotes* notes = nullptr;  // likewise
};

}  // namespace helenus::replication
