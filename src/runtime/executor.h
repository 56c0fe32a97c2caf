// Executor: the run queues of one core. A Job is anything that can run soon; suspended
// coroutines that may go on are the usual kind.
//
// There are two queues. Foreground is what somebody waits for: requests, replication, gossip,
// consensus. Background is what must be done but not now: flushes, compactions, repair, streaming.
// Foreground goes first; background has the core while there is no foreground work, and otherwise
// its share (background_share.h). Neither is preempted: long work asks after little steps whether
// its slice is over, and lets others run (take_turn.h).
//
// How work comes to its queue: a task has the priority of the TaskGroup it was spawned into, and
// all it awaits goes on at that priority, on other cores too. There is nothing to say at a wait,
// and so nothing to forget. One part of a task runs in the background through in_background.h.
//
// Foreground work that waits for background work (a write for a flush that makes room, a reader for
// a lock or a block that a compaction has) is not starved by other foreground work:
//   1. Background work has at least kLeast of the time, whatever the foreground does. So a wait for
//      it is longer than on an idle core by a factor of at most 1 / share, and it ends.
//   2. When all foreground work waits for it, there is no foreground work, and it has the core.
//   3. What others wait for soon raises the share before they do (BackgroundPressure): an engine
//      does from the moment its memory is half full, so that a flush has nearly all of the core
//      when writes begin to wait.
//   4. Who wakes whom does not matter: a waiter goes on at its own priority, so that a write that a
//      flush has woken goes before the rest of the flush.
// A task that holds what foreground work needs for every request should not be background work at
// all: the commit log's are foreground.
#pragma once

#include <chrono>

#include "runtime/background_share.h"
#include "runtime/intrusive_list.h"
#include "runtime/time.h"

namespace helenus::runtime {

enum class Priority : unsigned char { foreground, background };

// Lives in its owner (an Operation, a TaskGroup's root); is queued at most once at a time.
class Job : public ListHook<Job> {
 public:
  virtual void run() = 0;

  Priority priority() const { return priority_; }
  // Requires: not queued.
  void set_priority(Priority priority) { priority_ = priority; }

 protected:
  ~Job() = default;

 private:
  Priority priority_ = Priority::foreground;
};

class Executor {
 public:
  // How long a job may keep others waiting. Work that could take longer asks slice_is_over().
  static constexpr Duration kSlice = std::chrono::microseconds(200);

  virtual ~Executor() = default;

  // Runs the job soon, from the event loop and never from inside this call. In the native world
  // jobs of one priority run in the order posted; code must not rely on it, and the simulator
  // shuffles. A job destroyed before its turn does not run.
  virtual void post(Job& job) = 0;

  // True once this core's process has crashed (simulation only): nothing runs any more, and
  // destructors may drop suspended coroutines instead of waiting for them.
  virtual bool halted() const = 0;

  // Of the job that runs now; foreground outside of jobs.
  Priority running() const { return running_; }
  // Whether the job that runs now should let others run. Costs a look at the clock.
  virtual bool slice_is_over() = 0;

  // How much background work gets while foreground work waits.
  BackgroundShare& background_share() { return background_share_; }

 protected:
  Priority running_ = Priority::foreground;
  BackgroundShare background_share_;
};

}  // namespace helenus::runtime
