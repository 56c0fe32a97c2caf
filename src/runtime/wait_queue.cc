#include "runtime/wait_queue.h"

namespace helenus::runtime {

void WaitQueue::enter(Wait& wait) {
  waits_.push_back(wait);
  ++size_;
}

void WaitQueue::leave(Wait& wait) {
  static_cast<ListHook<Wait>&>(wait).unlink();
  --size_;
  wait.complete(base::Error(base::Errc::cancelled));
}

void WaitQueue::wake_one() {
  Wait& wait = waits_.pop_front();
  --size_;
  wait.complete({});
}

void WaitQueue::wake_all(const base::Result<void>& with) {
  while (!waits_.empty()) {
    Wait& wait = waits_.pop_front();
    --size_;
    wait.complete(with);
  }
}

}  // namespace helenus::runtime
