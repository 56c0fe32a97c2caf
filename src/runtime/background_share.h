// BackgroundShare: how much of a core background work gets while foreground work waits, and when it
// is due.
//
// After a slice of background work foreground work is owed so much time that the slice was the
// share of both together: after 0.2 ms at a share of a quarter, 0.6 ms. Until then background work
// runs only if there is no foreground work; from then on it goes next. Nothing is saved up: what
// neither side needed is gone.
//
// The share is what the operator has set, or more while somebody is under pressure: while writes
// fill memory faster than flushes empty it, say. Whoever knows of pressure is asked after each
// slice, so that nobody has to tell when it changes.
//
// Core affinity: one core.
#pragma once

#include <algorithm>

#include "base/assert.h"
#include "runtime/intrusive_list.h"
#include "runtime/time.h"

namespace helenus::runtime {

// Somebody who knows when background work must hurry. Lives in its owner, and is no longer asked
// once it is destroyed.
class BackgroundPressure : public ListHook<BackgroundPressure> {
 public:
  // The share that background work should have now; 0 while there is no pressure. Asked after each
  // slice, so it must cost little.
  virtual double background_share_wanted() = 0;

 protected:
  ~BackgroundPressure() = default;
};

class BackgroundShare {
 public:
  static constexpr double kDefault = 0.25;
  // Never none of it, so that no background work starves, and never all.
  static constexpr double kLeast = 0.01;
  static constexpr double kMost = 0.9;

  // Without pressure. Requires: within kLeast and kMost.
  void set_share(double share) {
    ASSERT(share >= kLeast && share <= kMost, "a share of {}", share);
    share_set_ = share;
  }
  void add(BackgroundPressure& pressure) { pressures_.push_back(pressure); }

  // The largest share that anybody wants.
  double share() {
    double share = share_set_;
    pressures_.for_each([&](BackgroundPressure& pressure) {
      share = std::max(share, pressure.background_share_wanted());
    });
    return std::min(share, kMost);
  }

  // Notes a slice of background work.
  void ran(MonotonicTime from, MonotonicTime to) {
    const double now = share();
    const auto owed = static_cast<double>((to - from).count()) * (1 - now) / now;
    due_at_ = to + Duration(static_cast<Duration::rep>(owed));
  }
  // Whether background work goes next although foreground work waits.
  bool is_due(MonotonicTime now) const { return now >= due_at_; }

 private:
  double share_set_ = kDefault;
  IntrusiveList<BackgroundPressure> pressures_;
  MonotonicTime due_at_;
};

}  // namespace helenus::runtime
