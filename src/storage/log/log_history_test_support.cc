#include "storage/log/log_history_test_support.h"

#include <algorithm>
#include <utility>

#include "runtime/sleep.h"

namespace helenus::storage::testing {

using base::as_bytes;
using base::Errc;
using runtime::Duration;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::uint64_t kTables = 4;
constexpr std::size_t kWritersMax = 8;
// How long a write that was begun in time may take until it is acknowledged.
constexpr Duration kWriteSlack = std::chrono::milliseconds(50);
constexpr std::uint64_t kCapacity = std::uint64_t{1} << 30;

}  // namespace

LogHistory::LogHistory(std::uint64_t seed, Options options)
    : options_(std::move(options)),
      world_(seed, 1, options_.world),
      prng_(base::Prng::for_purpose(seed, "log history")) {}

CommitLogOptions LogHistory::log_options() {
  CommitLogOptions options = small_log(options_.mode);
  options.segment_size = 32 << 10;
  options.record_size_max = 4 << 10;
  options.staged_bytes_max = 32 << 10;
  options.disk_bytes_max = prng_.between(4, 64) * options.segment_size;
  options.spare_files_max = prng_.below(3);
  options.sync_period = std::chrono::milliseconds(100);
  options.claim_delay = std::chrono::milliseconds(30);
  options.retry_delay = std::chrono::milliseconds(20);
  if (prng_.chance(0.5)) options.direct = DirectIo::off;
  return options;
}

void LogHistory::start_life() {
  world_.start([this](Runtime& runtime) { return life(runtime); });
}

bool LogHistory::run_events(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!world_.machine().is_up() || !world_.world().step()) return false;
  }
  return world_.machine().is_up();
}

void LogHistory::run_to_end() {
  const bool ended =
      world_.world().run_until([&] { return !world_.machine().is_up(); }, std::chrono::hours(1));
  expect(ended, "a life that does not end");
}

void LogHistory::crash(bool power_loss) {
  note_progress();
  open_ = nullptr;
  power_was_lost_ = power_was_lost_ || power_loss;
  if (power_loss) {
    world_.machine().power_loss();
  } else {
    world_.machine().kill();
  }
  calm_faults();
}

void LogHistory::calm_faults() {
  world_.faults() = {};
  world_.disk().set_capacity(kCapacity);
}

LogHistory::Records& LogHistory::records_of(const CommitLog& log) {
  return logs_[{log.tail().segment.incarnation, log.core()}];
}

// Takes down what the logs say is durable at this moment.
void LogHistory::note_progress() {
  if (open_ == nullptr) return;
  for (const auto& log : open_->logs) {
    const bool failed_periodic = log->fatal_error() && options_.mode == LogSyncMode::periodic;
    for (auto& [position, staged] : records_of(*log)) {
      if (position < log->synced_position()) staged.must_survive_power = true;
      if (position < log->durable_position()) staged.must_survive_kill = true;
      if (failed_periodic) {
        staged.must_survive_kill = staged.must_survive_power;
        doubt_known_ = Known::unknown;
      }
      if (options_.mode != LogSyncMode::periodic && staged.must_survive_kill) {
        expect(staged.must_survive_power, "{} is durable, and not synced", position);
      }
    }
  }
}

Task<void> LogHistory::life(Runtime& runtime) {
  OpenLogs open;
  auto folder = co_await LogDirectory::open(runtime, kLogFolder);
  if (!fine(folder)) co_return;
  open.folder = *std::move(folder);
  auto replayed = co_await replay_all(*open.folder, open.replayed);
  if (!fine(replayed)) co_return;
  check_report(open.folder->report(), runtime.boot_id);
  check_found(open.replayed);

  const CommitLogOptions options = log_options();
  const auto cores = static_cast<std::uint32_t>(prng_.between(1, options_.cores_max));
  begun_ = Known::unknown;
  auto shares = co_await open.folder->begin(cores, options);
  if (!fine(shares)) co_return;
  begun_ = Known::yes;
  begun_boot_ = runtime.boot_id;
  sealed_ = false;
  doubt_ = open.folder->report().tail_may_be_lost;
  doubt_known_ = Known::yes;
  power_was_lost_ = false;
  adopt(open.replayed);
  for (LogShare& share : *shares) {
    auto log = co_await CommitLog::open(runtime, std::move(share), options);
    if (!fine(log)) co_return;
    open.logs.push_back(*std::move(log));
  }
  open_ = &open;
  if (doubt_ && prng_.chance(0.7)) {
    doubt_known_ = Known::unknown;
    auto settled = co_await open.folder->clear_tail_doubt();
    if (!fine(settled)) co_return;
    doubt_known_ = Known::yes;
    doubt_ = false;
  }
  co_await work(runtime, open);
  note_progress();
  open_ = nullptr;
  calm_faults();
  begun_ = Known::unknown;
  bool all_sealed = true;
  for (auto& log : open.logs) {
    auto stopped = co_await log->stop();
    all_sealed = all_sealed && stopped.has_value();
    expect(stopped.has_value() != log->fatal_error().has_value(),
           "a log stops well if and only if it has not ended before");
  }
  begun_ = Known::yes;
  sealed_ = all_sealed;
  auto closed = co_await open.folder->close();
  if (!fine(closed)) co_return;
}

Task<void> LogHistory::work(Runtime& runtime, OpenLogs& open) {
  runtime::TaskGroup writers(runtime);
  for (int step = 0; step < options_.steps; ++step) {
    co_await one_step(runtime, open, writers);
    note_progress();
  }
  calm_faults();
  co_await writers.join();
}

Task<void> LogHistory::one_step(Runtime& runtime, OpenLogs& open, runtime::TaskGroup& writers) {
  CommitLog& log = *open.logs[prng_.below(open.logs.size())];
  const TableId table{prng_.below(kTables)};
  const std::uint64_t dice = prng_.below(100);
  if (dice < 60) {
    if (writers.size() >= kWritersMax) co_await writers.join();
    const std::size_t size = prng_.chance(0.3) ? prng_.below(4000) : prng_.below(100);
    std::string bytes = std::to_string(++record_count_) + ":" + std::string(size, 'r');
    writers.spawn(write(log, table, std::move(bytes)));
  } else if (dice < 70) {
    const LogPosition from = log.tail();
    log.needed_from(table, from);
    for (auto& [position, staged] : records_of(log)) {
      if (staged.table == table && position < from) staged.not_needed = true;
    }
  } else if (dice < 72) {
    log.forget_table(table);
    for (auto& [position, staged] : records_of(log)) {
      if (staged.table == table) staged.not_needed = true;
    }
  } else if (dice < 76) {
    release_all_old(table, log.tail().segment.incarnation);
    auto released = co_await open.folder->release({table});
    expect(released.has_value() || faulty_, "files are not released");
  } else if (dice < 80) {
    auto synced = co_await log.sync_to(log.tail(), Until::forever());
    expect(synced.has_value() || faulty_, "a log does not sync");
  } else if (dice < 83 && options_.faults) {
    change_faults();
  } else if (dice < 88) {
    // Long enough for claims, retries and periodic syncs.
    auto slept = co_await runtime::sleep_for(runtime, std::chrono::milliseconds(200), {});
    if (!fine(slept)) co_return;
  } else {
    auto slept = co_await runtime::sleep_for(runtime, Duration(prng_.below(2'000'000)), {});
    if (!fine(slept)) co_return;
  }
}

void LogHistory::change_faults() {
  faulty_ = true;
  sim::DiskFaults& faults = world_.faults();
  switch (prng_.below(6)) {
    case 0:
      faults.write_error = 0.05;
      break;
    case 1:
      faults.sync_error = 0.05;
      break;
    case 2:
      faults.slowness = 200;
      break;
    case 3:
      world_.disk().set_capacity(world_.disk().used_bytes() + (64 << 10));
      break;
    default:
      calm_faults();
  }
}

Task<void> LogHistory::write(CommitLog& log, TableId table, std::string bytes) {
  const auto staged = log.stage(table, as_bytes(bytes));
  if (!staged) {
    const Errc code = staged.error().code();
    expect(code == Errc::overloaded || code == Errc::no_space || log.fatal_error(), "{}",
           staged.error().to_string());
    co_return;
  }
  Records& records = records_of(log);
  const auto [at, fresh] = records.insert({*staged, {.table = table, .bytes = bytes}});
  expect(fresh && std::next(at) == records.end(), "positions only grow, and not to {}", *staged);
  auto durable = co_await log.durable(*staged, Until::forever());
  if (!durable) {
    expect(log.fatal_error().has_value(), "{}", durable.error().to_string());
    co_return;
  }
  Staged& record = records_of(log).at(*staged);
  record.acknowledged = true;
  record.acknowledged_at = world_.world().now().since_origin();
  record.must_survive_kill = true;
  if (options_.mode != LogSyncMode::periodic) record.must_survive_power = true;
}

// ---- Checking ----

void LogHistory::check_report(const LogOpenReport& report, const std::string& boot_id) {
  if (begun_ == Known::unknown) return;
  LastStop expected = LastStop::fresh;
  if (begun_ == Known::yes) {
    expected = sealed_                  ? LastStop::clean
               : begun_boot_ == boot_id ? LastStop::killed
                                        : LastStop::power_lost;
  }
  expect(report.last_stop == expected, "the last stop was {}, and not {}", name_of(expected),
         name_of(report.last_stop));
  if (doubt_known_ == Known::unknown) return;
  const bool unsealed = expected == LastStop::killed || expected == LastStop::power_lost;
  const bool doubt = doubt_ || (unsealed && options_.mode == LogSyncMode::periodic);
  expect(report.tail_may_be_lost == doubt, "the tail may {}be lost", doubt ? "" : "not ");
}

void LogHistory::check_found(const std::vector<Replayed>& found) {
  records_found_ = found.size();
  std::map<LogKey, std::map<LogPosition, const Replayed*>> by_log;
  for (const Replayed& record : found) {
    const LogKey key{record.position.segment.incarnation, record.core};
    auto& of_log = by_log[key];
    expect(of_log.empty() || of_log.rbegin()->first < record.position, "out of order at {}",
           record.position);
    of_log[record.position] = &record;
    expect(logs_.contains(key), "log {}/{} was never written", key.first, key.second);
  }
  for (const auto& [key, records] : logs_) check_log(key, records, by_log[key]);
}

void LogHistory::check_log(const LogKey& key, const Records& records,
                           const std::map<LogPosition, const Replayed*>& found) {
  const auto where = [&](LogPosition position) {
    return fmt::format("log {}/{} at {}", key.first, key.second, position);
  };
  for (const auto& [position, record] : found) {
    const auto staged = records.find(position);
    if (staged == records.end()) {
      violations_.add(where(position) + ": invented");
      continue;
    }
    const Staged& known = staged->second;
    if (known.table != record->table || known.bytes != record->bytes) {
      violations_.add(where(position) + ": other bytes than were staged");
    }
    if (known.gone) violations_.add(where(position) + ": is back");
  }
  const LogPosition last = found.empty() ? LogPosition{} : found.rbegin()->first;
  Duration first_lost = Duration::max();
  Duration last_lost{0};
  for (const auto& [position, staged] : records) {
    if (found.contains(position) || staged.not_needed || staged.gone) continue;
    if (position <= last) violations_.add(where(position) + ": a hole");
    const bool must = power_was_lost_ ? staged.must_survive_power : staged.must_survive_kill;
    if (must) violations_.add(where(position) + ": lost");
    if (!staged.acknowledged) continue;
    ++records_lost_;
    first_lost = std::min(first_lost, staged.acknowledged_at);
    last_lost = std::max(last_lost, staged.acknowledged_at);
  }
  if (first_lost != Duration::max() && !faulty_ &&
      last_lost - first_lost > std::chrono::milliseconds(100) + kWriteSlack) {
    violations_.add(where(last) + ": more than a period is lost");
  }
}

// From here on, what was found is durable, and what was not is gone.
void LogHistory::adopt(const std::vector<Replayed>& found) {
  for (auto& [key, records] : logs_) {
    for (auto& [position, staged] : records) {
      const bool there = std::ranges::any_of(found, [&](const Replayed& record) {
        return record.core == key.second && record.position == position;
      });
      staged.gone = !there;
      staged.must_survive_power = staged.must_survive_kill = there;
    }
  }
}

void LogHistory::release_all_old(TableId table, std::uint32_t incarnation) {
  for (auto& [key, records] : logs_) {
    if (key.first >= incarnation) continue;
    for (auto& [position, staged] : records) {
      if (staged.table == table) staged.not_needed = true;
    }
  }
}

}  // namespace helenus::storage::testing
