// Executor: the ready queue of one core. A Job is anything that can run soon; suspended
// coroutines that may go on are the usual kind.
#pragma once

#include "runtime/intrusive_list.h"

namespace helenus::runtime {

// Lives in its owner (an Operation, a TaskGroup's root); is queued at most once at a time.
class Job : public ListHook<Job> {
 public:
  virtual void run() = 0;

 protected:
  ~Job() = default;
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs the job soon, from the event loop and never from inside this call. In the native world
  // jobs run in the order posted; code must not rely on it, and the simulator shuffles.
  // A job destroyed before its turn does not run.
  virtual void post(Job& job) = 0;

  // True once this core's process has crashed (simulation only): nothing runs any more, and
  // destructors may drop suspended coroutines instead of waiting for them.
  virtual bool halted() const = 0;
};

}  // namespace helenus::runtime
