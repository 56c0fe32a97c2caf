// ClockWatch: by how much the clocks of other nodes are ahead of this one's, from what they say of
// their clocks by gossip.
//
// What a node says has been on its way for a while, so it looks as if the clock were behind: what
// is told here is the least that it is ahead, never too much. Of what was heard of late the largest
// counts. A clock that is behind is seen by others, who see this one ahead of theirs.
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "model/node_id.h"
#include "runtime/time.h"

namespace helenus::admin {

class ClockWatch {
 public:
  // Nodes whose clocks differ by more are told of.
  static constexpr runtime::Duration kApart = std::chrono::milliseconds(500);
  // What one node said is remembered for so many times.
  static constexpr std::size_t kHeardMax = 12;

  enum class Change : std::uint8_t { none, apart, together };
  // The clock of the node showed `theirs` some time before `ours`.
  Change note(model::NodeId node, runtime::WallTime theirs, runtime::WallTime ours);
  void forget(model::NodeId node) { heard_.erase(node); }

  struct Ahead {
    model::NodeId node;
    runtime::Duration at_least{};  // zero if it is not known to be ahead
    bool is_apart() const { return at_least > kApart; }
  };
  // By id.
  std::vector<Ahead> all() const;

 private:
  static runtime::Duration ahead(const std::deque<runtime::Duration>& heard);
  std::map<model::NodeId, std::deque<runtime::Duration>> heard_;
};

}  // namespace helenus::admin
