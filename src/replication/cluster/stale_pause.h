// StalePause: what a coordinator waits for whose metadata are no longer those of the replicas, or
// not yet (R18): news comes within milliseconds.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/result.h"
#include "runtime/clock.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/sleep.h"
#include "runtime/task.h"

namespace helenus::replication {

class StalePause {
 public:
  static constexpr runtime::Duration kFirst = std::chrono::milliseconds(2);
  static constexpr runtime::Duration kMax = std::chrono::milliseconds(50);

  explicit StalePause(runtime::Runtime& runtime) : runtime_(runtime) {}

  // Errors: unavailable, with what was refused, when there is no time left; cancelled.
  runtime::Task<base::Result<void>> wait(base::Error refusal, runtime::Until until) {
    const auto now = runtime_.clock.now();
    if (now + pause_ >= until.deadline) {
      co_return base::Error(base::Errc::unavailable, "the replicas are changing: {}", refusal);
    }
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, pause_, until.stop));
    pause_ = std::min(2 * pause_, kMax);
    co_return {};
  }

 private:
  runtime::Runtime& runtime_;
  runtime::Duration pause_ = kFirst;
};

}  // namespace helenus::replication
