// when_all: runs tasks side by side and waits for every one of them.
//
// The tasks are started in order, each runs until its first wait; the results come in the order
// of the tasks. None is left running: there is no early exit. For "enough of them" see quorum.h.
#pragma once

#include <coroutine>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/task.h"

namespace helenus::runtime {

namespace detail {

// Counts branches down and resumes the coroutine that waits for all of them.
class Countdown {
 public:
  explicit Countdown(std::size_t branches) : left_(branches) {}

  // The last branch hands over to the waiter; the others stop where they are.
  std::coroutine_handle<> one_done() {
    if (--left_ > 0 || !waiter_) return std::noop_coroutine();
    return waiter_;
  }
  bool done() const { return left_ == 0; }
  void set_waiter(std::coroutine_handle<> waiter) { waiter_ = waiter; }

 private:
  std::size_t left_;
  std::coroutine_handle<> waiter_;
};

// One branch: awaits its task, keeps the value, counts down. Owned by when_all's frame.
template <class T>
class Branch {
 public:
  using Stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  struct promise_type {
    Branch get_return_object() {
      return Branch(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Finish {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> frame) noexcept {
          return frame.promise().countdown->one_done();
        }
        void await_resume() noexcept {}
      };
      return Finish{};
    }
    void return_value(Stored value) { stored.emplace(std::move(value)); }
    void unhandled_exception() noexcept { unhandled_in_coroutine(); }

    Countdown* countdown = nullptr;
    std::optional<Stored> stored;
  };

  Branch(Branch&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Branch& operator=(Branch&&) = delete;
  ~Branch() {
    if (frame_) frame_.destroy();
  }

  void start(Countdown& countdown) {
    frame_.promise().countdown = &countdown;
    frame_.resume();
  }
  Stored take() {
    ASSERT(frame_.promise().stored.has_value());
    return std::move(*frame_.promise().stored);
  }

 private:
  explicit Branch(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

template <class T>
Branch<T> make_branch(Task<T> task) {
  if constexpr (std::is_void_v<T>) {
    co_await std::move(task);
    co_return std::monostate{};
  } else {
    co_return co_await std::move(task);
  }
}

// Starts the branches and suspends unless all finished at once.
template <class Start>
class StartAll {
 public:
  StartAll(Countdown& countdown, Start start) : countdown_(countdown), start_(std::move(start)) {}
  bool await_ready() { return false; }
  bool await_suspend(std::coroutine_handle<> waiter) {
    // The waiter is announced only after all have started: a branch that ends meanwhile must not
    // resume it from inside this call.
    start_();
    if (countdown_.done()) return false;
    countdown_.set_waiter(waiter);
    return true;
  }
  void await_resume() {}

 private:
  Countdown& countdown_;
  Start start_;
};

}  // namespace detail

template <class T>
  requires(!std::is_void_v<T>)
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  std::vector<detail::Branch<T>> branches;
  branches.reserve(tasks.size());
  for (auto& task : tasks) branches.push_back(detail::make_branch(std::move(task)));
  detail::Countdown countdown(branches.size());
  co_await detail::StartAll(countdown, [&] {
    for (auto& branch : branches) branch.start(countdown);
  });
  std::vector<T> values;
  values.reserve(branches.size());
  for (auto& branch : branches) values.push_back(branch.take());
  co_return values;
}

inline Task<void> when_all(std::vector<Task<void>> tasks) {
  std::vector<detail::Branch<void>> branches;
  branches.reserve(tasks.size());
  for (auto& task : tasks) branches.push_back(detail::make_branch(std::move(task)));
  detail::Countdown countdown(branches.size());
  co_await detail::StartAll(countdown, [&] {
    for (auto& branch : branches) branch.start(countdown);
  });
}

// when_all(a(), b()) gives a tuple; a void task gives a std::monostate in its place.
template <class... Ts>
Task<std::tuple<typename detail::Branch<Ts>::Stored...>> when_all(Task<Ts>... tasks) {
  using Values = std::tuple<typename detail::Branch<Ts>::Stored...>;
  std::tuple<detail::Branch<Ts>...> branches{detail::make_branch(std::move(tasks))...};
  detail::Countdown countdown(sizeof...(Ts));
  co_await detail::StartAll(countdown, [&] {
    std::apply([&](auto&... branch) { (branch.start(countdown), ...); }, branches);
  });
  co_return std::apply([](auto&... branch) { return Values(branch.take()...); }, branches);
}

}  // namespace helenus::runtime
