// TimerHeap: the armed timers of one core, earliest first. A four-ary heap of pointers; each timer
// knows its slot, so that disarming is O(log n) and allocates nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/clock.h"

namespace helenus::runtime {

class TimerHeap {
 public:
  // `home` is whom a timer asks to disarm it.
  explicit TimerHeap(Timers& home) : home_(home) {}
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;
  ~TimerHeap() { clear(); }

  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  // When the earliest timer is due; never() if there is none.
  MonotonicTime next_at() const {
    return heap_.empty() ? MonotonicTime::never() : heap_.front()->at_;
  }

  void arm(Timer& timer, MonotonicTime at);
  // Requires: the timer is armed in this heap.
  void disarm(Timer& timer);
  // Takes out the earliest timer if it is due at `now`; null otherwise.
  Timer* take_due(MonotonicTime now);
  // Disarms all.
  void clear();

 private:
  static bool earlier(const Timer& a, const Timer& b) {
    return a.at_ != b.at_ ? a.at_ < b.at_ : a.order_ < b.order_;
  }
  void place(Timer& timer, std::size_t slot);
  void sift_up(Timer& timer, std::size_t slot);
  void sift_down(Timer& timer, std::size_t slot);

  Timers& home_;
  std::vector<Timer*> heap_;
  std::uint64_t armed_count_ = 0;
};

}  // namespace helenus::runtime
