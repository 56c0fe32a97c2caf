// Event: something that has happened or not yet; waiting returns once it has.
//
// It is a state, not a pulse: a reset that comes before a woken waiter ran leaves it waiting.
#pragma once

#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::runtime {

class Event {
 public:
  explicit Event(Runtime& runtime) : waiting_(runtime) {}

  void set() {
    set_ = true;
    waiting_.wake_all();
  }
  void reset() { set_ = false; }
  bool is_set() const { return set_; }

  // Errors: timeout, cancelled.
  Task<base::Result<void>> wait(Until until) {
    while (!set_) CO_TRY_VOID(co_await waiting_.wait(until));
    co_return {};
  }

 private:
  bool set_ = false;
  WaitQueue waiting_;
};

}  // namespace helenus::runtime
