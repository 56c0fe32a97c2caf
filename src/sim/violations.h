// Violations: what did not hold in a run, one sentence each; and Sighting, what a run saw happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace helenus::sim {

// All are counted, the first ones kept.
class Violations {
 public:
  static constexpr std::size_t kKeptMax = 20;

  void add(std::string what) {
    ++count_;
    if (kept_.size() < kKeptMax) kept_.push_back(std::move(what));
  }
  void add_all(const Violations& others) {
    for (const std::string& what : others.kept()) add(what);
    count_ += others.count() - others.kept().size();
  }
  // Adds the sentence unless the condition holds, and returns it. The sentence is made only then.
  template <class... Args>
  bool expect(bool holds, fmt::format_string<Args...> text, Args&&... args) {
    if (!holds) add(fmt::format(text, std::forward<Args>(args)...));
    return holds;
  }

  bool empty() const { return count_ == 0; }
  std::uint64_t count() const { return count_; }
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<std::string> kept_;
};

// How often something happened in a run that must happen for the run to prove anything, and how
// often it must, on the average over many seeds.
struct Sighting {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t wanted = 1;
};

}  // namespace helenus::sim
