// in_background: runs one part of a task in the background, and waits for it.
//
//   CO_TRY_VOID(co_await in_background(runtime, merge_all_files()));
//
// For long work that a request asks for: the request waits, and others do not wait for its work.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>

#include "runtime/executor.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::runtime {

namespace detail {

// Goes on at that priority, from the event loop. It takes no Until: it ends by itself, and a task
// that could not return to its priority would go on at the wrong one.
class [[nodiscard]] ContinueAt final : private Job {
 public:
  ContinueAt(Runtime& runtime, Priority priority) : runtime_(runtime) { set_priority(priority); }

  bool await_ready() const { return runtime_.executor.running() == priority(); }
  void await_suspend(std::coroutine_handle<> waiter) {
    waiter_ = waiter;
    runtime_.executor.post(*this);
  }
  void await_resume() const {}

 private:
  void run() override { waiter_.resume(); }

  Runtime& runtime_;
  std::coroutine_handle<> waiter_;
};

}  // namespace detail

// Afterwards the caller goes on at the priority it had.
template <class T>
Task<T> in_background(Runtime& runtime, Task<T> task) {
  const Priority before = runtime.executor.running();
  co_await detail::ContinueAt(runtime, Priority::background);
  if constexpr (std::is_void_v<T>) {
    co_await std::move(task);
    co_await detail::ContinueAt(runtime, before);
  } else {
    T value = co_await std::move(task);
    co_await detail::ContinueAt(runtime, before);
    co_return value;
  }
}

}  // namespace helenus::runtime
