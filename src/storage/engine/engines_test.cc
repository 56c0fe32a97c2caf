// Engines on several cores over one folder: lives with other numbers of cores, and crashes between.
#include "storage/engine/engines.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/call_on.h"
#include "runtime/contract/world.h"
#include "sim/machine.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using runtime::CoreId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::HasSubstr;

constexpr causality::Epoch kEpoch{1};
constexpr std::uint64_t kTablets = 7;
constexpr std::uint32_t kCoresMax = 3;

EngineOptions folder_options(LogSyncMode mode) {
  EngineOptions options = small_engine(mode);
  options.shards = 5;
  return options;
}

// A tablet's partitions begin with its letter.
KeyRange range_of(std::uint64_t tablet) {
  const auto letter = [](std::uint64_t number) {
    return Bytes::copy_of(std::string(1, static_cast<char>('a' + number)));
  };
  return {.from = letter(tablet), .to = letter(tablet + 1)};
}

std::string partition_of(std::uint64_t tablet) {
  return std::string(1, static_cast<char>('a' + tablet)) + "x";
}

// Several lives of one folder. Every write has a row of its own, so what must be there and what may
// be there are sets.
class FolderHistory {
 public:
  FolderHistory(std::uint64_t seed, LogSyncMode mode)
      : seed_(seed), mode_(mode), world_(seed, kCoresMax) {}

  LogWorld& world() { return world_; }

  void start_life(std::uint32_t cores) {
    world_.start([this, cores](Runtime& runtime) { return life(runtime, cores); });
  }
  bool run_events(std::uint64_t count) {
    for (std::uint64_t event = 0; event < count; ++event) {
      if (!world_.machine().is_up() || !world_.world().step()) return false;
    }
    return world_.machine().is_up();
  }
  void run_to_end() {
    const bool ended =
        world_.world().run_until([&] { return !world_.machine().is_up(); }, std::chrono::hours(1));
    EXPECT_TRUE(ended) << "seed " << seed_ << ": the life waits for something that never happens";
    world_.machine().kill();
  }
  void crash(bool power_loss) {
    if (power_loss) {
      world_.machine().power_loss();
      tail_may_be_lost_ = tail_may_be_lost_ || mode_ == LogSyncMode::periodic;
    } else {
      world_.machine().kill();
    }
  }

  std::uint64_t written() const { return attempted_.size(); }
  std::uint64_t replayed() const { return replayed_; }
  std::uint64_t lives_in_doubt() const { return lives_in_doubt_; }

 private:
  struct Written {
    std::string value;
    bool acknowledged = false;
  };
  using Row = std::pair<std::uint64_t, std::string>;  // tablet and row

  Task<void> life(Runtime& runtime, std::uint32_t cores) {
    auto opened = co_await Engines::open(runtime, folder_options(mode_), cores);
    EXPECT_TRUE(opened.has_value()) << "seed " << seed_ << ": " << opened.error().to_string();
    if (!opened) co_return;
    Engines& engines = **opened;
    EXPECT_EQ(engines.cores(), cores);
    replayed_ += engines.report().records_applied;
    co_await settle_start(engines);
    for (std::uint64_t tablet = 0; tablet < kTablets; ++tablet) {
      co_await check_tablet(runtime, engines, tablet);
    }
    runtime::TaskGroup writers(runtime);
    for (std::uint64_t tablet = 0; tablet < kTablets; ++tablet) {
      writers.spawn(write_some(runtime, engines, tablet));
    }
    co_await writers.join();
    const auto stopped = co_await engines.stop();
    EXPECT_TRUE(stopped.has_value()) << stopped.error().to_string();
  }

  Task<void> settle_start(Engines& engines) {
    auto made = co_await engines.create_table(kTable, {});
    EXPECT_TRUE(made || made.failed_with(Errc::already_exists)) << made.error().to_string();
    for (std::uint64_t tablet = 0; tablet < kTablets; ++tablet) {
      made = co_await engines.create_tablet(TabletId{tablet}, range_of(tablet),
                                            causality::actor_of(1, incarnation_));
      EXPECT_TRUE(made || made.failed_with(Errc::already_exists)) << made.error().to_string();
    }
    auto doubtful = co_await engines.tablets_in_doubt();
    EXPECT_TRUE(doubtful.has_value());
    const bool clean = engines.report().log.last_stop == LastStop::clean;
    EXPECT_TRUE(!doubtful->empty() || !tail_may_be_lost_ || !made_once_ || clean)
        << "seed " << seed_;
    tail_may_be_lost_ = !doubtful->empty();
    if (!doubtful->empty()) {
      ++lives_in_doubt_;
      ++incarnation_;
      for (const TabletId tablet : *doubtful) {
        const auto reborn =
            co_await engines.reincarnate(tablet, causality::actor_of(1, incarnation_));
        EXPECT_TRUE(reborn.has_value()) << reborn.error().to_string();
      }
    }
    const auto settled = co_await engines.clear_tail_doubt();
    EXPECT_TRUE(settled.has_value()) << settled.error().to_string();
    made_once_ = true;
  }

  // What the tablet shows, on its core.
  static Task<Result<Shown>> show(Runtime&, Engine* engine, std::uint64_t tablet) {
    CO_TRY(const auto cursor, engine->cursor(kTable, TabletId{tablet}, {}));
    Shown shown;
    CO_TRY_VOID(co_await cursor->seek_first());
    while (cursor->valid()) {
      CO_TRY(const auto read, cursor->read());
      const Bytes row = Bytes::copy_of(cursor->row_key());
      const auto cell = read.cell(row, causality::ColumnId{0});
      for (const causality::Version& version : cell.versions()) {
        shown[std::string(row.text())] = version.value.text();
      }
      CO_TRY_VOID(co_await cursor->next());
    }
    co_return shown;
  }

  static Task<Result<std::size_t>> count_missing(Engine* engine, std::uint64_t tablet) {
    CO_TRY(const auto missing,
           co_await engine->missing_mutations(TabletId{tablet}, {}, SIZE_MAX, Until::forever()));
    EXPECT_TRUE(missing.withheld.empty());
    co_return missing.mutations.size();
  }

  Task<void> check_tablet(Runtime& runtime, Engines& engines, std::uint64_t tablet) {
    const CoreId core = engines.core_of(TabletId{tablet});
    Engine* engine = &engines.on(core);
    const auto shown = co_await runtime::call_on<Shown>(
        runtime, core, [=](Runtime& there) { return show(there, engine, tablet); },
        Until::forever());
    EXPECT_TRUE(shown.has_value()) << "seed " << seed_ << ": " << shown.error().to_string();
    if (!shown) co_return;
    for (const auto& [row, value] : *shown) {
      const auto at = attempted_.find({tablet, row});
      EXPECT_TRUE(at != attempted_.end() && at->second.value == value)
          << "seed " << seed_ << ": nobody wrote " << row << " into tablet " << tablet;
    }
    for (auto& [place, written] : attempted_) {
      if (place.first != tablet) continue;
      const bool there = shown->contains(place.second);
      EXPECT_TRUE(there || !written.acknowledged || tail_may_be_lost_)
          << "seed " << seed_ << ": " << place.second << " of tablet " << tablet << " is lost";
      written.acknowledged = there;
    }
    const auto missing = co_await runtime::call_on<std::size_t>(
        runtime, core, [=](Runtime&) { return count_missing(engine, tablet); }, Until::forever());
    EXPECT_TRUE(missing.has_value());
    if (missing) EXPECT_EQ(*missing, shown->size()) << "each write is kept for peers";
    if (tablet + 1 == kTablets) tail_may_be_lost_ = false;
  }

  static Task<Result<causality::Delta>> put(Engine* engine, std::uint64_t tablet, std::string row,
                                            std::string value, std::int64_t timestamp) {
    return engine->write(kTable, TabletId{tablet}, Bytes::copy_of(partition_of(tablet)),
                         put_of(row, value, timestamp), kEpoch, Until::forever());
  }

  Task<void> write_some(Runtime& runtime, Engines& engines, std::uint64_t tablet) {
    const CoreId core = engines.core_of(TabletId{tablet});
    Engine* engine = &engines.on(core);
    for (int left = 12; left > 0; --left) {
      const std::string row = fmt::format("{:06}", ++rows_);
      const std::string value = "value of " + row;
      const std::int64_t timestamp = ++time_;
      attempted_[{tablet, row}] = {.value = value};
      const auto delta = co_await runtime::call_on<causality::Delta>(
          runtime, core, [=](Runtime&) { return put(engine, tablet, row, value, timestamp); },
          Until::forever());
      EXPECT_TRUE(delta.has_value()) << delta.error().to_string();
      if (!delta) co_return;
      EXPECT_TRUE(dots_.insert({tablet, delta->dot}).second)
          << "seed " << seed_ << ": minted twice in tablet " << tablet;
      attempted_[{tablet, row}].acknowledged = true;
    }
  }

  const std::uint64_t seed_;
  const LogSyncMode mode_;
  LogWorld world_;
  std::map<Row, Written> attempted_;
  std::set<std::pair<std::uint64_t, causality::Dot>> dots_;  // that were acknowledged
  std::uint64_t rows_ = 0;
  std::int64_t time_ = 1000;
  std::uint32_t incarnation_ = 1;
  bool made_once_ = false;
  bool tail_may_be_lost_ = false;
  std::uint64_t replayed_ = 0;
  std::uint64_t lives_in_doubt_ = 0;
};

TEST(Engines, AFolderOfThreeCoresOpensWithTwoAndWithOneAndWithThreeAgain) {
  FolderHistory history(1, LogSyncMode::batch);
  for (const std::uint32_t cores : {3U, 1U, 2U, 3U, 2U, 1U}) {
    history.start_life(cores);
    history.run_to_end();
    ASSERT_FALSE(HasFailure()) << cores << " cores";
  }
  EXPECT_EQ(history.written(), 6 * kTablets * 12);
  EXPECT_GT(history.replayed(), 100);
}

class EnginesCrash : public ::testing::TestWithParam<LogSyncMode> {};

TEST_P(EnginesCrash, BetweenLivesOfOtherNumbersOfCoresLosesNothing) {
  std::uint64_t crashes = 0;
  std::uint64_t doubts = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    for (std::uint64_t events = 5;; events += 11 + (seed * 13 + events) % 37) {
      FolderHistory history(seed, GetParam());
      history.start_life(3);
      const bool cut = history.run_events(events);
      history.crash(events % 3 != 0);
      history.start_life(1 + static_cast<std::uint32_t>(events % 2));
      if (history.run_events(events * 7 % 400)) history.crash(events % 2 == 0);
      history.start_life(2);
      history.run_to_end();
      history.start_life(1);
      history.run_to_end();
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", crash after event " << events;
      doubts += history.lives_in_doubt();
      ++crashes;
      if (!cut) break;
    }
  }
  EXPECT_GT(crashes, 40);
  if (GetParam() == LogSyncMode::periodic) EXPECT_GT(doubts, 10);
}

INSTANTIATE_TEST_SUITE_P(Modes, EnginesCrash,
                         ::testing::Values(LogSyncMode::batch, LogSyncMode::periodic),
                         [](const auto& mode) { return std::string(name_of(mode.param)); });

// ---- What an engine of one core says of another's tablets ----

Task<void> use_the_wrong_core(Runtime& runtime) {
  auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), 2);
  CO_ASSERT_OK(opened);
  Engines& engines = **opened;
  CO_ASSERT_OK(co_await engines.create_table(kTable, {}));
  EXPECT_TRUE((co_await engines.create_table(kTable, {})).failed_with(Errc::already_exists));
  EXPECT_EQ(engines.core_of(TabletId{1}), CoreId{1});
  EXPECT_EQ(engines.core_of(TabletId{5}), CoreId{0}) << "by its shard, which is number 0";
  CO_ASSERT_OK(co_await engines.create_tablet(TabletId{1}, range_of(1), causality::actor_of(1, 1)));
  Engine& here = engines.on(CoreId{0});
  EXPECT_TRUE((co_await here.create_tablet(TabletId{1}, range_of(1), causality::actor_of(1, 1)))
                  .failed_with(Errc::invalid_argument));
  EXPECT_TRUE(here.durable_clock(TabletId{1}).failed_with(Errc::not_found));
  const auto read = co_await here.read_row(kTable, TabletId{1}, Bytes::copy_of("b"),
                                           Bytes::copy_of("r"), Until::forever());
  EXPECT_TRUE(read.failed_with(Errc::not_found));
  EXPECT_THAT(read.error().to_string(), HasSubstr("on this core"));
  here.set_watermarks(TabletId{1}, {});
  EXPECT_TRUE((co_await here.drop_tablet(TabletId{1})).failed_with(Errc::not_found));
  CO_ASSERT_OK(co_await engines.drop_tablet(TabletId{1}));
  EXPECT_TRUE((co_await engines.drop_tablet(TabletId{1})).failed_with(Errc::not_found));
  CO_ASSERT_OK(co_await engines.drop_table(kTable));
  EXPECT_TRUE((co_await engines.drop_table(kTable)).failed_with(Errc::not_found));
  CO_ASSERT_OK(co_await engines.stop());
}

TEST(Engines, ATabletOfAnotherCoreIsNotFoundHere) {
  LogWorld world(1, kCoresMax);
  world.run(use_the_wrong_core);
}

Task<Result<void>> create_here(Engine& engine) {
  co_return co_await engine.create_table(kTable, {});
}

Task<void> finish_a_creation(Runtime& runtime) {
  auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), 2);
  CO_ASSERT_OK(opened);
  Engines& engines = **opened;
  auto create = [&](Runtime&) { return create_here(engines.on(CoreId{1})); };
  CO_ASSERT_OK(
      co_await runtime::call_on<void>(runtime, CoreId{1}, std::move(create), Until::forever()));
  EXPECT_TRUE(engines.on(CoreId{0}).tables().empty());
  CO_ASSERT_OK(co_await engines.create_table(kTable, {}));
  EXPECT_EQ(engines.on(CoreId{0}).tables(), std::vector{kTable});
  EXPECT_TRUE((co_await engines.create_table(kTable, {})).failed_with(Errc::already_exists));
  CO_ASSERT_OK(co_await engines.stop());
}

TEST(Engines, ATableThatOnlySomeCoresHaveIsFinished) {
  LogWorld world(1, kCoresMax);
  world.run(finish_a_creation);
}

Task<void> open_badly(Runtime& runtime) {
  for (const std::uint32_t cores : {0U, kCoresMax + 1}) {
    const auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), cores);
    EXPECT_TRUE(opened.failed_with(Errc::invalid_argument));
  }
  // More cores than shards: some have none.
  EngineOptions one_shard = folder_options(LogSyncMode::batch);
  one_shard.shards = 1;
  auto opened = co_await Engines::open(runtime, one_shard, 3);
  CO_ASSERT_OK(opened);
  const auto again = co_await Engines::open(runtime, one_shard, 1);
  EXPECT_TRUE(again.failed_with(Errc::locked));
  CO_ASSERT_OK(co_await (*opened)->create_table(kTable, {}));
  CO_ASSERT_OK(co_await (*opened)->stop());
  auto reopened = co_await Engines::open(runtime, one_shard, 2);
  CO_ASSERT_OK(reopened);
  CO_ASSERT_OK(co_await (*reopened)->drop_table(kTable));
  EXPECT_TRUE((co_await (*reopened)->drop_table(kTable)).failed_with(Errc::not_found));
  CO_ASSERT_OK(co_await (*reopened)->create_table(kTable, {}));
  CO_ASSERT_OK(co_await (*reopened)->stop());
}

TEST(Engines, RefusesCoresThatAreNotThereAndAFolderThatIsOpen) {
  LogWorld world(1, kCoresMax);
  world.run(open_badly);
}

// ---- What cores leave behind ----

Task<void> flush_on_three_cores(Runtime& runtime) {
  auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), 3);
  CO_ASSERT_OK(opened);
  CO_ASSERT_OK(co_await (*opened)->create_table(kTable, {}));
  CO_ASSERT_OK(co_await (*opened)->stop());
}

Task<void> open_on_one(Runtime& runtime) {
  auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), 1);
  CO_ASSERT_OK(opened);
  CO_ASSERT_OK(co_await (*opened)->stop());
}

std::vector<std::string> generations_in(LogWorld& world) {
  std::vector<std::string> names;
  const auto entries = world.disk().list(kLogFolder);
  for (const auto& entry : *entries) {
    if (entry.name.starts_with("generations-")) names.push_back(entry.name);
  }
  std::ranges::sort(names);
  return names;
}

TEST(Engines, GenerationsOfCoresThatAreNoMoreDoNotStay) {
  LogWorld world(1, kCoresMax);
  world.run(flush_on_three_cores);
  EXPECT_EQ(generations_in(world).size(), 4) << "of each core, and of the start";
  // A write that a crash cut short.
  world.write(std::string(kLogFolder) + "/generations-0002.new", 0, "half");
  world.run(open_on_one);
  EXPECT_EQ(generations_in(world), std::vector<std::string>{"generations-start"});
}

// ---- Making and dropping a table, cut short ----

Task<void> make_and_drop(Runtime& runtime) {
  auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), 3);
  CO_ASSERT_OK(opened);
  CO_ASSERT_OK(co_await (*opened)->create_table(kTable, {}));
  CO_ASSERT_OK(co_await (*opened)->drop_table(kTable));
  CO_ASSERT_OK(co_await (*opened)->stop());
}

Task<void> expect_all_or_nothing(Runtime& runtime) {
  auto opened = co_await Engines::open(runtime, folder_options(LogSyncMode::batch), 1);
  CO_ASSERT_OK(opened);
  Engine& engine = (*opened)->on(CoreId{0});
  std::uint64_t there = 0;
  for (std::uint64_t tablet = 0; tablet < 5; ++tablet) {
    CO_ASSERT_OK(co_await engine.create_tablet(TabletId{tablet}, range_of(tablet),
                                               causality::actor_of(1, 1)));
    there += engine.cursor(kTable, TabletId{tablet}, {}).has_value() ? 1 : 0;
  }
  EXPECT_TRUE(there == 0 || there == 5) << there;
  CO_ASSERT_OK(co_await (*opened)->stop());
}

TEST(Engines, ACrashWhileATableIsMadeOrDroppedLeavesAllOfItOrNothing) {
  std::uint64_t crashes = 0;
  for (std::uint64_t events = 20;; events += 23) {
    LogWorld world(events, kCoresMax);
    world.start(make_and_drop);
    for (std::uint64_t event = 0; event < events && world.machine().is_up(); ++event) {
      if (!world.world().step()) break;
    }
    if (!world.machine().is_up()) break;
    world.machine().power_loss();
    ++crashes;
    world.run(expect_all_or_nothing);
    ASSERT_FALSE(HasFailure()) << "after event " << events;
  }
  EXPECT_GT(crashes, 10);
}

}  // namespace
}  // namespace helenus::storage::testing
