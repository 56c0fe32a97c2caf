// FlatMap: a map in one sorted vector: for the few cells of a row, the few rows of a fragment.
//
// One piece of memory however many entries it has, and walked in order at the speed of a vector.
// What arrives in order is appended; an insertion in the middle moves what follows, so whoever has
// many calls merge(), which is linear in both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace helenus::causality {

template <class Key, class Value>
class FlatMap {
 public:
  using value_type = std::pair<Key, Value>;
  using Entries = std::vector<value_type>;
  using iterator = Entries::iterator;
  using const_iterator = Entries::const_iterator;

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  void reserve(std::size_t count) { entries_.reserve(count); }
  void clear() { entries_.clear(); }

  // Ascending by key. Keys are not to be changed.
  iterator begin() { return entries_.begin(); }
  iterator end() { return entries_.end(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }

  const_iterator find(const Key& key) const {
    const auto at = std::ranges::lower_bound(entries_, key, {}, &value_type::first);
    return at != end() && at->first == key ? at : end();
  }
  iterator find(const Key& key) {
    const auto at = std::ranges::lower_bound(entries_, key, {}, &value_type::first);
    return at != end() && at->first == key ? at : end();
  }
  // The key's value, made when absent.
  Value& operator[](const Key& key) {
    if (empty() || entries_.back().first < key) return entries_.emplace_back(key, Value()).second;
    const auto at = std::ranges::lower_bound(entries_, key, {}, &value_type::first);
    return at->first == key ? at->second : entries_.emplace(at, key, Value())->second;
  }
  // Requires: the key is above all that are here.
  void append(Key key, Value value) { entries_.emplace_back(std::move(key), std::move(value)); }
  void erase(iterator at) { entries_.erase(at); }
  template <class Predicate>
  void erase_if(Predicate&& predicate) {
    std::erase_if(entries_, std::forward<Predicate>(predicate));
  }

  // Takes over the entries of `other`; where both have a key, absorb(mine, theirs) makes one of
  // two.
  template <class Absorb>
  void merge(FlatMap other, Absorb&& absorb) {
    if (empty()) {
      entries_ = std::move(other.entries_);
      return;
    }
    // Most often every key is here already.
    auto mine = begin();
    auto theirs = other.begin();
    for (; theirs != other.end(); ++theirs) {
      while (mine != end() && mine->first < theirs->first) ++mine;
      if (mine == end() || theirs->first < mine->first) break;
      absorb(mine->second, std::move(theirs->second));
    }
    if (theirs == other.end()) return;
    Entries all;
    all.reserve(size() + static_cast<std::size_t>(other.end() - theirs));
    std::move(begin(), mine, std::back_inserter(all));
    while (mine != end() && theirs != other.end()) {
      if (mine->first < theirs->first) {
        all.push_back(std::move(*mine++));
      } else if (theirs->first < mine->first) {
        all.push_back(std::move(*theirs++));
      } else {
        absorb(mine->second, std::move(theirs->second));
        all.push_back(std::move(*mine++));
        ++theirs;
      }
    }
    std::move(mine, end(), std::back_inserter(all));
    std::move(theirs, other.end(), std::back_inserter(all));
    entries_ = std::move(all);
  }

  friend bool operator==(const FlatMap&, const FlatMap&) = default;

 private:
  Entries entries_;
};

}  // namespace helenus::causality
