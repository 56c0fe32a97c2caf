// SyncedClock: which dots of a tablet survive a power loss, whatever the log's sync mode promises
// (theory R4). Peers take this clock for a watermark, so that what an unclean stop can lose was
// never collected by anyone.
//
// It is a clock that was the durable one at some moment, and all that the log had by then is synced
// now: a prefix of what the tablet has seen, in the order in which it has seen it. So whoever finds
// a dot here finds every dot that was here before that one, too, which rule (c) rests on.
//
// Where every write is synced before it is acknowledged it is the durable clock itself. It costs
// nothing while nobody asks. Law: it only grows. Core affinity: that of its tablet.
#pragma once

#include "causality/clock.h"
#include "storage/ids/log_position.h"

namespace helenus::storage {

class SyncedClock {
 public:
  // The durable clock, and how far the log is durable and synced, all of one moment.
  void note(const causality::Clock& durable, LogPosition durable_until, LogPosition synced_until) {
    if (is_behind_ && waiting_until_ <= synced_until) {
      clock_ = waiting_;
      is_behind_ = false;
    }
    if (durable_until <= synced_until) {
      clock_ = durable;
      is_behind_ = false;
    } else if (!is_behind_ && clock_ != durable) {
      waiting_ = durable;
      waiting_until_ = durable_until;
      is_behind_ = true;
    }
  }
  const causality::Clock& clock() const { return clock_; }
  // Whether it lacks something that was durable as of the last note().
  bool is_behind() const { return is_behind_; }

 private:
  causality::Clock clock_;
  causality::Clock waiting_;
  LogPosition waiting_until_;
  bool is_behind_ = false;
};

}  // namespace helenus::storage
