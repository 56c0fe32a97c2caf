// Clock and Timers: time as protocol code sees it. One of each per core.
#pragma once

#include <cstdint>

#include "runtime/time.h"

namespace helenus::runtime {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime now() const = 0;
  // May be wrong, may jump either way: fit for display, tie-breaking and expiry, never for waits.
  virtual WallTime wall_now() const = 0;
};

class Timers;

// Fires once per arm. Lives in its owner and disarms itself when destroyed.
class Timer {
 public:
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  virtual void fire() = 0;
  bool armed() const { return home_ != nullptr; }
  inline void disarm();

 protected:
  inline ~Timer();

 private:
  friend class TimerHeap;
  Timers* home_ = nullptr;
  MonotonicTime at_;
  std::uint64_t order_ = 0;
  std::size_t slot_ = 0;
};

class Timers {
 public:
  virtual ~Timers() = default;
  // Fires the timer from the event loop at `at` or soon after; never from inside this call. Timers
  // that are due together fire in the order armed. Arming an armed timer moves it.
  virtual void arm(Timer& timer, MonotonicTime at) = 0;
  // Requires: the timer is armed here.
  virtual void disarm(Timer& timer) = 0;
};

void Timer::disarm() {
  if (home_ != nullptr) home_->disarm(*this);
}
Timer::~Timer() {
  disarm();
}

}  // namespace helenus::runtime
