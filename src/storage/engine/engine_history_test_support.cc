#include "storage/engine/engine_history_test_support.h"

#include <algorithm>
#include <utility>

#include "causality/resolve.h"
#include "runtime/sleep.h"
#include "sim/machine.h"

namespace helenus::storage::testing {

using base::Errc;
using causality::Policy;
using runtime::Task;
using runtime::Until;

namespace {

constexpr causality::Epoch kEpoch{1};
constexpr int kTablesMax = 3;

}  // namespace

EngineOptions small_engine(LogSyncMode mode) {
  EngineOptions options;
  options.data_directories = {std::string(kEngineFolder) + "/a", std::string(kEngineFolder) + "/b"};
  options.log_directory = kLogFolder;
  options.log = small_log(mode);
  options.shards = 1;
  options.memtable_bytes_flush = 32 << 10;
  options.memtable_keys_flush = 12;
  options.memtable_bytes_max = 256 << 10;
  options.block_cache_bytes = 64 << 10;
  options.block_bytes = 256;
  return options;
}

std::uint32_t start_named_in(const base::Error& refusal) {
  const std::string text = refusal.to_string();
  const std::string name = "accept_lost_log_of_start: ";
  const auto at = text.find(name);
  if (at == std::string::npos) return 0;
  return static_cast<std::uint32_t>(std::stoul(text.substr(at + name.size())));
}

void EngineHistory::Counts::add(const Counts& other) {
  writes += other.writes;
  explicit_writes += other.explicit_writes;
  explicit_writes_left_out += other.explicit_writes_left_out;
  flushes += other.flushes;
  compactions += other.compactions;
  keys_gone += other.keys_gone;
  records_replayed += other.records_replayed;
  lives += other.lives;
  lives_in_doubt += other.lives_in_doubt;
  logs_lost += other.logs_lost;
  writes_lost += other.writes_lost;
  mutations_given += other.mutations_given;
  mutations_from_files += other.mutations_from_files;
  mutation_files_shed += other.mutation_files_shed;
  timestamps_raised += other.timestamps_raised;
  tables_dropped += other.tables_dropped;
  tablets_dropped += other.tablets_dropped;
  walks += other.walks;
  range_paths_read += other.range_paths_read;
  values_with_a_ttl += other.values_with_a_ttl;
  refusals += other.refusals;
  ended_for_good += other.ended_for_good;
}

EngineHistory::EngineHistory(std::uint64_t seed, Options options)
    : seed_(seed), options_(std::move(options)), world_(seed, 1, options_.world), prng_(seed) {
  ASSERT(options_.tables >= 1 && options_.tables <= kTablesMax && options_.tablets >= 1);
  // Which policies there are depends on the seed where there is not room for all.
  for (int index = 0; index < options_.tables; ++index) {
    const auto policy = static_cast<Policy>((static_cast<std::uint64_t>(index) + seed) % 3);
    tables_.push_back({.id = TableId{kTable.value() + next_table_++}, .policy = policy});
  }
  for (int index = 0; index < options_.tablets; ++index) {
    const auto letter = [](int at) { return std::string(1, static_cast<char>('p' + at)); };
    TabletState& tablet = tablets_.emplace_back();
    tablet.id = TabletId{static_cast<std::uint64_t>(index)};
    tablet.partitions = letter(index);
    if (index > 0) tablet.range.from = base::Bytes::copy_of(letter(index));
    if (index + 1 < options_.tablets) tablet.range.to = base::Bytes::copy_of(letter(index + 1));
    tablet.has_peer = options_.peers && index != 2;
  }
}

EngineOptions EngineHistory::engine_options() const {
  EngineOptions options = small_engine(options_.mode);
  options.shards = options_.shards;
  // Garbage alone is reason enough to merge, again and again.
  options.collection = {.share_min = 0.05, .interval = std::chrono::milliseconds(20)};
  options.mutation_log_bytes_max = options_.mutation_log_bytes_max;
  if (options_.disk_reserve) options.disk_reserve_bytes = 64 << 10;
  options.retry_delay = std::chrono::milliseconds(100);
  options.log.retry_delay = std::chrono::milliseconds(100);
  if (options_.tight_memory) {
    options.memtable_bytes_flush = 16 << 10;
    options.memtable_bytes_max = 32 << 10;
  }
  return options;
}

// ---- Lives ----

void EngineHistory::start_life(int steps) {
  flush_error_ = false;
  trouble_ended_ = false;
  world_.start([this, steps](runtime::Runtime& runtime) { return life(runtime, steps); });
}

bool EngineHistory::run_events(std::uint64_t count) {
  for (std::uint64_t event = 0; event < count; ++event) {
    if (!world_.machine().is_up() || !world_.world().step()) return false;
  }
  return world_.machine().is_up();
}

void EngineHistory::run_to_end() {
  const bool ended =
      world_.world().run_until([&] { return !world_.machine().is_up(); }, std::chrono::hours(1));
  expect(ended, "the life waits for something that never happens");
  world_.machine().kill();
}

void EngineHistory::crash(bool power_loss) {
  if (power_loss) {
    world_.machine().power_loss();
    tail_may_be_lost_ = tail_may_be_lost_ || options_.mode == LogSyncMode::periodic;
  } else {
    world_.machine().kill();
  }
}

void EngineHistory::put_back_image() {
  ASSERT(image_ != nullptr);
  world_.disk().put_back(*image_, true);
  went_back_ = true;
}

void EngineHistory::lose_log() {
  const auto entries = world_.disk().list(kLogFolder);
  if (!entries) return;
  for (const auto& entry : *entries) world_.remove(std::string(kLogFolder) + "/" + entry.name);
  log_lost_ = true;
}

std::string EngineHistory::where() const {
  return fmt::format("seed {}, life {}, step {}: ", seed_, counts_.lives, step_number_ - 1);
}

void EngineHistory::judge(const base::Error& error) {
  const auto excused = {Errc::no_space, Errc::io_error, Errc::overloaded, Errc::timeout};
  if (flush_error_ && std::ranges::find(excused, error.code()) != excused.end()) {
    ++counts_.refusals;
    expect(!error.context().empty() || error.code() == Errc::timeout, "{} says not why",
           error.to_string());
    if (!errors_name_.empty() && error.code() == Errc::io_error) {
      expect(error.context().contains(errors_name_), "{} names no {}", error.to_string(),
             errors_name_);
      expect(!error.context().contains("reading") || error.context().contains("at offset"),
             "{} names no offset", error.to_string());
    }
    return;
  }
  violations_.add(where() + error.to_string());
}

causality::WallTime EngineHistory::now() const {
  return causality::WallTime{
      std::chrono::floor<std::chrono::seconds>(runtime_->clock.wall_now().since_origin()).count()};
}

Until EngineHistory::until() const {
  return flush_error_ ? Until::after(*runtime_, std::chrono::seconds(10)) : Until::forever();
}

Task<void> EngineHistory::life(runtime::Runtime& runtime, int steps) {
  ++counts_.lives;
  runtime_ = &runtime;
  auto opened = co_await open(runtime);
  if (!opened && options_.disk_reserve) violations_.add(where() + opened.error().to_string());
  if (!fine(opened)) co_return;
  Engine& engine = **opened;
  if (engine.report().lost_log_accepted) ++counts_.logs_lost;
  counts_.records_replayed += engine.report().records_applied;
  co_await settle_start(engine);
  for (int step = 0; step < steps; ++step) {
    prng_ = base::Prng::for_purpose(seed_, "step", static_cast<std::uint64_t>(step_number_));
    const bool taken = !options_.left_out.contains(step_number_++);
    co_await see_trouble_through(engine);
    if (taken) co_await take_step(engine);
  }
  co_await see_trouble_through(engine);
  co_await check_everything(engine);
  note_end(engine);
  (void)fine(co_await engine.stop());
}

Task<base::Result<std::unique_ptr<Engine>>> EngineHistory::open(runtime::Runtime& runtime) {
  EngineOptions options = engine_options();
  auto opened = co_await Engine::open(runtime, options);
  // A start that was cut short may have accepted it already, and before there was a folder there
  // was nothing to lose.
  if (!log_lost_ || !opened.failed_with(Errc::corrupt)) co_return opened;
  options.accept_lost_log_of_start = start_named_in(opened.error());
  co_return co_await Engine::open(runtime, options);
}

void EngineHistory::note_end(Engine& engine) {
  const EngineStatistics statistics = engine.statistics();
  counts_.flushes += statistics.flushes;
  counts_.compactions += statistics.compactions;
  counts_.keys_gone += statistics.keys_gone;
  counts_.mutations_from_files += statistics.mutations_moved;
  counts_.mutation_files_shed += statistics.mutation_files_shed;
}

Task<void> EngineHistory::settle_start(Engine& engine) {
  for (TabletState& tablet : tablets_) {
    tablet.oracle.told_alone = false;
    tablet.context.reset();
  }
  settle_tablets(engine);
  co_await settle_tables(engine);
  tail_may_be_lost_ = false;
  co_await settle_doubts(engine);
  went_back_ = false;
  log_lost_ = false;
  const bool no_table = std::ranges::none_of(tables_, &TableState::there);
  for (TableState& table : tables_) {
    const bool wanted = no_table || !options_.schema_changes || prng_.below(2) == 0;
    if (!table.there && wanted) co_await make_table(engine, table);
  }
  const bool no_tablet = std::ranges::none_of(tablets_, &TabletState::there);
  for (TabletState& tablet : tablets_) {
    const bool wanted = no_tablet || !options_.schema_changes || prng_.below(2) == 0;
    if (!tablet.there && wanted) co_await make_tablet(engine, tablet);
  }
  co_await check_everything(engine);
}

// Which tablets a start has found, and what of them.
void EngineHistory::settle_tablets(Engine& engine) {
  const auto found = engine.tablets();
  const auto doubtful = engine.tablets_in_doubt();
  for (TabletState& tablet : tablets_) {
    const bool there = std::ranges::find(found, tablet.id, &TabletInfo::id) != found.end();
    if (!tablet.changing && !went_back_) {
      expect(there == tablet.there, "tablet {} is {}", tablet.id.value(), there ? "back" : "lost");
    }
    if (tablet.there && !there) tablet.oracle = {};
    tablet.there = there;
    tablet.changing = false;
    if (!there) continue;
    for (const TableState& table : tables_) tablet.oracle.set_policy(table.id, table.policy);
    const causality::Clock clock = *engine.durable_clock(tablet.id);
    const auto lost = tablet.oracle.adopt(clock);
    const bool in_doubt = std::ranges::find(doubtful, tablet.id) != doubtful.end();
    if (log_lost_) counts_.writes_lost += lost.size();
    if (!lost.empty() && !tail_may_be_lost_ && !went_back_ && !log_lost_) {
      violations_.add(fmt::format("{}{} was acknowledged and is lost", where(), lost.front()));
    }
    expect(lost.empty() || in_doubt, "writes are lost, and nobody is told");
    expect(in_doubt || !went_back_, "an older image was taken for the newest");
    std::uint64_t dots = 0;
    for (const auto& entry : clock.entries()) {
      for (const auto& range : entry.counters.ranges()) dots += range.last - range.first + 1;
    }
    const std::uint64_t minted = tablet.oracle.count_in_engine();
    expect(dots == minted, "{} dots, and {} were minted", dots, minted);
  }
}

// Which tables it has found. That takes a tablet to ask for; without one it is found by making it.
Task<void> EngineHistory::settle_tables(Engine& engine) {
  const auto found = engine.tablets();
  for (TableState& table : tables_) {
    bool there = false;
    const bool was_changing = std::exchange(table.changing, true);
    if (!found.empty()) {
      there = engine.cursor(table.id, found.front().id, {}).has_value();
    } else {
      const auto made = co_await engine.create_table(table.id, {.policy = table.policy});
      there = made.failed_with(Errc::already_exists);
      if (!there && !fine(made)) continue;
    }
    if (!was_changing && !went_back_) {
      expect(there == table.there, "table {} is {}", table.id.value(), there ? "back" : "lost");
    }
    if (table.there && !there) forget_table(table);
    table.there = there || found.empty();
    table.changing = false;
  }
}

Task<void> EngineHistory::settle_doubts(Engine& engine) {
  const auto doubtful = engine.tablets_in_doubt();
  if (!doubtful.empty()) ++counts_.lives_in_doubt;
  for (TabletState& tablet : tablets_) {
    if (std::ranges::find(doubtful, tablet.id) == doubtful.end()) continue;
    for (const TableState& table : tables_) {
      if (!table.there) continue;
      const auto refused = engine.stage(table.id, tablet.id, base::as_bytes(any_partition(tablet)),
                                        any_mutation(table.policy), kEpoch);
      expect(refused.failed_with(Errc::unavailable), "a tablet in doubt takes a write");
    }
    co_await reincarnate(engine, tablet);
  }
  expect(flush_error_ || engine.tablets_in_doubt().empty(), "a doubt outlives a new actor");
}

// ---- Steps ----

Task<void> EngineHistory::take_step(Engine& engine) {
  const std::uint64_t choice = prng_.below(100);
  if (any_tablet() == nullptr || any_table() == nullptr) {
    co_await change_schema(engine);
  } else if (choice < 66) {
    co_await take_common_step(engine, choice);
  } else {
    co_await take_rare_step(engine, choice);
  }
}

Task<void> EngineHistory::take_common_step(Engine& engine, std::uint64_t choice) {
  if (choice < 34) {
    co_await write(engine, 1);
  } else if (choice < 42) {
    co_await write(engine, 2 + prng_.below(4));
  } else if (choice < 48) {
    mint_at_peer();
  } else if (choice < 55) {
    TabletState* tablet = any_tablet();
    co_await take_from_peer(engine, *tablet);
  } else if (choice < 60) {
    give_to_peer();
  } else {
    update_watermarks(engine);
  }
}

Task<void> EngineHistory::take_rare_step(Engine& engine, std::uint64_t choice) {
  if (choice < 69) {
    (void)fine(co_await engine.flush(any_table()->id, until()));
  } else if (choice < 72) {
    (void)fine(co_await engine.compact(any_table()->id, until()));
  } else if (choice < 77) {
    co_await write_explicitly(engine);
  } else if (choice < 79) {
    const auto duration = std::chrono::milliseconds(100 + prng_.below(5000));
    (void)co_await runtime::sleep_for(*runtime_, duration, {});
  } else if (choice < 86) {
    co_await check_row(engine);
  } else if (choice < 90) {
    co_await check_walk(engine);
  } else if (choice < 92) {
    co_await check_mutation_log(engine, *any_tablet());
  } else if (choice < 94) {
    const TabletState* tablet = any_tablet();
    co_await check_scan(engine, *tablet, *any_table());
  } else if (choice < 98) {
    if (options_.schema_changes) co_await change_schema(engine);
  } else {
    co_await reincarnate(engine, *any_tablet());
  }
}

Task<void> EngineHistory::see_trouble_through(Engine& engine) {
  if (!trouble_ended_) co_return;
  trouble_ended_ = false;
  (void)co_await runtime::sleep_for(*runtime_, std::chrono::seconds(3), {});
  if (engine.fatal_error()) {
    // Reads go on, but for rows whose last write is not durable.
    ++counts_.ended_for_good;
    const std::uint64_t refusals = counts_.refusals;
    co_await write(engine, 1);
    expect(any_tablet() == nullptr || any_table() == nullptr || counts_.refusals > refusals,
           "written after the end");
    co_return;
  }
  flush_error_ = false;
  if (const auto& error = engine.flush_error()) violations_.add(where() + error->to_string());
  co_await check_everything(engine);
}

// ---- Tables and tablets ----

causality::ActorId EngineHistory::next_actor(TabletState& tablet) {
  return causality::actor_of(1, ++tablet.actors);
}

void EngineHistory::forget_table(TableState& table) {
  for (TabletState& tablet : tablets_) tablet.oracle.drop_table(table.id);
  // Mutations are known by it as long as a peer may lack them.
  table.id = TableId{kTable.value() + next_table_++};
}

Task<void> EngineHistory::change_schema(Engine& engine) {
  if (prng_.below(2) == 0) {
    TableState& table = tables_[prng_.below(tables_.size())];
    if (table.changing) co_return;
    if (table.there) {
      co_await drop_table(engine, table);
    } else {
      co_await make_table(engine, table);
    }
  } else {
    TabletState& tablet = tablets_[prng_.below(tablets_.size())];
    if (tablet.changing) co_return;
    if (tablet.there) {
      co_await drop_tablet(engine, tablet);
    } else {
      co_await make_tablet(engine, tablet);
    }
  }
}

Task<void> EngineHistory::make_table(Engine& engine, TableState& table) {
  table.changing = true;
  if (!fine(co_await engine.create_table(table.id, {.policy = table.policy}))) co_return;
  for (TabletState& tablet : tablets_) tablet.oracle.set_policy(table.id, table.policy);
  table.changing = false;
  table.there = true;
}

Task<void> EngineHistory::drop_table(Engine& engine, TableState& table) {
  // A peer's mutations of it would have nowhere to go later.
  for (TabletState& tablet : tablets_) {
    if (tablet.there && !tablet.changing) co_await take_from_peer(engine, tablet);
  }
  table.changing = true;
  if (!fine(co_await engine.drop_table(table.id))) co_return;
  const auto flushed = co_await engine.flush(table.id, until());
  expect(flushed.failed_with(Errc::not_found), "a dropped table is flushed");
  ++counts_.tables_dropped;
  table.changing = false;
  table.there = false;
  forget_table(table);
}

Task<void> EngineHistory::make_tablet(Engine& engine, TabletState& tablet) {
  tablet.changing = true;
  tablet.oracle = TabletOracle(causality::actor_of(2, tablet.actors + 1));
  for (const TableState& table : tables_) tablet.oracle.set_policy(table.id, table.policy);
  const auto made = co_await engine.create_tablet(tablet.id, tablet.range, next_actor(tablet));
  // What an earlier one had is not gone yet.
  const bool too_early = made.failed_with(Errc::unavailable);
  if (too_early) tablet.changing = false;
  if (too_early || !fine(made)) co_return;
  tablet.changing = false;
  tablet.there = true;
  expect(engine.durable_clock(tablet.id)->empty(), "a new tablet has seen something");
  for (const TableState& table : tables_) {
    if (table.there && !table.changing) co_await check_scan(engine, tablet, table);
  }
}

Task<void> EngineHistory::drop_tablet(Engine& engine, TabletState& tablet) {
  tablet.changing = true;
  if (!fine(co_await engine.drop_tablet(tablet.id))) co_return;
  ++counts_.tablets_dropped;
  tablet.changing = false;
  tablet.there = false;
  tablet.oracle = {};
  expect(engine.durable_clock(tablet.id).failed_with(Errc::not_found), "a dropped tablet is there");
}

Task<void> EngineHistory::reincarnate(Engine& engine, TabletState& tablet) {
  (void)fine(co_await engine.reincarnate(tablet.id, next_actor(tablet)));
}

}  // namespace helenus::storage::testing
