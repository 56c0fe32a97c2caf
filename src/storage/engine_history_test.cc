// Long random histories of the engine beside an oracle, without and with crashes.
#include <gtest/gtest.h>

#include "storage/engine_history_test_support.h"

namespace helenus::storage::testing {
namespace {

using causality::Policy;

TEST(EngineHistory, ReadsAsTheDotStoreItsDeltasMake) {
  EngineHistory::Counts counts;
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    for (const bool peer : {true, false}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        EngineHistory history(seed, {.policy = policy, .steps = 200, .peer = peer});
        for (int life = 0; life < 4 && !HasFailure(); ++life) {
          history.start_life();
          history.run_to_end();
        }
        counts.flushes += history.counts().flushes;
        counts.compactions += history.counts().compactions;
        counts.keys_gone += history.counts().keys_gone;
        counts.records_replayed += history.counts().records_replayed;
        counts.mutations_given += history.counts().mutations_given;
        counts.mutations_from_files += history.counts().mutations_from_files;
        counts.timestamps_raised += history.counts().timestamps_raised;
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  EXPECT_GT(counts.flushes, 500);
  EXPECT_GT(counts.compactions, 50);
  EXPECT_GT(counts.keys_gone, 50);
  EXPECT_GT(counts.records_replayed, 50);
  EXPECT_GT(counts.mutations_given, 500);
  EXPECT_GT(counts.mutations_from_files, 100);
  EXPECT_GT(counts.timestamps_raised, 100);
}

TEST(EngineHistory, AMutationLogOverItsCapNamesWhatItCannotGive) {
  std::uint64_t shed = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    EngineHistory history(seed, {.steps = 150, .mutation_log_bytes_max = 4 << 10});
    for (int life = 0; life < 3 && !HasFailure(); ++life) {
      history.start_life();
      history.run_to_end();
    }
    history.start_life();
    history.run_events(100 * seed);
    history.crash(true);
    history.start_life();
    history.run_to_end();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    shed += history.counts().mutation_files_shed;
  }
  EXPECT_GT(shed, 10);
}

// A crash after every event of a history, by kill and by power loss, and the lives after it.
class EngineCrash : public ::testing::TestWithParam<LogSyncMode> {};

TEST_P(EngineCrash, AtEveryEventLosesNothingAcknowledgedAndMintsNoDotTwice) {
  std::uint64_t crashes = 0;
  for (const Policy policy : {Policy::lww, Policy::siblings}) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      for (std::uint64_t events = 1;; events += 1 + (seed * 7 + events) % 9) {
        EngineHistory history(seed, {.policy = policy, .mode = GetParam(), .steps = 40});
        history.start_life();
        history.run_to_end();
        history.start_life();
        const bool cut = history.run_events(events);
        history.crash(events % 3 != 0);
        history.start_life();
        if (history.run_events(events % 97 + 20)) history.crash(events % 2 == 0);
        history.start_life();
        history.run_to_end();
        ASSERT_FALSE(HasFailure()) << "seed " << seed << ", crash after event " << events;
        ++crashes;
        if (!cut) break;
      }
    }
  }
  EXPECT_GT(crashes, 150);
}

// A start that has to flush before it has replayed everything, killed and then cut off from power:
// what the first kill left in the page cache alone may be in a file already.
TEST(EngineHistory, AStartThatIsCutShortMintsNothingTwice) {
  std::uint64_t crashes = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (std::uint64_t events = 1; events < 400; events += 1 + (seed * 5 + events) % 7) {
      EngineHistory history(seed, {.steps = 40, .tight_memory = true});
      history.start_life();
      history.run_events(150 + seed * 60 + events % 50);
      history.crash(false);
      history.start_life();
      history.run_events(events);
      history.crash(true);
      history.start_life();
      history.run_to_end();
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", crash after event " << events;
      ++crashes;
    }
  }
  EXPECT_GT(crashes, 200);
}

INSTANTIATE_TEST_SUITE_P(AllModes, EngineCrash,
                         ::testing::Values(LogSyncMode::batch, LogSyncMode::group,
                                           LogSyncMode::periodic),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

TEST(EngineHistory, AnOlderImageOfTheDiskIsKnownForOne) {
  std::uint64_t doubts = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EngineHistory history(seed, {.steps = 40});
    history.start_life();
    history.run_to_end();
    history.start_life();
    history.run_events(200 + 10 * seed);
    history.take_image();
    history.run_events(300);
    history.crash(true);
    history.put_back_image();
    history.start_life();
    history.run_to_end();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    doubts += history.counts().lives_in_doubt;
  }
  EXPECT_EQ(doubts, 20);
}

}  // namespace
}  // namespace helenus::storage::testing
