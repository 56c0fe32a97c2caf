// Long random histories of the engine beside an oracle, without crashes. With
//   HELENUS_HISTORY_SEEDS=1000 HELENUS_HISTORY_FROM=1
// so many seeds from that one on instead of a few.
#include <string>

#include <gtest/gtest.h>

#include "base/test_scale.h"
#include "storage/engine/engine_history_test_support.h"

namespace helenus::storage::testing {
namespace {

TEST(EngineHistory, ReadsAsTheDotStoresItsDeltasMake) {
  EngineHistory::Counts counts;
  const std::uint64_t first = base::number_from_environment("HELENUS_HISTORY_FROM", 1);
  const std::uint64_t seeds = base::count_from_environment("HELENUS_HISTORY_SEEDS", 8);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    EngineHistory history(seed, {.steps = 200, .peers = seed % 4 != 0});
    for (int life = 0; life < 4 && !HasFailure(); ++life) {
      history.start_life();
      history.run_to_end();
    }
    counts.add(history.counts());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(counts.flushes, 500);
  EXPECT_GT(counts.compactions, 50);
  EXPECT_GT(counts.keys_gone, 50);
  EXPECT_GT(counts.records_replayed, 50);
  EXPECT_GT(counts.mutations_given, 500);
  EXPECT_GT(counts.mutations_from_files, 100);
  EXPECT_GT(counts.timestamps_raised, 100);
}

TEST(EngineHistory, APartitionOfManyDeletesReadsAsTheDotStoresItsDeltasMake) {
  EngineHistory::Counts counts;
  const std::uint64_t first = base::number_from_environment("HELENUS_HISTORY_FROM", 1);
  const std::uint64_t seeds = base::count_from_environment("HELENUS_HISTORY_SEEDS", 4);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    EngineHistory history(seed, {.steps = 300,
                                 .tables = 2,
                                 .tablets = 1,
                                 .shards = 1,
                                 .partitions = 1,
                                 .rows = 150,
                                 .peers = seed % 4 != 0,
                                 .schema_changes = false});
    for (int life = 0; life < 3 && !HasFailure(); ++life) {
      history.start_life();
      history.run_to_end();
    }
    counts.add(history.counts());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(counts.compactions, 10);
  EXPECT_GT(counts.walks, 20);
  EXPECT_GT(counts.range_paths_read, 300) << "deletes of ranges lay in parts";
}

TEST(EngineHistory, AMutationLogOverItsCapNamesWhatItCannotGive) {
  std::uint64_t shed = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EngineHistory history(seed, {.steps = 150, .shards = 1, .mutation_log_bytes_max = 4 << 10});
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

}  // namespace
}  // namespace helenus::storage::testing
