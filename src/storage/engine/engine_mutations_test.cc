// Stories about the engine's mutation logs: what peers may rely on, and what writes owe to them.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/crc32c.h"
#include "causality/codec.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "storage/engine/engine_test_support.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using causality::actor_of;
using causality::Clock;
using causality::Dot;
using causality::kTimestampMin;
using causality::Timestamp;
using causality::Watermark;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::HasSubstr;

constexpr causality::Epoch kEpoch{1};
constexpr causality::WallTime kWall{1};
const causality::ActorId kSelf = actor_of(1, 1);
const causality::ActorId kPeer = actor_of(2, 1);

Task<void> life(Runtime& runtime, EngineOptions options,
                std::function<Task<void>(EngineStory&)> tell) {
  EngineStory story(runtime, std::move(options));
  CO_ASSERT_OK(co_await story.open());
  co_await tell(story);
  CO_ASSERT_OK(co_await story.stop());
}

void live(LogWorld& world, const std::function<Task<void>(EngineStory&)>& tell,
          const EngineOptions& options = small_engine()) {
  world.run([&](Runtime& runtime) { return life(runtime, options, tell); });
}

Clock own_up_to(std::uint64_t counter) {
  Clock clock;
  if (counter > 0) clock.add(causality::DotRange{kSelf, 1, counter});
  return clock;
}

// What peers are told (R4).
Task<void> synced_is_less_than_acknowledged(EngineStory& story) {
  Engine& engine = story.engine();
  EXPECT_TRUE(engine.take_changed_clocks().empty());
  for (int i = 0; i < 3; ++i) CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  EXPECT_EQ(*engine.durable_clock(kTablet), own_up_to(3));
  EXPECT_EQ(*engine.synced_clock(kTablet), Clock());
  // It is named until the clock has all of it, and then no more.
  EXPECT_EQ(engine.take_changed_clocks(), std::vector{kTablet});
  CO_ASSERT_OK(co_await story.put("p", "r", "w"));
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(5), {}));
  EXPECT_EQ(engine.take_changed_clocks(), std::vector{kTablet});
  EXPECT_EQ(*engine.synced_clock(kTablet), own_up_to(4));
  EXPECT_TRUE(engine.take_changed_clocks().empty());
  // Dots of a dropped table are in the manifest, and so are synced.
  Clock covered;
  covered.add(Dot{kPeer, 1});
  CO_ASSERT_OK(co_await engine.cover(kTablet, covered));
  EXPECT_EQ(engine.take_changed_clocks(), std::vector{kTablet});
  EXPECT_EQ(*engine.synced_clock(kTablet), causality::join(own_up_to(4), covered));
}

TEST(EngineMutations, PeersAreToldOfWhatSurvivesAPowerLoss) {
  LogWorld world;
  EngineOptions options = small_engine();
  options.log = small_log(LogSyncMode::periodic);
  live(world, &synced_is_less_than_acknowledged, options);
}

TEST(SyncedClock, IsAPrefixOfWhatWasSeenThatIsSynced) {
  SyncedClock synced;
  const auto at = [](std::uint64_t offset) { return LogPosition{.segment = {}, .offset = offset}; };
  synced.note(own_up_to(2), at(20), at(10));
  EXPECT_EQ(synced.clock(), Clock());
  // What came after the moment that is waited for is left for the next one.
  synced.note(own_up_to(3), at(30), at(20));
  EXPECT_EQ(synced.clock(), own_up_to(2));
  EXPECT_TRUE(synced.is_behind());
  synced.note(own_up_to(3), at(30), at(30));
  EXPECT_EQ(synced.clock(), own_up_to(3));
  EXPECT_FALSE(synced.is_behind());
}

// "1.1:1=p 1.1:2=p": what a peer with that clock is given, dot and partition.
Task<Result<std::string>> given(EngineStory& story, Clock peer) {
  std::string text;
  while (true) {
    CO_TRY(const auto page,
           co_await story.engine().missing_mutations(kTablet, peer, 200, Until::forever()));
    for (const LoggedMutation& mutation : page.mutations) {
      CO_TRY(const auto delta, causality::decode_delta(mutation.delta));
      EXPECT_EQ(delta.dot, mutation.dot);
      text +=
          fmt::format("{}{}={}", text.empty() ? "" : " ", mutation.dot, mutation.partition.text());
      peer.add(mutation.dot);
    }
    if (page.complete) co_return text;
  }
}

Task<Result<Clock>> withheld(EngineStory& story, Clock peer) {
  CO_TRY(const auto page,
         co_await story.engine().missing_mutations(kTablet, peer, SIZE_MAX, Until::forever()));
  co_return page.withheld;
}

// Waits until what is to be done with mutation files has been done.
Task<void> settle_files(EngineStory& story, std::size_t files) {
  for (int turn = 0; turn < 100; ++turn) {
    if (story.engine().statistics().mutation_files == files) co_return;
    (void)co_await runtime::sleep_for(story.runtime(), std::chrono::milliseconds(10), {});
  }
  EXPECT_EQ(story.engine().statistics().mutation_files, files);
}

// ---- Without peers ----

Task<void> write_alone(EngineStory& story) {
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {});
  for (int row = 0; row < 30; ++row) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(row), "v"));
    EXPECT_EQ(engine.statistics().mutations_in_memory, 0);
  }
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await story.put("p", "last", "v"));
  EXPECT_TRUE(engine.kept_mutations(kTablet)->empty());
  EXPECT_EQ(engine.statistics().mutation_bytes_written, 0);
}

// Nobody has said yet that there are no peers; the records say it.
Task<void> expect_nothing_kept(EngineStory& story) {
  EXPECT_GT(story.engine().report().records_applied, 0);
  EXPECT_TRUE(story.engine().kept_mutations(kTablet)->empty());
  EXPECT_EQ(story.engine().statistics().mutation_bytes_written, 0);
  EXPECT_EQ(co_await withheld(story, {}), own_up_to(31))
      << "whoever joins copies the tablet; it cannot be caught up by the log";
}

TEST(MutationLogOfEngine, ATabletWithoutPeersKeepsNothingNeitherNowNorAfterARestart) {
  LogWorld world;
  live(world, write_alone);
  live(world, expect_nothing_kept);
}

// ---- Until it is stable ----

Task<void> collect_step_by_step(EngineStory& story) {
  Engine& engine = story.engine();
  for (int row = 0; row < 3; ++row) CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await story.put("q", "r", "v"));
  EXPECT_EQ(engine.statistics().mutation_files, 1);
  EXPECT_EQ(engine.statistics().mutations_in_memory, 1);
  EXPECT_EQ(co_await given(story, {}), "1.1:1=p 1.1:2=p 1.1:3=p 1.1:4=q");
  EXPECT_EQ(co_await given(story, own_up_to(2)), "1.1:3=p 1.1:4=q");
  EXPECT_EQ(co_await given(story, own_up_to(4)), "");
  const auto tell = [&](std::uint64_t first, std::optional<std::uint64_t> second) {
    std::optional<Watermark> other;
    if (second) other = Watermark{own_up_to(*second), kWall};
    engine.set_watermarks(kTablet, {Watermark{own_up_to(first), kWall}, other});
  };
  tell(4, std::nullopt);
  EXPECT_EQ(*engine.kept_mutations(kTablet), own_up_to(4)) << "one was not heard of yet";
  tell(4, 2);
  EXPECT_EQ(co_await given(story, {}), "1.1:3=p 1.1:4=q");
  EXPECT_EQ(co_await withheld(story, {}), own_up_to(2)) << "named, not skipped";
  EXPECT_EQ(engine.statistics().mutation_files, 1) << "one of its mutations is needed";
  tell(4, 3);
  co_await settle_files(story, 0);
  EXPECT_EQ(engine.statistics().mutations_in_memory, 1);
  tell(4, 4);
  EXPECT_EQ(engine.statistics().mutations_in_memory, 0);
  EXPECT_EQ(engine.statistics().mutation_memory_bytes, 0);
  EXPECT_TRUE(engine.kept_mutations(kTablet)->empty());
}

Task<void> expect_only_the_last(EngineStory& story) {
  EXPECT_EQ(co_await given(story, {}), "1.1:4=q") << "the file is gone, the log is not yet";
  story.engine().set_watermarks(kTablet, {Watermark{own_up_to(4), kWall}});
  EXPECT_EQ(co_await given(story, {}), "");
}

TEST(MutationLogOfEngine, AMutationGoesWhenTheLastMemberHasIt) {
  LogWorld world;
  live(world, collect_step_by_step);
  live(world, expect_only_the_last);
}

// What has not reached the disk is not shown.
Task<void> stage_and_ask(EngineStory& story) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  const auto staged =
      engine.stage(kTable, kTablet, base::as_bytes("p"), put_of("r", "v", 2000), kEpoch);
  CO_ASSERT_OK(staged);
  EXPECT_EQ(co_await given(story, {}), "1.1:1=p");
  CO_ASSERT_OK(co_await engine.durable(staged->position, Until::forever()));
  EXPECT_EQ(co_await given(story, {}), "1.1:1=p 1.1:2=p");
}

TEST(MutationLogOfEngine, OnlyWhatIsDurableIsGiven) {
  LogWorld world;
  live(world, stage_and_ask);
}

// Peers' dots come with gaps, and go on to other peers.
Task<void> take_from_peer(EngineStory& story) {
  Engine& engine = story.engine();
  Clock clock;
  for (std::uint64_t counter = 1; counter <= 5; ++counter) {
    auto delta = causality::mint(clock, kPeer, kEpoch, causality::Policy::lww,
                                 put_of("r", "v", 3000), kTimestampMin);
    CO_ASSERT_OK(delta);
    if (counter == 2 || counter == 3) continue;
    const auto staged = engine.stage(kTable, kTablet, base::as_bytes("p"), *delta);
    CO_ASSERT_OK(staged);
    CO_ASSERT_OK(co_await engine.durable(staged->position, Until::forever()));
  }
  CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  EXPECT_EQ(co_await given(story, {}), "1.1:1=p 2.1:1=p 2.1:4=p 2.1:5=p");
  engine.set_watermarks(kTablet, {Watermark{clock, kWall}});
  EXPECT_EQ(co_await given(story, {}), "1.1:1=p 2.1:4=p 2.1:5=p")
      << "what lies above a gap here is not stable";
}

TEST(MutationLogOfEngine, APeersMutationsArePassedOn) {
  LogWorld world;
  live(world, take_from_peer);
}

Task<void> ask_for_nothing(EngineStory& story) {
  const auto missing =
      co_await story.engine().missing_mutations(TabletId{77}, {}, 1, Until::forever());
  EXPECT_TRUE(missing.failed_with(Errc::not_found));
  EXPECT_TRUE(story.engine().kept_mutations(TabletId{77}).failed_with(Errc::not_found));
  const auto floor = co_await story.engine().covered_floor(
      kTable, TabletId{77}, Bytes::copy_of("p"), {}, causality::ColumnId{0}, Until::forever());
  EXPECT_TRUE(floor.failed_with(Errc::not_found));
}

TEST(MutationLogOfEngine, OfATabletThatIsNotThereThereIsNone) {
  LogWorld world;
  live(world, ask_for_nothing);
}

// ---- Files ----

Task<void> flush_often(EngineStory& story) {
  Engine& engine = story.engine();
  for (int round = 0; round < 20; ++round) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(round), "v"));
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  }
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(1), {}));
  EXPECT_LT(engine.statistics().mutation_files, 8);
  EXPECT_EQ(*engine.kept_mutations(kTablet), own_up_to(20));
  EXPECT_EQ(engine.statistics().mutations_in_memory, 0);
}

Task<void> expect_twenty(EngineStory& story) {
  std::string wanted;
  for (int counter = 1; counter <= 20; ++counter) {
    wanted += fmt::format("{}1.1:{}=p", wanted.empty() ? "" : " ", counter);
  }
  EXPECT_EQ(co_await given(story, {}), wanted);
  story.engine().set_watermarks(kTablet, {Watermark{own_up_to(20), kWall}});
  co_await settle_files(story, 0);
}

TEST(MutationLogOfEngine, ManySmallFilesAreMerged) {
  LogWorld world;
  live(world, flush_often);
  live(world, expect_twenty);
}

EngineOptions little_disk() {
  EngineOptions options = small_engine();
  options.mutation_log_bytes_max = 3000;
  options.compaction.files_min = 32;
  return options;
}

Task<void> exceed_the_cap(EngineStory& story) {
  Engine& engine = story.engine();
  for (int round = 0; round < 20; ++round) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(round), std::string(300, 'v')));
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  }
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(1), {}));
  EXPECT_GT(engine.statistics().mutation_files_shed, 5);
  EXPECT_LE(engine.statistics().mutation_file_bytes, 3000);
}

Task<void> expect_shed(EngineStory& story) {
  Engine& engine = story.engine();
  const Clock kept = *engine.kept_mutations(kTablet);
  const std::uint64_t oldest = kept.entries().front().counters.ranges().front().first;
  EXPECT_GT(oldest, 5) << "the oldest go first";
  EXPECT_EQ(co_await withheld(story, {}), own_up_to(oldest - 1));
  EXPECT_EQ(co_await withheld(story, own_up_to(oldest - 1)), Clock()) << "not behind the cap";
  EXPECT_EQ(co_await withheld(story, own_up_to(oldest - 2)),
            causality::subtract(own_up_to(oldest - 1), own_up_to(oldest - 2)));
  EXPECT_EQ((*co_await story.scan()).size(), 20) << "what was shed is still in the table";
  // Nor is it forgotten above which timestamps writes must lie.
  const auto delta = co_await engine.write(kTable, kTablet, Bytes::copy_of("q"),
                                           put_of("0", "v", 1), kEpoch, Until::forever());
  CO_ASSERT_OK(delta);
  EXPECT_GT(delta->timestamp, Timestamp{1020});
  const auto floor =
      co_await engine.covered_floor(kTable, kTablet, Bytes::copy_of("p"), Bytes::copy_of("0"),
                                    causality::ColumnId{0}, Until::forever());
  EXPECT_TRUE(floor.failed_with(Errc::unavailable)) << "never a guess";
  engine.set_watermarks(kTablet, {Watermark{own_up_to(21), kWall}});
  const auto later = co_await engine.write(kTable, kTablet, Bytes::copy_of("q"),
                                           put_of("0", "v", 1), kEpoch, Until::forever());
  CO_ASSERT_OK(later);
  EXPECT_EQ(later->timestamp, Timestamp{1});
}

TEST(MutationLogOfEngine, APeerBehindTheCapIsToldSo) {
  LogWorld world;
  live(world, exceed_the_cap, little_disk());
  live(world, expect_shed, little_disk());
}

// ---- Of tables that were dropped ----

constexpr TableId kKept{8};

Task<Result<Clock>> covered(EngineStory& story, Clock peer) {
  CO_TRY(const auto page,
         co_await story.engine().missing_mutations(kTablet, peer, SIZE_MAX, Until::forever()));
  co_return page.covered;
}

// Dots 1 to 3 are of a mutation file, 4 and 5 in memory; 6 is another table's.
Task<void> drop_the_table(EngineStory& story) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await engine.create_table(kKept, {}));
  for (int row = 0; row < 3; ++row) CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  for (int row = 0; row < 2; ++row) CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await engine.write(kKept, kTablet, Bytes::copy_of("o"), put_of("r", "v", 1),
                                     kEpoch, Until::forever()));
  CO_ASSERT_OK(co_await engine.drop_table(kTable));
}

Task<void> expect_only_dots(Runtime& runtime, int lives) {
  for (int life = 0; life < lives; ++life) {
    // Without the story's open(), which would make the table anew.
    auto opened = co_await Engine::open(runtime, small_engine());
    CO_ASSERT_OK(opened);
    const auto page =
        co_await (*opened)->missing_mutations(kTablet, {}, SIZE_MAX, Until::forever());
    CO_ASSERT_OK(page);
    CO_ASSERT_TRUE(page->mutations.size() == 1);
    EXPECT_EQ(page->mutations.front().dot, (Dot{kSelf, 6}));
    EXPECT_EQ(page->covered, own_up_to(5));
    EXPECT_TRUE(page->withheld.empty());
    EXPECT_TRUE(page->complete);
    CO_ASSERT_OK(co_await (*opened)->stop());
  }
}

TEST(MutationLogOfEngine, OfADroppedTableOnlyTheDotsAreGiven) {
  LogWorld world;
  live(world, drop_the_table);
  world.run([](Runtime& runtime) { return expect_only_dots(runtime, 2); });
}

// The peer's side: the gap is closed, and whoever asks the peer is told the same.
Task<void> take_covered_dots(EngineStory& story) {
  Engine& engine = story.engine();
  Clock dots;
  dots.add(causality::DotRange{kPeer, 1, 3});
  CO_ASSERT_OK(co_await engine.cover(kTablet, dots));
  CO_ASSERT_OK(co_await engine.cover(kTablet, dots));
  EXPECT_EQ(engine.durable_clock(kTablet)->max_of(kPeer), 3);
  EXPECT_EQ(engine.staged_clock(kTablet)->max_of(kPeer), 3);
  EXPECT_EQ(co_await covered(story, {}), dots);
  Clock own;
  own.add(Dot{kSelf, 9});
  EXPECT_TRUE((co_await engine.cover(kTablet, own)).failed_with(Errc::invalid_argument));
  EXPECT_TRUE((co_await engine.cover(TabletId{99}, dots)).failed_with(Errc::not_found));
}

Task<void> expect_covered_until_stable(EngineStory& story) {
  Engine& engine = story.engine();
  Clock dots;
  dots.add(causality::DotRange{kPeer, 1, 3});
  EXPECT_EQ(*engine.durable_clock(kTablet), dots);
  EXPECT_EQ(co_await covered(story, {}), dots);
  EXPECT_EQ(co_await withheld(story, {}), Clock());
  engine.set_watermarks(kTablet, {Watermark{dots, kWall}});
  EXPECT_EQ(co_await covered(story, {}), Clock());
}

TEST(MutationLogOfEngine, ADotThatIsCoveredCountsAsSeenAndIsPassedOn) {
  LogWorld world;
  live(world, take_covered_dots);
  live(world, expect_covered_until_stable);
}

// ---- Damage ----

std::vector<std::string> sstables_of(LogWorld& world) {
  std::vector<std::string> paths;
  for (const char* directory : {"a", "b"}) {
    const std::string folder = fmt::format("{}/{}/shard-0000", kEngineFolder, directory);
    const auto entries = world.disk().list(folder);
    for (const auto& entry : *entries) {
      if (entry.name.ends_with(".sst")) paths.push_back(folder + "/" + entry.name);
    }
  }
  return paths;
}

// The one of that number.
std::string sstables_of(LogWorld& world, const std::string& number) {
  for (const std::string& path : sstables_of(world)) {
    if (path.ends_with(number + ".sst")) return path;
  }
  ADD_FAILURE() << number;
  return "";
}

Task<void> flush_one(EngineStory& story) {
  for (int row = 0; row < 10; ++row) CO_ASSERT_OK(co_await story.put("p", "r", "v"));
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

// Every byte of every file: the right mutations, or an error that names the file.
Task<void> give_in_spite(Runtime& runtime, const std::string& path, std::uint64_t& told) {
  EngineStory story(runtime);
  const auto opened = co_await story.open();
  if (!opened) {
    EXPECT_THAT(opened.error().to_string(), HasSubstr(path));
    ++told;
    co_return;
  }
  const auto text = co_await given(story, {});
  if (text) {
    EXPECT_EQ(*text,
              "1.1:1=p 1.1:2=p 1.1:3=p 1.1:4=p 1.1:5=p 1.1:6=p 1.1:7=p 1.1:8=p 1.1:9=p 1.1:10=p");
  } else {
    EXPECT_THAT(text.error().to_string(), HasSubstr(path));
    ++told;
  }
  CO_ASSERT_OK(co_await story.stop());
}

TEST(MutationLogOfEngine, AFlippedBitGivesTheRightMutationsOrAnErrorThatNamesTheFile) {
  LogWorld world;
  live(world, flush_one);
  std::uint64_t told = 0;
  const auto paths = sstables_of(world);
  ASSERT_EQ(paths.size(), 2) << "the table's and the mutation log's";
  for (const std::string& path : paths) {
    const std::size_t size = world.read(path).size();
    for (std::size_t byte = 0; byte < size; byte += 1 + size / 300) {
      world.flip_bit(path, byte * 8 + byte % 8);
      world.run([&](Runtime& runtime) { return give_in_spite(runtime, path, told); });
      world.flip_bit(path, byte * 8 + byte % 8);
      ASSERT_FALSE(HasFailure()) << path << " byte " << byte;
    }
  }
  EXPECT_GT(told, 100);
}

// One of four that would be merged cannot be read; the others are.
Task<void> merge_around_damage(EngineStory& story, LogWorld& world) {
  Engine& engine = story.engine();
  for (int round = 0; round < 3; ++round) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(round), "v"));
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  }
  EXPECT_EQ(engine.statistics().mutation_files, 3);
  // The table's file is written before the mutations that go with it.
  world.flip_bit(sstables_of(world, "0000000002"), 100 * 8);
  for (int round = 3; round < 12; ++round) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(round), "v"));
    CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  }
  CO_ASSERT_OK(co_await runtime::sleep_for(story.runtime(), std::chrono::seconds(10), {}));
  EXPECT_LE(engine.statistics().mutation_files, 5);
  EXPECT_TRUE((co_await given(story, {})).failed_with(Errc::corrupt));
  const std::string rest = *co_await given(story, own_up_to(1));
  EXPECT_EQ(std::ranges::count(rest, '='), 11);
}

TEST(MutationLogOfEngine, ADamagedFileDoesNotKeepTheOthersFromBeingMerged) {
  LogWorld world;
  live(world, [&](EngineStory& story) { return merge_around_damage(story, world); });
}

// ---- Timestamps ----

Task<Result<Timestamp>> write_at(EngineStory& story, std::string partition, std::string row,
                                 std::int64_t timestamp) {
  CO_TRY(const auto delta,
         co_await story.engine().write(kTable, kTablet, Bytes::copy_of(partition),
                                       put_of(row, "v", timestamp), kEpoch, Until::forever()));
  co_return delta.timestamp;
}

Task<void> write_with_a_fast_clock(EngineStory& story) {
  Engine& engine = story.engine();
  engine.set_watermarks(kTablet, {Watermark{{}, kWall}});
  EXPECT_EQ(co_await write_at(story, "p", "fast", 9000), Timestamp{9000});
  EXPECT_EQ(co_await write_at(story, "p", "fast", 10), Timestamp{9001}) << "raised";
  EXPECT_EQ(co_await write_at(story, "p", "slow", 10), Timestamp{10}) << "another row";
  const auto read = co_await engine.read_row(kTable, kTablet, Bytes::copy_of("p"),
                                             Bytes::copy_of("fast"), Until::forever());
  CO_ASSERT_OK(read);
  EXPECT_EQ(read->floor, Timestamp{9001});
  causality::Mutation all;
  all.timestamp = Timestamp{20};
  all.deleted_ranges.push_back({});
  const auto deleted =
      co_await engine.write(kTable, kTablet, Bytes::copy_of("p"), all, kEpoch, Until::forever());
  CO_ASSERT_OK(deleted);
  EXPECT_EQ(deleted->timestamp, Timestamp{9002}) << "above all that it deletes";
  EXPECT_EQ(co_await write_at(story, "p", "slow", 30), Timestamp{9003}) << "above the delete";
  engine.set_watermarks(kTablet, {Watermark{own_up_to(5), kWall}});
  EXPECT_EQ(co_await write_at(story, "p", "fast", 40), Timestamp{40}) << "all of it is stable";
}

TEST(MutationLogOfEngine, AWriteIsRaisedAboveTheUnstableMutationsOfItsCellsAndNoOthers) {
  LogWorld world;
  live(world, write_with_a_fast_clock);
}

Task<Result<Timestamp>> floor_of(EngineStory& story, std::string row, std::uint32_t column) {
  return story.engine().covered_floor(kTable, kTablet, Bytes::copy_of("p"), Bytes::copy_of(row),
                                      causality::ColumnId{column}, Until::forever());
}

Task<void> expect_floors(EngineStory& story) {
  EXPECT_EQ(co_await floor_of(story, "a", 0), Timestamp{500});
  EXPECT_EQ(co_await floor_of(story, "a", 1), kTimestampMin) << "another column";
  EXPECT_EQ(co_await floor_of(story, "b", 0), Timestamp{300}) << "a delete of the row";
  EXPECT_EQ(co_await floor_of(story, "c", 0), kTimestampMin);
}

Task<void> write_explicitly(EngineStory& story) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await write_at(story, "p", "a", 500));
  causality::Mutation row_delete;
  row_delete.timestamp = Timestamp{300};
  row_delete.deleted_ranges.push_back(causality::range_of_row(Bytes::copy_of("b")));
  CO_ASSERT_OK(co_await engine.write(kTable, kTablet, Bytes::copy_of("p"), row_delete, kEpoch,
                                     Until::forever()));
  co_await expect_floors(story);
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  co_await expect_floors(story);
  // Not in that column: the floor of the row does not matter to an explicit timestamp.
  causality::Mutation other = put_of("a", "v", 400);
  other.cells.front().column = causality::ColumnId{1};
  const auto staged = engine.stage(kTable, kTablet, base::as_bytes("p"), std::move(other), kEpoch,
                                   Timestamps::as_given);
  CO_ASSERT_OK(staged);
  EXPECT_EQ(staged->delta.timestamp, Timestamp{400});
  EXPECT_EQ(co_await floor_of(story, "a", 1), Timestamp{400}) << "though it is not durable yet";
  CO_ASSERT_OK(co_await engine.durable(staged->position, Until::forever()));
}

Task<void> expect_floors_again(EngineStory& story) {
  EXPECT_EQ(co_await floor_of(story, "a", 0), Timestamp{500});
  EXPECT_EQ(co_await floor_of(story, "a", 1), Timestamp{400});
  EXPECT_EQ(co_await floor_of(story, "c", 0), kTimestampMin);
}

TEST(MutationLogOfEngine, AnExplicitTimestampIsJudgedByTheCellAlone) {
  LogWorld world;
  live(world, write_explicitly);
  live(world, expect_floors_again);
}

Task<void> ask_floor(EngineStory& story, Timestamp& found) {
  const auto floor = co_await floor_of(story, "a", 0);
  CO_ASSERT_OK(floor);
  found = *floor;
}

Task<void> take_a_delta_while_reading(EngineStory& story) {
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await write_at(story, "p", "a", 500));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await write_at(story, "p", "b", 9999));
  Timestamp found = kTimestampMin;
  runtime::TaskGroup tasks(story.runtime());
  tasks.spawn(ask_floor(story, found));
  Clock clock;
  const auto delta = causality::mint(clock, kPeer, kEpoch, causality::Policy::lww,
                                     put_of("a", "v", 700), kTimestampMin);
  CO_ASSERT_OK(delta);
  CO_ASSERT_OK(engine.stage(kTable, kTablet, base::as_bytes("p"), *delta));
  EXPECT_EQ(found, kTimestampMin) << "the file is being read";
  co_await tasks.join();
  EXPECT_EQ(found, Timestamp{700}) << "what is minted now covers it";
}

TEST(MutationLogOfEngine, AFloorIsOfTheMomentItIsGiven) {
  LogWorld world;
  live(world, take_a_delta_while_reading);
}

// ---- Memory ----

Task<void> write_much_that_is_unstable(EngineStory& story) {
  Engine& engine = story.engine();
  const std::size_t eighth = small_engine().memtable_bytes_max / 8;
  std::size_t floors = 0;
  for (int row = 0; row < 3000; ++row) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(row), "v"));
    floors = std::max(floors, engine.statistics().timestamp_floor_bytes);
  }
  EXPECT_GT(floors, eighth / 4) << "they are counted";
  EXPECT_LE(floors, eighth) << "and bounded";
  const auto late = co_await write_at(story, "p", "0", 1);
  CO_ASSERT_OK(late);
  EXPECT_GT(*late, Timestamp{1001}) << "a coarse floor still counts for every row";
  engine.set_watermarks(kTablet, {});
  EXPECT_EQ(engine.statistics().timestamp_floor_bytes, 0);
  EXPECT_EQ(co_await write_at(story, "p", "0", 1), Timestamp{1});
}

TEST(MutationLogOfEngine, FloorsTakeABoundedPartOfTheMemory) {
  LogWorld world;
  live(world, write_much_that_is_unstable);
}

// Every other dot is of another table, so that each file's dots are full of gaps.
Task<void> write_two_tables_in_turn(EngineStory& story) {
  constexpr TableId kOther{8};
  Engine& engine = story.engine();
  CO_ASSERT_OK(co_await engine.create_table(kOther, {}));
  const std::size_t eighth = small_engine().memtable_bytes_max / 8;
  std::size_t dots = 0;
  for (int row = 0; row < 3000; ++row) {
    CO_ASSERT_OK(co_await story.put("p", std::to_string(row), "v"));
    CO_ASSERT_OK(co_await engine.write(kOther, kTablet, Bytes::copy_of("p"),
                                       put_of("r", "v", 100'000 + row), kEpoch, Until::forever()));
    dots = std::max(dots, engine.statistics().mutation_dots_bytes);
  }
  EXPECT_GT(dots, eighth / 4) << "they are counted";
  EXPECT_LE(dots, eighth + eighth / 4) << "and bounded, but for what the last flush added";
}

TEST(MutationLogOfEngine, TheDotsOfFilesTakeABoundedPartOfTheMemory) {
  LogWorld world;
  live(world, write_two_tables_in_turn);
}

}  // namespace
}  // namespace helenus::storage::testing
