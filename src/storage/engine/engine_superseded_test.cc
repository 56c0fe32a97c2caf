// Stories about what need not be read: a row whose delete has seen everything that older files can
// say of it is answered without opening them. And about what must be read though there is a delete.
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using causality::actor_of;
using causality::Clock;
using causality::Dot;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr causality::Epoch kEpoch{1};
const causality::ActorId kPeer = actor_of(2, 1);
const causality::ActorId kOtherPeer = actor_of(3, 1);

EngineOptions without_merges() {
  EngineOptions options = small_engine();
  options.memtable_keys_flush = 1000;
  options.collection.interval = std::chrono::hours(24);
  options.block_cache_bytes = 0;
  return options;
}

void live(const std::function<Task<void>(EngineStory&)>& tell) {
  LogWorld world;
  world.run([&](Runtime& runtime) -> Task<void> {
    EngineStory story(runtime, without_merges());
    CO_ASSERT_OK(co_await story.open());
    co_await tell(story);
    CO_ASSERT_OK(co_await story.stop());
  });
}

Task<void> flush(EngineStory& story) {
  CO_ASSERT_OK(co_await story.engine().flush(kTable, Until::forever()));
}

causality::Mutation deletion(causality::RowRange range, std::int64_t timestamp) {
  causality::Mutation mutation;
  mutation.timestamp = causality::Timestamp{timestamp};
  mutation.deleted_ranges.push_back(std::move(range));
  return mutation;
}

Task<void> remove(EngineStory& story, causality::RowRange range) {
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, Bytes::copy_of("p"),
                                             deletion(std::move(range), 1'000'000), kEpoch,
                                             Until::forever()));
}

causality::RowRange row(const std::string& key) {
  return causality::range_of_row(Bytes::copy_of(key));
}

// How many files a get of the row asks beyond their filters; and that it finds this.
Task<std::uint64_t> files_asked(EngineStory& story, std::string key, std::string expected) {
  const auto before = story.engine().statistics();
  const auto found = co_await story.get("p", key);
  EXPECT_TRUE(found.has_value());
  if (found) EXPECT_EQ(*found, expected) << key;
  const auto after = story.engine().statistics();
  const auto positives = [](const EngineStatistics& at) {
    return at.sstable_counters.filter_positives + at.sstable_counters.filter_false_positives;
  };
  EXPECT_EQ(after.sstable_counters.data_blocks_read > before.sstable_counters.data_blocks_read,
            positives(after) > positives(before));
  co_return positives(after) - positives(before);
}

Task<void> put_in_two_files(EngineStory& story) {
  for (const std::string value : {"old", "new"}) {
    for (int key = 0; key < 20; ++key) {
      CO_ASSERT_OK(co_await story.put("p", fmt::format("{:02}", key), value));
    }
    co_await flush(story);
  }
}

// ---- Without opening a file ----

Task<void> delete_in_memory(EngineStory& story, causality::RowRange range) {
  co_await put_in_two_files(story);
  EXPECT_EQ(co_await files_asked(story, "07", "new"), 2);
  co_await remove(story, std::move(range));
  EXPECT_EQ(co_await files_asked(story, "07", ""), 0);
  EXPECT_EQ(story.engine().statistics().sstables_superseded, 2);
  CO_ASSERT_OK(co_await story.put("p", "07", "again"));
  EXPECT_EQ(co_await files_asked(story, "07", "again"), 0) << "the delete is there still";
  EXPECT_EQ(co_await files_asked(story, "03", "new"), 2);
}

TEST(Superseded, ADeleteInMemoryAnswersWithoutFilesThoughNoPeerHasSeenIt) {
  live([](EngineStory& story) { return delete_in_memory(story, row("07")); });
}

TEST(Superseded, SoDoesADeleteOfARange) {
  live([](EngineStory& story) {
    return delete_in_memory(story, {Bytes::copy_of("05"), Bytes::copy_of("09")});
  });
}

Task<void> delete_in_a_file(EngineStory& story) {
  co_await put_in_two_files(story);
  co_await remove(story, row("07"));
  co_await flush(story);
  EXPECT_EQ(co_await files_asked(story, "07", ""), 1) << "that of the delete";
  CO_ASSERT_OK(co_await story.put("p", "07", "again"));
  co_await flush(story);
  EXPECT_EQ(co_await files_asked(story, "07", "again"), 2);
  EXPECT_EQ(co_await files_asked(story, "03", "new"), 2);
}

TEST(Superseded, ADeleteInAFileAnswersWithoutOlderOnes) {
  live(delete_in_a_file);
}

Task<void> delete_the_partition(EngineStory& story) {
  co_await put_in_two_files(story);
  co_await remove(story, {});
  for (const std::string key : {"00", "07", "19"}) {
    EXPECT_EQ(co_await files_asked(story, key, ""), 0);
  }
}

TEST(Superseded, ADeleteOfThePartitionAnswersForAllOfItsRows) {
  live(delete_the_partition);
}

// ---- What must be read ----

causality::Delta delta_of(causality::ActorId actor, causality::Mutation mutation, Clock& clock) {
  auto delta = causality::mint(clock, actor, kEpoch, causality::Policy::lww, std::move(mutation),
                               causality::kTimestampMin);
  EXPECT_TRUE(delta.has_value()) << delta.error().to_string();
  return *std::move(delta);
}

// A peer deletes the row without having seen what is in the file here.
Task<void> delete_of_who_has_not_seen_it(EngineStory& story) {
  co_await put_in_two_files(story);
  Clock peer;
  auto delta = delta_of(kPeer, deletion(row("07"), 1), peer);
  CO_ASSERT_OK(story.engine().stage(kTable, kTablet, Bytes::copy_of("p"), std::move(delta)));
  EXPECT_EQ(co_await files_asked(story, "07", "new"), 2);
}

TEST(Superseded, ADeleteThatHasNotSeenAFileLeavesItToBeRead) {
  live(delete_of_who_has_not_seen_it);
}

// What arrives out of order lies above the base of the clock: a file has a dot of a peer, and a
// delete is made by another peer who has seen all but that.
Task<void> delete_beside_a_gap(EngineStory& story) {
  Engine& engine = story.engine();
  Clock peer;
  (void)delta_of(kPeer, put_of("07", "lost", 1), peer);
  auto second = delta_of(kPeer, put_of("07", "late", 2'000'000), peer);
  CO_ASSERT_OK(engine.stage(kTable, kTablet, Bytes::copy_of("p"), std::move(second)));
  co_await flush(story);
  Clock other;
  auto delta = delta_of(kOtherPeer, deletion(row("07"), 1'000'000), other);
  CO_ASSERT_OK(engine.stage(kTable, kTablet, Bytes::copy_of("p"), std::move(delta)));
  EXPECT_EQ(co_await files_asked(story, "07", "late"), 1);
}

TEST(Superseded, ADotAboveTheBaseOfTheFileIsNotTakenForSeen) {
  live(delete_beside_a_gap);
}

// A client who has read a version of a peer, here not yet known, overwrites it; the file then names
// that version. A delete made here has not seen it. When it arrives it is superseded all the same.
Task<void> delete_beside_a_context(EngineStory& story) {
  Engine& engine = story.engine();
  Clock peer;
  auto unknown = delta_of(kPeer, put_of("07", "zombie", 9'000'000), peer);
  auto write = put_of("07", "seen", 9'000'001);
  write.context =
      causality::Context{.epoch = kEpoch, .floor = causality::Timestamp{9'000'000}, .dots = peer};
  CO_ASSERT_OK(co_await engine.write(kTable, kTablet, Bytes::copy_of("p"), std::move(write), kEpoch,
                                     Until::forever()));
  co_await flush(story);
  // Its timestamp must not decide: made by somebody who has seen the write and nothing else.
  Clock other;
  other.add(Dot{actor_of(1, 1), 1});
  auto delta = delta_of(kOtherPeer, deletion(row("07"), 1), other);
  CO_ASSERT_OK(engine.stage(kTable, kTablet, Bytes::copy_of("p"), std::move(delta)));
  CO_ASSERT_OK(engine.stage(kTable, kTablet, Bytes::copy_of("p"), std::move(unknown)));
  EXPECT_EQ(co_await files_asked(story, "07", ""), 1);
}

TEST(Superseded, WhatOnlyAContextInTheFileNamesIsNotForgotten) {
  live(delete_beside_a_context);
}

}  // namespace
}  // namespace helenus::storage::testing
