#include "runtime/timer_heap.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::runtime {

namespace {

constexpr std::size_t kArity = 4;

}  // namespace

void TimerHeap::arm(Timer& timer, MonotonicTime at) {
  if (timer.armed()) timer.disarm();
  timer.home_ = &home_;
  timer.at_ = at;
  timer.order_ = armed_count_++;
  heap_.push_back(&timer);
  sift_up(timer, heap_.size() - 1);
}

void TimerHeap::disarm(Timer& timer) {
  ASSERT(timer.home_ == &home_ && timer.slot_ < heap_.size() && heap_[timer.slot_] == &timer);
  const std::size_t slot = timer.slot_;
  Timer& last = *heap_.back();
  heap_.pop_back();
  timer.home_ = nullptr;
  if (&last == &timer) return;
  if (slot > 0 && earlier(last, *heap_[(slot - 1) / kArity])) {
    sift_up(last, slot);
  } else {
    sift_down(last, slot);
  }
}

Timer* TimerHeap::take_due(MonotonicTime now) {
  if (heap_.empty() || heap_.front()->at_ > now) return nullptr;
  Timer* timer = heap_.front();
  disarm(*timer);
  return timer;
}

void TimerHeap::clear() {
  for (Timer* timer : heap_) timer->home_ = nullptr;
  heap_.clear();
}

void TimerHeap::place(Timer& timer, std::size_t slot) {
  heap_[slot] = &timer;
  timer.slot_ = slot;
}

void TimerHeap::sift_up(Timer& timer, std::size_t slot) {
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / kArity;
    if (!earlier(timer, *heap_[parent])) break;
    place(*heap_[parent], slot);
    slot = parent;
  }
  place(timer, slot);
}

void TimerHeap::sift_down(Timer& timer, std::size_t slot) {
  for (;;) {
    const std::size_t first = slot * kArity + 1;
    if (first >= heap_.size()) break;
    std::size_t least = first;
    const std::size_t last = std::min(first + kArity, heap_.size());
    for (std::size_t child = first + 1; child < last; ++child) {
      if (earlier(*heap_[child], *heap_[least])) least = child;
    }
    if (!earlier(*heap_[least], timer)) break;
    place(*heap_[least], slot);
    slot = least;
  }
  place(timer, slot);
}

}  // namespace helenus::runtime
