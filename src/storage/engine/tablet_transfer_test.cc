// Stories of replicas that take all that another one has of a tablet.
#include "storage/engine/tablet_transfer.h"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "base/test_scale.h"
#include "causality/counter.h"
#include "causality/resolve.h"
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
using causality::Clock;
using causality::Delta;
using causality::Mutation;
using causality::RowRange;
using causality::Timestamp;
using causality::Watermark;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr causality::Epoch kEpochOfAll{1};
constexpr TableId kOtherTable{8};

// What another engine's snapshot has; whatever is to happen before it is compared happens then.
class SnapshotFeed final : public TabletFeed {
 public:
  explicit SnapshotFeed(std::shared_ptr<const TabletSnapshot> snapshot,
                        std::function<void()> before_comparing = {})
      : snapshot_(std::move(snapshot)),
        claim_(snapshot_->claim()),
        before_comparing_(std::move(before_comparing)) {}

  const TabletClaim& claim() const override { return claim_; }
  TabletClaim& change_claim() { return claim_; }
  std::unique_ptr<EntrySource> entries(TableId table) override {
    return snapshot_->entries(table, Until::forever());
  }
  Task<Result<void>> received() override {
    if (before_comparing_) before_comparing_();
    co_return Result<void>();
  }

 private:
  const std::shared_ptr<const TabletSnapshot> snapshot_;
  TabletClaim claim_;
  const std::function<void()> before_comparing_;
};

// Engines beside each other, each a replica of one tablet.
class Replica {
 public:
  Replica(Runtime& runtime, std::uint32_t number, EngineOptions options = small_engine())
      : runtime_(runtime), number_(number), options_(std::move(options)) {
    options_.data_directories = {fmt::format("/replica-{}", number)};
    options_.log_directory = {};
  }

  Task<Result<void>> open(causality::Policy policy = causality::Policy::lww) {
    CO_TRY(engine_, co_await Engine::open(runtime_, options_));
    if (engine_->tables().empty()) {
      for (const TableId table : {kTable, kOtherTable}) {
        CO_TRY_VOID(co_await engine_->create_table(table, {.policy = policy}));
      }
      CO_TRY_VOID(co_await engine_->create_tablet(kTablet, {}, actor()));
    }
    co_return {};
  }
  Task<Result<void>> stop() {
    CO_TRY_VOID(co_await engine_->stop());
    engine_ = nullptr;
    co_return {};
  }
  causality::ActorId actor() const { return actor_of(number_, 1); }
  Engine& engine() { return *engine_; }

  Task<Result<Delta>> write(TableId table, Mutation mutation) {
    return engine_->write(table, kTablet, Bytes::copy_of("p"), std::move(mutation), kEpochOfAll,
                          Until::forever());
  }
  Task<Result<Delta>> put(std::string row, std::string value, TableId table = kTable) {
    return write(table, put_of(row, value, ++time_));
  }
  Task<Result<Delta>> remove(RowRange range) {
    Mutation mutation;
    mutation.timestamp = Timestamp{++time_};
    mutation.deleted_ranges = {std::move(range)};
    return write(kTable, std::move(mutation));
  }
  Result<Staged> take(TableId table, const Delta& delta) {
    return engine_->stage(table, kTablet, Bytes::copy_of("p").view(), delta);
  }
  Task<Result<IngestReport>> take_all_of(Replica& other,
                                         std::function<void()> before_comparing = {}) {
    CO_TRY(auto snapshot, co_await other.engine().snapshot(kTablet, Until::forever()));
    SnapshotFeed feed(std::move(snapshot), std::move(before_comparing));
    co_return co_await engine_->ingest(kTablet, feed, {});
  }
  // "a=1 b=2": what a reader sees of the partition.
  Task<Result<std::string>> shown(TableId table = kTable,
                                  causality::Policy policy = causality::Policy::lww) {
    CO_TRY(const auto cursor, engine_->cursor(table, kTablet, {}));
    std::string text;
    CO_TRY_VOID(co_await cursor->seek_first());
    while (cursor->valid()) {
      CO_TRY(const auto read, cursor->read());
      const Bytes row = Bytes::copy_of(cursor->row_key());
      const auto cell = read.cell(row, causality::ColumnId{0});
      std::set<std::string> values;
      for (const auto* version : causality::visible(cell, policy, causality::WallTime{1})) {
        values.insert(std::string(version->value.text()));
      }
      if (!values.empty()) {
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", row.text(), fmt::join(values, "|"));
      }
      CO_TRY_VOID(co_await cursor->next());
    }
    co_return text;
  }
  void find_stable(const std::vector<Replica*>& others) {
    std::vector<std::optional<Watermark>> watermarks;
    for (Replica* other : others) {
      watermarks.push_back(
          Watermark{.base = causality::base(*other->engine().synced_clock(kTablet)),
                    .wall = causality::WallTime{1}});
    }
    engine_->set_watermarks(kTablet, std::move(watermarks));
  }

  std::int64_t time_ = 1000;

 private:
  Runtime& runtime_;
  const std::uint32_t number_;
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

void live(const std::function<Task<void>(Runtime&)>& tell) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return tell(runtime); });
}

RowRange rows(const std::string& from, const std::string& to) {
  return {.from = Bytes::copy_of(from), .to = Bytes::copy_of(to)};
}

Task<void> an_empty_one_takes_all(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  CO_ASSERT_OK(co_await source.put("a", "1"));
  CO_ASSERT_OK(co_await source.put("b", "2", kOtherTable));
  CO_ASSERT_OK(co_await source.engine().flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await source.put("b", "2"));
  CO_ASSERT_OK(co_await source.put("c", "3"));
  CO_ASSERT_OK(co_await source.remove(rows("c", "d")));
  const auto taken = co_await receiver.take_all_of(source);
  CO_ASSERT_OK(taken);
  EXPECT_EQ(taken->dots, 1U);
  EXPECT_EQ(*receiver.engine().durable_clock(kTablet), *source.engine().durable_clock(kTablet));
  EXPECT_EQ(*co_await receiver.shown(), "a=1 b=2");
  EXPECT_EQ(*co_await receiver.shown(kOtherTable), "b=2");
  // What it cannot give it says.
  EXPECT_TRUE(receiver.engine().has_shed_mutations(kTablet));
  // What it writes lies above all that is not stable.
  const auto above = co_await receiver.write(kTable, put_of("a", "newer", 1));
  CO_ASSERT_OK(above);
  EXPECT_GT(above->timestamp.value(), source.time_ - 1);
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await receiver.open());
  EXPECT_EQ(*co_await receiver.shown(), "a=newer b=2");
  EXPECT_TRUE(receiver.engine().has_shed_mutations(kTablet));
  // Nothing more to take, and nothing taken twice.
  EXPECT_EQ((co_await receiver.take_all_of(source))->bytes_installed, 0U);
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, AnEmptyReplicaTakesEverything) {
  live(&an_empty_one_takes_all);
}

// Both have what the other has not, and each has superseded something of the other.
Task<void> both_sides_meet(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  for (const std::string row : {"a", "b", "c", "d"}) {
    const auto delta = co_await source.put(row, "old");
    CO_ASSERT_OK(delta);
    CO_ASSERT_OK(receiver.take(kTable, *delta));
  }
  CO_ASSERT_OK(co_await source.put("a", "of source"));
  CO_ASSERT_OK(co_await source.remove(rows("b", "c")));
  CO_ASSERT_OK(co_await receiver.put("c", "of receiver"));
  CO_ASSERT_OK(co_await receiver.remove(rows("d", "e")));
  CO_ASSERT_OK(co_await receiver.put("e", "only there"));
  CO_ASSERT_OK(co_await receiver.take_all_of(source));
  EXPECT_EQ(*co_await receiver.shown(), "a=of source c=of receiver e=only there");
  CO_ASSERT_OK(co_await source.take_all_of(receiver));
  EXPECT_EQ(*co_await source.shown(), "a=of source c=of receiver e=only there");
  for (Replica* replica : {&source, &receiver}) {
    CO_ASSERT_OK(co_await replica->engine().compact(kTable, Until::forever()));
    EXPECT_EQ(*co_await replica->shown(), "a=of source c=of receiver e=only there");
  }
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, WhatEitherHasIsThereAfterwards) {
  live(&both_sides_meet);
}

// A delete that is stable at the source, and dropped there with what it hid, takes away what the
// receiver still has of it: nothing comes back.
Task<void> what_was_dropped_goes(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  for (const std::string row : {"a", "b"}) {
    const auto delta = co_await source.put(row, "old");
    CO_ASSERT_OK(delta);
    CO_ASSERT_OK(receiver.take(kTable, *delta));
  }
  CO_ASSERT_OK(co_await source.remove(rows("a", "b")));
  source.find_stable({&source});  // as if the receiver had it, before its folder was put back
  CO_ASSERT_OK(co_await source.engine().compact(kTable, Until::forever()));
  CO_ASSERT_OK(co_await receiver.take_all_of(source));
  EXPECT_EQ(*co_await receiver.shown(), "b=old");
  CO_ASSERT_OK(co_await receiver.engine().compact(kTable, Until::forever()));
  EXPECT_EQ(*co_await receiver.shown(), "b=old");
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, WhatTheSourceHasDroppedGoes) {
  live(&what_was_dropped_goes);
}

// A delete of a range is still here that the other one has superseded by a write with a smaller
// timestamp: it was stable then, so nothing was raised.
Task<void> a_delete_that_stays_hides_nothing(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  const auto removed = co_await source.remove(rows("a", "c"));
  CO_ASSERT_OK(removed);
  CO_ASSERT_OK(receiver.take(kTable, *removed));
  source.find_stable({&receiver});
  CO_ASSERT_OK(co_await source.engine().compact(kTable, Until::forever()));
  CO_ASSERT_OK(co_await source.write(kTable, put_of("b", "small time", 1)));
  CO_ASSERT_OK(co_await source.engine().compact(kTable, Until::forever()));
  CO_ASSERT_OK(co_await receiver.take_all_of(source));
  EXPECT_EQ(*co_await receiver.shown(), "b=small time");
  CO_ASSERT_OK(co_await receiver.engine().compact(kTable, Until::forever()));
  EXPECT_EQ(*co_await receiver.shown(), "b=small time");
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, ADeleteThatStaysHidesNothingOfWhatCame) {
  live(&a_delete_that_stays_hides_nothing);
}

struct LateDelta {
  Runtime& runtime;
  Replica& receiver;
  Delta delta;
  bool over = false;
  std::size_t refused = 0;
  std::size_t taken = 0;
};

Task<void> deliver_until_over(LateDelta& late) {
  while (!late.over) {
    const auto staged = late.receiver.take(kTable, late.delta);
    if (staged.failed_with(Errc::unavailable)) ++late.refused;
    if (staged && staged->applied == causality::Applied::now) ++late.taken;
    (void)co_await runtime::sleep_for(late.runtime, std::chrono::microseconds(50), {});
  }
}

// What the copy is about to bring does not come another way once it has been compared: the source
// has superseded it, and nobody would say so.
Task<void> late_deltas_wait(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  const auto late = co_await source.put("a", "old");
  CO_ASSERT_OK(late);
  CO_ASSERT_OK(co_await source.remove(rows("a", "b")));
  source.find_stable({&source});
  CO_ASSERT_OK(co_await source.engine().compact(kTable, Until::forever()));
  runtime::TaskGroup tasks(runtime);
  LateDelta delivery{.runtime = runtime, .receiver = receiver, .delta = *late};
  CO_ASSERT_OK(
      co_await receiver.take_all_of(source, [&] { tasks.spawn(deliver_until_over(delivery)); }));
  delivery.over = true;
  co_await tasks.join();
  EXPECT_GT(delivery.refused, 0U);
  EXPECT_EQ(delivery.taken, 0U);
  EXPECT_EQ(*co_await receiver.shown(), "");
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, WhatItBringsDoesNotComeAnotherWayMeanwhile) {
  live(&late_deltas_wait);
}

Task<void> what_nobody_may_claim(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  CO_ASSERT_OK(co_await source.put("a", "1"));
  {
    auto snapshot = co_await source.engine().snapshot(kTablet, Until::forever());
    CO_ASSERT_OK(snapshot);
    SnapshotFeed feed(*snapshot);
    feed.change_claim().clock.add(causality::Dot{receiver.actor(), 1});
    EXPECT_TRUE(
        (co_await receiver.engine().ingest(kTablet, feed, {})).failed_with(Errc::invalid_argument));
    SnapshotFeed good(*snapshot);
    EXPECT_TRUE(
        (co_await receiver.engine().ingest(TabletId{77}, good, {})).failed_with(Errc::not_found));
    // Rows of a table that is not here are not passed over.
    CO_ASSERT_OK(co_await receiver.engine().drop_table(kTable));
    EXPECT_TRUE(
        (co_await receiver.engine().ingest(kTablet, good, {})).failed_with(Errc::unavailable));
  }
  EXPECT_EQ(*receiver.engine().durable_clock(kTablet), Clock());
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

// ---- A damaged file ----

void damage_files(LogWorld& world, const std::string& folder) {
  const auto entries = world.disk().list(folder);
  ASSERT_TRUE(entries.has_value());
  for (const auto& entry : *entries) {
    const std::string path = folder + "/" + entry.name;
    if (entry.name.ends_with(".sst")) world.flip_bit(path, world.read(path).size() * 8 / 4);
  }
}

Task<void> a_damaged_replica_is_made_anew(Runtime& runtime, LogWorld& world) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  for (int i = 0; i < 9; ++i) {
    const auto delta = co_await source.put(fmt::format("r{}", i), std::string(200, 'v'));
    CO_ASSERT_OK(delta);
    CO_ASSERT_OK(receiver.take(kTable, *delta));
  }
  CO_ASSERT_OK(co_await receiver.engine().flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await receiver.engine().verify(kTable, Until::forever()));
  CO_ASSERT_OK(co_await receiver.engine().verify_mutations(Until::forever()));
  EXPECT_TRUE(receiver.engine().damaged_tablets().empty());
  damage_files(world, "/replica-2/shard-0000");
  receiver.engine().suspect(kTable);
  while (receiver.engine().damaged_tablets().empty()) {
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::milliseconds(1), {}));
  }
  EXPECT_EQ(receiver.engine().damaged_tablets(), std::vector{kTablet});
  EXPECT_TRUE(
      (co_await receiver.engine().verify(kTable, Until::forever())).failed_with(Errc::corrupt));
  EXPECT_TRUE(
      (co_await receiver.engine().verify_mutations(Until::forever())).failed_with(Errc::corrupt));
  EXPECT_TRUE((co_await receiver.shown()).failed_with(Errc::corrupt));
  // Nor is it given to others, or compared with them.
  EXPECT_TRUE((co_await source.take_all_of(receiver)).failed_with(Errc::corrupt));
  EXPECT_EQ((co_await receiver.take_all_of(source))->dots, 0U) << "it has seen all of it";
  CO_ASSERT_OK(co_await receiver.engine().drop_tablet(kTablet));
  CO_ASSERT_OK(co_await receiver.engine().create_tablet(kTablet, {}, actor_of(2, 2)));
  EXPECT_TRUE(receiver.engine().damaged_tablets().empty());
  CO_ASSERT_OK(co_await receiver.take_all_of(source));
  EXPECT_EQ(*co_await receiver.shown(), *co_await source.shown());
  CO_ASSERT_OK(co_await receiver.engine().compact(kTable, Until::forever()));
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, AReplicaWithADamagedFileIsMadeAnew) {
  LogWorld world;
  world.run([&](Runtime& runtime) { return a_damaged_replica_is_made_anew(runtime, world); });
}

// ---- A crash at any step ----

struct TransferTold {
  bool begun = false;
  bool ended = false;
};

Task<void> transfer(Runtime& runtime, TransferTold& told) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  for (int i = 0; i < 30; ++i) CO_ASSERT_OK(co_await source.put(fmt::format("r{:02}", i), "v"));
  CO_ASSERT_OK(co_await receiver.put("mine", "v"));
  const auto old = co_await source.put("old", "v");
  CO_ASSERT_OK(old);
  CO_ASSERT_OK(receiver.take(kTable, *old));
  CO_ASSERT_OK(co_await receiver.engine().durable_so_far(Until::forever()));
  CO_ASSERT_OK(co_await source.put("new", "v", kOtherTable));
  CO_ASSERT_OK(co_await source.remove(rows("old", "olp")));
  told.begun = true;
  const auto taken = co_await receiver.take_all_of(source);
  told.ended = taken.has_value();
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

Task<void> all_of_it_or_nothing(Runtime& runtime, const TransferTold& told, bool& whole) {
  Replica source(runtime, 1);
  Replica receiver(runtime, 2);
  CO_ASSERT_OK(co_await source.open());
  CO_ASSERT_OK(co_await receiver.open());
  const Clock theirs = *source.engine().durable_clock(kTablet);
  whole = receiver.engine().durable_clock(kTablet)->covers(theirs);
  EXPECT_TRUE(whole || !told.ended);
  EXPECT_EQ(*co_await receiver.shown() == "mine=v old=v", !whole);
  EXPECT_EQ((co_await receiver.shown(kOtherTable))->empty(), !whole);
  EXPECT_EQ(receiver.engine().has_shed_mutations(kTablet), whole);
  // It is begun anew, and then it is there.
  CO_ASSERT_OK(co_await receiver.take_all_of(source));
  CO_ASSERT_OK(co_await receiver.engine().compact(kTable, Until::forever()));
  const std::string shown = *co_await receiver.shown();
  EXPECT_THAT(shown, ::testing::StartsWith("mine=v r00=v"));
  EXPECT_THAT(shown, ::testing::Not(::testing::HasSubstr("old")));
  EXPECT_EQ(*co_await receiver.shown(kOtherTable), "new=v");
  CO_ASSERT_OK(co_await receiver.stop());
  CO_ASSERT_OK(co_await source.stop());
}

TEST(TabletTransfer, AnyCrashLeavesAllOfItOrNothing) {
  std::size_t whole = 0;
  std::size_t nothing = 0;
  for (std::uint64_t events = 0;; events += 5) {
    LogWorld world(events + 1);
    TransferTold told;
    world.start([&](Runtime& runtime) { return transfer(runtime, told); });
    ASSERT_TRUE(world.world().run_until([&] { return told.begun || !world.machine().is_up(); },
                                        std::chrono::hours(1)));
    for (std::uint64_t event = 0; event < events && world.machine().is_up(); ++event) {
      if (!world.world().step()) break;
    }
    const bool ended = !world.machine().is_up();
    world.machine().power_loss();
    bool is_whole = false;
    world.run([&](Runtime& runtime) { return all_of_it_or_nothing(runtime, told, is_whole); });
    ASSERT_FALSE(::testing::Test::HasFailure()) << "after event " << events;
    (is_whole ? whole : nothing) += 1;
    if (ended) break;
  }
  EXPECT_GT(whole, 3U);
  EXPECT_GT(nothing, 3U);
}

// ---- Any history ----

// Three replicas, of which two make histories with losses; the third gets every delta.
class AnyHistory {
 public:
  AnyHistory(Runtime& runtime, std::uint64_t seed, causality::Policy policy)
      : prng_(seed), policy_(policy) {
    for (std::uint32_t number = 1; number <= 3; ++number) {
      replicas_.push_back(std::make_unique<Replica>(runtime, number));
    }
  }

  Task<void> tell() {
    for (const auto& replica : replicas_) CO_ASSERT_OK(co_await replica->open(policy_));
    for (int step = 0; step < 60; ++step) co_await do_something();
    // What only one of them has meets, in both directions, and is what all deltas make.
    CO_ASSERT_OK(co_await replicas_[0]->take_all_of(*replicas_[1]));
    CO_ASSERT_OK(co_await replicas_[1]->take_all_of(*replicas_[0]));
    for (const Delta& delta : deltas_) CO_ASSERT_OK(replicas_[2]->take(kTable, delta));
    CO_ASSERT_OK(co_await replicas_[2]->engine().durable_so_far(Until::forever()));
    const std::string right = *co_await replicas_[2]->shown(kTable, policy_);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(*co_await replicas_[i]->shown(kTable, policy_), right) << i;
      EXPECT_EQ(*replicas_[i]->engine().durable_clock(kTablet),
                *replicas_[2]->engine().durable_clock(kTablet));
      CO_ASSERT_OK(co_await replicas_[i]->stop());
      CO_ASSERT_OK(co_await replicas_[i]->open(policy_));
      CO_ASSERT_OK(co_await replicas_[i]->engine().compact(kTable, Until::forever()));
      EXPECT_EQ(*co_await replicas_[i]->shown(kTable, policy_), right) << i << " again";
    }
    for (const auto& replica : replicas_) CO_ASSERT_OK(co_await replica->stop());
  }

 private:
  std::string any_row() { return std::string(1, static_cast<char>('a' + prng_.below(6))); }

  Task<void> do_something() {
    Replica& one = *replicas_[prng_.below(2)];
    const std::uint64_t what = prng_.below(20);
    if (what < 8) {
      Mutation mutation = put_of(any_row(), fmt::format("{}", deltas_.size()),
                                 1000 + static_cast<std::int64_t>(prng_.below(20)));
      if (prng_.below(4) == 0) mutation.cells[0].kind = causality::VersionKind::deletion;
      if (prng_.below(4) == 0) mutation.deleted_ranges = {any_range()};
      co_await write(one, std::move(mutation));
    } else if (what < 11) {
      Mutation mutation;
      mutation.timestamp = Timestamp{1000 + static_cast<std::int64_t>(prng_.below(20))};
      mutation.deleted_ranges = {any_range()};
      co_await write(one, std::move(mutation));
    } else if (what < 16 && !deltas_.empty()) {
      CO_ASSERT_OK(one.take(kTable, deltas_[prng_.below(deltas_.size())]));
    } else if (what == 16) {
      CO_ASSERT_OK(co_await one.engine().flush(kTable, Until::forever()));
    } else if (what == 17) {
      CO_ASSERT_OK(co_await one.engine().compact(kTable, Until::forever()));
    } else if (what == 18) {
      Replica& other = &one == replicas_[0].get() ? *replicas_[1] : *replicas_[0];
      CO_ASSERT_OK(co_await one.take_all_of(other));
    } else {
      find_stable();
    }
  }

  RowRange any_range() {
    std::string from = any_row();
    std::string to = any_row();
    if (to < from) std::swap(from, to);
    return rows(from, to + "\x7f");
  }

  Task<void> write(Replica& one, Mutation mutation) {
    const auto delta = co_await one.write(kTable, std::move(mutation));
    CO_ASSERT_OK(delta);
    deltas_.push_back(*delta);
  }

  // What both have: each goes by the other's clock when it has all of it.
  void find_stable() {
    Engine& a = replicas_[0]->engine();
    Engine& b = replicas_[1]->engine();
    if (*a.synced_clock(kTablet) != *b.synced_clock(kTablet)) return;
    replicas_[0]->find_stable({replicas_[1].get()});
    if (prng_.below(2) == 0) replicas_[1]->find_stable({replicas_[0].get()});
  }

  base::Prng prng_;
  const causality::Policy policy_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Delta> deltas_;
};

Task<void> any_history(Runtime& runtime, std::uint64_t seed, causality::Policy policy) {
  AnyHistory history(runtime, seed, policy);
  co_await history.tell();
}

TEST(TabletTransfer, RefusesWhatNobodyMayClaim) {
  live(&what_nobody_may_claim);
}

TEST(TabletTransfer, AnyTwoHistoriesMeetAsTheirDeltasDo) {
  const std::uint64_t seeds = base::count_from_environment("HELENUS_TRANSFER_SEEDS", 30);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    const auto policy = seed % 3 == 0 ? causality::Policy::siblings : causality::Policy::lww;
    LogWorld world(seed);
    world.run([&](Runtime& runtime) { return any_history(runtime, seed, policy); });
    if (::testing::Test::HasFailure()) break;
  }
}

// ---- Counters ----

Mutation increment_of(std::string row, std::int64_t amount) {
  Mutation mutation = put_of(row, "", 1);
  mutation.cells.front().kind = causality::VersionKind::increment;
  mutation.cells.front().amount = amount;
  return mutation;
}

Task<std::int64_t> counted(Replica& replica, std::string row) {
  const auto read = co_await replica.engine().read_row(kTable, kTablet, Bytes::copy_of("p"),
                                                       Bytes::copy_of(row), Until::forever());
  EXPECT_TRUE(read.has_value());
  if (!read) co_return 0;
  co_return causality::counter_value(
      read->partition.cell(Bytes::copy_of(row), causality::ColumnId{0}));
}

Task<void> folded_counters(Runtime& runtime) {
  Replica source(runtime, 1);
  Replica empty(runtime, 2);
  Replica counting(runtime, 3);
  for (Replica* replica : {&source, &empty, &counting}) {
    CO_ASSERT_OK(co_await replica->open(causality::Policy::counter));
  }
  source.find_stable({});
  CO_ASSERT_OK(co_await source.write(kTable, increment_of("a", 5)));
  CO_ASSERT_OK(co_await source.write(kTable, increment_of("a", 6)));
  CO_ASSERT_OK(co_await source.engine().flush(kTable, Until::forever()));
  CO_ASSERT_OK(co_await source.write(kTable, increment_of("a", 7)));
  CO_ASSERT_OK(co_await empty.write(kTable, increment_of("b", 1)));
  CO_ASSERT_OK(co_await empty.take_all_of(source));
  EXPECT_EQ(co_await counted(empty, "a"), 18);
  EXPECT_EQ(co_await counted(empty, "b"), 1);
  CO_ASSERT_OK(co_await empty.take_all_of(source));
  EXPECT_EQ(co_await counted(empty, "a"), 18) << "nothing of it is new";
  CO_ASSERT_OK(co_await counting.write(kTable, increment_of("a", 9)));
  CO_ASSERT_OK(co_await counting.take_all_of(source));
  EXPECT_EQ(co_await counted(counting, "a"), 27);
  for (Replica* replica : {&source, &empty, &counting}) CO_ASSERT_OK(co_await replica->stop());
}

TEST(TabletTransfer, FoldedCountersAreCopiedWhole) {
  live(&folded_counters);
}

// Replicas of one counter that increment, exchange what they have, fold and copy; each shows the
// sum of what it has seen. Amounts are powers, so that no sum of wrong ones is right.
class CountingReplicas {
 public:
  CountingReplicas(Runtime& runtime, std::uint64_t seed) : prng_(seed) {
    for (std::uint32_t i = 1; i <= 3; ++i) {
      replicas_.push_back(std::make_unique<Replica>(runtime, i));
    }
  }

  Task<Result<void>> run(int steps) {
    for (const auto& replica : replicas_) {
      CO_TRY_VOID(co_await replica->open(causality::Policy::counter));
    }
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      CO_TRY_VOID(co_await step());
      for (const auto& replica : replicas_) {
        EXPECT_EQ(co_await counted(*replica, "a"), sum_seen_by(*replica)) << "step " << i;
      }
    }
    for (const auto& replica : replicas_) CO_TRY_VOID(co_await replica->stop());
    co_return {};
  }

 private:
  static constexpr std::size_t kIncrementsMax = 20;
  struct Increment {
    Delta delta;
    std::int64_t amount = 0;
  };

  Replica& any() { return *replicas_[prng_.below(replicas_.size())]; }

  std::int64_t sum_seen_by(Replica& replica) const {
    const auto clock = replica.engine().staged_clock(kTablet);
    std::int64_t sum = 0;
    for (const Increment& increment : increments_) {
      if (clock->contains(increment.delta.dot)) sum += increment.amount;
    }
    return sum;
  }

  Result<void> give(const Increment& increment, Replica& to) {
    if (to.engine().staged_clock(kTablet)->contains(increment.delta.dot)) return {};
    TRY_VOID(to.take(kTable, increment.delta));
    return {};
  }

  // It has pulled from all, so their clocks tell what is stable.
  Task<Result<void>> pull_from_all(Replica& replica) {
    std::vector<Replica*> others;
    for (const auto& other : replicas_) {
      if (other.get() == &replica) continue;
      others.push_back(other.get());
      for (const Increment& increment : increments_) {
        const bool has = other->engine().staged_clock(kTablet)->contains(increment.delta.dot);
        if (has) CO_TRY_VOID(give(increment, replica));
      }
    }
    replica.find_stable(others);
    co_return {};
  }

  Task<Result<void>> step() {
    Replica& replica = any();
    Engine& engine = replica.engine();
    const std::uint64_t what = prng_.below(12);
    if (what < 4 && increments_.size() < kIncrementsMax) {
      CO_TRY(auto delta, co_await replica.write(kTable, increment_of("a", amount_)));
      increments_.push_back({.delta = std::move(delta), .amount = amount_});
      amount_ *= 7;
    } else if (what < 6 && !increments_.empty()) {
      CO_TRY_VOID(give(increments_[prng_.below(increments_.size())], replica));
    } else if (what < 8) {
      CO_TRY_VOID(co_await pull_from_all(replica));
    } else if (what < 9) {
      CO_TRY_VOID(co_await engine.flush(kTable, Until::forever()));
    } else if (what < 10) {
      CO_TRY_VOID(co_await engine.compact(kTable, Until::forever()));
    } else {
      Replica& source = any();
      if (&source == &replica) co_return {};
      CO_TRY_VOID(co_await replica.take_all_of(source));
    }
    co_return {};
  }

  base::Prng prng_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<Increment> increments_;
  std::int64_t amount_ = 1;
};

TEST(TabletTransfer, CountersAreCopiedExactlyWhateverIsFolded) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    live([seed](Runtime& runtime) -> Task<void> {
      CountingReplicas replicas(runtime, seed);
      CO_ASSERT_OK(co_await replicas.run(60));
    });
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace helenus::storage::testing
