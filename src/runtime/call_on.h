// call_on: runs a task on another core and brings its result back.
//
//   const auto scan_on_core = [key](Runtime& there) { return scan(there, key); };
//   auto rows = co_await call_on<Rows>(rt, owner, scan_on_core, until);
//
// The function makes the task over there and is destroyed there; what it captures travels, so it
// holds values (or things made for sharing, like Bytes), and no StopToken: that belongs to the core
// of its source. A wait that is cut leaves the task running; its result is dropped. A core that
// stops drops the calls it has not answered: only `until` ends the wait for those. The task has the
// caller's priority over there.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::runtime {

template <class T>
using CoreFunction = std::move_only_function<Task<base::Result<T>>(Runtime& there)>;

namespace detail {

// The caller's side. The slot is shared with the messages that travel, but touched only on the
// caller's core; it outlives a wait that was cut.
template <class T>
class CoreCall final : public Operation<T> {
 public:
  struct Slot {
    CoreCall* waiting = nullptr;
  };

  CoreCall(Runtime& here, CoreId to, CoreFunction<T> function, Until until)
      : Operation<T>(here, std::move(until)), to_(to), function_(std::move(function)) {}
  ~CoreCall() { slot_->waiting = nullptr; }

 private:
  static Task<void> serve(Runtime& there, CoreId caller, CoreFunction<T> function,
                          std::shared_ptr<Slot> slot) {
    auto result = co_await function(there);
    answer(there, caller, std::move(slot), std::move(result));
  }
  static void answer(Runtime& there, CoreId caller, std::shared_ptr<Slot> slot,
                     base::Result<T> result) {
    there.cores.reply(caller,
                      [slot = std::move(slot), result = std::move(result)](Runtime&) mutable {
                        if (slot->waiting != nullptr) {
                          std::exchange(slot->waiting, nullptr)->complete(std::move(result));
                        }
                      });
  }

  void start() override {
    slot_->waiting = this;
    const CoreId caller = this->runtime().cores.here();
    const Priority priority = this->runtime().executor.running();
    auto sent = this->runtime().cores.send(to_, [caller, priority, function = std::move(function_),
                                                 slot = slot_](Runtime& there) mutable {
      if (there.cores.guests().size() >= Cores::kGuestsMax) {
        answer(there, caller, std::move(slot), base::Error(base::Errc::overloaded));
        return;
      }
      there.cores.guests().spawn(serve(there, caller, std::move(function), std::move(slot)),
                                 priority);
    });
    if (!sent) {
      slot_->waiting = nullptr;
      this->complete(std::move(sent).error());
    }
  }
  void cancel() override {
    slot_->waiting = nullptr;
    this->complete(base::Error(base::Errc::cancelled));
  }

  CoreId to_;
  CoreFunction<T> function_;
  std::shared_ptr<Slot> slot_ = std::make_shared<Slot>();
};

}  // namespace detail

// Errors: those of the task; overloaded, closed (that core), timeout, cancelled.
template <class T>
detail::CoreCall<T> call_on(Runtime& here, CoreId to, CoreFunction<T> function, Until until) {
  return {here, to, std::move(function), std::move(until)};
}

}  // namespace helenus::runtime
