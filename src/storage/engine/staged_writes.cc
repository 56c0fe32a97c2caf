#include "storage/engine/staged_writes.h"

#include "base/assert.h"

namespace helenus::storage {

void StagedWrites::advance(LogPosition durable) {
  while (!under_way_.empty() && under_way_.front().position < durable) {
    const StagedWrite& oldest = under_way_.front();
    if (oldest.tablet != nullptr) {
      oldest.tablet->durable.add(oldest.dot);
      note_changed(*oldest.tablet);
    }
    durable_sequence_ = oldest.sequence;
    under_way_.pop_front();
  }
}

LogPosition StagedWrites::position_of(std::uint64_t sequence) const {
  ASSERT(!under_way_.empty() && under_way_.front().sequence <= sequence);
  return under_way_[sequence - under_way_.front().sequence].position;
}

void StagedWrites::forget(const Tablet& tablet) {
  for (StagedWrite& write : under_way_) {
    if (write.tablet == &tablet) write.tablet = nullptr;
  }
  std::erase(changed_, &tablet);
}

void StagedWrites::let_go_of_changed(const std::vector<Tablet*>& kept) {
  for (Tablet* tablet : changed_) tablet->has_changed = false;
  changed_.clear();
  for (Tablet* tablet : kept) note_changed(*tablet);
}

}  // namespace helenus::storage
