#include "causality/clock_union.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"

namespace helenus::causality {

std::size_t CountedRanges::block_of(std::uint64_t at) const {
  const auto behind = std::ranges::upper_bound(
      blocks_, at, {}, [](const Block& block) { return block.ends.front().at; });
  return behind == blocks_.begin() ? 0 : static_cast<std::size_t>(behind - blocks_.begin()) - 1;
}

bool CountedRanges::contains(std::uint64_t number) const {
  if (blocks_.empty()) return false;
  const std::size_t own = block_of(number);
  std::int64_t count = 0;
  for (std::size_t block = 0; block < own; ++block) count += blocks_[block].sum;
  for (const End& end : blocks_[own].ends) {
    if (end.at > number) break;
    count += end.change;
  }
  return count > 0;
}

void CountedRanges::add(std::uint64_t first, std::uint64_t last) {
  change(first, 1);
  change(last + 1, -1);
}

void CountedRanges::remove(std::uint64_t first, std::uint64_t last) {
  change(first, -1);
  change(last + 1, 1);
}

void CountedRanges::change(std::uint64_t at, std::int64_t by) {
  if (blocks_.empty()) blocks_.emplace_back();
  const std::size_t own = blocks_.front().ends.empty() ? 0 : block_of(at);
  Block& block = blocks_[own];
  block.sum += by;
  const auto end = std::ranges::lower_bound(block.ends, at, {}, &End::at);
  if (end == block.ends.end() || end->at != at) {
    block.ends.insert(end, {.at = at, .change = by});
  } else if (end->change += by; end->change == 0) {
    block.ends.erase(end);
  }
  if (block.ends.empty()) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(own));
  } else if (block.ends.size() > kBlockMax) {
    Block upper;
    const auto half = block.ends.begin() + kBlockMax / 2;
    upper.ends.assign(half, block.ends.end());
    for (const End& moved : upper.ends) upper.sum += moved.change;
    block.sum -= upper.sum;
    block.ends.erase(half, block.ends.end());
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(own) + 1, std::move(upper));
  }
}

bool ClockUnion::contains(const Dot& dot) const {
  const auto counters = counters_.find(dot.actor);
  if (counters != counters_.end() && counters->second.contains(dot.counter)) return true;
  const auto closed = closed_.find(dot.actor.node);
  return closed != closed_.end() && closed->second.contains(dot.actor.incarnation.value());
}

void ClockUnion::add(const Clock& clock) {
  for (const Clock::Entry& entry : clock.entries()) {
    CountedRanges& counters = counters_[entry.actor];
    for (const CounterRange& range : entry.counters.ranges()) counters.add(range.first, range.last);
  }
  for (const ClosedActors& closed : clock.closed()) {
    closed_[closed.node].add(closed.first.value(), closed.last.value());
  }
}

void ClockUnion::remove(const Clock& clock) {
  for (const Clock::Entry& entry : clock.entries()) {
    const auto at = counters_.find(entry.actor);
    ASSERT(at != counters_.end());
    for (const CounterRange& range : entry.counters.ranges()) {
      at->second.remove(range.first, range.last);
    }
    if (at->second.empty()) counters_.erase(at);
  }
  for (const ClosedActors& closed : clock.closed()) {
    const auto at = closed_.find(closed.node);
    ASSERT(at != closed_.end());
    at->second.remove(closed.first.value(), closed.last.value());
    if (at->second.empty()) closed_.erase(at);
  }
}

}  // namespace helenus::causality
