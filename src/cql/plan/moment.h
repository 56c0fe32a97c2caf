// Moment: the time at which a statement is executed, and its dice. One for a whole statement, so
// that what expires does so for all of its rows at once.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/prng.h"
#include "base/uuid.h"
#include "causality/dot.h"
#include "runtime/time.h"

namespace helenus::cql {

class Moment {
 public:
  Moment(runtime::WallTime now, base::Prng dice) : now_(now), dice_(std::move(dice)) {}

  std::int64_t nanoseconds() const { return now_.since_origin().count(); }
  std::int64_t microseconds() const { return floor_to<std::chrono::microseconds>(); }
  std::int64_t milliseconds() const { return floor_to<std::chrono::milliseconds>(); }
  // What values expire by.
  causality::WallTime seconds() const {
    return causality::WallTime{floor_to<std::chrono::seconds>()};
  }

  std::uint64_t roll() { return dice_.next(); }

 private:
  template <class Unit>
  std::int64_t floor_to() const {
    return std::chrono::floor<Unit>(now_.since_origin()).count();
  }

  runtime::WallTime now_;
  base::Prng dice_;
};

}  // namespace helenus::cql
