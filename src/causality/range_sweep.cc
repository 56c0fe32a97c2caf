#include "causality/range_sweep.h"

#include <algorithm>
#include <utility>

namespace helenus::causality {

namespace {

// For a heap with the first to end on top.
bool ends_later(const RangeDelete* a, const RangeDelete* b) {
  if (!a->range.to || !b->range.to) return !a->range.to && b->range.to.has_value();
  return *b->range.to < *a->range.to;
}

bool has_ended(const RangeDelete& range_delete, const RowKey& place) {
  return range_delete.range.to && *range_delete.range.to <= place;
}

// Takes out of the inner one what the outer one makes needless.
void settle_inside(CellStore& inner, const CellStore& outer) {
  std::vector<Dot> needless;
  for (const Version& version : inner.versions()) {
    if (is_record(version.kind)) continue;
    const Version* same = outer.find(version.dot);
    if (outer.context().contains(version.dot) || (same != nullptr && *same == version)) {
      needless.push_back(version.dot);
    }
  }
  inner.forget(needless);
  if (inner.versions().empty() && outer.context().covers(inner.context())) inner = {};
}

}  // namespace

bool RangeSweep::advance(const RowKey& place, std::size_t steps_max, OnChange on_change) {
  for (; next_ < deleted_ranges_.size(); ++next_) {
    const RangeDelete& range_delete = deleted_ranges_[next_];
    if (range_delete.range.from && place < *range_delete.range.from) break;
    if (steps_max-- == 0) return false;
    if (has_ended(range_delete, place)) continue;
    open_.push_back(&range_delete);
    std::ranges::push_heap(open_, ends_later);
    on_change(range_delete, true);
  }
  while (!open_.empty() && has_ended(*open_.front(), place)) {
    if (steps_max-- == 0) return false;
    std::ranges::pop_heap(open_, ends_later);
    on_change(*open_.back(), false);
    open_.pop_back();
  }
  return true;
}

// Around before inside: by where they begin, and of those that begin alike the one that ends last.
RangesInside::RangesInside(std::span<RangeDelete> deleted_ranges) {
  order_.reserve(deleted_ranges.size());
  for (auto first = deleted_ranges.begin(); first != deleted_ranges.end();) {
    const auto last =
        std::find_if(first, deleted_ranges.end(), [&](const RangeDelete& range_delete) {
          return range_delete.range.from != first->range.from;
        });
    // Of those that begin alike the one without an end is the first.
    if (!first->range.to) order_.push_back(&*first++);
    for (auto at = last; at != first;) order_.push_back(&*--at);
    first = last;
  }
}

bool RangesInside::advance(std::size_t ranges_max) {
  for (; next_ < order_.size(); ++next_) {
    if (ranges_max-- == 0) return false;
    RangeDelete& inner = *order_[next_];
    std::erase_if(around_, [&](const RangeDelete* outer) {
      return outer->range.to && inner.range.from && *outer->range.to <= *inner.range.from;
    });
    for (const RangeDelete* outer : around_) {
      if (outer->range.contains(inner.range)) settle_inside(inner.store, outer->store);
      if (inner.store.empty()) break;
    }
    if (!inner.store.empty() && around_.size() < kAroundMax) around_.push_back(&inner);
  }
  return true;
}

bool RangesStripping::find_spared(const RangeDelete& range_delete) {
  spared_.clear();
  std::size_t met = 0;
  const auto spare = [&](const RangeDelete& other) {
    met += std::max<std::size_t>(other.store.versions().size(), 1);
    if (met > kSparedMax) return false;
    for (const Version& version : other.store.versions()) spared_.push_back(version.dot);
    return true;
  };
  for (const RangeDelete* other : sweep_.open()) {
    if (!spare(*other)) return false;
  }
  for (const RangeDelete& other : sweep_.behind()) {
    if (range_delete.range.to && *range_delete.range.to <= *other.range.from) break;
    if (!spare(other)) return false;
  }
  return true;
}

bool RangesStripping::advance(std::size_t ranges_max) {
  for (; next_ < deleted_ranges_.size(); ++next_) {
    RangeDelete& range_delete = deleted_ranges_[next_];
    if (ranges_max == 0) return false;
    if (!sweep_.advance(range_delete.range.from.value_or(RowKey()), ranges_max--)) return false;
    if (range_delete.store.context().empty()) continue;
    if (find_spared(range_delete)) range_delete.store.strip(known_, spared_);
  }
  return true;
}

}  // namespace helenus::causality
