// Gate: lets work in until it is closed, and waits for what is inside.
//
// A service enters its gate for every request it serves; `close()` refuses newcomers and returns
// when the last one has left, after which the service may be destroyed.
#pragma once

#include <cstddef>
#include <utility>

#include "runtime/task.h"
#include "runtime/wait_queue.h"

namespace helenus::runtime {

class Gate {
 public:
  // Being inside; leaves when destroyed. The gate outlives it.
  class [[nodiscard]] Pass {
   public:
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->leave();
    }

   private:
    friend class Gate;
    explicit Pass(Gate& gate) : gate_(&gate) {}
    Gate* gate_;
  };

  explicit Gate(Runtime& runtime) : emptied_(runtime) {}
  ~Gate() { ASSERT(inside_ == 0 || emptied_.runtime().executor.halted(), "{} inside", inside_); }

  // Errors: closed.
  base::Result<Pass> enter();
  // Closes at once and waits until nobody is inside. May be called again, to wait again.
  Task<void> close();

  bool closed() const { return closed_; }
  std::size_t inside() const { return inside_; }

 private:
  void leave();

  std::size_t inside_ = 0;
  bool closed_ = false;
  WaitQueue emptied_;
};

}  // namespace helenus::runtime
