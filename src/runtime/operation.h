// Operation<T>: one wait for something outside the coroutine, and the only kind of leaf await.
//
// It lives in the awaiting coroutine's frame, so waiting allocates nothing. A source of events (a
// socket, a file, a semaphore) derives from it and gives `start` and `cancel`; the deadline and
// the stop token are handled here, the same way for all:
//
//   await ──▶ start() ──▶ ... source calls complete(result) ──▶ awaiting coroutine is posted
//                └─ deadline passes or stop is requested ──▶ cancel() ──▶ source completes with
//                   Errc::cancelled as soon as it no longer touches what the operation lent it
//
// Law: started implies completed exactly once. After cancel() the source may still complete with
// success if that was on its way. What the caller sees for a cut wait is Errc::timeout or
// Errc::cancelled, by its cause.
//
// An operation is destroyed while pending only when its core has halted (a simulated crash).
#pragma once

#include <coroutine>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/result.h"
#include "runtime/clock.h"
#include "runtime/executor.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"

namespace helenus::runtime {

// How long to wait: until a moment, or until told to stop, whichever comes first.
struct Until {
  MonotonicTime deadline = MonotonicTime::never();
  StopToken stop = {};

  // For waits that end by themselves, as inside an orderly stop.
  static Until forever() { return {}; }
  static Until after(Runtime& runtime, Duration wait, StopToken stop = {}) {
    return {.deadline = runtime.clock.now() + wait, .stop = std::move(stop)};
  }
};

class OperationBase : private Job, private Timer, private StopCallback {
 public:
  OperationBase(Runtime& runtime, Until until) : runtime_(runtime), until_(std::move(until)) {}
  OperationBase(const OperationBase&) = delete;
  OperationBase& operator=(const OperationBase&) = delete;

  Runtime& runtime() { return runtime_; }
  bool pending() const { return phase_ == Phase::starting || phase_ == Phase::waiting; }

 protected:
  enum class Phase : unsigned char { idle, starting, waiting, done };
  enum class Cut : unsigned char { none, deadline, stop };

  ~OperationBase() { ASSERT(!pending() || runtime_.executor.halted(), "left while pending"); }

  // Why the wait must not even begin; none if it may.
  Cut cut_before_start() const;
  // Begins. Returns whether the coroutine must suspend.
  bool suspend(std::coroutine_handle<> waiter);
  // Ends the wait; posts the coroutine if it has suspended.
  void finish();

  static base::Error error_of(Cut cut) {
    return base::Error(cut == Cut::stop ? base::Errc::cancelled : base::Errc::timeout);
  }

  Cut cut_ = Cut::none;

 private:
  // Asks the source to begin. It may complete() before returning.
  virtual void start() = 0;
  // Asks the source to end early. It may complete() before returning, and must do so soon.
  virtual void cancel() = 0;

  void run() override { waiter_.resume(); }
  void fire() override { cut_short(Cut::deadline); }
  void on_stop() override { cut_short(Cut::stop); }
  void cut_short(Cut cut);

  Runtime& runtime_;
  Until until_;
  std::coroutine_handle<> waiter_;
  Phase phase_ = Phase::idle;
};

template <class T>
class [[nodiscard]] Operation : public OperationBase {
 public:
  using OperationBase::OperationBase;

  // For the source: ends the operation. Exactly once, on the operation's own core.
  void complete(base::Result<T> result) {
    ASSERT(!result_.has_value(), "completed twice");
    if (cut_ != Cut::none && result.failed_with(base::Errc::cancelled)) {
      result_.emplace(error_of(cut_));
    } else {
      result_.emplace(std::move(result));
    }
    finish();
  }

  bool await_ready() {
    const Cut cut = cut_before_start();
    if (cut == Cut::none) return false;
    result_.emplace(error_of(cut));
    return true;
  }
  bool await_suspend(std::coroutine_handle<> waiter) { return suspend(waiter); }
  base::Result<T> await_resume() {
    ASSERT(result_.has_value());
    return std::move(*result_);
  }

 protected:
  ~Operation() = default;

 private:
  std::optional<base::Result<T>> result_;
};

}  // namespace helenus::runtime
