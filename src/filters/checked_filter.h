// CheckedFilter: a filter in lockstep with the truth, a std::unordered_multiset, for tests and
// fuzzers. Every operation goes to both, and the first answer that breaks the contract of filter.h
// is kept as a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "filters/filter.h"

namespace helenus::filters {

// Sends a filter through its bytes. What is wrong, or nothing.
template <class F>
const char* problem_of_reload(F& filter) {
  const base::Bytes encoded = filter.encode();
  auto decoded = F::decode(encoded);
  if (!decoded) return "does not decode its own bytes";
  filter = *std::move(decoded);
  return filter.encode() == encoded ? nullptr : "encodes differently after decoding";
}

template <Filter F>
class CheckedFilter {
 public:
  explicit CheckedFilter(F filter) : filter_(std::move(filter)) {}

  const F& filter() const { return filter_; }
  std::uint64_t size() const { return truth_.size(); }
  // Empty as long as the filter has kept its word.
  const std::string& problem() const { return problem_; }

  bool insert(KeyHash key) {
    const bool inserted = filter_.insert(key);
    if (inserted) truth_.insert(key.value());
    expect(filter_.size() == truth_.size(), "size after insert", key);
    expect(!inserted || filter_.contains(key), "denied right after insert", key);
    return inserted;
  }

  // Does nothing when the key is not in: of such a key most filters promise nothing.
  void erase(KeyHash key)
    requires ErasableFilter<F>
  {
    const auto found = truth_.find(key.value());
    if (found == truth_.end()) return;
    expect(filter_.erase(key), "erase of a key that is in", key);
    truth_.erase(found);
    expect(filter_.size() == truth_.size(), "size after erase", key);
  }

  // Returns the filter's answer.
  bool contains(KeyHash key) {
    const bool answer = filter_.contains(key);
    expect(answer || !truth_.contains(key.value()), "denies a key that is in", key);
    if constexpr (ErasableFilter<F>) {
      expect(filter_.count(key) >= truth_.count(key.value()), "counts too few", key);
      expect(answer || filter_.count(key) == 0, "counts what it denies", key);
    }
    return answer;
  }

  // What an owner does after it looked behind the filter: tells it of a false positive.
  void contains_and_report(KeyHash key)
    requires AdaptiveFilter<F>
  {
    if (!contains(key) || truth_.contains(key.value())) return;
    filter_.report_false_positive(key);
    expect(!filter_.contains(key), "still a false positive after it was reported", key);
  }

  // Sends the filter through its bytes.
  void reload() {
    if (const char* problem = problem_of_reload(filter_)) expect(false, problem, KeyHash());
  }

  // Asks for every key that is in.
  void contains_all() {
    for (const std::uint64_t key : truth_) contains(KeyHash(key));
  }

 private:
  void expect(bool holds, const char* what, KeyHash key) {
    if (holds || !problem_.empty()) return;
    problem_ = fmt::format("{}: key {:#018x}, {} keys in", what, key.value(), truth_.size());
  }

  F filter_;
  std::unordered_multiset<std::uint64_t> truth_;
  std::string problem_;
};

}  // namespace helenus::filters
