// Fiber: synchronous work on a stack of its own, so that it can be left in its middle.
//
// For long work in plain functions that call each other deeply, as in a parser: somewhere below it
// calls pace.turn() after every little step, and when the slice is over the fiber stops there
// until it is resumed. What is suspended is a call stack, which coroutines could only do if every
// function between were one.
//
//   auto done = co_await runtime::in_turns(runtime, until, [&](base::Pace& pace) {
//     parsed = parse(text, &pace);
//   });
//
// The work neither awaits nor switches fibers. It is on the same thread all the time, that of its
// core.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/pace.h"
#include "base/result.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::runtime {

class Fiber final : private base::Pace {
 public:
  using Work = std::move_only_function<void(base::Pace& pace)>;

  // Nothing runs yet.
  Fiber(Runtime& runtime, Work work);
  // Work that has not ended is told to, and waited for.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on with the work until it ends, or the slice is over. Requires: it has not ended; not
  // called from within a fiber.
  void resume();
  bool has_ended() const { return ended_; }
  // The work is to end: turn() gives this error from now on.
  void end_with(base::Error error);

 private:
  struct Stack;
  friend struct FiberEntry;

  base::Result<void> look() override;
  void run();
  void leave();

  Runtime& runtime_;
  Work work_;
  std::unique_ptr<Stack> stack_;
  bool ended_ = false;
  base::Result<void> may_go_on_;
};

// Runs the work in turns with what else is ready on this core. Errors: timeout, cancelled; the work
// has come to its end then too.
Task<base::Result<void>> in_turns(Runtime& runtime, Until until, Fiber::Work work);

}  // namespace helenus::runtime
