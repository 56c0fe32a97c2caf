#include "causality/counter_set.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::causality {

CounterSet CounterSet::up_to(Counter base) {
  CounterSet set;
  if (base > 0) set.ranges_.push_back({1, base});
  return set;
}

std::size_t CounterSet::find(Counter counter) const {
  const auto at = std::lower_bound(
      ranges_.begin(), ranges_.end(), counter,
      [](const CounterRange& range, Counter wanted) { return range.last < wanted; });
  return static_cast<std::size_t>(at - ranges_.begin());
}

bool CounterSet::contains(Counter counter) const {
  const std::size_t at = find(counter);
  return at < ranges_.size() && ranges_[at].first <= counter;
}

bool CounterSet::contains_all(const CounterSet& other) const {
  std::size_t at = 0;
  for (const CounterRange& wanted : other.ranges_) {
    while (at < ranges_.size() && ranges_[at].last < wanted.first) ++at;
    if (at == ranges_.size() || ranges_[at].first > wanted.first) return false;
    if (ranges_[at].last < wanted.last) return false;
  }
  return true;
}

std::uint64_t CounterSet::size() const {
  std::uint64_t count = 0;
  for (const CounterRange& range : ranges_) count += range.last - range.first + 1;
  return count;
}

void CounterSet::append(CounterRange range) {
  if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
    ranges_.back().last = std::max(ranges_.back().last, range.last);
  } else {
    ranges_.push_back(range);
  }
}

void CounterSet::insert(CounterRange range) {
  ASSERT(range.first > 0 && range.first <= range.last && range.last <= kCounterMax);
  if (ranges_.empty() || ranges_.back().first <= range.first) return append(range);
  // Every range that touches or overlaps the new one melts into it.
  const std::size_t begin = find(range.first - 1);
  std::size_t end = begin;
  while (end < ranges_.size() && ranges_[end].first <= range.last + 1) ++end;
  if (begin == end) {
    ranges_.insert(ranges_.begin() + static_cast<std::ptrdiff_t>(begin), range);
    return;
  }
  ranges_[begin] = {std::min(range.first, ranges_[begin].first),
                    std::max(range.last, ranges_[end - 1].last)};
  ranges_.erase(ranges_.begin() + static_cast<std::ptrdiff_t>(begin) + 1,
                ranges_.begin() + static_cast<std::ptrdiff_t>(end));
}

void CounterSet::erase(Counter counter) {
  const std::size_t at = find(counter);
  if (at == ranges_.size() || ranges_[at].first > counter) return;
  CounterRange& range = ranges_[at];
  const auto place = ranges_.begin() + static_cast<std::ptrdiff_t>(at);
  if (range.first == range.last) {
    ranges_.erase(place);
  } else if (range.first == counter) {
    ++range.first;
  } else if (range.last == counter) {
    --range.last;
  } else {
    const CounterRange after{counter + 1, range.last};
    range.last = counter - 1;
    ranges_.insert(place + 1, after);
  }
}

CounterSet unite(const CounterSet& a, const CounterSet& b) {
  CounterSet all;
  all.ranges_.reserve(std::max(a.ranges_.size(), b.ranges_.size()));
  auto left = a.ranges_.begin();
  auto right = b.ranges_.begin();
  while (left != a.ranges_.end() || right != b.ranges_.end()) {
    const bool take_left =
        right == b.ranges_.end() || (left != a.ranges_.end() && left->first <= right->first);
    all.append(take_left ? *left++ : *right++);
  }
  return all;
}

CounterSet intersect(const CounterSet& a, const CounterSet& b) {
  CounterSet both;
  auto left = a.ranges_.begin();
  auto right = b.ranges_.begin();
  while (left != a.ranges_.end() && right != b.ranges_.end()) {
    const CounterRange common{std::max(left->first, right->first),
                              std::min(left->last, right->last)};
    if (common.first <= common.last) both.append(common);
    (left->last < right->last ? left : right)++;
  }
  return both;
}

CounterSet subtract(const CounterSet& a, const CounterSet& b) {
  CounterSet rest;
  auto gone = b.ranges_.begin();
  for (CounterRange range : a.ranges_) {
    while (gone != b.ranges_.end() && gone->last < range.first) ++gone;
    for (auto cut = gone; cut != b.ranges_.end() && cut->first <= range.last; ++cut) {
      if (cut->first > range.first) rest.ranges_.push_back({range.first, cut->first - 1});
      range.first = cut->last + 1;
      if (range.first > range.last) break;
    }
    if (range.first <= range.last) rest.ranges_.push_back(range);
  }
  return rest;
}

}  // namespace helenus::causality
