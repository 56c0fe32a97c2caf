// StatementClock: the time of statements on one core. Timestamps that the node gives writes, where
// clients give none, are never the same twice.
//
// Core affinity: the core of its Runtime, which outlives it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "cql/plan/moment.h"
#include "runtime/clock.h"
#include "runtime/random.h"
#include "runtime/runtime.h"

namespace helenus::cql {

class StatementClock {
 public:
  // `newest` is what the cores of a node share.
  StatementClock(runtime::Runtime& runtime, NewestTimeUuid& newest)
      : runtime_(runtime), newest_(newest) {}
  StatementClock(const StatementClock&) = delete;
  StatementClock& operator=(const StatementClock&) = delete;

  Moment now() {
    const runtime::WallTime now = runtime_.clock.wall_now();
    last_ticks_ = std::max(last_ticks_ + 1, std::int64_t{now.since_origin().count() / 100});
    return {now, runtime_.random.fork(), &newest_, last_ticks_};
  }

  std::int64_t next_timestamp_us() {
    const std::int64_t now_us =
        std::chrono::floor<std::chrono::microseconds>(runtime_.clock.wall_now().since_origin())
            .count();
    last_timestamp_us_ = std::max(now_us, last_timestamp_us_ + 1);
    return last_timestamp_us_;
  }

 private:
  runtime::Runtime& runtime_;
  NewestTimeUuid& newest_;
  std::int64_t last_timestamp_us_ = 0;
  std::int64_t last_ticks_ = 0;
};

}  // namespace helenus::cql
