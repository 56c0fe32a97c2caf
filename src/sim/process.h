// Process: what runs on a simulated machine, made anew for every start.
#pragma once

#include <functional>
#include <memory>

#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::sim {

// Lives on core 0 of its machine. It ends in one of two ways:
//   run() returns      in its own time, or after `stop` was requested; then it is destroyed
//   its machine fails  the coroutine is destroyed where it waits, then the Process, while the
//                      executor says halted(): destructors run, nothing else does
class Process {
 public:
  virtual ~Process() = default;
  virtual runtime::Task<void> run(runtime::StopToken stop) = 0;
};

// Called at every start, with the runtime of core 0, which outlives the process.
using ProcessFactory = std::function<std::unique_ptr<Process>(runtime::Runtime&)>;

}  // namespace helenus::sim
