#include "storage/mutations/operation_hold.h"

#include <algorithm>

namespace helenus::storage {

void OperationHold::note(causality::OperationTime time, const causality::Clock& seen,
                         causality::Dot dot) {
  newest_ = std::max(newest_, time);
  if (holds_ || newest_ <= floor_) return;
  holds_ = true;
  released_ = seen;
  released_.remove(dot);
}

void OperationHold::note(causality::OperationTime newest) {
  newest_ = std::max(newest_, newest);
  if (newest_ <= floor_) return;
  holds_ = true;
  released_ = {};
  marks_.clear();
}

void OperationHold::mark(const causality::Clock& seen) {
  if (!holds_) return;
  if (marks_.size() == kMarksMax) marks_.pop_back();
  marks_.push_back({.newest = newest_, .seen = seen});
}

void OperationHold::release(causality::OperationTime floor) {
  floor_ = std::max(floor_, floor);
  if (!holds_) return;
  while (!marks_.empty() && marks_.front().newest <= floor_) {
    released_ = std::move(marks_.front().seen);
    marks_.pop_front();
  }
  if (newest_ > floor_) return;
  holds_ = false;
  released_ = {};
  marks_.clear();
}

causality::Clock OperationHold::releasable(const causality::Clock& stable) const {
  return holds_ ? causality::meet(stable, released_) : stable;
}

}  // namespace helenus::storage
