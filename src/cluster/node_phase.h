// NodePhase: in clear text, what the start of this node waits for, and what has become of the node.
//
// Ownership: the ClusterService's, shared by its parts. Core affinity: the core of its Runtime.
#pragma once

#include <string>
#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/time.h"

namespace helenus::cluster {

class NodePhase {
 public:
  NodePhase(runtime::Runtime& runtime, runtime::Duration retry_pause);
  NodePhase(const NodePhase&) = delete;
  NodePhase& operator=(const NodePhase&) = delete;

  const std::string& text() const { return text_; }
  void set(std::string text) { text_ = std::move(text); }

  // Says that the start waits for that, and sleeps for a retry pause. Errors: cancelled; timeout,
  // whose text says what was waited for the last time before the deadline.
  runtime::Task<base::Result<void>> pause(std::string waits_for, runtime::Until until);

 private:
  runtime::Runtime& runtime_;
  const runtime::Duration retry_pause_;
  base::Logger log_;
  std::string text_ = "stopped";
  std::string waited_for_;  // the text of the last pause
};

}  // namespace helenus::cluster
