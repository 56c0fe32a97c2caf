// MaybeTask<T>: an answer that is often there at once, and otherwise takes a Task.
//
// A lookup whose block is in memory must not pay for a coroutine's frame; one that has to read
// must be awaited. A function that returns MaybeTask is no coroutine itself: it returns a T when it
// can, else the Task that will find it. Either way the caller writes `co_await`.
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "runtime/task.h"

namespace helenus::runtime {

// Move-only, awaited at most once, as a Task.
template <class T>
class [[nodiscard]] MaybeTask {
 public:
  MaybeTask(T value) : value_(std::move(value)) {}     // NOLINT: return value
  MaybeTask(Task<T> task) : task_(std::move(task)) {}  // NOLINT: return task
  MaybeTask(MaybeTask&&) noexcept = default;
  MaybeTask& operator=(MaybeTask&&) noexcept = default;
  ~MaybeTask() = default;

  // Whether the answer is here, and awaiting would neither suspend nor allocate.
  bool ready() const { return value_.has_value(); }
  // Requires: ready().
  T take() && {
    ASSERT(ready());
    return *std::move(value_);
  }

  // The work that is left. Requires: !ready().
  Task<T> task() && {
    ASSERT(!ready());
    return std::move(task_);
  }

  auto operator co_await() && {
    struct Awaiter {
      MaybeTask& maybe;
      std::optional<decltype(std::declval<Task<T>>().operator co_await())> task = {};

      bool await_ready() noexcept { return maybe.ready(); }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
        task.emplace(std::move(maybe.task_).operator co_await());
        return task->await_suspend(awaiting);
      }
      T await_resume() {
        return task.has_value() ? task->await_resume() : *std::move(maybe.value_);
      }
    };
    return Awaiter{*this};
  }

 private:
  std::optional<T> value_;
  Task<T> task_;
};

}  // namespace helenus::runtime
