// bench-storage: the engine beside RocksDB: fills, overwrites, reads warm and cold, absent keys, a
// scan, and fills that wait for the disk.
//
// Rows of 16-byte keys and 100-byte values (rows.h), 10 million of them (300,000 with --quick; or
// --rows N); --fills leaves the rest out. Both sides: one processor for the whole process,
// background work included; blocks of 16 KiB, LZ4, memtables of 64 MiB, the same cache, a log that
// is written for every row and synced as the row says. Filters: Bloom's of ten bits a key there;
// cuckoo filters here, of about 12.6 bits for the row and as many for its partition. RocksDB runs
// with universal compaction, which is its size-tiered one, and with one writing thread where
// nothing is synced: more make it slower on one processor. Our side writes with 64 coroutines, as a
// server would. Fills that sync have as many writers on both sides: threads there, coroutines here.
//
// Cold reads: the engine and RocksDB are opened anew with an empty cache and the page cache is
// dropped (/proc/sys/vm/drop_caches), which takes root; without it the row is left out.
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <sched.h>
#include <unistd.h>

#include "base/histogram.h"
#include "base/prng.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/rows.h"
#include "runtime/native/native_host.h"
#include "runtime/sleep.h"
#include "storage/engine/engine.h"

namespace helenus::bench {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::Engine;

constexpr std::size_t kMemtableBytes = std::size_t{64} << 20;
constexpr std::size_t kBlockBytes = std::size_t{16} << 10;
constexpr std::size_t kOurWriters = 64;
constexpr storage::TableId kTable{1};
constexpr storage::TabletId kTablet{0};
constexpr causality::Epoch kEpoch{1};

// What one phase of one side gave.
struct Phase {
  double rate = 0;
  double p50_us = 0;
  double p99_us = 0;
};

Phase phase_of(std::uint64_t operations, double seconds, const base::Histogram& ns) {
  return {.rate = static_cast<double>(operations) / seconds,
          .p50_us = static_cast<double>(ns.quantile(0.5)) / 1e3,
          .p99_us = static_cast<double>(ns.quantile(0.99)) / 1e3};
}

// Which row comes as the nth: in order, or by chance.
class Order {
 public:
  enum class Kind { ascending, random, random_existing };
  Order(Kind kind, std::uint64_t rows) : kind_(kind), rows_(rows) {}
  std::uint64_t next() {
    const std::uint64_t number = given_++;
    if (kind_ == Kind::ascending) return number;
    if (kind_ == Kind::random_existing) return prng_.below(rows_);
    // A permutation: an odd factor coprime to the number of rows, which is made so.
    return number * kStride % rows_;
  }
  std::uint64_t given() const { return given_; }

 private:
  static constexpr std::uint64_t kStride = 2'654'435'761;
  const Kind kind_;
  const std::uint64_t rows_;
  std::uint64_t given_ = 0;
  base::Prng prng_{7};
};

void use_one_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(1, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) fmt::print("one processor: not allowed\n");
}

bool drop_page_cache() {
  sync();
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << "3\n" << std::flush;
  return file.good();
}

// Of files of rows; both engines name them so.
struct OnDisk {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

OnDisk on_disk(const std::string& directory) {
  OnDisk found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".sst") continue;
    ++found.files;
    found.bytes += entry.file_size();
  }
  return found;
}

// ---- RocksDB

class Rocks {
 public:
  Rocks(std::string path, std::size_t cache_bytes)
      : path_(std::move(path)), cache_bytes_(cache_bytes) {}

  void make_new() {
    database_.reset();
    std::filesystem::remove_all(path_);
    open();
  }
  void open() {
    database_.reset();
    rocksdb::BlockBasedTableOptions table;
    table.block_size = kBlockBytes;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.format_version = 5;
    table.block_cache = rocksdb::NewLRUCache(cache_bytes_);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kLZ4Compression;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    options.compaction_style = rocksdb::kCompactionStyleUniversal;
    options.write_buffer_size = kMemtableBytes;
    options.max_write_buffer_number = 4;
    options.max_background_jobs = 2;
    options.statistics = statistics_ = rocksdb::CreateDBStatistics();
    options.statistics->set_stats_level(rocksdb::StatsLevel::kExceptDetailedTimers);
    rocksdb::DB* database = nullptr;
    must(rocksdb::DB::Open(options, path_, &database));
    database_.reset(database);
  }
  void close() { database_.reset(); }

  Phase write(const Data& data, Order order, std::uint64_t count, bool sync, std::size_t threads) {
    std::atomic<std::uint64_t> left = count;
    std::vector<base::Histogram> histograms(threads);
    std::vector<std::uint64_t> indexes(count);
    for (std::uint64_t& index : indexes) index = order.next();
    const Stopwatch stopwatch;
    const auto work = [&](std::size_t thread) {
      rocksdb::WriteOptions options;
      options.sync = sync;
      Key key;
      while (true) {
        const std::uint64_t number = left.fetch_sub(1);
        if (number == 0 || number > count) return;
        const std::uint64_t index = indexes[count - number];
        data.key(index, key.bytes);
        const Stopwatch one;
        must(database_->Put(options, key.slice(), data.value(index)));
        histograms[thread].record(static_cast<std::uint64_t>(one.seconds() * 1e9));
      }
    };
    if (threads == 1) {
      work(0);
    } else {
      std::vector<std::jthread> workers;
      for (std::size_t thread = 0; thread < threads; ++thread) workers.emplace_back(work, thread);
    }
    const double seconds = stopwatch.seconds();
    for (std::size_t thread = 1; thread < threads; ++thread) {
      histograms[0].merge(histograms[thread]);
    }
    return phase_of(count, seconds, histograms[0]);
  }

  // Until no merge runs. It may call one pending for ever that it does not begin: that one is
  // waited for as long as kBeginsWithin.
  void rest() {
    using namespace std::chrono_literals;
    constexpr auto kLook = 10ms;
    constexpr auto kBeginsWithin = 2000ms;
    must(database_->Flush(rocksdb::FlushOptions()));
    rocksdb::DB* database = database_.get();
    for (auto idle = 0ms; idle < kBeginsWithin; idle += kLook) {
      std::uint64_t running = 0;
      std::uint64_t pending = 0;
      database->GetIntProperty("rocksdb.num-running-compactions", &running);
      database->GetIntProperty("rocksdb.compaction-pending", &pending);
      if (running == 0 && pending == 0) return;
      if (running != 0) idle = 0ms;
      std::this_thread::sleep_for(kLook);
    }
  }

  Phase read(const Data& data, std::uint64_t count, bool present) {
    base::Prng prng(11);
    base::Histogram ns;
    rocksdb::PinnableSlice value;
    Key key;
    std::uint64_t found = 0;
    const Stopwatch stopwatch;
    for (std::uint64_t left = count; left > 0; --left) {
      const std::uint64_t index = prng.below(data.rows());
      present ? data.key(index, key.bytes) : data.absent_key(index, key.bytes);
      const Stopwatch one;
      value.Reset();
      found += database_
                       ->Get(rocksdb::ReadOptions(), database_->DefaultColumnFamily(), key.slice(),
                             &value)
                       .ok()
                   ? 1
                   : 0;
      ns.record(static_cast<std::uint64_t>(one.seconds() * 1e9));
    }
    ASSERT(found == (present ? count : 0), "{} of {}", found, count);
    return phase_of(count, stopwatch.seconds(), ns);
  }

  double scan(const Data& data) {
    rocksdb::ReadOptions options;
    options.fill_cache = false;
    const Stopwatch stopwatch;
    const std::unique_ptr<rocksdb::Iterator> iterator(database_->NewIterator(options));
    std::uint64_t rows = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keep(iterator->value().size());
      ++rows;
    }
    ASSERT(rows == data.rows(), "{} rows", rows);
    return static_cast<double>(rows) / stopwatch.seconds();
  }

  double write_amplification() const {
    const auto of = [&](auto ticker) {
      return static_cast<double>(statistics_->getTickerCount(ticker));
    };
    return (of(rocksdb::WAL_FILE_BYTES) + of(rocksdb::FLUSH_WRITE_BYTES) +
            of(rocksdb::COMPACT_WRITE_BYTES)) /
           of(rocksdb::BYTES_WRITTEN);
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const std::size_t cache_bytes_;
  std::shared_ptr<rocksdb::Statistics> statistics_;
  std::unique_ptr<rocksdb::DB> database_;
};

// ---- ours

class Ours {
 public:
  Ours(Runtime& runtime, std::string path, std::size_t cache_bytes)
      : runtime_(runtime), path_(std::move(path)), cache_bytes_(cache_bytes) {}

  Task<void> make_new(storage::LogSyncMode mode) {
    co_await close();
    std::filesystem::remove_all(path_);
    co_await open(mode);
    must(co_await engine_->create_table(kTable, {.policy = causality::Policy::lww}));
    must(co_await engine_->create_tablet(kTablet, {}, causality::actor_of(1, 1)));
    engine_->set_watermarks(kTablet, {});
  }
  Task<void> open(storage::LogSyncMode mode) {
    co_await close();
    storage::EngineOptions options;
    options.data_directories = {path_};
    options.shards = 1;
    options.log.sync_mode = mode;
    options.memtable_bytes_flush = kMemtableBytes;
    options.memtable_bytes_max = 4 * kMemtableBytes;
    options.block_cache_bytes = cache_bytes_;
    options.block_bytes = kBlockBytes;
    engine_ = must(co_await Engine::open(runtime_, options));
    engine_->set_watermarks(kTablet, {});
  }
  Task<void> close() {
    if (engine_ != nullptr) must(co_await engine_->stop());
    engine_.reset();
  }

  Task<Phase> write(const Data& data, Order order, std::uint64_t count, std::size_t writers) {
    base::Histogram ns;
    Work work{.data = data, .order = order, .left = count, .ns = ns};
    const Stopwatch stopwatch;
    runtime::TaskGroup group(runtime_);
    for (std::size_t writer = 0; writer < writers; ++writer) group.spawn(write_some(work));
    co_await group.join();
    co_return phase_of(count, stopwatch.seconds(), ns);
  }

  Task<void> rest() {
    must(co_await engine_->flush(kTable, Until::forever()));
    while (engine_->statistics().compactions_running > 0 ||
           engine_->statistics().compaction_backlog_bytes > 0) {
      must(co_await runtime::sleep_for(runtime_, std::chrono::milliseconds(10), {}));
    }
  }

  Task<Phase> read(const Data& data, std::uint64_t count, bool present) {
    base::Prng prng(11);
    base::Histogram ns;
    Key key;
    std::uint64_t found = 0;
    const Stopwatch stopwatch;
    for (std::uint64_t left = count; left > 0; --left) {
      const std::uint64_t index = prng.below(data.rows());
      present ? data.key(index, key.bytes) : data.absent_key(index, key.bytes);
      const Stopwatch one;
      const auto row = must(co_await engine_->read_row(
          kTable, kTablet, base::Bytes::copy_of(key.view()), {}, Until::forever()));
      const auto cell = row.partition.cell({}, causality::ColumnId{0});
      found += causality::visible(cell, causality::Policy::lww, {}).size();
      ns.record(static_cast<std::uint64_t>(one.seconds() * 1e9));
    }
    ASSERT(found == (present ? count : 0), "{} of {}", found, count);
    co_return phase_of(count, stopwatch.seconds(), ns);
  }

  Task<double> scan(const Data& data) {
    const Stopwatch stopwatch;
    const auto cursor =
        must(engine_->cursor(kTable, kTablet, {.cache_use = storage::CacheUse::bypass}));
    std::uint64_t rows = 0;
    must(co_await cursor->seek_first());
    while (cursor->valid()) {
      keep(must(cursor->look())->row().cell(causality::ColumnId{0}).versions().size());
      ++rows;
      must(co_await cursor->next());
    }
    ASSERT(rows == data.rows(), "{} rows", rows);
    co_return static_cast<double>(rows) / stopwatch.seconds();
  }

  double write_amplification() const { return engine_->statistics().write_amplification(); }
  const std::string& path() const { return path_; }

 private:
  struct Work {
    const Data& data;
    Order order;
    std::uint64_t left;
    base::Histogram& ns;
    std::int64_t timestamp = 1;
  };

  Task<void> write_some(Work& work) {
    Key key;
    while (work.left > 0) {
      --work.left;
      const std::uint64_t index = work.order.next();
      work.data.key(index, key.bytes);
      causality::Mutation mutation;
      mutation.timestamp = causality::Timestamp{++work.timestamp};
      causality::CellChange change;
      change.value = base::Bytes::copy_of(work.data.value(index));
      mutation.cells.push_back(std::move(change));
      const Stopwatch one;
      (void)must(co_await engine_->write(kTable, kTablet, base::Bytes::copy_of(key.view()),
                                         std::move(mutation), kEpoch, Until::forever()));
      work.ns.record(static_cast<std::uint64_t>(one.seconds() * 1e9));
    }
  }

  Runtime& runtime_;
  const std::string path_;
  const std::size_t cache_bytes_;
  std::unique_ptr<Engine> engine_;
};

// ---- both

class Comparison {
 public:
  explicit Comparison(Report& report) : report_(report) {}

  void phase(const std::string& name, const Phase& ours, const Phase& peer) {
    plain(name, "k/s", ours.rate / 1e3, peer.rate / 1e3);
    plain(name + ", p50", "us", ours.p50_us, peer.p50_us);
    plain(name + ", p99", "us", ours.p99_us, peer.p99_us);
  }
  void plain(const std::string& name, std::string unit, double ours, double peer) {
    report_.row({.name = name,
                 .value = std::max(ours, 1e-3),
                 .unit = std::move(unit),
                 .peer = "RocksDB",
                 .peer_value = std::max(peer, 1e-3)});
  }

 private:
  Report& report_;
};

struct Sizes {
  std::uint64_t rows = 0;
  std::uint64_t reads = 0;
  std::uint64_t synced = 0;
  std::size_t cache_bytes = 0;
  bool fills_only = false;
};

Sizes sizes_of(const Options& options) {
  Sizes sizes{.rows = options.quick ? 300'007U : 10'000'019U,
              .reads = options.quick ? 100'000U : 1'000'000U,
              .synced = options.quick ? 200U : 2'000U,
              .cache_bytes = std::size_t{2} << 30};
  for (std::size_t i = 0; i < options.others.size(); ++i) {
    const std::string& option = options.others[i];
    if (option == "--fills") {
      sizes.fills_only = true;
      continue;
    }
    ASSERT(option == "--rows", "no option {}; see --help", option);
    ASSERT(++i < options.others.size(), "--rows takes a number");
    const std::string& value = options.others[i];
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), sizes.rows);
    ASSERT(parsed.ec == std::errc() && sizes.rows >= 1000, "--rows takes 1000 or more");
  }
  return sizes;
}

Task<void> compare_fills(Comparison& comparison, const Data& data, Ours& ours, Rocks& rocks) {
  using Kind = Order::Kind;
  for (const Kind kind : {Kind::ascending, Kind::random}) {
    const Order order(kind, data.rows());
    co_await ours.make_new(storage::LogSyncMode::periodic);
    const Phase our_phase = co_await ours.write(data, order, data.rows(), kOurWriters);
    rocks.make_new();
    const Phase peer_phase = rocks.write(data, order, data.rows(), false, 1);
    comparison.phase(kind == Kind::ascending ? "fill, ascending" : "fill, random", our_phase,
                     peer_phase);
  }
  const Order order(Kind::random_existing, data.rows());
  const Phase our_phase = co_await ours.write(data, order, data.rows() / 2, kOurWriters);
  const Phase peer_phase = rocks.write(data, order, data.rows() / 2, false, 1);
  comparison.phase("overwrite", our_phase, peer_phase);
  co_await ours.rest();
  rocks.rest();
  comparison.plain("write amplification", "x", ours.write_amplification(),
                   rocks.write_amplification());
  const auto user_bytes = static_cast<double>(data.rows() * (kKeySize + kValueSize));
  const OnDisk here = on_disk(ours.path());
  const OnDisk there = on_disk(rocks.path());
  comparison.plain("space of user bytes", "x", static_cast<double>(here.bytes) / user_bytes,
                   static_cast<double>(there.bytes) / user_bytes);
  comparison.plain("files of rows", "", static_cast<double>(here.files),
                   static_cast<double>(there.files));
}

Task<void> compare_reads(Comparison& comparison, const Data& data, const Sizes& sizes, Ours& ours,
                         Rocks& rocks) {
  if (drop_page_cache()) {
    co_await ours.open(storage::LogSyncMode::periodic);
    rocks.open();
    (void)drop_page_cache();
    const Phase our_phase = co_await ours.read(data, sizes.reads / 50, true);
    (void)drop_page_cache();
    const Phase peer_phase = rocks.read(data, sizes.reads / 50, true);
    comparison.phase("read, cold (page cache dropped)", our_phase, peer_phase);
  } else {
    fmt::print("cold reads: the page cache could not be dropped\n");
  }
  // The first round warms the caches.
  for (int round = 0; round < 2; ++round) {
    const Phase our_phase = co_await ours.read(data, sizes.reads, true);
    const Phase peer_phase = rocks.read(data, sizes.reads, true);
    if (round == 1) comparison.phase("read, warm", our_phase, peer_phase);
  }
  const Phase our_phase = co_await ours.read(data, sizes.reads, false);
  const Phase peer_phase = rocks.read(data, sizes.reads, false);
  comparison.phase("read of an absent key", our_phase, peer_phase);
  comparison.plain("scan", "k rows/s", co_await ours.scan(data) / 1e3, rocks.scan(data) / 1e3);
}

Task<void> compare_synced(Comparison& comparison, const Data& data, const Sizes& sizes, Ours& ours,
                          Rocks& rocks) {
  for (const std::size_t writers : {1U, 8U, 64U}) {
    const Order order(Order::Kind::random, data.rows());
    const std::uint64_t count = sizes.synced * (writers == 1 ? 1 : writers / 4);
    co_await ours.make_new(storage::LogSyncMode::batch);
    const Phase our_phase = co_await ours.write(data, order, count, writers);
    rocks.make_new();
    const Phase peer_phase = rocks.write(data, order, count, true, writers);
    comparison.phase(fmt::format("synced fill, {} writers", writers), our_phase, peer_phase);
  }
}

Task<int> measure(Runtime& runtime, std::string directory, Sizes sizes, Report& report) {
  const Data data(sizes.rows);
  Ours ours(runtime, directory + "/ours", sizes.cache_bytes);
  Rocks rocks(directory + "/rocks", sizes.cache_bytes);
  Comparison comparison(report);
  co_await compare_fills(comparison, data, ours, rocks);
  if (!sizes.fills_only) {
    co_await compare_reads(comparison, data, sizes, ours, rocks);
    co_await compare_synced(comparison, data, sizes, ours, rocks);
  }
  co_await ours.close();
  rocks.close();
  co_return 0;
}

void run(const Options& options, Report& report) {
  const Sizes sizes = sizes_of(options);
  use_one_processor();
  fmt::print("{} rows; both: 1 processor, 16 KiB blocks, LZ4, 64 MiB memtables, {} MiB cache\n",
             sizes.rows, sizes.cache_bytes >> 20);
  fmt::print("RocksDB {}.{}: universal compaction, 4 write buffers, 2 background jobs, Bloom 10\n",
             ROCKSDB_MAJOR, ROCKSDB_MINOR);
  const auto directory =
      std::filesystem::temp_directory_path() / fmt::format("helenus-bench-storage-{}", getpid());
  std::filesystem::create_directories(directory);
  {
    auto host = must(runtime::native::NativeHost::open({.cores = 1, .handle_signals = false}));
    host->run([&](Runtime& runtime, const runtime::StopToken&) {
      return measure(runtime, directory.string(), sizes, report);
    });
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::run,
                                        "  --rows N     instead of 10,000,019\n"
                                        "  --fills      fills and overwrites alone\n");
}
