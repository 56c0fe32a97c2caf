#include "causality/range_sweep.h"

#include <algorithm>
#include <utility>

namespace helenus::causality {

namespace {

// For a heap with the first to end on top.
bool ends_later(const ScopedStore* a, const ScopedStore* b) {
  if (!a->scope.to || !b->scope.to) return !a->scope.to && b->scope.to.has_value();
  return *b->scope.to < *a->scope.to;
}

bool has_ended(const ScopedStore& scoped, const RowKey& place) {
  return scoped.scope.to && *scoped.scope.to <= place;
}

// Takes out of the inner one what the outer one makes needless.
void settle_inside(CellStore& inner, const CellStore& outer) {
  std::vector<Dot> needless;
  for (const Version& version : inner.versions()) {
    const Version* same = outer.find(version.dot);
    if (outer.context().contains(version.dot) || (same != nullptr && *same == version)) {
      needless.push_back(version.dot);
    }
  }
  inner.forget(needless);
  if (inner.versions().empty() && outer.context().covers(inner.context())) inner = {};
}

}  // namespace

bool ScopeSweep::advance(const RowKey& place, std::size_t steps_max, OnChange on_change) {
  for (; next_ < scopes_.size(); ++next_) {
    const ScopedStore& scoped = scopes_[next_];
    if (scoped.scope.from && place < *scoped.scope.from) break;
    if (steps_max-- == 0) return false;
    if (has_ended(scoped, place)) continue;
    open_.push_back(&scoped);
    std::ranges::push_heap(open_, ends_later);
    on_change(scoped, true);
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
ScopesInside::ScopesInside(std::span<ScopedStore> scopes) {
  order_.reserve(scopes.size());
  for (auto first = scopes.begin(); first != scopes.end();) {
    const auto last = std::find_if(first, scopes.end(), [&](const ScopedStore& scoped) {
      return scoped.scope.from != first->scope.from;
    });
    // Of those that begin alike the one without an end is the first.
    if (!first->scope.to) order_.push_back(&*first++);
    for (auto at = last; at != first;) order_.push_back(&*--at);
    first = last;
  }
}

bool ScopesInside::advance(std::size_t scopes_max) {
  for (; next_ < order_.size(); ++next_) {
    if (scopes_max-- == 0) return false;
    ScopedStore& inner = *order_[next_];
    std::erase_if(around_, [&](const ScopedStore* outer) {
      return outer->scope.to && inner.scope.from && *outer->scope.to <= *inner.scope.from;
    });
    for (const ScopedStore* outer : around_) {
      if (outer->scope.contains(inner.scope)) settle_inside(inner.store, outer->store);
      if (inner.store.empty()) break;
    }
    if (!inner.store.empty() && around_.size() < kAroundMax) around_.push_back(&inner);
  }
  return true;
}

bool ScopesStripping::find_spared(const ScopedStore& scoped) {
  spared_.clear();
  std::size_t met = 0;
  const auto spare = [&](const ScopedStore& other) {
    met += std::max<std::size_t>(other.store.versions().size(), 1);
    if (met > kSparedMax) return false;
    for (const Version& version : other.store.versions()) spared_.push_back(version.dot);
    return true;
  };
  for (const ScopedStore* other : sweep_.open()) {
    if (!spare(*other)) return false;
  }
  for (const ScopedStore& other : sweep_.behind()) {
    if (scoped.scope.to && *scoped.scope.to <= *other.scope.from) break;
    if (!spare(other)) return false;
  }
  return true;
}

bool ScopesStripping::advance(std::size_t scopes_max) {
  for (; next_ < scopes_.size(); ++next_) {
    ScopedStore& scoped = scopes_[next_];
    if (scopes_max == 0) return false;
    if (!sweep_.advance(scoped.scope.from.value_or(RowKey()), scopes_max--)) return false;
    if (scoped.store.context().empty()) continue;
    if (find_spared(scoped)) scoped.store.strip(known_, spared_);
  }
  return true;
}

}  // namespace helenus::causality
