// OperationHold: which mutations of a tablet stay in its mutation log although they are stable,
// since the log is the record of operation ids, too (theory R15): a mutation with an id goes when
// it is stable *and* its id lies below the floor, under which ids are refused (C2, C5). So as long
// as an id may come again, the mutation that it made is found.
//
// By moments, not by dots: from time to time the tablet's clock is marked together with the newest
// id seen until then. When the floor has passed that id, everything in the marked clock may go, and
// the sets of dots that are kept stay without gaps, whatever share of the mutations has ids. What
// has none stays as long as its neighbours, deletes among them: R15 asks that of them. A tablet in
// which no id lies above the floor holds nothing, and pays nothing.
//
// Invariant: no mutation in `releasable(stable)` has an id above floor().
//
// Pure. Core affinity: that of its tablet.
#pragma once

#include <cstddef>
#include <deque>

#include "causality/clock.h"
#include "causality/operation.h"

namespace helenus::storage {

// Before any id.
inline constexpr causality::OperationTime kNoOperation{INT64_MIN};

class OperationHold {
 public:
  // When there are as many, a newer mark takes the place of the newest: what it has goes later.
  static constexpr std::size_t kMarksMax = 64;

  // A mutation with an id of that time, under that dot, comes to a tablet that has seen the rest of
  // `seen` until then.
  void note(causality::OperationTime time, const causality::Clock& seen, causality::Dot dot);
  // A file is found that has such ids, and nothing else is known of it.
  void note(causality::OperationTime newest);
  // What the tablet has seen by now.
  void mark(const causality::Clock& seen);
  // From now on ids up to that time are refused. Only grows; an earlier one changes nothing.
  void release(causality::OperationTime floor);

  // Whether some id lies above the floor.
  bool holds() const { return holds_; }
  causality::OperationTime floor() const { return floor_; }
  // The newest id that was seen; kNoOperation once it lies below the floor.
  causality::OperationTime newest() const { return holds_ ? newest_ : kNoOperation; }
  // What of the stable dots may leave the mutation log. Only grows with `stable`.
  causality::Clock releasable(const causality::Clock& stable) const;

 private:
  struct Mark {
    causality::OperationTime newest;
    causality::Clock seen;
  };

  bool holds_ = false;
  causality::OperationTime newest_ = kNoOperation;
  causality::OperationTime floor_ = kNoOperation;
  causality::Clock released_;  // while it holds: what was seen without an id above the floor
  std::deque<Mark> marks_;     // ascending in both
};

}  // namespace helenus::storage
