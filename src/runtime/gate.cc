#include "runtime/gate.h"

namespace helenus::runtime {

base::Result<Gate::Pass> Gate::enter() {
  if (closed_) return base::Error(base::Errc::closed);
  ++inside_;
  return Pass(*this);
}

Task<void> Gate::close() {
  closed_ = true;
  while (inside_ > 0) {
    const auto woken = co_await emptied_.wait(Until::forever());
    ASSERT(woken.has_value());
  }
}

void Gate::leave() {
  ASSERT(inside_ > 0);
  if (--inside_ == 0) emptied_.wake_all();
}

}  // namespace helenus::runtime
