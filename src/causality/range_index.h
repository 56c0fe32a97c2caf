// RangeIndex: finds, among many ranges, those that meet a given one, without looking at the rest.
//
// The ranges, ascending, are the nodes of a balanced tree that needs no pointers: the middle one of
// a stretch is its root. Each node knows which range of its stretch ends last; a stretch that ends
// before what is sought, or begins behind it, is not entered. Cost: O(n) to make, O(log n) and the
// ranges that meet it for each search.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "causality/dot_store.h"

namespace helenus::causality {

class RangeIndex {
 public:
  RangeIndex() = default;
  // Borrows the ranges. Requires: strictly ascending, as PartitionStore has them.
  explicit RangeIndex(std::span<const RangeDelete> deleted_ranges)
      : deleted_ranges_(deleted_ranges), last_end_(deleted_ranges.size()) {
    build(0, deleted_ranges_.size());
  }

  // Calls back with every range that overlaps `sought`, ascending.
  template <class Function>
  void each_overlapping(const RowRange& sought, Function&& function) const {
    visit(0, deleted_ranges_.size(), sought, function);
  }

 private:
  static std::size_t middle(std::size_t begin, std::size_t end) {
    return begin + (end - begin) / 2;
  }
  // Which of the two ends later.
  std::size_t later(std::size_t a, std::size_t b) const {
    const auto& first = deleted_ranges_[a].range.to;
    const auto& second = deleted_ranges_[b].range.to;
    return first && (!second || *second > *first) ? b : a;
  }

  void build(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    const std::size_t root = middle(begin, end);
    std::size_t last = root;
    build(begin, root);
    build(root + 1, end);
    if (begin < root) last = later(last, last_end_[middle(begin, root)]);
    if (root + 1 < end) last = later(last, last_end_[middle(root + 1, end)]);
    last_end_[root] = last;
  }

  template <class Function>
  void visit(std::size_t begin, std::size_t end, const RowRange& sought,
             Function&& function) const {
    if (begin == end) return;
    const std::size_t root = middle(begin, end);
    const auto& last = deleted_ranges_[last_end_[root]].range.to;
    if (last && sought.from && *last <= *sought.from) return;
    visit(begin, root, sought, function);
    const RangeDelete& here = deleted_ranges_[root];
    if (here.range.from && sought.to && *here.range.from >= *sought.to) return;
    if (here.range.overlaps(sought)) function(here);
    visit(root + 1, end, sought, function);
  }

  std::span<const RangeDelete> deleted_ranges_;
  std::vector<std::size_t> last_end_;
};

}  // namespace helenus::causality
