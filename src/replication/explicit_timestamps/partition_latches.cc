#include "replication/explicit_timestamps/partition_latches.h"

#include <algorithm>

namespace helenus::replication {

using base::Bytes;
using base::Result;
using runtime::Task;
using runtime::Until;

PartitionLatches::Hold::Hold(PartitionLatches& latches, Latches::iterator at)
    : latches_(&latches), at_(at) {
  ++at_->second.users;
}

void PartitionLatches::Hold::release() {
  if (latches_ == nullptr) return;
  permit_.release();
  PartitionLatches& latches = *std::exchange(latches_, nullptr);
  if (--at_->second.users == 0) latches.latches_.erase(at_);
}

Task<Result<PartitionLatches::Hold>> PartitionLatches::take(storage::TableId table, Bytes partition,
                                                            Until until) {
  const auto at = latches_.try_emplace({table, std::move(partition)}, runtime_).first;
  Hold hold(*this, at);
  CO_TRY(hold.permit_, co_await at->second.turn.acquire(1, std::move(until)));
  co_return std::move(hold);
}

Task<Result<std::vector<PartitionLatches::Hold>>> PartitionLatches::take_all(
    std::vector<Place> places, Until until) {
  std::ranges::sort(places);
  const auto repeated = std::ranges::unique(places);
  places.erase(repeated.begin(), repeated.end());
  std::vector<Hold> holds;
  holds.reserve(places.size());
  for (Place& place : places) {
    CO_TRY(auto hold, co_await take(place.first, std::move(place.second), until));
    holds.push_back(std::move(hold));
  }
  co_return holds;
}

}  // namespace helenus::replication
