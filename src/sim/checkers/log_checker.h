// LogChecker: whether an append-only log kept what it acknowledged, as its clients saw it.
//
// Records are numbers, each appended at most once. What must hold:
//   - a listing holds every record acknowledged before it was asked for
//   - a listing is a beginning of every later one: what was seen stays, in its place
//   - a record acknowledged before another was sent comes before it
//   - nothing is listed twice, and nothing that was never sent
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"

namespace helenus::sim {

class LogHistory {
 public:
  using Tick = std::uint64_t;
  struct Append {
    Tick sent = 0;
    std::optional<Tick> acknowledged;
  };
  struct Listing {
    Tick asked = 0;
    std::vector<std::uint64_t> records;
  };

  // A fresh record, sent now.
  std::uint64_t send();
  void acknowledge(std::uint64_t record);
  // When a listing is asked for, and what came back.
  Tick ask() { return ++ticks_; }
  void list(Tick asked, std::vector<std::uint64_t> records);

  const std::map<std::uint64_t, Append>& appends() const { return appends_; }
  const std::vector<Listing>& listings() const { return listings_; }
  std::size_t acknowledged_count() const { return acknowledged_count_; }
  void add_to(base::Digest& digest) const;

 private:
  Tick ticks_ = 0;
  std::size_t acknowledged_count_ = 0;
  std::map<std::uint64_t, Append> appends_;
  std::vector<Listing> listings_;
};

// What does not hold; empty if all does.
std::vector<std::string> check_log(const LogHistory& history);

}  // namespace helenus::sim
