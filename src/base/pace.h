// Pace: what long work in plain functions asks whether it may go on.
//
// Whoever starts such work gives it one, runtime::Fiber mostly; work that nobody paces has none.
#pragma once

#include "base/result.h"

namespace helenus::base {

class Pace {
 public:
  // To be called after every little step, of a microsecond or so; others may run meanwhile. Errors:
  // why the work is to end; every further call gives one too.
  Result<void> turn() {
    if (++steps_ % kStepsBetweenLooks != 0) return {};
    return look();
  }

  // The same of a pace that there may be or not.
  static Result<void> turn(Pace* pace) { return pace == nullptr ? Result<void>() : pace->turn(); }

 protected:
  ~Pace() = default;
  virtual Result<void> look() = 0;

 private:
  // The clock is looked at once in so many steps.
  static constexpr unsigned kStepsBetweenLooks = 32;
  unsigned steps_ = 0;
};

}  // namespace helenus::base
