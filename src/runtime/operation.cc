#include "runtime/operation.h"

namespace helenus::runtime {

OperationBase::Cut OperationBase::cut_before_start() const {
  if (until_.stop.stop_requested()) return Cut::stop;
  if (!until_.deadline.is_never() && until_.deadline <= runtime_.clock.now()) return Cut::deadline;
  return Cut::none;
}

bool OperationBase::suspend(std::coroutine_handle<> waiter) {
  ASSERT(phase_ == Phase::idle, "an operation is awaited once");
  waiter_ = waiter;
  // The coroutine goes on at the priority it has.
  Job::set_priority(runtime_.executor.running());
  phase_ = Phase::starting;
  start();
  if (phase_ == Phase::done) return false;
  phase_ = Phase::waiting;
  if (!until_.deadline.is_never()) runtime_.timers.arm(*this, until_.deadline);
  if (until_.stop.stop_possible()) StopCallback::watch(until_.stop);
  return true;
}

void OperationBase::finish() {
  ASSERT(pending());
  const bool suspended = phase_ == Phase::waiting;
  phase_ = Phase::done;
  Timer::disarm();
  static_cast<ListHook<StopCallback>&>(*this).unlink();
  if (suspended) runtime_.executor.post(*this);
}

void OperationBase::cut_short(Cut cut) {
  if (phase_ != Phase::waiting || cut_ != Cut::none) return;
  cut_ = cut;
  cancel();
}

}  // namespace helenus::runtime
