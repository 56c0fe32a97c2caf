// Commit logs under crashes: at every event of short histories, and at random ones of long
// histories over many lives, with killed processes, power losses, failing disks and full ones. The
// laws are in log_history_test_support.h.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "storage/log/log_history_test_support.h"

namespace helenus::storage {
namespace {

using testing::LogHistory;

struct Scope {
  LogSyncMode mode;
  bool power_loss;
};

std::string name_of(const ::testing::TestParamInfo<Scope>& info) {
  return std::string(storage::name_of(info.param.mode)) +
         (info.param.power_loss ? "_power_loss" : "_kill");
}

class LogCrash : public ::testing::TestWithParam<Scope> {};

// The same history again and again, each time crashed one event later; then a second life that
// begins, works and stops, and a third that finds everything.
TEST_P(LogCrash, AtEveryEventOfAShortHistory) {
  const LogHistory::Options options{.mode = GetParam().mode, .cores_max = 2, .steps = 40};
  std::uint64_t crashes = 0;
  for (bool running = true; running && !HasFailure(); ++crashes) {
    LogHistory history(7, options);
    history.start_life();
    running = history.run_events(crashes);
    history.crash(GetParam().power_loss);
    history.start_life();
    history.run_to_end();
    history.start_life();
    history.run_to_end();
    if (HasFailure()) ADD_FAILURE() << "crashed after " << crashes << " events";
  }
  EXPECT_GT(crashes, 200U);
}

// Crashing inside recovery itself, again and again, changes nothing.
TEST_P(LogCrash, AtEveryEventOfARecovery) {
  const LogHistory::Options options{.mode = GetParam().mode, .cores_max = 2, .steps = 40};
  for (std::uint64_t seed = 1; seed <= 3 && !HasFailure(); ++seed) {
    LogHistory history(seed, options);
    history.start_life();
    history.run_events(600);
    history.crash(GetParam().power_loss);
    for (std::uint64_t events = 0; events < 250 && !HasFailure(); events += 3) {
      history.start_life();
      history.run_events(events);
      history.crash(GetParam().power_loss);
    }
    history.start_life();
    history.run_to_end();
  }
}

TEST_P(LogCrash, AtRandomEventsOfManyLives) {
  std::uint64_t found = 0;
  for (std::uint64_t seed = 1; seed <= 25 && !HasFailure(); ++seed) {
    LogHistory history(seed, {.mode = GetParam().mode, .steps = 80});
    base::Prng prng = base::Prng::for_purpose(seed, "crashes");
    for (int life = 0; life < 6; ++life) {
      history.start_life();
      const bool running = history.run_events(prng.below(2000));
      if (running && prng.chance(0.8)) {
        history.crash(prng.chance(GetParam().power_loss ? 0.8 : 0.2));
      } else {
        history.run_to_end();
      }
      found += history.records_found();
    }
    history.start_life();
    history.run_to_end();
  }
  EXPECT_GT(found, 1000U);
}

TEST_P(LogCrash, WithFailingAndFullDisks) {
  for (std::uint64_t seed = 1; seed <= 25 && !HasFailure(); ++seed) {
    LogHistory history(seed, {.mode = GetParam().mode, .steps = 80, .faults = true});
    base::Prng prng = base::Prng::for_purpose(seed, "crashes");
    for (int life = 0; life < 6; ++life) {
      history.start_life();
      const bool running = history.run_events(prng.below(3000));
      if (running && prng.chance(0.5)) {
        history.crash(GetParam().power_loss);
      } else {
        history.run_to_end();
      }
    }
    history.start_life();
    history.run_to_end();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, LogCrash,
    ::testing::Values(Scope{LogSyncMode::batch, false}, Scope{LogSyncMode::batch, true},
                      Scope{LogSyncMode::group, false}, Scope{LogSyncMode::group, true},
                      Scope{LogSyncMode::periodic, false}, Scope{LogSyncMode::periodic, true}),
    name_of);

}  // namespace
}  // namespace helenus::storage
