#include "storage/engine_history_test_support.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "causality/codec.h"
#include "causality/resolve.h"
#include "sim/machine.h"

namespace helenus::storage::testing {

using base::Result;
using causality::Policy;
using runtime::Task;
using runtime::Until;

namespace {

constexpr causality::Epoch kEpoch{1};
constexpr std::uint32_t kColumns = 3;
const causality::ActorId kPeerActor = causality::actor_of(2, 1);
constexpr causality::WallTime kNow{1};

// What a reader sees of a cell, for people to compare.
std::string shown(const causality::PartitionStore& partition, const base::Bytes& row,
                  Policy policy) {
  std::string text;
  for (std::uint32_t column = 0; column < kColumns; ++column) {
    const causality::CellStore cell = partition.cell(row, causality::ColumnId{column});
    for (const causality::Version* version : causality::visible(cell, policy, kNow)) {
      text += fmt::format("{}={}@{} ", column, version->value.text(), version->dot);
    }
  }
  return text;
}

using Rows = std::vector<std::pair<std::string, std::string>>;

// Whether some cell is touched by both.
bool overlap(const causality::Delta& a, const causality::Delta& b) {
  const auto same_cell = [&](const causality::CellChange& x) {
    return std::ranges::any_of(b.cells, [&](const causality::CellChange& y) {
      return x.row == y.row && x.column == y.column;
    });
  };
  const auto scope_meets = [](const causality::Scope& scope, const causality::Delta& other) {
    return std::ranges::any_of(other.cells,
                               [&](const auto& cell) { return scope.contains(cell.row); }) ||
           std::ranges::any_of(other.scopes,
                               [&](const auto& each) { return scope.overlaps(each); });
  };
  return std::ranges::any_of(a.cells, same_cell) ||
         std::ranges::any_of(a.scopes, [&](const auto& scope) { return scope_meets(scope, b); }) ||
         std::ranges::any_of(b.scopes, [&](const auto& scope) { return scope_meets(scope, a); });
}

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

EngineHistory::EngineHistory(std::uint64_t seed, Options options)
    : seed_(seed), options_(options), world_(seed), prng_(seed * 1000003 + 1) {}

EngineOptions EngineHistory::engine_options() const {
  EngineOptions options = small_engine(options_.mode);
  options.mutation_log_bytes_max = options_.mutation_log_bytes_max;
  // Garbage alone is reason enough to merge, again and again.
  options.collection = {.share_min = 0.05, .interval = std::chrono::milliseconds(20)};
  if (options_.tight_memory) {
    options.memtable_bytes_flush = 16 << 10;
    options.memtable_bytes_max = 32 << 10;
  }
  return options;
}

void EngineHistory::start_life() {
  world_.start([this](runtime::Runtime& runtime) { return life(runtime); });
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
  EXPECT_TRUE(ended) << "seed " << seed_ << ": the life waits for something that never happens";
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

Task<void> EngineHistory::life(runtime::Runtime& runtime) {
  ++counts_.lives;
  told_alone_ = false;
  auto opened = co_await Engine::open(runtime, engine_options());
  EXPECT_TRUE(opened.has_value()) << "seed " << seed_ << ": " << opened.error().to_string();
  if (!opened) co_return;
  Engine& engine = **opened;
  counts_.records_replayed += engine.report().records_applied;
  co_await settle_start(engine);
  for (int step = 0; step < options_.steps; ++step) co_await one_step(engine);
  co_await check_scan(engine);
  counts_.flushes += engine.statistics().flushes;
  counts_.compactions += engine.statistics().compactions;
  counts_.keys_gone += engine.statistics().keys_gone;
  counts_.mutations_from_files += engine.statistics().mutations_moved;
  counts_.mutation_files_shed += engine.statistics().mutation_files_shed;
  const auto stopped = co_await engine.stop();
  EXPECT_TRUE(stopped.has_value()) << "seed " << seed_ << ": " << stopped.error().to_string();
}

Task<void> EngineHistory::settle_start(Engine& engine) {
  auto made = co_await engine.create_table(kTable, {.policy = options_.policy});
  EXPECT_TRUE(made || made.failed_with(base::Errc::already_exists));
  made = co_await engine.create_tablet(kTablet, {}, causality::actor_of(1, incarnation_));
  EXPECT_TRUE(made || made.failed_with(base::Errc::already_exists));
  adopt(*engine.durable_clock(kTablet));
  if (tail_may_be_lost_ || went_back_) {
    EXPECT_FALSE(engine.tablets_in_doubt().empty() && !deltas_.empty() && went_back_)
        << "seed " << seed_ << ": an older image was taken for the newest";
  }
  if (!engine.tablets_in_doubt().empty()) {
    ++counts_.lives_in_doubt;
    const auto refused = engine.stage(kTable, kTablet, base::as_bytes("p"), any_mutation(), kEpoch);
    EXPECT_TRUE(refused.failed_with(base::Errc::unavailable));
    ++incarnation_;
    const auto reborn = co_await engine.reincarnate(kTablet, causality::actor_of(1, incarnation_));
    EXPECT_TRUE(reborn.has_value()) << reborn.error().to_string();
    EXPECT_TRUE(engine.tablets_in_doubt().empty());
  }
  tail_may_be_lost_ = false;
  went_back_ = false;
  co_await check_mutation_log(engine);
  co_await check_scan(engine);
}

// Compares what a start has found with what was written, and goes on from there.
void EngineHistory::adopt(const causality::Clock& found) {
  for (auto at = deltas_.begin(); at != deltas_.end();) {
    Known& known = at->second;
    const bool there = found.contains(at->first);
    if (!there && known.acknowledged && !tail_may_be_lost_ && !went_back_) {
      ADD_FAILURE() << "seed " << seed_ << ": " << fmt::format("{}", at->first)
                    << " was acknowledged and is lost";
    }
    known.in_engine = there;
    known.acknowledged = there;
    if (there) seen_[at->first] = true;
    const bool kept = there || known.at_peer;
    at = kept ? std::next(at) : deltas_.erase(at);
  }
  std::uint64_t dots = 0;
  for (const auto& entry : found.entries()) {
    for (const auto& range : entry.counters.ranges()) dots += range.last - range.first + 1;
  }
  const auto known_here =
      std::ranges::count_if(deltas_, [](const auto& entry) { return entry.second.in_engine; });
  EXPECT_EQ(dots, static_cast<std::uint64_t>(known_here))
      << "seed " << seed_ << ": dots that nobody minted";
}

Task<void> EngineHistory::one_step(Engine& engine) {
  const std::uint64_t choice = prng_.below(100);
  if (choice < 40) {
    co_await write(engine);
  } else if (choice < 48) {
    co_await write_several(engine);
  } else if (choice < 56 && options_.peer) {
    mint_at_peer();
  } else if (choice < 66 && options_.peer) {
    co_await take_from_peer(engine);
  } else if (choice < 72) {
    give_to_peer();
  } else if (choice < 78) {
    update_watermarks(engine);
  } else if (choice < 82) {
    const auto flushed = co_await engine.flush(kTable, Until::forever());
    EXPECT_TRUE(flushed.has_value()) << flushed.error().to_string();
  } else if (choice < 84) {
    const auto compacted = co_await engine.compact(kTable, Until::forever());
    EXPECT_TRUE(compacted.has_value()) << compacted.error().to_string();
  } else if (choice < 95) {
    co_await check_row(engine);
  } else if (choice < 97) {
    co_await check_mutation_log(engine);
  } else {
    co_await check_scan(engine);
  }
}

std::string EngineHistory::any_partition() {
  return std::string(1, static_cast<char>('p' + prng_.below(3)));
}

base::Bytes EngineHistory::any_row() {
  return base::Bytes::copy_of(std::string(1, static_cast<char>('a' + prng_.below(6))));
}

causality::Mutation EngineHistory::any_mutation() {
  causality::Mutation mutation;
  // Clients' clocks differ.
  ++time_;
  const std::int64_t skew = prng_.below(4) == 0 ? static_cast<std::int64_t>(prng_.below(400)) : 0;
  mutation.timestamp = causality::Timestamp{time_ + skew};
  const std::uint64_t kind = prng_.below(10);
  if (kind < 7) {
    std::map<std::pair<base::Bytes, std::uint32_t>, bool> places;
    for (std::uint64_t left = 1 + prng_.below(3); left > 0; --left) {
      places[{any_row(), static_cast<std::uint32_t>(prng_.below(kColumns))}] = true;
    }
    for (const auto& [place, unused] : places) {
      causality::CellChange change;
      change.row = place.first;
      change.column = causality::ColumnId{place.second};
      if (prng_.below(4) == 0) {
        change.kind = causality::VersionKind::empty;
      } else {
        change.value =
            base::Bytes::copy_of(std::string(prng_.below(60), 'v') + std::to_string(time_));
      }
      mutation.cells.push_back(std::move(change));
    }
  } else if (kind < 8) {
    mutation.scopes.push_back(causality::row_scope(any_row()));
  } else if (kind < 9) {
    causality::Scope scope;
    scope.from = any_row();
    scope.to = any_row();
    if (*scope.to < *scope.from) std::swap(scope.from, scope.to);
    if (*scope.to == *scope.from) scope.to.reset();
    mutation.scopes.push_back(std::move(scope));
  } else {
    mutation.scopes.push_back({});
  }
  return mutation;
}

void EngineHistory::note_minted(const std::string& partition, const causality::Delta& delta) {
  EXPECT_FALSE(seen_.contains(delta.dot))
      << "seed " << seed_ << ": " << fmt::format("{}", delta.dot) << " was minted twice";
  if (options_.policy == Policy::lww) check_timestamp(partition, delta);
  if (told_alone_) told_stable_.add(delta.dot);
  deltas_[delta.dot] = {.partition = partition, .delta = delta, .in_engine = true};
}

void EngineHistory::check_timestamp(const std::string& partition,
                                    const causality::Delta& delta) const {
  for (const auto& [dot, known] : deltas_) {
    if (!known.in_engine || known.partition != partition || told_stable_.contains(dot)) continue;
    if (!overlap(known.delta, delta)) continue;
    EXPECT_GT(delta.scopes.empty() ? delta.timestamp : causality::timestamp_of_scopes(delta),
              known.delta.timestamp)
        << "seed " << seed_ << ": " << fmt::format("{} covers {}", delta.dot, dot);
  }
}

// Conservative: of everything that the peer has.
causality::Timestamp EngineHistory::floor_at_peer() const {
  causality::Timestamp floor = causality::kTimestampMin;
  for (const auto& [dot, known] : deltas_) {
    if (known.at_peer) floor = std::max(floor, known.delta.timestamp);
  }
  return floor;
}

causality::Clock EngineHistory::dots_in_engine() const {
  causality::Clock clock;
  for (const auto& [dot, known] : deltas_) {
    if (known.in_engine) clock.add(dot);
  }
  return clock;
}

Staged EngineHistory::stage_any(Engine& engine) {
  const std::string partition = any_partition();
  causality::Mutation mutation = any_mutation();
  const causality::Timestamp given = mutation.timestamp;
  auto staged =
      engine.stage(kTable, kTablet, base::as_bytes(partition), std::move(mutation), kEpoch);
  EXPECT_TRUE(staged.has_value()) << staged.error().to_string();
  if (staged->delta.timestamp > given) ++counts_.timestamps_raised;
  note_minted(partition, staged->delta);
  return *std::move(staged);
}

Task<void> EngineHistory::write(Engine& engine) {
  EXPECT_TRUE((co_await engine.admit(kTable, kTablet, 1024, Until::forever())).has_value());
  const Staged staged = stage_any(engine);
  const auto durable = co_await engine.durable(staged.position, Until::forever());
  EXPECT_TRUE(durable.has_value()) << durable.error().to_string();
  deltas_[staged.delta.dot].acknowledged = true;
  seen_[staged.delta.dot] = true;
  ++counts_.writes;
}

// Several records in one write of the log.
Task<void> EngineHistory::write_several(Engine& engine) {
  std::vector<causality::Dot> dots;
  std::optional<LogPosition> last;
  for (std::uint64_t left = 2 + prng_.below(4); left > 0; --left) {
    EXPECT_TRUE((co_await engine.admit(kTable, kTablet, 1024, Until::forever())).has_value());
    const Staged staged = stage_any(engine);
    dots.push_back(staged.delta.dot);
    last = staged.position;
  }
  const auto durable = co_await engine.durable(*last, Until::forever());
  EXPECT_TRUE(durable.has_value()) << durable.error().to_string();
  for (const causality::Dot& dot : dots) {
    deltas_[dot].acknowledged = true;
    seen_[dot] = true;
    ++counts_.writes;
  }
}

void EngineHistory::mint_at_peer() {
  const std::string partition = any_partition();
  auto delta = causality::mint(peer_clock_, kPeerActor, kEpoch, options_.policy, any_mutation(),
                               floor_at_peer());
  ASSERT(delta.has_value());
  seen_[delta->dot] = true;
  deltas_[delta->dot] = {.partition = partition, .delta = *delta, .at_peer = true};
}

Task<void> EngineHistory::take_from_peer(Engine& engine) {
  std::vector<causality::Dot> dots;
  for (const auto& [dot, known] : deltas_) {
    if (known.at_peer && prng_.below(3) != 0) dots.push_back(dot);
  }
  for (const causality::Dot& dot : dots) {
    Known& known = deltas_[dot];
    EXPECT_TRUE((co_await engine.admit(kTable, kTablet, 1024, Until::forever())).has_value());
    auto staged = engine.stage(kTable, kTablet, base::as_bytes(known.partition), known.delta);
    EXPECT_TRUE(staged.has_value()) << staged.error().to_string();
    EXPECT_EQ(staged->applied,
              known.in_engine ? causality::Applied::before : causality::Applied::now);
    known.in_engine = true;
    const auto durable = co_await engine.durable(staged->position, Until::forever());
    EXPECT_TRUE(durable.has_value()) << durable.error().to_string();
    known.acknowledged = true;
  }
}

void EngineHistory::give_to_peer() {
  for (auto& [dot, known] : deltas_) {
    if (!known.acknowledged || known.at_peer || prng_.below(3) == 0) continue;
    known.at_peer = true;
    peer_clock_.add(dot);
  }
}

// As after a complete pull: everything the peer had is here.
void EngineHistory::update_watermarks(Engine& engine) {
  if (!options_.peer) {
    engine.set_watermarks(kTablet, {});
    told_alone_ = true;
    told_stable_ = causality::join(told_stable_, dots_in_engine());
    return;
  }
  const bool complete = std::ranges::all_of(deltas_, [](const auto& entry) {
    return !entry.second.at_peer || entry.second.acknowledged;
  });
  if (!complete) return;
  engine.set_watermarks(kTablet, {causality::Watermark{causality::base(peer_clock_), kNow}});
  told_stable_ = causality::join(told_stable_, causality::meet(causality::base(peer_clock_),
                                                               causality::base(dots_in_engine())));
}

std::map<std::string, causality::PartitionStore> EngineHistory::expected() const {
  std::map<std::string, causality::PartitionStore> partitions;
  for (const auto& [dot, known] : deltas_) {
    if (known.in_engine) {
      partitions[known.partition].absorb(causality::fragment_of(known.delta, options_.policy));
    }
  }
  return partitions;
}

Task<void> EngineHistory::check_row(Engine& engine) {
  const std::string partition = any_partition();
  const base::Bytes row = any_row();
  const auto read = co_await engine.read_row(kTable, kTablet, base::Bytes::copy_of(partition), row,
                                             Until::forever());
  EXPECT_TRUE(read.has_value()) << read.error().to_string();
  auto partitions = expected();
  EXPECT_EQ(shown(read->partition, row, options_.policy),
            shown(partitions[partition], row, options_.policy))
      << "seed " << seed_ << " row " << partition << row.text();
  for (const auto& entry : read->clock.entries()) {
    for (const auto& range : entry.counters.ranges()) {
      for (auto counter = range.first; counter <= range.last; ++counter) {
        const auto known = deltas_.find({entry.actor, counter});
        EXPECT_TRUE(known != deltas_.end() && known->second.in_engine)
            << "seed " << seed_ << ": the clock claims what is not there";
        seen_[{entry.actor, counter}] = true;
      }
    }
  }
}

Task<MissingMutations> EngineHistory::everything_missing(Engine& engine) {
  MissingMutations all;
  causality::Clock given;
  while (true) {
    auto page =
        co_await engine.missing_mutations(kTablet, given, prng_.below(6000), Until::forever());
    EXPECT_TRUE(page.has_value()) << "seed " << seed_ << ": " << page.error().to_string();
    if (!page) co_return all;
    EXPECT_TRUE(page->complete || !page->mutations.empty());
    for (LoggedMutation& mutation : page->mutations) {
      EXPECT_FALSE(given.contains(mutation.dot)) << "seed " << seed_ << ": given twice";
      EXPECT_TRUE(all.mutations.empty() || all.mutations.back().dot < mutation.dot);
      given.add(mutation.dot);
      all.mutations.push_back(std::move(mutation));
    }
    all.withheld = std::move(page->withheld);
    if (page->complete) co_return all;
  }
}

void EngineHistory::check_given(const LoggedMutation& mutation) {
  const auto known = deltas_.find(mutation.dot);
  const bool there = known != deltas_.end() && known->second.in_engine;
  EXPECT_TRUE(there) << "seed " << seed_ << ": " << fmt::format("{}", mutation.dot)
                     << " is in the mutation log and not in the clock";
  if (!there) return;
  EXPECT_EQ(mutation.table, kTable);
  EXPECT_EQ(mutation.partition.text(), known->second.partition);
  const auto delta = causality::decode_delta(mutation.delta);
  EXPECT_TRUE(delta && *delta == known->second.delta) << "seed " << seed_;
  seen_[mutation.dot] = true;
  ++counts_.mutations_given;
}

Task<void> EngineHistory::check_mutation_log(Engine& engine) {
  const auto missing = co_await everything_missing(engine);
  causality::Clock given;
  for (const LoggedMutation& mutation : missing.mutations) {
    check_given(mutation);
    given.add(mutation.dot);
  }
  const auto durable = engine.durable_clock(kTablet);
  EXPECT_EQ(causality::join(given, missing.withheld), *durable) << "seed " << seed_;
  EXPECT_TRUE(causality::meet(given, missing.withheld).empty()) << "seed " << seed_;
  if (engine.statistics().mutation_files_shed + counts_.mutation_files_shed > 0) co_return;
  EXPECT_TRUE(told_stable_.covers(missing.withheld))
      << "seed " << seed_ << ": "
      << fmt::format("{} is lost to peers", causality::subtract(missing.withheld, told_stable_));
}

Task<void> EngineHistory::check_scan(Engine& engine) {
  Rows wanted;
  for (const auto& [partition, store] : expected()) {
    for (const auto& [row, unused] : store.rows()) {
      const std::string text = shown(store, row, options_.policy);
      if (!text.empty()) wanted.emplace_back(partition + std::string(row.text()), text);
    }
  }
  auto cursor = engine.cursor(kTable, kTablet, {});
  EXPECT_TRUE(cursor.has_value());
  TableCursor& rows = **cursor;
  Rows forward;
  Rows backward;
  const auto take = [&](Rows& into) {
    auto read = rows.read();
    EXPECT_TRUE(read.has_value()) << read.error().to_string();
    const auto row = base::Bytes::copy_of(rows.row_key());
    const std::string text = shown(*read, row, options_.policy);
    if (text.empty()) return;
    into.emplace_back(std::string(base::as_text(rows.partition())) + std::string(row.text()), text);
  };
  EXPECT_TRUE((co_await rows.seek_first()).has_value());
  while (rows.valid()) {
    take(forward);
    EXPECT_TRUE((co_await rows.next()).has_value());
  }
  EXPECT_TRUE((co_await rows.seek_last()).has_value());
  while (rows.valid()) {
    take(backward);
    EXPECT_TRUE((co_await rows.previous()).has_value());
  }
  std::ranges::reverse(backward);
  EXPECT_EQ(forward, wanted) << "seed " << seed_;
  EXPECT_EQ(backward, wanted) << "seed " << seed_;
}

}  // namespace helenus::storage::testing
