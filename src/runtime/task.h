// Task<T>: a coroutine that runs when awaited and hands its T to whoever awaits it.
//
// Lazy, move-only, awaited at most once. The awaiting coroutine owns the Task and so the frame;
// resumption passes by symmetric transfer, so that a long loop of ready awaits uses no stack.
// Work that should go on by itself is spawned into a TaskGroup (task_group.h): there are no
// detached coroutines.
//
// A Task reports trouble through its value (Task<Result<T>>). An exception that leaves a
// coroutine is a programmer's error and stops the process.
//
// Rules for authors: parameters by value, or references to collaborators that outlive the call;
// no capturing lambda coroutines; after a co_await the world has changed.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/assert.h"

namespace helenus::runtime {

template <class T = void>
class Task;

namespace detail {

[[noreturn]] inline void unhandled_in_coroutine() {
  try {
    throw;
  } catch (const std::exception& exception) {
    UNREACHABLE("exception left a coroutine: {}", exception.what());
  } catch (...) {
    UNREACHABLE("exception left a coroutine");
  }
}

class TaskPromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }

  struct ResumeAwaiting {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
      return done.promise().awaiting_;
    }
    void await_resume() noexcept {}
  };
  ResumeAwaiting final_suspend() noexcept { return {}; }

  void unhandled_exception() noexcept { unhandled_in_coroutine(); }

  void set_awaiting(std::coroutine_handle<> awaiting) { awaiting_ = awaiting; }

 private:
  std::coroutine_handle<> awaiting_ = std::noop_coroutine();
};

template <class T>
class TaskPromise final : public TaskPromiseBase {
 public:
  Task<T> get_return_object();
  // As a plain return: what converts by itself, and nothing that takes an explicit conversion.
  template <class U = T>
    requires std::is_convertible_v<U, T>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    ASSERT(value_.has_value());
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() {}
  void take() {}
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  using Value = T;

  Task() = default;
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_.destroy();
  }

  bool valid() const { return static_cast<bool>(frame_); }

  auto operator co_await() && {
    struct Awaiter {
      std::coroutine_handle<promise_type> frame;

      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
        frame.promise().set_awaiting(awaiting);
        return frame;
      }
      T await_resume() { return frame.promise().take(); }
    };
    ASSERT(frame_ && !frame_.done(), "a task is awaited once");
    return Awaiter{frame_};
  }

 private:
  friend promise_type;
  explicit Task(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

namespace detail {

template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

}  // namespace detail

}  // namespace helenus::runtime
