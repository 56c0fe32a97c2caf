// LogDirectory: how a folder of logs is judged at start, and what becomes of the old ones.
#include "storage/log/log_directory.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Errc;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kLogFolder;
using testing::LogWorld;
using testing::look;
using testing::open_logs;
using testing::OpenLogs;
using testing::recover;
using testing::Recovery;
using testing::replay_all;
using testing::small_log;
using testing::stop_logs;

constexpr TableId kUsers{1};
constexpr TableId kOrders{2};

enum class Ending : unsigned char { stop, kill, power_loss };

// One life: opens the folder, appends the texts (to core 0, 1, ... in turn), settles and releases
// if asked to, and ends.
struct Life {
  std::vector<std::string> texts;
  CommitLogOptions options = small_log();
  std::uint32_t cores = 1;
  bool settle = false;
  bool doubt = false;
  std::vector<TableId> release = {};
  bool idle = false;  // long enough for the claims
  TableId table = kUsers;
};

Task<void> live(Runtime& runtime, const Life& life, Ending ending, bool& done) {
  auto open = co_await open_logs(runtime, life.options, life.cores);
  CO_ASSERT_OK(open);
  for (std::size_t i = 0; i < life.texts.size(); ++i) {
    CommitLog& log = *open->logs[i % life.cores];
    auto appended = co_await log.append(life.table, as_bytes(life.texts[i]), Until::forever());
    CO_ASSERT_OK(appended);
  }
  if (life.settle) {
    auto settled = co_await open->folder->clear_tail_doubt();
    CO_ASSERT_OK(settled);
  }
  if (life.doubt) {
    auto noted = co_await open->folder->note_doubt();
    CO_ASSERT_OK(noted);
  }
  if (!life.release.empty()) {
    auto released = co_await open->folder->release(life.release);
    CO_ASSERT_OK(released);
  }
  if (life.idle) {
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::seconds(2), {});
    CO_ASSERT_OK(slept);
  }
  done = true;
  if (ending == Ending::stop) {
    auto stopped = co_await stop_logs(*open);
    CO_ASSERT_OK(stopped);
    co_return;
  }
  // Until the machine ends it.
  auto slept = co_await runtime::sleep_for(runtime, std::chrono::hours(10), {});
  CO_ASSERT_OK(slept);
}

void live_and_end(LogWorld& world, const Life& life, Ending ending) {
  bool done = false;
  world.start([&](Runtime& runtime) { return live(runtime, life, ending, done); });
  const auto over = [&] { return ending == Ending::stop ? !world.machine().is_up() : done; };
  EXPECT_TRUE(world.world().run_until(over, std::chrono::hours(1)));
  EXPECT_TRUE(done);
  if (ending == Ending::power_loss) {
    world.machine().power_loss();
  } else {
    world.machine().kill();
  }
}

TEST(LogDirectory, AFreshFolderHasNothingToReplay) {
  LogWorld world;
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value());
  EXPECT_EQ(found.report.last_stop, LastStop::fresh);
  EXPECT_FALSE(found.report.tail_may_be_lost);
  EXPECT_THAT(found.records, IsEmpty());
}

// Which only in periodic mode is in doubt: there a sync may have failed.
TEST(LogDirectory, AKilledProcessLosesNothingInAnyMode) {
  for (const auto mode : {LogSyncMode::batch, LogSyncMode::group, LogSyncMode::periodic}) {
    LogWorld world;
    live_and_end(world, {.texts = {"a", "b"}, .options = small_log(mode)}, Ending::kill);
    const Recovery found = recover(world);
    ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
    EXPECT_EQ(found.report.last_stop, LastStop::killed);
    EXPECT_EQ(found.report.tail_may_be_lost, mode == LogSyncMode::periodic);
    EXPECT_THAT(found.texts(), ElementsAre("a", "b"));
  }
}

TEST(LogDirectory, APowerLossLosesNothingThatWasAcknowledgedInBatchAndGroupMode) {
  for (const auto mode : {LogSyncMode::batch, LogSyncMode::group}) {
    LogWorld world;
    live_and_end(world, {.texts = {"a", "b"}, .options = small_log(mode)}, Ending::power_loss);
    const Recovery found = recover(world);
    ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
    EXPECT_EQ(found.report.last_stop, LastStop::power_lost);
    EXPECT_FALSE(found.report.tail_may_be_lost);
    EXPECT_THAT(found.texts(), ElementsAre("a", "b"));
  }
}

TEST(LogDirectory, APowerLossInPeriodicModeLeavesADoubt) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}, .options = small_log(LogSyncMode::periodic)},
               Ending::power_loss);
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.report.last_stop, LastStop::power_lost);
  EXPECT_TRUE(found.report.tail_may_be_lost);
}

TEST(LogDirectory, APowerLossAfterACleanStopIsNoDoubt) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}, .options = small_log(LogSyncMode::periodic)}, Ending::stop);
  world.machine().power_loss();
  const Recovery found = recover(world);
  EXPECT_EQ(found.report.last_stop, LastStop::clean);
  EXPECT_FALSE(found.report.tail_may_be_lost);
  EXPECT_THAT(found.texts(), ElementsAre("a"));
}

TEST(LogDirectory, ACopiedFolderIsInDoubtEvenAfterACleanStop) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::stop);
  world.machine().power_loss();
  world.disk().put_back(*world.disk().snapshot(), true);
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.report.last_stop, LastStop::copied);
  EXPECT_TRUE(found.report.tail_may_be_lost);
  EXPECT_THAT(found.texts(), ElementsAre("a"));
}

TEST(LogDirectory, AnOlderImageOfTheDiskIsReplayedAsItWas) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::stop);
  const auto image = world.disk().snapshot();
  live_and_end(world, {.texts = {"b"}}, Ending::power_loss);
  world.disk().put_back(*image, false);
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_THAT(found.texts(), ElementsAre("a"));
}

TEST(LogDirectory, ADoubtIsReportedUntilItIsSettled) {
  LogWorld world;
  const Life periodic{.texts = {"a"}, .options = small_log(LogSyncMode::periodic)};
  live_and_end(world, periodic, Ending::power_loss);
  // The next start finds the doubt and is killed before it was acted on.
  live_and_end(world, {.texts = {}}, Ending::kill);
  EXPECT_EQ(recover(world).report.last_stop, LastStop::killed);
  EXPECT_TRUE(recover(world).report.tail_may_be_lost);
  live_and_end(world, {.texts = {}}, Ending::stop);
  EXPECT_TRUE(recover(world).report.tail_may_be_lost);
  live_and_end(world, {.texts = {}, .settle = true}, Ending::stop);
  EXPECT_FALSE(recover(world).report.tail_may_be_lost);
}

TEST(LogDirectory, WhoeverFindsOutLaterThatSomethingIsLostNotesIt) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}, .doubt = true}, Ending::kill);
  EXPECT_TRUE(recover(world).report.tail_may_be_lost);
  live_and_end(world, {.texts = {}, .settle = true, .doubt = true}, Ending::stop);
  EXPECT_TRUE(recover(world).report.tail_may_be_lost);
  live_and_end(world, {.texts = {}, .settle = true}, Ending::stop);
  EXPECT_FALSE(recover(world).report.tail_may_be_lost);
}

TEST(LogDirectory, ARestartWithAnotherCoreCountReplaysAllLogs) {
  LogWorld world;
  live_and_end(world, {.texts = {"a0", "a1", "a2"}, .cores = 3}, Ending::kill);
  live_and_end(world, {.texts = {"b0"}, .cores = 1}, Ending::stop);
  live_and_end(world, {.texts = {"c0", "c1"}, .cores = 2}, Ending::power_loss);
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_EQ(found.report.logs, 6U);
  EXPECT_THAT(found.texts(), ElementsAre("a0", "a1", "a2", "b0", "c0", "c1"));
}

TEST(LogDirectory, OldSegmentsStayUntilTheirTablesAreReleased) {
  LogWorld world;
  live_and_end(world, {.texts = {"u"}, .table = kUsers}, Ending::kill);
  live_and_end(world, {.texts = {"o"}, .table = kOrders}, Ending::kill);
  live_and_end(world, {.texts = {}, .release = {TableId{99}}}, Ending::kill);
  EXPECT_THAT(recover(world).texts(), ElementsAre("u", "o"));
  live_and_end(world, {.texts = {}, .release = {kUsers}}, Ending::power_loss);
  EXPECT_THAT(recover(world).texts(), ElementsAre("o"));
  live_and_end(world, {.texts = {}, .release = {kUsers, kOrders}}, Ending::stop);
  const Recovery found = recover(world);
  EXPECT_THAT(found.texts(), IsEmpty());
  EXPECT_EQ(world.segment_paths().size(), 1U);
}

TEST(LogDirectory, AnOldLogTakesOnlyTheRoomOfItsRecords) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::kill);
  const std::string path = world.segment_paths().front();
  EXPECT_EQ(world.read(path).size(), small_log().segment_size);
  live_and_end(world, {.texts = {}}, Ending::kill);
  EXPECT_LT(world.read(path).size(), 20000U);
  EXPECT_THAT(recover(world).texts(), ElementsAre("a"));
}

TEST(LogDirectory, WhatIsLeftInTheFolderFromInterruptedWorkIsRemoved) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::stop);
  const std::string segment = world.read(world.segment_paths().front());
  const std::string folder = std::string(kLogFolder) + "/";
  // A segment of an older incarnation that no log lists, a scratch file, a stranger.
  world.write(folder + segment_file_name({0, 5}, 0), 0, segment);
  world.write(folder + "scratch-0000-0000000009.log", 0, "x");
  world.write(folder + "notes.txt", 0, "mine");
  live_and_end(world, {.texts = {"b"}}, Ending::stop);
  EXPECT_THAT(recover(world).texts(), ElementsAre("a", "b"));
  EXPECT_FALSE(world.disk().find(folder + segment_file_name({0, 5}, 0)).has_value());
  EXPECT_FALSE(world.disk().find(folder + "scratch-0000-0000000009.log").has_value());
  EXPECT_TRUE(world.disk().find(folder + "notes.txt").has_value());
}

TEST(LogDirectory, ASecondProcessIsLockedOut) {
  LogWorld world;
  struct Run {
    static Task<void> run(Runtime& runtime) {
      auto first = co_await LogDirectory::open(runtime, kLogFolder);
      CO_ASSERT_OK(first);
      auto second = co_await LogDirectory::open(runtime, kLogFolder);
      EXPECT_TRUE(second.failed_with(Errc::locked));
      auto closed = co_await (*first)->close();
      CO_ASSERT_OK(closed);
      auto third = co_await LogDirectory::open(runtime, kLogFolder);
      EXPECT_TRUE(third.has_value());
    }
  };
  world.run(Run::run);
}

TEST(LogDirectory, BeginRefusesWhatMakesNoSense) {
  LogWorld world;
  struct Run {
    static Task<void> run(Runtime& runtime) {
      auto folder = co_await LogDirectory::open(runtime, kLogFolder);
      CO_ASSERT_OK(folder);
      std::vector<testing::Replayed> nothing;
      auto replayed = co_await replay_all(**folder, nothing);
      CO_ASSERT_OK(replayed);
      auto none = co_await (*folder)->begin(0, small_log());
      EXPECT_TRUE(none.failed_with(Errc::invalid_argument));
      auto many = co_await (*folder)->begin(kCoresMax + 1, small_log());
      EXPECT_TRUE(many.failed_with(Errc::invalid_argument));
      CommitLogOptions bad = small_log();
      bad.segment_size = 1;
      auto refused = co_await (*folder)->begin(1, bad);
      EXPECT_TRUE(refused.failed_with(Errc::invalid_argument));
      auto shares = co_await (*folder)->begin(2, small_log());
      CO_ASSERT_OK(shares);
      EXPECT_EQ(shares->size(), 2U);
    }
  };
  world.run(Run::run);
}

TEST(LogDirectory, ReadErrorsAreErrorsAndNeverAnEmptyLog) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::kill);
  world.faults().read_error = 1;
  const Recovery failed = recover(world);
  ASSERT_TRUE(failed.error.has_value());
  EXPECT_EQ(failed.error->code(), Errc::io_error);
  world.faults().read_error = 0;
  EXPECT_THAT(recover(world).texts(), ElementsAre("a"));
}

// ---- Damage ----

// Three segments in buffered layout, the last one short; stopped or killed.
Life three_segments() {
  Life life;
  life.options.direct = DirectIo::off;
  for (int i = 0; i < 15; ++i) {
    life.texts.push_back(std::to_string(i) + std::string(8000, static_cast<char>('a' + i)));
  }
  return life;
}

void expect_corrupt(LogWorld& world, const std::string& path, std::string_view what = "") {
  const Recovery found = recover(world);
  ASSERT_TRUE(found.error.has_value());
  EXPECT_EQ(found.error->code(), Errc::corrupt) << found.error->to_string();
  EXPECT_THAT(found.error->to_string(), HasSubstr(path));
  EXPECT_THAT(found.error->to_string(), HasSubstr(std::string(what)));
}

TEST(LogDirectory, AMissingSegmentIsAnErrorWhereverItIs) {
  for (const std::size_t missing : {0U, 1U, 2U}) {
    LogWorld world;
    live_and_end(world, three_segments(), Ending::stop);
    const auto paths = world.segment_paths();
    ASSERT_EQ(paths.size(), 3U);
    if (missing == 2) live_and_end(world, {.texts = {"next"}}, Ending::stop);
    world.remove(paths[missing]);
    expect_corrupt(world, paths[missing], "missing");
  }
}

TEST(LogDirectory, AMissingLogOfOneCoreIsAnError) {
  LogWorld world;
  live_and_end(world, {.texts = {"a", "b"}, .cores = 2}, Ending::kill);
  for (const std::string& path : world.segment_paths()) {
    if (path.contains("-0001-")) world.remove(path);
  }
  expect_corrupt(world, segment_file_name({1, 1}, 1), "missing");
}

TEST(LogDirectory, ALostOrDamagedCatalogIsAnError) {
  const std::string catalog = log_catalog_path(kLogFolder);
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::stop);
  const std::string whole = world.read(catalog);
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    world.flip_bit(catalog, bit);
    expect_corrupt(world, catalog);
    world.flip_bit(catalog, bit);
  }
  world.remove(catalog);
  expect_corrupt(world, "commit-", "does not know");
}

TEST(LogDirectory, ASegmentOfACoreTheCatalogDoesNotKnowIsAnError) {
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::stop);
  const std::string alien = std::string(kLogFolder) + "/" + segment_file_name({1, 1}, 7);
  world.write(alien, 0, world.read(world.segment_paths().front()));
  expect_corrupt(world, alien, "no log for core 7");
}

TEST(LogDirectory, SegmentsThatChangedPlacesAreAnError) {
  LogWorld world;
  live_and_end(world, three_segments(), Ending::stop);
  const auto paths = world.segment_paths();
  const std::string first = world.read(paths[0]);
  world.write(paths[0], 0, world.read(paths[1]));
  world.write(paths[1], 0, first);
  expect_corrupt(world, paths[0], "another segment's");
}

TEST(LogDirectory, ALogIsOfItsOwnFolder) {
  LogWorld other(2);
  live_and_end(other, {.texts = {"b"}}, Ending::stop);
  LogWorld world;
  live_and_end(world, {.texts = {"a"}}, Ending::stop);
  const std::string path = world.segment_paths().front();
  world.write(path, 0, other.read(path));
  expect_corrupt(world, path, "another segment's");
}

TEST(LogDirectory, BytesBehindTheEndThatWereNeverWholeAreATornTail) {
  LogWorld world;
  live_and_end(world, {.texts = {"a", "b"}}, Ending::power_loss);
  const std::string path = world.segment_paths().front();
  const std::string whole = world.read(path);
  // The last batch, a block of its own, loses its end: as if its write had been torn.
  const std::size_t batch = whole.find("b", 3 * 4096) / 4096 * 4096;
  ASSERT_NE(whole.find("b", 3 * 4096), std::string::npos);
  world.write(path, batch + 34, "?");
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_THAT(found.texts(), ElementsAre("a"));
  EXPECT_EQ(found.report.torn_bytes, 35U);
}

TEST(LogDirectory, WhatWasJudgedOnceIsNeverTornAgain) {
  LogWorld world;
  live_and_end(world, {.texts = {"a", "b"}}, Ending::kill);
  const std::string path = world.segment_paths().front();
  live_and_end(world, {.texts = {"c"}}, Ending::kill);
  EXPECT_THAT(recover(world).texts(), ElementsAre("a", "b", "c"));
  // Damage to the last batch, which no later batch is a witness for: the catalog is.
  world.flip_bit(path, (world.read(path).find("b", 3 * 4096)) * 8);
  expect_corrupt(world, path, "no whole batch");
}

TEST(LogDirectory, ASameBootWitnessesForWhatWasOnlyWritten) {
  LogWorld world;
  live_and_end(world, {.texts = {"a", "b", "c"}, .options = small_log(LogSyncMode::periodic)},
               Ending::kill);
  const std::string path = world.segment_paths().front();
  world.flip_bit(path, world.read(path).find("b", kSegmentHeaderSize + 64) * 8);
  expect_corrupt(world, path, "written further");
}

// With the file damaged: the same records as without, or an error that names the file and where.
// Returns whether it was an error.
bool harmless_or_named(LogWorld& world, const std::string& path, const Recovery& whole) {
  const Recovery found = recover(world);
  if (!found.error) {
    EXPECT_EQ(found.records, whole.records) << path;
    return false;
  }
  EXPECT_EQ(found.error->code(), Errc::corrupt) << found.error->to_string();
  EXPECT_THAT(found.error->to_string(), HasSubstr(path));
  EXPECT_THAT(found.error->to_string(), HasSubstr("at offset"));
  return true;
}

// One bit of a byte anywhere in the used part of any file; every byte near the beginning of a
// write, every `stride`th elsewhere.
void flip_everywhere(LogWorld& world, std::size_t records, std::size_t stride) {
  const Recovery whole = recover(world);
  ASSERT_FALSE(whole.error.has_value()) << whole.error->to_string();
  ASSERT_EQ(whole.records.size(), records);
  std::size_t errors = 0;
  std::size_t flips = 0;
  for (const std::string& path : world.segment_paths()) {
    const std::string bytes = world.read(path);
    const std::size_t used = bytes.find_last_not_of('\0') + 1;
    for (std::size_t at = 0; at < used + 100; at += at % 8192 < 128 ? 1 : stride) {
      world.flip_bit(path, at * 8 + at % 8);
      errors += harmless_or_named(world, path, whole) ? 1 : 0;
      world.flip_bit(path, at * 8 + at % 8);
      ++flips;
      ASSERT_FALSE(::testing::Test::HasFailure()) << path << " at " << at;
    }
  }
  // All but what lies between batches, and the unused rest of a segment's header block.
  EXPECT_GT(errors, stride == 1 ? 300 : flips / 2);
  EXPECT_LT(errors, flips);
}

TEST(LogDirectory, EveryByteOfASmallLogMayLoseABit) {
  for (const Ending ending : {Ending::stop, Ending::power_loss}) {
    LogWorld world;
    Life life{.texts = {"a", "bc", "", "defgh", std::string(100, 'i')}};
    life.options.direct = DirectIo::off;
    life.idle = true;
    live_and_end(world, life, ending);
    flip_everywhere(world, 5, 1);
  }
}

TEST(LogDirectory, DamageAtRandomInALargeLogIsHarmlessOrNamed) {
  LogWorld world;
  Life life;
  life.options.direct = DirectIo::off;
  life.options.segment_size = 512 << 10;
  base::Prng prng(5);
  for (int i = 0; i < 1000; ++i) {
    life.texts.push_back(std::string(prng.below(3000), static_cast<char>('a' + prng.below(26))));
  }
  life.cores = 2;
  live_and_end(world, life, Ending::stop);
  const Recovery whole = recover(world);
  ASSERT_FALSE(whole.error.has_value());
  ASSERT_EQ(whole.records.size(), 1000U);
  const auto paths = world.segment_paths();
  ASSERT_GE(paths.size(), 4U);
  std::size_t errors = 0;
  for (int round = 0; round < 150; ++round) {
    const std::string& path = paths[prng.below(paths.size())];
    const std::string bytes = world.read(path);
    const std::size_t at = prng.below(bytes.size());
    std::string garbage(std::min<std::size_t>(1 + prng.below(600), bytes.size() - at), '\0');
    if (round % 3 == 0) garbage.resize(1);
    if (round % 3 < 2) {
      for (char& byte : garbage) byte = static_cast<char>(prng.below(256));
    }
    world.write(path, at, garbage);
    errors += harmless_or_named(world, path, whole) ? 1 : 0;
    world.write(path, at, std::string_view(bytes).substr(at, garbage.size()));
    ASSERT_FALSE(HasFailure()) << path << " at " << at << ", round " << round;
  }
  EXPECT_GT(errors, 75U);
}

TEST(LogDirectory, AFlippedBitAnywhereInAStoppedLogIsHarmlessOrNamed) {
  LogWorld world;
  live_and_end(world, three_segments(), Ending::stop);
  flip_everywhere(world, 15, 41);
}

TEST(LogDirectory, AFlippedBitAnywhereInAnIdleLogThatLostPowerIsHarmlessOrNamed) {
  LogWorld world;
  Life life = three_segments();
  life.idle = true;
  live_and_end(world, life, Ending::power_loss);
  flip_everywhere(world, 15, 83);
}

TEST(LogDirectory, ATruncatedSegmentIsHarmlessOrNamed) {
  LogWorld world;
  live_and_end(world, three_segments(), Ending::stop);
  const Recovery whole = recover(world);
  for (const std::string& path : world.segment_paths()) {
    const std::string bytes = world.read(path);
    for (std::size_t size = 0; size < bytes.size(); size += 1009) {
      const auto inode = world.disk().find(path);
      world.disk().truncate(*inode, size);
      const Recovery found = recover(world);
      if (found.error) {
        EXPECT_EQ(found.error->code(), Errc::corrupt) << found.error->to_string();
        EXPECT_THAT(found.error->to_string(), HasSubstr(path));
      } else {
        EXPECT_EQ(found.records, whole.records) << path << " cut to " << size;
      }
      world.write(path, 0, bytes);
    }
  }
}

TEST(LogDirectory, WhatARecycledFileHeldBeforeIsNeverReplayed) {
  LogWorld world;
  struct Run {
    static Task<void> run(Runtime& runtime) {
      auto open = co_await open_logs(runtime, small_log());
      CO_ASSERT_OK(open);
      CommitLog& log = *open->logs[0];
      for (int i = 0; i < 60; ++i) {
        const std::string text = "old" + std::to_string(i) + std::string(3000, 'x');
        auto room = co_await log.room(text.size(), Until::forever());
        CO_ASSERT_OK(room);
        auto appended = co_await log.append(kUsers, as_bytes(text), Until::forever());
        CO_ASSERT_OK(appended);
        log.needed_from(kUsers, log.tail());
      }
      EXPECT_GT(log.files().recycled, 1U);
      auto appended = co_await log.append(kOrders, as_bytes("new"), Until::forever());
      CO_ASSERT_OK(appended);
      auto slept = co_await runtime::sleep_for(runtime, std::chrono::hours(10), {});
      CO_ASSERT_OK(slept);
    }
  };
  world.start(Run::run);
  world.world().run_for(std::chrono::minutes(1));
  world.machine().power_loss();
  // The files hold many old batches behind the end of the log.
  std::size_t old_records = 0;
  for (const std::string& path : world.segment_paths()) {
    const std::string bytes = world.read(path);
    for (std::size_t at = bytes.find("old"); at != std::string::npos;
         at = bytes.find("old", at + 1)) {
      ++old_records;
    }
  }
  const Recovery found = recover(world);
  ASSERT_FALSE(found.error.has_value()) << found.error->to_string();
  EXPECT_LT(found.records.size(), old_records);
  EXPECT_EQ(found.texts().back(), "new");
  EXPECT_EQ(found.report.torn_bytes, 0U);
}

}  // namespace
}  // namespace helenus::storage
