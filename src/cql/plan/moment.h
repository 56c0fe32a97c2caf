// Moment: the time at which a statement is executed, and its dice. One for a whole statement, so
// that what expires does so for all of its rows at once.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/prng.h"
#include "base/uuid.h"
#include "causality/dot.h"
#include "runtime/time.h"

namespace helenus::cql {

// The latest time that now() gave, of all cores of a node: it does not go back while the process
// lives, whatever is done to the wall clock. Any core may use it.
class NewestTimeUuid {
 public:
  // That time, or the latest one given if that is later.
  std::int64_t advance(std::int64_t ticks) {
    std::int64_t newest = ticks_.load(std::memory_order_relaxed);
    while (newest < ticks &&
           !ticks_.compare_exchange_weak(newest, ticks, std::memory_order_relaxed)) {
    }
    return std::max(newest, ticks);
  }

 private:
  std::atomic<std::int64_t> ticks_ = 0;
};

class Moment {
 public:
  // `newest` outlives the moment; where nobody keeps one, uuids have the time itself. `ticks`: see
  // there; where nobody counts them, the time itself.
  Moment(runtime::WallTime now, base::Prng dice, NewestTimeUuid* newest = nullptr,
         std::optional<std::int64_t> ticks = std::nullopt)
      : now_(now),
        dice_(std::move(dice)),
        newest_(newest),
        ticks_(ticks.value_or(now.since_origin().count() / 100)) {}

  std::int64_t nanoseconds() const { return now_.since_origin().count(); }
  std::int64_t microseconds() const { return floor_to<std::chrono::microseconds>(); }
  std::int64_t milliseconds() const { return floor_to<std::chrono::milliseconds>(); }
  // What values expire by.
  causality::WallTime seconds() const {
    return causality::WallTime{floor_to<std::chrono::seconds>()};
  }

  // Of a time uuid that is made now: 100 ns each.
  std::int64_t time_uuid_ticks() const {
    const std::int64_t ticks = nanoseconds() / 100;
    return newest_ == nullptr ? ticks : newest_->advance(ticks);
  }

  std::uint64_t roll() { return dice_.next(); }

  // The time in units of 100 ns since 1970, above that of each moment before on the core.
  std::int64_t ticks() const { return ticks_; }
  // Numbers of this moment: each is given once, ascending.
  std::uint32_t take_numbers(std::uint32_t count) {
    numbers_ += count;
    return numbers_ - count;
  }
  // The same dice for all that is numbered.
  std::uint64_t nonce() {
    if (!nonce_) nonce_ = roll();
    return *nonce_;
  }

 private:
  template <class Unit>
  std::int64_t floor_to() const {
    return std::chrono::floor<Unit>(now_.since_origin()).count();
  }

  runtime::WallTime now_;
  base::Prng dice_;
  NewestTimeUuid* newest_;
  std::int64_t ticks_;
  std::uint32_t numbers_ = 0;
  std::optional<std::uint64_t> nonce_;
};

}  // namespace helenus::cql
