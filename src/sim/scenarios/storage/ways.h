// Ways: a history that goes on in another way at every one of its events.
//
// At an event the process is copied: the copy takes the other way (a crash, a full disk) and ends,
// the history goes on. So every event costs what follows from it, and not all that came before.
//
// A seed is one kind of history, one seed of it, and one event of every eleven: eleven seeds that
// follow one another, times the number of kinds, take all ways of one history of each kind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sim/scenario.h"
#include "sim/worker.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::sim {

inline constexpr std::uint64_t kWaysShared = 11;

struct WaysOfSeed {
  WaysOfSeed(std::uint64_t seed, std::uint64_t kinds)
      : kind(seed % kinds),
        share(seed / kinds % kWaysShared),
        history(seed / kinds / kWaysShared + 1) {}

  std::string to_string() const;

  std::uint64_t kind;
  std::uint64_t share;
  std::uint64_t history;
};

// Half of the histories meet buggify.
WorldOptions world_of_history(const RunOptions& options, std::uint64_t history);

enum class Events : unsigned char { all, of_the_disk };

struct WaysOptions {
  Events events = Events::all;  // or only those at which an operation of the disk began
  std::uint64_t stride = 1;     // every so many events; for ways that are dear
};

// What a way came to. What must be seen is wanted once in so many ways.
struct WayEnd {
  Violations violations;
  std::vector<Sighting> sightings;
};

class Ways {
 public:
  // Takes down what happens in a world in which nothing has failed so far.
  Ways(storage::testing::LogWorld& world, const WaysOfSeed& seed, WaysOptions options)
      : world_(world), seed_(seed), options_(options) {}

  // Lets the life under way happen. At each chosen event `story` takes the other way and tells how
  // it ended. `run_event` lets one event happen, and tells whether the life goes on.
  void take(const std::function<bool()>& run_event,
            const std::function<WayEnd(std::uint64_t event)>& story);

  std::uint64_t count() const { return count_; }
  // Of the whole run.
  RunOutcome outcome(const Violations& of_history);

 private:
  void take_one(std::uint64_t event, const std::function<WayEnd(std::uint64_t event)>& story);
  void add(std::uint64_t event, const std::string& bytes);

  storage::testing::LogWorld& world_;
  const WaysOfSeed seed_;
  const WaysOptions options_;
  std::uint64_t count_ = 0;
  base::Digest digest_;
  RunOutcome outcome_;
};

}  // namespace helenus::sim
