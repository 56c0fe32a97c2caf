// TaskGroup: the owner of tasks that run by themselves. Every service has one for its background
// work and joins it when it stops, so that nothing outlives what it uses.
//
// Declare it as the last member of a service: it is destroyed first. It must be empty by then,
// except when its core has halted (a simulated crash): then the frames of its tasks are destroyed
// where they wait, the youngest first, so that a task may lean on what an older one owns.
//
// The tasks run at the group's priority (executor.h), whoever spawns them and whatever they await.
#pragma once

#include <coroutine>
#include <cstddef>
#include <limits>
#include <utility>

#include "runtime/executor.h"
#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::runtime {

class TaskGroup {
 public:
  explicit TaskGroup(Runtime& runtime, std::size_t tasks_max = SIZE_MAX)
      : TaskGroup(runtime, Priority::foreground, tasks_max) {}
  TaskGroup(Runtime& runtime, Priority priority, std::size_t tasks_max = SIZE_MAX)
      : runtime_(runtime), priority_(priority), tasks_max_(tasks_max), finished_(runtime) {}
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  // Starts the task from the event loop, never from inside this call. The task does not own the
  // group, nor what the group is a member of.
  // Requires: size() < the maximum.
  void spawn(Task<void> task) { spawn(std::move(task), priority_); }
  // The same at another priority than the group's: that of a task elsewhere of which this is a
  // part.
  void spawn(Task<void> task, Priority priority);
  // The same, or says no (and destroys the task unstarted) when the group is full.
  [[nodiscard]] bool try_spawn(Task<void> task);

  // Waits until no task is left, those spawned meanwhile included.
  // Errors: timeout, cancelled; the tasks run on.
  Task<base::Result<void>> join(Until until);
  // For an orderly stop, which ends by itself.
  Task<void> join();

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  // The root coroutine around one task: a job until it begins, then a frame in the group's list.
  class Root;
  struct RootPromise;

  static Root run(TaskGroup& group, Task<void> task);
  void on_finished(RootPromise& promise);

  Runtime& runtime_;
  const Priority priority_;
  const std::size_t tasks_max_;
  std::size_t size_ = 0;
  IntrusiveList<RootPromise> roots_;
  WaitQueue finished_;
};

}  // namespace helenus::runtime
