#include "runtime/stop_token.h"

namespace helenus::runtime {

void StopCallback::watch(const StopToken& token) {
  if (token.state_ == nullptr) return;
  if (token.state_->requested) {
    on_stop();
    return;
  }
  token.state_->callbacks.push_back(*this);
}

void StopSource::request_stop() {
  if (state_->requested) return;
  state_->requested = true;
  const StopToken keep_alive(state_);
  // A callback may destroy others that wait here, so take one at a time.
  while (!keep_alive.state_->callbacks.empty()) keep_alive.state_->callbacks.pop_front().on_stop();
}

}  // namespace helenus::runtime
