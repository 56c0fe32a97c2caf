// ScopeIndex: finds, among many scopes, those that meet a given one, without looking at the rest.
//
// The scopes, ascending, are the nodes of a balanced tree that needs no pointers: the middle one of
// a stretch is its root. Each node knows which scope of its stretch ends last; a stretch that ends
// before what is sought, or begins behind it, is not entered. Cost: O(n) to make, O(log n) and the
// scopes that meet it for each search.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "causality/dot_store.h"

namespace helenus::causality {

class ScopeIndex {
 public:
  ScopeIndex() = default;
  // Borrows the scopes. Requires: strictly ascending, as PartitionStore has them.
  explicit ScopeIndex(std::span<const ScopedStore> scopes)
      : scopes_(scopes), last_end_(scopes.size()) {
    build(0, scopes_.size());
  }

  // Calls back with every scope that overlaps `sought`, ascending.
  template <class Function>
  void each_overlapping(const Scope& sought, Function&& function) const {
    visit(0, scopes_.size(), sought, function);
  }

 private:
  static std::size_t middle(std::size_t begin, std::size_t end) {
    return begin + (end - begin) / 2;
  }
  // Which of the two ends later.
  std::size_t later(std::size_t a, std::size_t b) const {
    const auto& first = scopes_[a].scope.to;
    const auto& second = scopes_[b].scope.to;
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
  void visit(std::size_t begin, std::size_t end, const Scope& sought, Function&& function) const {
    if (begin == end) return;
    const std::size_t root = middle(begin, end);
    const auto& last = scopes_[last_end_[root]].scope.to;
    if (last && sought.from && *last <= *sought.from) return;
    visit(begin, root, sought, function);
    const ScopedStore& here = scopes_[root];
    if (here.scope.from && sought.to && *here.scope.from >= *sought.to) return;
    if (here.scope.overlaps(sought)) function(here);
    visit(root + 1, end, sought, function);
  }

  std::span<const ScopedStore> scopes_;
  std::vector<std::size_t> last_end_;
};

}  // namespace helenus::causality
