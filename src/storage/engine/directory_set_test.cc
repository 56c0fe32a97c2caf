// Directories of a folder that are not of the same time: noticed at the start, named, and nothing
// is changed.
#include "storage/engine/directory_set.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/files.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Errc;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kFirst = std::string(kEngineFolder) + "/a";
const std::string kSecond = std::string(kEngineFolder) + "/b";

// ---- A backup: the files of a directory, from outside ----

using Backup = std::map<std::string, std::string>;

void collect(LogWorld& world, const std::string& directory, Backup& backup) {
  const auto entries = world.disk().list(directory);
  if (!entries) return;
  for (const auto& entry : *entries) {
    const std::string path = directory + "/" + entry.name;
    if (world.disk().find_directory(path)) {
      collect(world, path, backup);
    } else {
      backup[path] = world.read(path);
    }
  }
}

Backup backup_of(LogWorld& world, const std::string& directory) {
  Backup backup;
  collect(world, directory, backup);
  return backup;
}

// For good.
void remove(LogWorld& world, const std::string& path) {
  ASSERT_TRUE(world.disk().remove(path).has_value()) << path;
  const auto directory = world.disk().find_directory(runtime::directory_of(path));
  world.disk().commit_names(*directory, world.disk().names_mark());
}

void remove_all(LogWorld& world, const std::string& directory) {
  for (const auto& [path, bytes] : backup_of(world, directory)) remove(world, path);
}

// Files that are as they were stay the same files: what is brought back is not noticed as a copy.
void restore(LogWorld& world, const std::string& directory, const Backup& backup) {
  for (const auto& [path, bytes] : backup_of(world, directory)) {
    if (!backup.contains(path)) remove(world, path);
  }
  for (const auto& [path, bytes] : backup) {
    const auto there = world.disk().find(path);
    if (there && world.read(path) == bytes) continue;
    if (there) world.disk().truncate(*there, 0);
    world.write(path, 0, bytes);
  }
}

// ---- Lives ----

using Tale = std::function<Task<void>(EngineStory&)>;

Task<void> life(Runtime& runtime, EngineOptions options, const Tale& tell) {
  EngineStory story(runtime, std::move(options));
  CO_ASSERT_OK(co_await story.open());
  co_await tell(story);
  CO_ASSERT_OK(co_await story.stop());
}

void live(LogWorld& world, const Tale& tell, const EngineOptions& options = small_engine()) {
  world.run([&](Runtime& runtime) { return life(runtime, options, tell); });
}

Task<void> try_open(Runtime& runtime, EngineOptions options, Result<void>& result) {
  auto engine = co_await Engine::open(runtime, std::move(options));
  result = engine ? co_await (*engine)->stop() : Result<void>(std::move(engine).error());
}

Task<void> try_open_once(Runtime& runtime, EngineOptions options) {
  Result<void> result;
  co_await try_open(runtime, std::move(options), result);
}

Result<void> open_result(LogWorld& world, const EngineOptions& options = small_engine()) {
  Result<void> result;
  world.run([&](Runtime& runtime) { return try_open(runtime, options, result); });
  return result;
}

Task<void> write(EngineStory& story, std::string prefix) {
  for (int row = 0; row < 30; ++row) {
    CO_ASSERT_OK(
        co_await story.put("p", fmt::format("{}{:02}", prefix, row), std::string(400, 'v')));
  }
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await story.put("p", prefix + "last", "v"));
}

Tale write_rows(const std::string& prefix) {
  return [prefix](EngineStory& story) { return write(story, prefix); };
}

Task<void> expect_count(EngineStory& story, std::size_t count) {
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), count);
}

Tale expect_rows(std::size_t count) {
  return [count](EngineStory& story) { return expect_count(story, count); };
}

// All files but locks, which a start makes.
Backup files_of(LogWorld& world) {
  Backup all = backup_of(world, "/data");
  std::erase_if(all, [](const auto& file) { return file.first.ends_with("lock"); });
  return all;
}

// The start is refused for these two, and leaves every file as it is.
void expect_refused(LogWorld& world, const std::string& one, const std::string& other,
                    const EngineOptions& options = small_engine()) {
  const Backup before = files_of(world);
  const auto opened = open_result(world, options);
  ASSERT_TRUE(opened.failed_with(Errc::corrupt)) << one << " " << other;
  EXPECT_THAT(opened.error().to_string(), AllOf(HasSubstr(one), HasSubstr(other)));
  EXPECT_TRUE(files_of(world) == before) << "something was changed";
}

TEST(DirectorySet, DataOlderThanTheLogIsRefused) {
  LogWorld world;
  live(world, write_rows("a"));
  const Backup old_first = backup_of(world, kFirst);
  const Backup old_second = backup_of(world, kSecond);
  live(world, write_rows("b"));
  const Backup new_first = backup_of(world, kFirst);
  const Backup new_second = backup_of(world, kSecond);
  restore(world, kFirst, old_first);
  restore(world, kSecond, old_second);
  expect_refused(world, kFirst, kLogFolder);
  restore(world, kFirst, new_first);
  expect_refused(world, kSecond, kLogFolder);
  restore(world, kSecond, new_second);
  restore(world, kFirst, old_first);
  expect_refused(world, kFirst, kLogFolder);
  restore(world, kFirst, new_first);
  live(world, expect_rows(62));
}

Task<void> back_up_while_writing(EngineStory& story, LogWorld& world, Backup& first,
                                 Backup& second) {
  co_await write(story, "a");
  first = backup_of(world, kFirst);
  second = backup_of(world, kSecond);
  co_await write(story, "b");
}

TEST(DirectorySet, DataOlderThanTheLogWithinOneStartIsRefused) {
  LogWorld world;
  Backup first;
  Backup second;
  live(world,
       [&](EngineStory& story) { return back_up_while_writing(story, world, first, second); });
  const Backup new_first = backup_of(world, kFirst);
  const Backup new_second = backup_of(world, kSecond);
  restore(world, kFirst, first);
  restore(world, kSecond, second);
  expect_refused(world, kFirst, kLogFolder);
  restore(world, kFirst, new_first);
  restore(world, kSecond, new_second);
  live(world, expect_rows(62));
}

Task<void> open_and_idle(Runtime& runtime, bool& opened) {
  const auto engine = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(engine);
  opened = true;
  (void)co_await runtime::sleep_for(runtime, std::chrono::hours(1), {});
}

// What was replayed is in the files, and nothing was written since: the log is gone all the same.
TEST(DirectorySet, DataOlderThanAStartThatWroteNothingIsRefused) {
  LogWorld world;
  live(world, write_rows("a"));
  const Backup old_first = backup_of(world, kFirst);
  const Backup old_second = backup_of(world, kSecond);
  bool opened = false;
  world.start([&](Runtime& runtime) { return open_and_idle(runtime, opened); });
  ASSERT_TRUE(world.world().run_until([&] { return opened; }, std::chrono::minutes(1)));
  world.machine().kill();
  const Backup new_first = backup_of(world, kFirst);
  const Backup new_second = backup_of(world, kSecond);
  restore(world, kFirst, old_first);
  restore(world, kSecond, old_second);
  expect_refused(world, kFirst, kLogFolder);
  restore(world, kFirst, new_first);
  restore(world, kSecond, new_second);
  live(world, expect_rows(31));
}

TEST(DirectorySet, ALogOlderThanTheDataIsRefused) {
  LogWorld world;
  live(world, write_rows("a"));
  const Backup old_log = backup_of(world, kLogFolder);
  live(world, write_rows("b"));
  const Backup new_log = backup_of(world, kLogFolder);
  restore(world, kLogFolder, old_log);
  expect_refused(world, kFirst, kLogFolder);
  restore(world, kLogFolder, new_log);
  live(world, expect_rows(62));
}

Task<void> back_up_log_while_writing(EngineStory& story, LogWorld& world, Backup& log) {
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  log = backup_of(world, kLogFolder);
  co_await write(story, "b");
}

TEST(DirectorySet, ALogOlderThanTheDataWithinOneStartIsRefused) {
  LogWorld world;
  Backup log;
  live(world, [&](EngineStory& story) { return back_up_log_while_writing(story, world, log); });
  const Backup new_log = backup_of(world, kLogFolder);
  restore(world, kLogFolder, log);
  expect_refused(world, kFirst, kLogFolder);
  restore(world, kLogFolder, new_log);
  live(world, expect_rows(32));
}

TEST(DirectorySet, DirectoriesThatWereSwappedOrEmptiedOrAreAnothersAreRefused) {
  LogWorld world;
  live(world, write_rows("a"));
  EngineOptions swapped = small_engine();
  std::swap(swapped.data_directories.front(), swapped.data_directories.back());
  expect_refused(world, kSecond, "was given as 0", swapped);
  const Backup second = backup_of(world, kSecond);
  remove_all(world, kSecond);
  expect_refused(world, kSecond, kLogFolder);
  restore(world, kSecond, second);
  EngineOptions others = small_engine();
  others.data_directories = {"/data/other"};
  others.log_directory = "/data/otherlog";
  live(world, write_rows("z"), others);
  EngineOptions mixed = small_engine();
  mixed.log_directory = others.log_directory;
  expect_refused(world, kFirst, "/data/otherlog", mixed);
  mixed = small_engine();
  mixed.data_directories.push_back("/data/other");
  expect_refused(world, "/data/other", kLogFolder, mixed);
  live(world, expect_rows(31));
}

// ---- A lost log ----

Task<void> expect_doubt(EngineStory& story, bool reincarnate) {
  Engine& engine = story.engine();
  EXPECT_TRUE(engine.report().log.tail_may_be_lost);
  EXPECT_EQ(engine.tablets_in_doubt(), std::vector<TabletId>{kTablet});
  EXPECT_TRUE((co_await story.put("p", "new", "v")).failed_with(Errc::unavailable));
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), 30) << "what was flushed";
  if (!reincarnate) co_return;
  CO_ASSERT_OK(co_await engine.reincarnate(kTablet, causality::actor_of(1, 2)));
  CO_ASSERT_OK(co_await story.put("p", "new", "v"));
}

Task<void> do_nothing(EngineStory&) {
  co_return;
}

Task<void> expect_no_doubt(EngineStory& story) {
  EXPECT_TRUE(story.engine().tablets_in_doubt().empty());
  EXPECT_EQ(*co_await story.get("p", "new"), "v");
}

TEST(DirectorySet, ALostLogIsRefusedUntilItIsAcceptedAndThenADoubtfulStop) {
  LogWorld world;
  for (int lives = 0; lives < 3; ++lives) live(world, do_nothing);
  live(world, write_rows("a"));
  remove_all(world, kLogFolder);
  expect_refused(world, kFirst, kLogFolder);
  EngineOptions accepting = small_engine();
  accepting.accept_lost_log_of_start = start_named_in(open_result(world).error());
  // The doubt stays until it is settled, whether it is accepted again or not.
  live(world, [](EngineStory& story) { return expect_doubt(story, false); }, accepting);
  live(world, [](EngineStory& story) { return expect_doubt(story, true); });
  // The new log counts from where the old one ended: what it has is not taken for flushed.
  live(world, expect_no_doubt);
  // Left on, it accepts no other loss.
  live(world, expect_no_doubt, accepting);
  remove_all(world, kLogFolder);
  expect_refused(world, kFirst, kLogFolder, accepting);
  const std::uint32_t later = start_named_in(open_result(world, accepting).error());
  EXPECT_GT(later, *accepting.accept_lost_log_of_start);
}

// Three tables of one tablet: the first is flushed, the second is in the log alone, and the third
// was dropped unflushed.
struct Deltas {
  causality::Delta flushed;
  causality::Delta logged;
  causality::Delta dropped;
};

constexpr TableId kLogged{8};
constexpr TableId kDropped{9};

Task<void> write_three_tables(EngineStory& story, Deltas& deltas) {
  Engine& engine = story.engine();
  const auto write = [&](TableId table) {
    return engine.write(table, kTablet, base::Bytes::copy_of("p"), put_of("r", "v", 1),
                        causality::Epoch{1}, Until::forever());
  };
  CO_ASSERT_OK(co_await engine.create_table(kLogged, {}));
  CO_ASSERT_OK(co_await engine.create_table(kDropped, {}));
  CO_ASSERT_OK(co_await write(kTable));
  auto logged = co_await write(kLogged);
  CO_ASSERT_OK(logged);
  deltas.logged = *std::move(logged);
  auto dropped = co_await write(kDropped);
  CO_ASSERT_OK(dropped);
  deltas.dropped = *std::move(dropped);
  auto flushed = co_await write(kTable);
  CO_ASSERT_OK(flushed);
  deltas.flushed = *std::move(flushed);
  CO_ASSERT_OK(co_await engine.drop_table(kDropped));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
}

Task<void> expect_no_claim_without_data(EngineStory& story, const Deltas& deltas) {
  Engine& engine = story.engine();
  EXPECT_TRUE(engine.report().lost_log_accepted);
  const auto clock = engine.durable_clock(kTablet);
  CO_ASSERT_OK(clock);
  EXPECT_TRUE(clock->contains(deltas.flushed.dot));
  EXPECT_TRUE(clock->contains(deltas.dropped.dot));
  EXPECT_FALSE(clock->contains(deltas.logged.dot)) << "an absent row would be a delete";
  EXPECT_EQ(*co_await story.get("p", "r"), "v");
  EXPECT_EQ(*co_await story.get("p", "r", kLogged), "");
  // A peer that has it gives it back.
  CO_ASSERT_OK(co_await engine.reincarnate(kTablet, causality::actor_of(1, 2)));
  const auto staged = engine.stage(kLogged, kTablet, base::as_bytes("p"), deltas.logged);
  CO_ASSERT_OK(staged);
  EXPECT_EQ(staged->applied, causality::Applied::now);
  EXPECT_EQ(*co_await story.get("p", "r", kLogged), "v");
}

TEST(DirectorySet, WhatOnlyALostLogHadIsNotTakenForDeleted) {
  LogWorld world;
  Deltas deltas;
  live(world, [&](EngineStory& story) { return write_three_tables(story, deltas); });
  remove_all(world, kLogFolder);
  EngineOptions accepting = small_engine();
  accepting.accept_lost_log_of_start = start_named_in(open_result(world).error());
  live(
      world, [&](EngineStory& story) { return expect_no_claim_without_data(story, deltas); },
      accepting);
}

// ---- Folders of others ----

TEST(DirectorySet, AFolderOfAnotherVersionIsRefusedAndLeftAsItIs) {
  for (const std::string& path : {kFirst + "/engine", kFirst + "/shard-0000/manifest",
                                  kSecond + "/place", kLogFolder + std::string("/log-place")}) {
    LogWorld world;
    live(world, write_rows("a"));
    constexpr std::size_t kVersionOffset = 8;
    world.write(path, kVersionOffset, "\7");
    const Backup before = files_of(world);
    const auto opened = open_result(world);
    ASSERT_TRUE(opened.failed_with(Errc::unsupported)) << path;
    EXPECT_THAT(
        opened.error().to_string(),
        AllOf(HasSubstr(path + ": version 7 of its format, and this release reads version "),
              HasSubstr(": start the release that wrote it, or this one with an empty folder")));
    EXPECT_TRUE(files_of(world) == before) << "something was changed";
  }
}

TEST(DirectorySet, AFolderWithoutMarkersIsRefused) {
  LogWorld world;
  live(world, write_rows("a"));
  for (const auto& [path, bytes] : backup_of(world, "/data")) {
    if (path.ends_with("/place") || path.ends_with("/log-place") ||
        path.find("/generations-") != std::string::npos) {
      remove(world, path);
    }
  }
  expect_refused(world, kFirst, kLogFolder);
}

TEST(DirectorySet, AStartThatIsCutShortAnywhereFitsTogetherAtTheNext) {
  const Tale expect = expect_rows(31);
  std::uint64_t cut_short = 0;
  for (std::uint64_t events = 1;; events += 7) {
    LogWorld world(events);
    live(world, write_rows("a"));
    // Twice, since the second one finds what the first one left.
    bool whole = false;
    for (const std::uint64_t count : {events, events / 2}) {
      world.start([&](Runtime& runtime) { return life(runtime, small_engine(), expect); });
      for (std::uint64_t event = 0; event < count && world.machine().is_up(); ++event) {
        if (!world.world().step()) break;
      }
      whole = !world.machine().is_up();
      if (whole) break;
      world.machine().power_loss();
      ++cut_short;
    }
    live(world, expect);
    ASSERT_FALSE(HasFailure()) << "after event " << events;
    if (whole) break;
  }
  EXPECT_GT(cut_short, 50);
}

// The first start: what makes the folder, and the markers of its directories.
TEST(DirectorySet, AFirstStartThatIsCutShortAnywhereIsFollowedByOneThatMakesTheFolder) {
  const Tale expect = expect_rows(31);
  std::uint64_t cut_short = 0;
  for (std::uint64_t events = 1;; events += 3) {
    LogWorld world(events);
    bool whole = false;
    for (const std::uint64_t count : {events, events / 2}) {
      world.start([&](Runtime& runtime) { return try_open_once(runtime, small_engine()); });
      for (std::uint64_t event = 0; event < count && world.machine().is_up(); ++event) {
        if (!world.world().step()) break;
      }
      whole = !world.machine().is_up();
      if (whole) break;
      world.machine().power_loss();
      ++cut_short;
    }
    live(world, write_rows("a"));
    live(world, expect);
    ASSERT_FALSE(HasFailure()) << "after event " << events;
    if (whole) break;
  }
  EXPECT_GT(cut_short, 50);
}

// ---- Formats ----

TEST(DirectorySet, MarkersAndGenerationsRoundTripAndDamageIsAnError) {
  const DirectoryMarker marker{
      .folder = base::Uuid::from_random(1, 2), .index = 1, .directories = 2, .start = 9};
  EXPECT_EQ(decode_directory_marker(encode(marker)), marker);
  DirectoryMarker of_node = marker;
  of_node.node = base::Uuid::from_random(3, 4);
  EXPECT_EQ(decode_directory_marker(encode(of_node)), of_node);
  const Generations generations{{0, 12}, {3, 1}, {4095, UINT64_MAX}};
  EXPECT_EQ(decode_generations(encode_generations(generations)), generations);
  const auto every_flip = [](const base::Bytes& whole, const auto& decode) {
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string damaged(whole.text());
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_FALSE(decode(base::as_bytes(damaged)).has_value()) << "bit " << bit;
      EXPECT_FALSE(decode(base::as_bytes(damaged).first(bit / 8)).has_value());
    }
  };
  every_flip(encode(marker), decode_directory_marker);
  every_flip(encode_generations(generations), decode_generations);
}

}  // namespace
}  // namespace helenus::storage::testing
