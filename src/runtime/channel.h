// Channel<T>: a bounded queue between coroutines of one core.
//
// When it is full, pushing waits (or try_push says no): the back-pressure reaches the producer.
// After close() nothing more goes in; what is inside can still be taken out.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::runtime {

template <class T>
class Channel {
 public:
  // Requires: capacity > 0.
  Channel(Runtime& runtime, std::size_t capacity)
      : capacity_(capacity), room_(runtime), filled_(runtime) {
    ASSERT(capacity > 0);
  }

  // Errors: timeout, cancelled, closed; the element is then gone.
  Task<base::Result<void>> push(T element, Until until) {
    while (!closed_ && elements_.size() >= capacity_) CO_TRY_VOID(co_await room_.wait(until));
    if (closed_) co_return base::Error(base::Errc::closed);
    put(std::move(element));
    co_return {};
  }
  // Errors: overloaded (full), closed.
  base::Result<void> try_push(T element) {
    if (closed_) return base::Error(base::Errc::closed);
    if (elements_.size() >= capacity_) return base::Error(base::Errc::overloaded);
    put(std::move(element));
    return {};
  }

  // The oldest element. Errors: timeout, cancelled; closed when closed and empty.
  Task<base::Result<T>> pop(Until until) {
    while (elements_.empty()) {
      if (closed_) co_return base::Error(base::Errc::closed);
      CO_TRY_VOID(co_await filled_.wait(until));
    }
    co_return take();
  }
  std::optional<T> try_pop() {
    if (elements_.empty()) return std::nullopt;
    return take();
  }

  void close() {
    closed_ = true;
    room_.wake_all();
    filled_.wake_all();
  }

  std::size_t size() const { return elements_.size(); }
  std::size_t capacity() const { return capacity_; }
  bool closed() const { return closed_; }

 private:
  void put(T element) {
    elements_.push_back(std::move(element));
    if (!filled_.empty()) filled_.wake_one();
  }
  T take() {
    T element = std::move(elements_.front());
    elements_.pop_front();
    if (!room_.empty()) room_.wake_one();
    return element;
  }

  const std::size_t capacity_;
  std::deque<T> elements_;
  bool closed_ = false;
  WaitQueue room_;
  WaitQueue filled_;
};

}  // namespace helenus::runtime
