// Stories about the engine: what its callers may rely on, one at a time.
#include "storage/engine/engine.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using causality::actor_of;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::HasSubstr;

constexpr causality::Epoch kEpoch{1};
constexpr TableId kOther{8};

Bytes bytes(const std::string& text) {
  return Bytes::copy_of(text);
}

Task<void> stop(EngineStory& story) {
  const auto stopped = co_await story.stop();
  EXPECT_TRUE(stopped.has_value()) << stopped.error().to_string();
}

// One life: opens, tells the story, stops.
Task<void> life(Runtime& runtime, EngineOptions options,
                std::function<Task<void>(EngineStory&)> tell) {
  EngineStory story(runtime, std::move(options));
  const auto opened = co_await story.open();
  EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
  if (!opened) co_return;
  co_await tell(story);
  co_await stop(story);
}

void live(LogWorld& world, const std::function<Task<void>(EngineStory&)>& tell,
          const EngineOptions& options = small_engine()) {
  world.run([&](Runtime& runtime) { return life(runtime, options, tell); });
}

Task<void> try_open(Runtime& runtime, EngineOptions options, Result<void>& result) {
  EngineStory story(runtime, std::move(options));
  result = co_await story.open();
  if (result) co_await stop(story);
}

Result<void> open_result(LogWorld& world, const EngineOptions& options = small_engine()) {
  Result<void> result;
  world.run([&](Runtime& runtime) { return try_open(runtime, options, result); });
  return result;
}

// ---- Tables and tablets ----

EngineOptions four_shards() {
  EngineOptions options = small_engine();
  options.shards = 4;
  return options;
}

Task<void> make_tables(EngineStory& story) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await engine.create_table(kOther, {.policy = causality::Policy::siblings}));
  EXPECT_TRUE((co_await engine.create_table(kOther, {})).failed_with(Errc::already_exists));
  CO_ASSERT_OK(co_await story.put("p", "r", "first"));
  CO_ASSERT_OK(co_await engine.write(kOther, kTablet, bytes("p"), put_of("r", "other", 1), kEpoch,
                                     Until::forever()));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
}

Task<void> drop_other(EngineStory& story) {
  EXPECT_EQ(*co_await story.get("p", "r"), "first");
  EXPECT_EQ(*co_await story.get("p", "r", kOther), "other");
  CO_ASSERT_OK(co_await story.engine().drop_table(kOther));
  EXPECT_TRUE((co_await story.get("p", "r", kOther)).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await story.engine().drop_table(kOther)).failed_with(Errc::not_found));
}

Task<void> expect_other_gone(EngineStory& story) {
  EXPECT_EQ(*co_await story.get("p", "r"), "first");
  EXPECT_TRUE((co_await story.get("p", "r", kOther)).failed_with(Errc::not_found));
}

TEST(Engine, TablesStayThroughRestartsUntilTheyAreDropped) {
  LogWorld world;
  live(world, make_tables, four_shards());
  live(world, drop_other, four_shards());
  live(world, expect_other_gone, four_shards());
}

// Dropped with its data in the log, in a memtable being frozen, and in files; made anew at once.
Task<void> drop_and_make_anew(EngineStory& story) {
  Engine& engine = story.engine();
  for (int round = 0; round < 3; ++round) {
    for (int row = 0; row < 10; ++row) {
      CO_ASSERT_OK(co_await story.put("p", "r" + std::to_string(row), "old"));
    }
    if (round == 1) CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  }
  CO_ASSERT_OK(co_await engine.drop_table(kTable));
  CO_ASSERT_OK(co_await engine.create_table(kTable, {}));
  EXPECT_EQ(*co_await story.scan(), Shown());
  CO_ASSERT_OK(co_await story.put("p", "new", "new"));
}

Task<void> expect_only_new(EngineStory& story) {
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(*rows, (Shown{{"p/new", "new"}}));
}

TEST(Engine, ATableMadeAnewUnderAnOldIdHasNothingOfTheOldOne) {
  LogWorld world;
  live(world, drop_and_make_anew);
  live(world, expect_only_new);
  live(world, expect_only_new);
}

Task<void> drop_after_writes(EngineStory& story, causality::Clock& clock) {
  for (int row = 0; row < 5; ++row) CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  clock = *story.engine().durable_clock(kTablet);
  CO_ASSERT_OK(co_await story.engine().drop_table(kTable));
}

Task<void> expect_clock(EngineStory& story, const causality::Clock& clock) {
  EXPECT_EQ(*story.engine().durable_clock(kTablet), clock);
  const auto delta = co_await story.put("p", "r", "v");
  CO_ASSERT_OK(delta);
  EXPECT_FALSE(clock.contains(delta->dot)) << "a dot of a dropped table was minted again";
}

TEST(Engine, TheDotsOfADroppedTableAreNeverMintedAgain) {
  LogWorld world;
  causality::Clock clock;
  live(world, [&](EngineStory& story) { return drop_after_writes(story, clock); });
  live(world, [&](EngineStory& story) { return expect_clock(story, clock); });
}

// What is left of a table when the machine dies in the middle of making or dropping it.
Task<void> make_and_drop(Runtime& runtime, bool& made, bool& dropped) {
  EngineStory story(runtime, four_shards());
  CO_ASSERT_OK(co_await story.open());
  CO_ASSERT_OK(co_await story.engine().create_table(kOther, {}));
  made = true;
  CO_ASSERT_OK(co_await story.engine().drop_table(kOther));
  dropped = true;
  co_await stop(story);
}

Task<void> expect_all_or_nothing(EngineStory& story, bool made, bool dropped) {
  Engine& engine = story.engine();
  int there = 0;
  for (std::uint64_t tablet = 1; tablet <= 4; ++tablet) {
    const KeyRange range{.from = bytes(std::string(1, static_cast<char>('a' + tablet))), .to = {}};
    const auto result = co_await engine.create_tablet(TabletId{tablet}, range, actor_of(1, 1));
    EXPECT_TRUE(result || tablet == 4);  // the fourth is in the shard of kTablet, which has all
    const auto cursor = engine.cursor(kOther, tablet == 4 ? kTablet : TabletId{tablet}, {});
    there += cursor.has_value() ? 1 : 0;
  }
  EXPECT_TRUE(there == 0 || there == 4) << there;
  if (dropped) EXPECT_EQ(there, 0);
  const auto again = co_await engine.create_table(kOther, {});
  EXPECT_TRUE(again || (there == 4 && again.failed_with(Errc::already_exists)));
  CO_ASSERT_TRUE(engine.cursor(kOther, kTablet, {}).has_value());
  EXPECT_TRUE(!made || dropped || there == 4 || there == 0);
}

TEST(Engine, ACrashWhileATableIsMadeOrDroppedLeavesAllOfItOrNothing) {
  std::uint64_t crashes = 0;
  for (std::uint64_t events = 20;; events += 17) {
    LogWorld world(events);
    bool made = false;
    bool dropped = false;
    ASSERT_TRUE(open_result(world, four_shards()).has_value());
    world.start([&](Runtime& runtime) { return make_and_drop(runtime, made, dropped); });
    bool running = true;
    for (std::uint64_t event = 0; event < events && running; ++event) {
      running = world.machine().is_up() && world.world().step();
    }
    if (!world.machine().is_up()) break;
    world.machine().power_loss();
    ++crashes;
    live(
        world, [&](EngineStory& story) { return expect_all_or_nothing(story, made, dropped); },
        four_shards());
    ASSERT_FALSE(HasFailure()) << "after event " << events;
  }
  EXPECT_GT(crashes, 10);
}

Task<void> expect_errors(EngineStory& story) {
  Engine& engine = story.engine();
  const TabletId unknown{77};
  const auto read =
      co_await engine.read_row(kOther, kTablet, bytes("p"), bytes("r"), Until::forever());
  EXPECT_TRUE(read.failed_with(Errc::not_found));
  EXPECT_THAT(read.error().to_string(), HasSubstr("table 8"));
  const auto elsewhere =
      co_await engine.read_row(kTable, unknown, bytes("p"), bytes("r"), Until::forever());
  EXPECT_TRUE(elsewhere.failed_with(Errc::not_found));
  EXPECT_THAT(elsewhere.error().to_string(), HasSubstr("tablet 77"));
  const auto write = [&](TableId table, TabletId tablet, const std::string& partition,
                         const std::string& row) {
    return engine.write(table, tablet, bytes(partition), put_of(row, "v", 1), kEpoch,
                        Until::forever());
  };
  EXPECT_TRUE((co_await write(kOther, kTablet, "p", "r")).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await write(kTable, unknown, "p", "r")).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await write(kTable, kTablet, "", "r")).failed_with(Errc::invalid_argument));
  const std::string longest(kRowKeySizeMax - 2, 'k');
  EXPECT_TRUE((co_await write(kTable, kTablet, longest, "rr")).failed_with(Errc::invalid_argument));
  EXPECT_TRUE((co_await write(kTable, kTablet, "p", longest)).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(engine.cursor(kOther, kTablet, {}).failed_with(Errc::not_found));
  EXPECT_TRUE(engine.cursor(kTable, unknown, {}).failed_with(Errc::not_found));
  EXPECT_TRUE(engine.durable_clock(unknown).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await engine.flush(kOther, Until::forever())).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await engine.compact(kOther, Until::forever())).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await engine.reincarnate(unknown, actor_of(1, 9))).failed_with(Errc::not_found));
  EXPECT_TRUE((co_await engine.create_table(TableId{kTableIdMax + 1}, {}))
                  .failed_with(Errc::invalid_argument));
  engine.set_watermarks(unknown, {});
  // None of them has left a trace: the next write is the first.
  const auto delta = co_await story.put("p", "r", "v");
  CO_ASSERT_OK(delta);
  EXPECT_EQ(delta->dot, (causality::Dot{actor_of(1, 1), 1}));
  EXPECT_TRUE(
      (co_await engine.reincarnate(kTablet, actor_of(1, 1))).failed_with(Errc::invalid_argument));
}

TEST(Engine, WhatIsNotThereAndWhatDoesNotFitIsRefusedAndLeavesNoTrace) {
  LogWorld world;
  live(world, expect_errors);
}

Task<void> use_the_longest_key(EngineStory& story) {
  const std::string partition(kRowKeySizeMax - 2, 'k');
  CO_ASSERT_OK(co_await story.put(partition, "r", "v"));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  EXPECT_EQ(*co_await story.get(partition, "r"), "v");
  EXPECT_EQ(co_await story.scan(), (Shown{{partition + "/r", "v"}}));
}

TEST(Engine, TheLongestKeyIsTaken) {
  LogWorld world;
  EngineOptions options = small_engine();
  options.log.segment_size = 1 << 20;
  options.log.record_size_max = 256 << 10;
  options.log.staged_bytes_max = 1 << 20;
  options.log.disk_bytes_max = 8 << 20;
  live(world, use_the_longest_key, options);
}

// ---- Ranges ----

KeyRange range_of(const std::string& from, std::optional<std::string> to) {
  return {.from = bytes(from), .to = to ? std::optional(bytes(*to)) : std::nullopt};
}

Task<void> make_ranges(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  const causality::ActorId actor = actor_of(1, 1);
  const auto make = [&](std::uint64_t id, const std::string& from, std::optional<std::string> to) {
    return engine.create_tablet(TabletId{id}, range_of(from, std::move(to)), actor);
  };
  CO_ASSERT_OK(co_await engine.create_table(kTable, {}));
  CO_ASSERT_OK(co_await make(1, "b", "d"));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::optional<std::string>>>{
           {"b", "d"}, {"a", {}}, {"a", "c"}, {"c", "e"}, {"c", {}}, {"bb", "bc"}, {"", {}}}) {
    EXPECT_TRUE((co_await make(2, from, to)).failed_with(Errc::invalid_argument)) << from;
  }
  for (const std::string to : {"x", "y"}) {
    EXPECT_TRUE((co_await make(2, "y", to)).failed_with(Errc::invalid_argument)) << "empty";
  }
  EXPECT_TRUE((co_await make(1, "x", "y")).failed_with(Errc::already_exists));
  CO_ASSERT_OK(co_await make(2, "d", {}));
  CO_ASSERT_OK(co_await make(3, "", "b"));
  const auto write = [&](std::uint64_t tablet, const std::string& partition) {
    return engine.write(kTable, TabletId{tablet}, bytes(partition), put_of("r", partition, 1),
                        kEpoch, Until::forever());
  };
  for (const auto& [tablet, partition] : std::vector<std::pair<std::uint64_t, std::string>>{
           {1, "a"}, {1, "d"}, {2, "c\xff"}, {3, "b"}}) {
    EXPECT_TRUE((co_await write(tablet, partition)).failed_with(Errc::invalid_argument));
  }
  for (int round = 0; round < 2; ++round) {
    for (const auto& [tablet, partition] : std::vector<std::pair<std::uint64_t, std::string>>{
             {3, "a"}, {3, "az"}, {1, "b"}, {1, "c"}, {1, "cz"}, {2, "d"}, {2, "z"}}) {
      CO_ASSERT_OK(co_await write(tablet, partition));
    }
    if (round == 0) CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  }
  CO_ASSERT_OK(co_await engine.stop());
}

Task<void> expect_ranges(Runtime& runtime) {
  EngineStory story(runtime);
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  for (const auto& [tablet, wanted] :
       std::vector<std::pair<std::uint64_t, std::string>>{{1, "b c cz"}, {2, "d z"}, {3, "a az"}}) {
    auto cursor = (*opened)->cursor(kTable, TabletId{tablet}, {});
    CO_ASSERT_OK(cursor);
    std::string forward;
    CO_ASSERT_OK(co_await (*cursor)->seek(bytes("\x01"), {}));
    while ((*cursor)->valid()) {
      forward += (forward.empty() ? "" : " ") + std::string(base::as_text((*cursor)->partition()));
      CO_ASSERT_OK(co_await (*cursor)->next());
    }
    EXPECT_EQ(forward, wanted);
    std::string backward;
    CO_ASSERT_OK(co_await (*cursor)->seek_before(bytes("\xff"), {}));
    while ((*cursor)->valid()) {
      backward = std::string(base::as_text((*cursor)->partition())) +
                 (backward.empty() ? "" : " ") + backward;
      CO_ASSERT_OK(co_await (*cursor)->previous());
    }
    EXPECT_EQ(backward, wanted);
  }
  CO_ASSERT_OK(co_await (*opened)->stop());
}

// The keys of its rows would lie on both sides of the bound.
Task<void> write_a_prefix_of_a_bound(Runtime& runtime) {
  auto opened = co_await Engine::open(runtime, small_engine());
  CO_ASSERT_OK(opened);
  Engine& engine = **opened;
  CO_ASSERT_OK(co_await engine.create_table(kTable, {}));
  CO_ASSERT_OK(co_await engine.create_tablet(kTablet, {.from = {}, .to = bytes("cde")},
                                             causality::actor_of(1, 1)));
  for (const char* partition : {"c", "cd"}) {
    const auto written = co_await engine.write(kTable, kTablet, bytes(partition),
                                               put_of("r", "v", 1), kEpoch, Until::forever());
    EXPECT_TRUE(written.failed_with(Errc::invalid_argument)) << partition;
  }
  for (const char* partition : {"b", "ccc", "cdd"}) {
    CO_ASSERT_OK(co_await engine.write(kTable, kTablet, bytes(partition), put_of("r", "v", 1),
                                       kEpoch, Until::forever()));
  }
  CO_ASSERT_OK(co_await engine.stop());
}

TEST(Engine, APartitionKeyThatABoundBeginsWithIsRefused) {
  LogWorld world;
  world.run(write_a_prefix_of_a_bound);
}

TEST(Engine, TabletsDoNotOverlapAndACursorSeesOnlyItsOwn) {
  LogWorld world;
  world.run([](Runtime& runtime) { return make_ranges(runtime); });
  world.run([](Runtime& runtime) { return expect_ranges(runtime); });
}

// ---- Folders ----

Task<void> open_twice(EngineStory& story) {
  const auto second = co_await Engine::open(story.runtime(), small_engine());
  EXPECT_TRUE(second.failed_with(Errc::locked));
  EngineOptions overlapping = small_engine();
  overlapping.data_directories = {"/elsewhere", overlapping.data_directories.back()};
  overlapping.log_directory = "/elsewhere/log";
  const auto third = co_await Engine::open(story.runtime(), overlapping);
  EXPECT_TRUE(third.failed_with(Errc::locked));
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
}

TEST(Engine, AFolderIsOpenedByOneAtATime) {
  LogWorld world;
  live(world, open_twice);
}

TEST(Engine, EveryOptionIsChecked) {
  const std::vector<std::pair<std::string, std::function<void(EngineOptions&)>>> wrong = {
      {"data_directories", [](EngineOptions& options) { options.data_directories.clear(); }},
      {"data_directories", [](EngineOptions& options) { options.data_directories.resize(65); }},
      {"shards", [](EngineOptions& options) { options.shards = 0; }},
      {"shards", [](EngineOptions& options) { options.shards = kShardsMax + 1; }},
      {"memtable_bytes_flush", [](EngineOptions& options) { options.memtable_bytes_flush = 100; }},
      {"memtable_keys_flush", [](EngineOptions& options) { options.memtable_keys_flush = 0; }},
      {"memtable_bytes_max",
       [](EngineOptions& options) {
         options.memtable_bytes_max = 2 * options.memtable_bytes_flush - 1;
       }},
      {"block_bytes", [](EngineOptions& options) { options.block_bytes = 0; }},
      {"filter.bits_per_hash", [](EngineOptions& options) { options.filter.bits_per_hash = 3; }},
      {"filter.false_positive_rate",
       [](EngineOptions& options) { options.filter.false_positive_rate = 0; }},
      {"filter.hashes_max", [](EngineOptions& options) { options.filter.hashes_max = 0; }},
      {"compactions_max", [](EngineOptions& options) { options.compactions_max = 0; }},
      {"sstables_max",
       [](EngineOptions& options) { options.sstables_max = options.sstables_slow; }},
      {"sstables_max", [](EngineOptions& options) { options.sstables_slow = 1; }},
      {"retry_delay", [](EngineOptions& options) { options.retry_delay = {}; }},
      {"segment_size", [](EngineOptions& options) { options.log.segment_size = 1000; }},
      {"files_min", [](EngineOptions& options) { options.compaction.files_min = 1; }},
  };
  EXPECT_TRUE(small_engine().validate().has_value());
  EngineOptions plain;
  plain.data_directories = {"/data"};
  EXPECT_TRUE(plain.validate().has_value());
  EXPECT_EQ(plain.log_directory_or_default(), "/data/commitlog");
  for (const auto& [option, spoil] : wrong) {
    EngineOptions options = small_engine();
    spoil(options);
    const auto valid = options.validate();
    ASSERT_TRUE(valid.failed_with(Errc::invalid_argument)) << option;
    EXPECT_THAT(valid.error().to_string(), HasSubstr(option));
    LogWorld world;
    EXPECT_TRUE(open_result(world, options).failed_with(Errc::invalid_argument)) << option;
  }
}

Task<void> write_in_shards(EngineStory& story) {
  const KeyRange range{.from = bytes("q"), .to = {}};
  CO_ASSERT_OK(co_await story.engine().create_tablet(TabletId{3}, range, actor_of(1, 1)));
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await story.engine().write(kTable, TabletId{3}, bytes("q"), put_of("r", "w", 1),
                                             kEpoch, Until::forever()));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

Task<void> expect_in_shards(EngineStory& story) {
  EXPECT_EQ(*co_await story.get("p", "r"), "v");
  EXPECT_EQ(*co_await story.scan(TabletId{3}), (Shown{{"q/r", "w"}}));
}

TEST(Engine, AFolderHasTheNumberOfShardsItWasMadeWith) {
  LogWorld world;
  live(world, write_in_shards, four_shards());
  for (const std::uint32_t shards : {1U, 2U, 9U}) {
    EngineOptions options = small_engine();
    options.shards = shards;
    live(world, expect_in_shards, options);
    EXPECT_FALSE(world.disk().find(std::string(kEngineFolder) + "/a/shard-0004").has_value());
  }
}

std::size_t sstables_in(LogWorld& world, const std::string& folder) {
  std::size_t count = 0;
  const auto entries = world.disk().list(folder);
  for (const auto& entry : *entries) count += entry.name.ends_with(".sst") ? 1 : 0;
  return count;
}

Task<void> write_many(EngineStory& story) {
  for (int row = 0; row < 60; ++row) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(row), "v"));
    CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  }
}

Task<void> expect_many(EngineStory& story) {
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(rows->size(), 60);
}

TEST(Engine, FilesAreSpreadOverTheDataDirectories) {
  LogWorld world;
  live(world, write_many);
  EXPECT_GT(sstables_in(world, std::string(kEngineFolder) + "/a/shard-0000"), 0);
  EXPECT_GT(sstables_in(world, std::string(kEngineFolder) + "/b/shard-0000"), 0);
  live(world, expect_many);
}

TEST(Engine, ADataDirectoryMayBeAddedAndMayNotBeLeftOut) {
  const std::string a = std::string(kEngineFolder) + "/a";
  const std::string b = std::string(kEngineFolder) + "/b";
  EngineOptions one = small_engine();
  one.data_directories = {a};
  LogWorld world;
  live(world, write_many, one);
  live(world, expect_many);  // with b beside it
  EngineOptions swapped = small_engine();
  swapped.data_directories = {b, a};
  const auto opened = open_result(world, swapped);
  EXPECT_TRUE(opened.failed_with(Errc::corrupt)) << "a folder without its first directory";
  live(world, expect_many);
  EXPECT_GT(sstables_in(world, a + "/shard-0000"), 0);
}

TEST(Engine, ALostEngineFileBesideDataIsAnErrorAndOverwritesNothing) {
  const std::string a = std::string(kEngineFolder) + "/a";
  LogWorld world;
  live(world, write_many);
  const std::string file = world.read(a + "/engine");
  const std::string manifest = world.read(a + "/shard-0000/manifest");
  const std::size_t sstables = sstables_in(world, a + "/shard-0000");
  ASSERT_GT(sstables, 0);
  // Without the engine's file; without the manifest; without both; with nothing but the log.
  ASSERT_TRUE(world.disk().remove(a + "/engine").has_value());
  EXPECT_TRUE(open_result(world).failed_with(Errc::corrupt));
  EXPECT_EQ(world.read(a + "/shard-0000/manifest"), manifest);
  ASSERT_TRUE(world.disk().remove(a + "/shard-0000/manifest").has_value());
  const auto neither = open_result(world);
  EXPECT_TRUE(neither.failed_with(Errc::corrupt));
  EXPECT_THAT(neither.error().to_string(), HasSubstr(a));
  world.write(a + "/engine", 0, file);
  const auto no_manifest = open_result(world);
  EXPECT_TRUE(no_manifest.failed_with(Errc::corrupt));
  EXPECT_THAT(no_manifest.error().to_string(), HasSubstr("shard-0000"));
  EXPECT_EQ(sstables_in(world, a + "/shard-0000"), sstables);
  world.write(a + "/shard-0000/manifest", 0, manifest);
  live(world, expect_many);
}

TEST(Engine, LogsWithoutTheirDataAreAnError) {
  LogWorld world;
  live(world, write_many);
  EngineOptions elsewhere = small_engine();
  elsewhere.data_directories = {"/elsewhere"};
  const auto opened = open_result(world, elsewhere);
  EXPECT_TRUE(opened.failed_with(Errc::corrupt));
  EXPECT_THAT(opened.error().to_string(), HasSubstr(kLogFolder));
  live(world, expect_many);
}

// ---- Statistics ----

Task<void> amplifies(EngineStory& story) {
  const Engine& engine = story.engine();
  const EngineStatistics before = engine.statistics();
  CO_ASSERT_OK(co_await story.put("part", "row", "value"));
  const EngineStatistics written = engine.statistics();
  EXPECT_EQ(written.user_bytes - before.user_bytes, 12);
  // A record alone takes a block of the log.
  EXPECT_GE(written.log_bytes_written - before.log_bytes_written, 4096);
  EXPECT_EQ(written.write_amplification(), static_cast<double>(written.log_bytes_written) /
                                               static_cast<double>(written.user_bytes));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
  const EngineStatistics flushed = engine.statistics();
  EXPECT_GT(flushed.flushed_bytes, 0);
  EXPECT_GE(flushed.write_amplification() * static_cast<double>(flushed.user_bytes),
            static_cast<double>(flushed.log_bytes_written + flushed.flushed_bytes));
}

TEST(Engine, WhatIsWrittenOfOneByteIsCountedInTheLogAndInFiles) {
  LogWorld world;
  live(world, [](EngineStory& story) { return amplifies(story); });
}

Task<void> count_by_table(EngineStory& story) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await story.put("p", "r1", "v"));
  CO_ASSERT_OK(co_await story.put("p", "r2", "v"));
  const auto here = [&engine] {
    for (const TableStatistics& each : engine.table_statistics()) {
      if (each.table == kTable) return each;
    }
    return TableStatistics();
  };
  EXPECT_EQ(here().sstables, 0);
  EXPECT_EQ(here().memtable_keys, 2);
  EXPECT_GT(here().memtable_bytes, 0);
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  EXPECT_EQ(here().memtable_keys, 0);
  EXPECT_EQ(here().sstables, 1);
  EXPECT_EQ(here().sstable_keys, 2);
  EXPECT_EQ(here().sstable_bytes, engine.statistics().sstable_bytes);
  EXPECT_EQ(here().sstable_resident_bytes, engine.statistics().sstable_resident_bytes);
}

TEST(Engine, TellsOfEachTableWhatIsInMemoryAndInFiles) {
  LogWorld world;
  live(world, count_by_table);
}

// ---- Durability, and stopping ----

Task<void> read_before_durable(EngineStory& story, LogWorld& world) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await story.put("p", "r", "old"));
  world.faults().sync_slowness = 1000;
  const auto staged =
      engine.stage(kTable, kTablet, base::as_bytes("p"), put_of("r", "new", 5000), kEpoch);
  CO_ASSERT_OK(staged);
  EXPECT_FALSE(engine.durable_clock(kTablet)->contains(staged->delta.dot));
  EXPECT_GE(engine.log().tail(), engine.log().durable_position());
  // Another row does not wait; this one does, and may give up.
  EXPECT_EQ(*co_await story.get("p", "other"), "");
  EXPECT_EQ(engine.statistics().reads_waited_for_log, 0);
  const auto impatient =
      co_await engine.read_row(kTable, kTablet, bytes("p"), bytes("r"),
                               Until::after(story.runtime(), std::chrono::milliseconds(5)));
  EXPECT_TRUE(impatient.failed_with(Errc::timeout));
  EXPECT_FALSE(engine.durable_clock(kTablet)->contains(staged->delta.dot));
  const auto patient =
      co_await engine.read_row(kTable, kTablet, bytes("p"), bytes("r"), Until::forever());
  CO_ASSERT_OK(patient);
  EXPECT_FALSE(patient->clock.contains(staged->delta.dot)) << "the clock of when it began";
  EXPECT_EQ(engine.statistics().reads_waited_for_log, 2);
  EXPECT_TRUE(engine.durable_clock(kTablet)->contains(staged->delta.dot));
  EXPECT_EQ(*co_await story.get("p", "r"), "new");
  EXPECT_EQ(engine.statistics().reads_waited_for_log, 2);
  world.faults().sync_slowness = 1;
}

TEST(Engine, AReadOfAWriteThatIsNotDurableYetWaitsForTheLog) {
  LogWorld world;
  live(world, [&](EngineStory& story) { return read_before_durable(story, world); });
}

struct Outcomes {
  Shown acknowledged;
  std::uint64_t refused = 0;
};

Task<void> write_until_closed(EngineStory& story, int writer, Outcomes& outcomes) {
  for (int row = 0;; ++row) {
    const std::string name = fmt::format("{}-{}", writer, row);
    const auto written = co_await story.put("p", name, "v" + name);
    if (!written) {
      EXPECT_TRUE(written.failed_with(Errc::closed)) << written.error().to_string();
      ++outcomes.refused;
      co_return;
    }
    outcomes.acknowledged["p/" + name] = "v" + name;
  }
}

Task<void> walk_slowly(EngineStory& story, std::uint64_t& walked) {
  auto cursor = story.engine().cursor(kTable, kTablet, {});
  CO_ASSERT_OK(cursor);
  CO_ASSERT_OK(co_await (*cursor)->seek_first());
  while ((*cursor)->valid()) {
    ++walked;
    CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(2), {}));
    CO_ASSERT_OK(co_await (*cursor)->next());
  }
}

Task<void> stop_amid_work(Runtime& runtime, Outcomes& outcomes) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  for (int row = 0; row < 30; ++row) {
    const std::string name = fmt::format("before-{:02}", row);
    CO_ASSERT_OK(co_await story.put("p", name, "v"));
    outcomes.acknowledged["p/" + name] = "v";
  }
  runtime::TaskGroup tasks(runtime);
  std::uint64_t walked = 0;
  for (int writer = 0; writer < 8; ++writer) {
    tasks.spawn(write_until_closed(story, writer, outcomes));
  }
  tasks.spawn(walk_slowly(story, walked));
  CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(20), {}));
  co_await stop(story);
  EXPECT_GE(walked, 30) << "a cursor under way is waited for";
  co_await tasks.join();
  EXPECT_EQ(outcomes.refused, 8);
  EXPECT_TRUE((co_await story.put("p", "r", "v")).failed_with(Errc::closed));
  EXPECT_TRUE((co_await story.get("p", "r")).failed_with(Errc::closed));
}

Task<void> expect_shown(EngineStory& story, const Shown& wanted) {
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  EXPECT_EQ(*rows, wanted);
}

TEST(Engine, StopsAmidWritesAndCursorsAndKeepsWhatItAcknowledged) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    LogWorld world(seed);
    Outcomes outcomes;
    world.run([&](Runtime& runtime) { return stop_amid_work(runtime, outcomes); });
    EXPECT_GT(outcomes.acknowledged.size(), 60);
    live(world, [&](EngineStory& story) { return expect_shown(story, outcomes.acknowledged); });
  }
}

// ---- Values that expire ----

Task<void> put_expiring(EngineStory& story, std::int64_t seconds) {
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, bytes("p"),
                                             put_of("r", "short", 1, causality::WallTime{seconds}),
                                             kEpoch, Until::forever()));
}

Task<std::size_t> rows_left(EngineStory& story) {
  auto cursor = story.engine().cursor(kTable, kTablet, {});
  std::size_t rows = 0;
  EXPECT_TRUE((co_await (*cursor)->seek_first()).has_value());
  while ((*cursor)->valid()) {
    ++rows;
    EXPECT_TRUE((co_await (*cursor)->next()).has_value());
  }
  co_return rows;
}

Task<void> let_expire(EngineStory& story) {
  Engine& engine = story.engine();
  const auto now =
      std::chrono::floor<std::chrono::seconds>(story.runtime().clock.wall_now().since_origin())
          .count();
  co_await put_expiring(story, now + 100);
  CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  EXPECT_EQ(*co_await story.get("p", "r"), "short");
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(200), {}));
  story.now = causality::WallTime{now + 200};
  EXPECT_EQ(*co_await story.get("p", "r"), "") << "expired, whether it is there or not";
  // A peer that has not been heard of, has not seen the write, or whose clock is behind, keeps it.
  // What a compaction knows is of its newest freeze, so each round has something new to freeze.
  const causality::Clock seen = *engine.durable_clock(kTablet);
  const std::vector<std::vector<std::optional<causality::Watermark>>> too_early = {
      {std::nullopt},
      {causality::Watermark{{}, causality::WallTime{now + 200}}},
      {causality::Watermark{seen, causality::WallTime{now + 50}}},
      {causality::Watermark{seen, causality::WallTime{now + 200}}, std::nullopt}};
  std::size_t others = 0;
  for (const auto& watermarks : too_early) {
    engine.set_watermarks(kTablet, watermarks);
    CO_ASSERT_OK(co_await story.put("q", std::to_string(others++), "v"));
    CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
    const std::size_t left = co_await rows_left(story);
    EXPECT_EQ(left, others + 1);
  }
  engine.set_watermarks(kTablet, {causality::Watermark{seen, causality::WallTime{now + 200}}});
  CO_ASSERT_OK(co_await story.put("q", std::to_string(others++), "v"));
  CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  const std::size_t left = co_await rows_left(story);
  EXPECT_EQ(left, others) << "stable and expired for everybody";
}

TEST(Engine, AnExpiredValueGoesAtACompactionOnceItIsStableAndNotBefore) {
  LogWorld world;
  live(world, let_expire);
}

Task<void> delete_row_by_row(EngineStory& story) {
  constexpr int kRows = 3000;
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  const auto name_of = [](int row) { return fmt::format("r{:05}", row); };
  for (int row = 0; row < kRows; ++row) CO_ASSERT_OK(co_await story.put("p", name_of(row), "v"));
  for (int row = 0; row < kRows; ++row) {
    if (row % 100 == 0) continue;
    causality::Mutation mutation;
    mutation.timestamp = causality::Timestamp{100'000 + row};
    mutation.deleted_ranges.push_back(causality::range_of_row(bytes(name_of(row))));
    CO_ASSERT_OK(co_await engine.write(kTable, kTablet, bytes("p"), std::move(mutation), kEpoch,
                                       Until::forever()));
  }
  CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  const std::size_t left = co_await rows_left(story);
  EXPECT_EQ(left, kRows / 100) << "stable deletes leave nothing";
  EXPECT_EQ(*co_await story.get("p", name_of(100)), "v");
  EXPECT_EQ(*co_await story.get("p", name_of(101)), "");
}

// Each row is judged by the ranges that hold it, not by all of its partition's.
TEST(Engine, RowsOfAPartitionAreDeletedOneByOneInThousands) {
  LogWorld world;
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1'000'000;
  options.memtable_bytes_flush = 64 << 20;
  options.memtable_bytes_max = 256 << 20;
  live(world, delete_row_by_row, options);
}

}  // namespace
}  // namespace helenus::storage::testing
