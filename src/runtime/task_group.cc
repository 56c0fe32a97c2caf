#include "runtime/task_group.h"

namespace helenus::runtime {

class TaskGroup::Root {
 public:
  using promise_type = RootPromise;
  RootPromise* promise;
};

struct TaskGroup::RootPromise final : Job, ListHook<RootPromise> {
  // Sees the coroutine's arguments.
  RootPromise(TaskGroup& group_, Task<void>&) : group(group_) {}
  ~RootPromise() = default;

  Root get_return_object() { return {this}; }
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept {
    struct Finish {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<RootPromise> frame) noexcept {
        frame.promise().group.on_finished(frame.promise());
      }
      void await_resume() noexcept {}
    };
    return Finish{};
  }
  void return_void() {}
  void unhandled_exception() noexcept { detail::unhandled_in_coroutine(); }

  std::coroutine_handle<RootPromise> frame() {
    return std::coroutine_handle<RootPromise>::from_promise(*this);
  }
  void run() override { frame().resume(); }

  TaskGroup& group;
};

TaskGroup::Root TaskGroup::run(TaskGroup&, Task<void> task) {
  co_await std::move(task);
}

TaskGroup::~TaskGroup() {
  ASSERT(empty() || runtime_.executor.halted(), "{} tasks still running", size_);
  while (!roots_.empty()) roots_.pop_back().frame().destroy();
}

void TaskGroup::spawn(Task<void> task, Priority priority) {
  ASSERT(size_ < tasks_max_, "group is full at {} tasks", tasks_max_);
  RootPromise& root = *run(*this, std::move(task)).promise;
  root.set_priority(priority);
  roots_.push_back(root);
  ++size_;
  runtime_.executor.post(root);
}

bool TaskGroup::try_spawn(Task<void> task) {
  if (size_ >= tasks_max_) return false;
  spawn(std::move(task));
  return true;
}

void TaskGroup::on_finished(RootPromise& promise) {
  static_cast<ListHook<RootPromise>&>(promise).unlink();
  // Counted until its frame is gone: what the frame held may run destructors that look at us, and
  // must not be the last to hold us.
  promise.frame().destroy();
  if (--size_ == 0) finished_.wake_all();
}

Task<base::Result<void>> TaskGroup::join(Until until) {
  while (size_ > 0) CO_TRY_VOID(co_await finished_.wait(until));
  co_return {};
}

Task<void> TaskGroup::join() {
  const auto joined = co_await join(Until::forever());
  ASSERT(joined.has_value());
}

}  // namespace helenus::runtime
