// FailureDetector: from when a node was last heard of to whether it is taken for dead.
//
// No detector can be both quick and never wrong; PhiDetector is the one that nodes run, and others
// to compare it with are in membership/lab. What counts as hearing of a node is the caller's
// business: gossip counts a heartbeat that is newer than the one before. Time is passed in, and a
// time before an earlier one counts as no time passed.
//
// Belongs to one core.
#pragma once

#include <algorithm>
#include <limits>

#include "model/node_id.h"
#include "runtime/time.h"

namespace helenus::membership {

class FailureDetector {
 public:
  // Of a node never heard of.
  static constexpr double kUnheardOf = std::numeric_limits<double>::infinity();

  virtual ~FailureDetector() = default;

  // From now on this node is asked about. Until it is heard of it is not alive. Watching a node
  // again changes nothing.
  virtual void watch(model::NodeId node) = 0;
  // Drops what is known of the node: it is gone, or begins a new life.
  virtual void forget(model::NodeId node) = 0;
  // The node was alive a short while ago. Ignored unless it is watched.
  virtual void heard(model::NodeId node, runtime::MonotonicTime now) = 0;

  // How close the node is to being taken for dead: 0 for surely alive, from 1 on for dead.
  // kUnheardOf if it is not watched or was not heard of.
  virtual double suspicion(model::NodeId node, runtime::MonotonicTime now) const = 0;
  bool is_alive(model::NodeId node, runtime::MonotonicTime now) const {
    return suspicion(node, now) < 1;
  }

 protected:
  static runtime::Duration elapsed(runtime::MonotonicTime since, runtime::MonotonicTime now) {
    return std::max(now - since, runtime::Duration(0));
  }
  static double ratio(runtime::Duration part, runtime::Duration whole) {
    return static_cast<double>(part.count()) / static_cast<double>(whole.count());
  }
};

}  // namespace helenus::membership
