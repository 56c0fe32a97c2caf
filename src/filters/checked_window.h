// CheckedWindow: a sliced forgetful filter in lockstep with the truth, the moment of each key's
// last insertion, for tests and fuzzers. The first answer that breaks the promise of
// sliced_forgetful.h is kept as a sentence.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "filters/checked_filter.h"
#include "filters/sliced_forgetful.h"

namespace helenus::filters {

class CheckedWindow {
 public:
  explicit CheckedWindow(SlicedForgetful filter) : filter_(std::move(filter)) {}

  const SlicedForgetful& filter() const { return filter_; }
  // Empty as long as the filter has kept its word.
  const std::string& problem() const { return problem_; }

  void advance_to(Ticks now) {
    filter_.advance_to(now);
    if (now > now_) now_ = now;
    expect(filter_.now() == now_, "the time", KeyHash());
    check_bounds();
  }

  bool insert(KeyHash key) {
    const std::uint64_t size = filter_.size();
    const bool inserted = filter_.insert(key);
    if (inserted) inserted_at_[key.value()] = now_;
    expect(filter_.size() == size + (inserted ? 1 : 0), "size after insert", key);
    expect(!inserted || filter_.contains(key), "denied right after insert", key);
    expect(filter_.is_shedding() == !inserted, "says that it sheds", key);
    check_bounds();
    return inserted;
  }

  Admission insert_if_absent(KeyHash key) {
    const bool was_present = filter_.contains(key);
    const Admission admission = filter_.insert_if_absent(key);
    if (admission == Admission::inserted) inserted_at_[key.value()] = now_;
    expect((admission == Admission::present) == was_present, "present or not", key);
    expect(admission == Admission::shed || filter_.contains(key), "denied what it took", key);
    expect(admission != Admission::shed || filter_.is_shedding(), "sheds in silence", key);
    check_bounds();
    return admission;
  }

  // Sends the filter through its bytes.
  void reload() {
    if (const char* problem = problem_of_reload(filter_)) expect(false, problem, KeyHash());
  }

  // Asks for every key whose window has not ended.
  void contains_all() {
    for (const auto& [key, at] : inserted_at_) {
      if (now_ - at > filter_.options().window) continue;
      expect(filter_.contains(KeyHash(key)), "denies a key inside the window", KeyHash(key));
    }
  }

 private:
  void check_bounds() {
    expect(filter_.memory_bytes() <= filter_.options().memory_bytes_max, "memory", KeyHash());
    expect(filter_.table_count() <= SlicedForgetful::kTablesMax, "tables", KeyHash());
    // What chance adds to the bits of tiny tables is allowed for.
    expect(filter_.rate_by_equation() <= filter_.false_positive_rate_max() * (1 + 1e-9), "rate",
           KeyHash());
  }

  void expect(bool holds, const char* what, KeyHash key) {
    if (holds || !problem_.empty()) return;
    problem_ = fmt::format("{}: key {:#018x} at {}, {} keys, {} tables", what, key.value(), now_,
                           filter_.size(), filter_.table_count());
  }

  SlicedForgetful filter_;
  Ticks now_ = 0;
  std::map<std::uint64_t, Ticks> inserted_at_;
  std::string problem_;
};

}  // namespace helenus::filters
