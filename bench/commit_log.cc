// bench-commit_log: how many records a second become durable, beside RocksDB's write-ahead log and
// beside a plain loop of the same system calls.
//
// Records of 150 bytes, by 1, 8 and 64 writers that each wait for their record. Ours runs on one
// core and is opened with recycled segments, as a log that has run for a while has them. RocksDB
// gets a thread for each writer, a 16-byte key and a 134-byte value, sync on, and an empty
// database; its memtable insert is part of what is measured. The plain loop has one writer and no
// framing: a write of a 4 KiB block past the page cache into a file that was written before, and
// fdatasync.
//
// Files go to a folder below the current one (--directory DIR for another place). What a disk does
// in one second says nothing about the next: sides take turns.
#include "storage/log/commit_log.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "runtime/clock.h"
#include "runtime/native/native_host.h"
#include "runtime/task_group.h"

namespace helenus::bench {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::CommitLog;
using storage::CommitLogOptions;
using storage::LogDirectory;
using storage::LogSyncMode;
using storage::TableId;

constexpr std::size_t kRecordSize = 150;
constexpr std::size_t kKeySize = 16;
constexpr TableId kTable{1};

template <class T>
T must(base::Result<T> result) {
  ASSERT(result.has_value(), "{}", result.error().to_string());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
void must(const rocksdb::Status& status) {
  ASSERT(status.ok(), "{}", status.ToString());
}

struct Setting {
  std::string directory;
  double seconds = 1;
};

void make_empty(const std::string& directory) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
}

// ---- Ours ----

struct Ours {
  Setting setting;
  CommitLogOptions options;
  int writers = 1;
  double records_per_second = 0;
  std::string latency;
};

Task<void> write_until(CommitLog& log, Runtime& runtime, runtime::MonotonicTime end) {
  const std::string record(kRecordSize, 'r');
  while (runtime.clock.now() < end) {
    auto appended = co_await log.append(kTable, base::as_bytes(record), Until::forever());
    if (appended.failed_with(base::Errc::overloaded)) {
      must(co_await log.room(record.size(), Until::forever()));
      continue;
    }
    must(std::move(appended));
    // What a flush would do, so that segments come back.
    if (log.usage().segments > 1) log.needed_from(kTable, log.tail());
  }
}

// Fills segments and gives them back, so that the ones to come are recycled.
Task<void> warm_up(CommitLog& log) {
  const std::string record(std::size_t{1} << 20, 'w');
  while (log.files().recycled < 4) {
    must(co_await log.room(record.size(), Until::forever()));
    must(co_await log.append(kTable, base::as_bytes(record), Until::forever()));
    log.needed_from(kTable, log.tail());
  }
}

Task<int> run_ours(Runtime& runtime, Ours& ours) {
  auto folder = must(co_await LogDirectory::open(runtime, ours.setting.directory));
  ASSERT(!must(co_await folder->next_batch()).has_value());
  auto shares = must(co_await folder->begin(1, ours.options));
  auto log = must(co_await CommitLog::open(runtime, std::move(shares[0]), ours.options));
  co_await warm_up(*log);
  const std::uint64_t before = log->statistics().records;
  const auto began = runtime.clock.now();
  const auto end =
      began + std::chrono::nanoseconds(static_cast<std::int64_t>(ours.setting.seconds * 1e9));
  runtime::TaskGroup writers(runtime);
  for (int i = 0; i < ours.writers; ++i) writers.spawn(write_until(*log, runtime, end));
  co_await writers.join();
  const double seconds = static_cast<double>((runtime.clock.now() - began).count()) / 1e9;
  ours.records_per_second = static_cast<double>(log->statistics().records - before) / seconds;
  ours.latency = log->statistics().durable_ns.summary("ns");
  must(co_await log->stop());
  must(co_await folder->close());
  co_return 0;
}

double measure_ours(Ours& ours) {
  make_empty(ours.setting.directory);
  auto host = must(runtime::native::NativeHost::open({.cores = 1, .handle_signals = false}));
  host->run([&](Runtime& runtime, runtime::StopToken) { return run_ours(runtime, ours); });
  std::filesystem::remove_all(ours.setting.directory);
  return ours.records_per_second;
}

// ---- Peers ----

double measure_rocksdb(const Setting& setting, int writers, bool sync) {
  make_empty(setting.directory);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.recycle_log_file_num = 4;
  rocksdb::DB* opened = nullptr;
  must(rocksdb::DB::Open(options, setting.directory + "/db", &opened));
  const std::unique_ptr<rocksdb::DB> db(opened);
  std::atomic<std::uint64_t> records = 0;
  const Stopwatch stopwatch;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      rocksdb::WriteOptions write;
      write.sync = sync;
      const std::string value(kRecordSize - kKeySize, 'r');
      std::uint64_t count = 0;
      std::string key(kKeySize, '\0');
      while (stopwatch.seconds() < setting.seconds) {
        auto* at = reinterpret_cast<std::byte*>(key.data());
        base::store_be(at, base::mix64(static_cast<std::uint64_t>(writer) << 32 | count));
        must(db->Put(write, key, value));
        ++count;
      }
      records += count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double rate = static_cast<double>(records) / stopwatch.seconds();
  must(db->Close());
  std::filesystem::remove_all(setting.directory);
  return rate;
}

double measure_plain_loop(const Setting& setting) {
  constexpr std::size_t kFileSize = std::size_t{64} << 20;
  constexpr std::size_t kBlock = 4096;
  make_empty(setting.directory);
  const std::string path = setting.directory + "/plain";
  base::Buffer block(std::size_t{1} << 20, kBlock);
  std::ranges::fill(block.extend(std::size_t{1} << 20), std::byte{'r'});
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_DIRECT | O_CLOEXEC, 0644);
  ASSERT(file >= 0, "cannot open {} past the page cache", path);
  for (std::size_t at = 0; at < kFileSize; at += block.size()) {
    ASSERT(::pwrite(file, block.data(), block.size(), static_cast<off_t>(at)) > 0);
  }
  ASSERT(::fdatasync(file) == 0);
  std::uint64_t records = 0;
  std::size_t at = 0;
  const Stopwatch stopwatch;
  while (stopwatch.seconds() < setting.seconds) {
    ASSERT(::pwrite(file, block.data(), kBlock, static_cast<off_t>(at)) == kBlock);
    ASSERT(::fdatasync(file) == 0);
    at = (at + kBlock) % kFileSize;
    ++records;
  }
  const double rate = static_cast<double>(records) / stopwatch.seconds();
  ::close(file);
  std::filesystem::remove_all(setting.directory);
  return rate;
}

// ---- The table ----

void compare(const Options& options, Report& report) {
  std::string parent = ".";
  for (std::size_t i = 0; i + 1 < options.others.size(); ++i) {
    if (options.others[i] == "--directory") parent = options.others[i + 1];
  }
  const Setting setting{.directory = parent + "/bench-commit_log.tmp",
                        .seconds = options.quick ? 0.3 : 2};
  const int rounds = options.quick ? 1 : 5;
  const auto row = [&](const std::string& name, const char* peer, const Medians& medians) {
    report.row({.name = name,
                .value = medians.ours,
                .unit = "records/s",
                .peer = peer,
                .peer_value = medians.peer});
  };
  std::vector<std::string> latencies;
  for (const int writers : {1, 8, 64}) {
    Ours ours{.setting = setting, .options = {}, .writers = writers, .latency = {}};
    const std::string name = fmt::format("batch mode, {} writers", writers);
    row(name, "RocksDB, sync puts",
        by_turns(
            rounds, [&] { return measure_ours(ours); },
            [&] { return measure_rocksdb(setting, writers, true); }));
    latencies.push_back(name + ", last round: " + ours.latency);
    if (writers > 1) continue;
    row(name, "plain write and fdatasync",
        by_turns(
            rounds, [&] { return measure_ours(ours); },
            [&] { return measure_plain_loop(setting); }));
  }
  Ours periodic{.setting = setting, .options = {}, .writers = 64, .latency = {}};
  periodic.options.sync_mode = LogSyncMode::periodic;
  row("periodic mode, 64 writers", "RocksDB, puts without sync",
      by_turns(
          rounds, [&] { return measure_ours(periodic); },
          [&] { return measure_rocksdb(setting, 1, false); }));
  latencies.push_back("periodic mode, last round: " + periodic.latency);
  for (const std::string& line : latencies) fmt::print("{}\n", line);
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare);
}
