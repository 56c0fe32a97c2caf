// bench-sstable: writing, looking up and scanning one sorted file, beside RocksDB's.
//
// Rows of 16-byte keys and 100-byte values that compress to about half, 10 million of them (1
// million with --quick); blocks of 16 KiB, LZ4, a filter of about ten bits a key; each side with
// its default checksum. Both get a cache that holds everything, and both find the file in the page
// cache.
//
// RocksDB writes by SstFileWriter and scans by SstFileReader. Its SstFileReader cannot look up a
// key through the filter, so lookups go to a database opened for reading only whose single file is
// the one that was written.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include "base/prng.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/rows.h"
#include "runtime/native/native_host.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::bench {
namespace {

using base::ByteView;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

constexpr std::size_t kCacheBytes = std::size_t{4} << 30;
constexpr std::size_t kLookupsPerTurn = 500'000;

// ---- RocksDB

rocksdb::Options rocks_options(const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 16 << 10;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  table.block_cache = cache;
  rocksdb::Options options;
  options.compression = rocksdb::kLZ4Compression;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.create_if_missing = true;
  return options;
}

class Rocks {
 public:
  explicit Rocks(const std::filesystem::path& directory)
      : file_((directory / "rocks.sst").string()),
        database_path_((directory / "rocks").string()),
        cache_(rocksdb::NewLRUCache(kCacheBytes)),
        options_(rocks_options(cache_)) {}

  double write(const Data& data) {
    std::filesystem::remove(file_);
    const Stopwatch stopwatch;
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    must(writer.Open(file_));
    Key key;
    for (std::uint64_t i = 0; i < data.rows(); ++i) {
      data.key(i, key.bytes);
      must(writer.Put(key.slice(), data.value(i)));
    }
    must(writer.Finish());
    return static_cast<double>(data.rows()) / stopwatch.seconds();
  }

  std::uint64_t file_size() const { return std::filesystem::file_size(file_); }

  void open() {
    reader_ = std::make_unique<rocksdb::SstFileReader>(options_);
    must(reader_->Open(file_));
    rocksdb::DB* database = nullptr;
    must(rocksdb::DB::Open(options_, database_path_, &database));
    database_.reset(database);
    must(database_->IngestExternalFile({file_}, rocksdb::IngestExternalFileOptions()));
    database_.reset();
    must(rocksdb::DB::OpenForReadOnly(options_, database_path_, &database));
    database_.reset(database);
  }

  bool get(const Key& key, rocksdb::PinnableSlice& value) {
    value.Reset();
    return database_
        ->Get(rocksdb::ReadOptions(), database_->DefaultColumnFamily(), key.slice(), &value)
        .ok();
  }
  std::unique_ptr<rocksdb::Iterator> iterator(bool fill_cache) {
    rocksdb::ReadOptions options;
    options.fill_cache = fill_cache;
    options.readahead_size = fill_cache ? 0 : 512 << 10;
    return std::unique_ptr<rocksdb::Iterator>(reader_->NewIterator(options));
  }

 private:
  std::string file_;
  std::string database_path_;
  std::shared_ptr<rocksdb::Cache> cache_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::SstFileReader> reader_;
  std::unique_ptr<rocksdb::DB> database_;
};

double rocks_scan(Rocks& rocks, const Data& data, bool forward) {
  const Stopwatch stopwatch;
  const auto iterator = rocks.iterator(false);
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  for (forward ? iterator->SeekToFirst() : iterator->SeekToLast(); iterator->Valid();
       forward ? iterator->Next() : iterator->Prev()) {
    ++rows;
    bytes += iterator->key().size() + iterator->value().size();
  }
  must(iterator->status());
  ASSERT(rows == data.rows());
  keep(bytes);
  return static_cast<double>(rows) / stopwatch.seconds();
}

// ---- ours

class Ours {
 public:
  Ours(Runtime& runtime, const std::filesystem::path& directory)
      : runtime_(runtime), path_((directory / "ours.sst").string()), shared_(kCacheBytes) {}

  Task<double> write(const Data& data) {
    std::filesystem::remove(path_);
    const Stopwatch stopwatch;
    const auto writer = must(co_await storage::SstableWriter::create(runtime_, path_, {}));
    Key key;
    for (std::uint64_t i = 0; i < data.rows(); ++i) {
      data.key(i, key.bytes);
      must(co_await writer->add(storage::whole_partition(key.view()),
                                base::as_bytes(data.value(i))));
    }
    must(co_await writer->finish({}));
    co_return static_cast<double>(data.rows()) / stopwatch.seconds();
  }

  Task<void> open() {
    reader_ =
        must(co_await storage::SstableReader::open(runtime_, shared_, path_, {}, Until::forever()));
  }
  Task<void> warm() {
    const auto cursor = reader_->cursor({});
    must(co_await cursor->seek_first());
    while (cursor->valid()) must(co_await cursor->next());
  }

  storage::SstableReader& reader() { return *reader_; }
  std::uint64_t file_size() const { return std::filesystem::file_size(path_); }

  Task<double> scan(const Data& data, bool forward) {
    const Stopwatch stopwatch;
    const auto cursor = reader_->cursor({.cache_use = storage::CacheUse::bypass});
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    must(co_await (forward ? cursor->seek_first() : cursor->seek_last()));
    while (cursor->valid()) {
      ++rows;
      bytes += cursor->key().bytes.size() + cursor->value().size();
      must(co_await (forward ? cursor->next() : cursor->previous()));
    }
    ASSERT(rows == data.rows());
    keep(bytes);
    co_return static_cast<double>(rows) / stopwatch.seconds();
  }

 private:
  Runtime& runtime_;
  std::string path_;
  storage::SstableShared shared_;
  std::shared_ptr<storage::SstableReader> reader_;
};

// ---- lookups of keys by chance, the same for both

template <class Lookup>
double lookups_per_second(const Data& data, std::uint64_t seed, bool present, Lookup&& lookup) {
  base::Prng prng(seed);
  Key key;
  std::uint64_t found = 0;
  const Stopwatch stopwatch;
  for (std::size_t i = 0; i < kLookupsPerTurn; ++i) {
    const std::uint64_t index = prng.below(data.rows());
    present ? data.key(index, key.bytes) : data.absent_key(index, key.bytes);
    found += lookup(key) ? 1 : 0;
  }
  const double seconds = stopwatch.seconds();
  ASSERT(found == (present ? kLookupsPerTurn : 0));
  return static_cast<double>(kLookupsPerTurn) / seconds;
}

bool our_get(storage::SstableReader& reader, const Key& key) {
  auto lookup = reader.get(key.view(), storage::key_hash(key.view()), Until::forever());
  ASSERT(lookup.ready());
  const auto answer = must(std::move(lookup).take());
  return answer.found.has_value();
}

class Comparison {
 public:
  Comparison(Report& report, bool quick) : report_(report), rounds_(quick ? 3 : 5) {}

  // Both sides by turns; `ours` gives a task.
  template <class OurSide, class Peer>
  Task<void> row(std::string name, std::string unit, double scale, std::string peer_name,
                 OurSide ours, Peer peer) {
    std::vector<double> of_ours;
    std::vector<double> of_peer;
    for (int round = 0; round < rounds_; ++round) {
      if (round % 2 == 1) of_peer.push_back(peer());
      of_ours.push_back(co_await ours());
      if (round % 2 == 0) of_peer.push_back(peer());
    }
    report_.row({.name = std::move(name),
                 .value = median(of_ours) * scale,
                 .unit = std::move(unit),
                 .peer = std::move(peer_name),
                 .peer_value = median(of_peer) * scale});
  }

 private:
  Report& report_;
  const int rounds_;
};

Task<double> now(double value) {
  co_return value;
}

Task<void> compare_lookups(Comparison& comparison, const Data& data, Ours& ours, Rocks& rocks) {
  std::uint64_t seed = 0;
  for (const bool present : {true, false}) {
    rocksdb::PinnableSlice value;
    co_await comparison.row(
        present ? "get, warm" : "get of an absent key", "k/s", 1e-3, "RocksDB Get",
        [&] {
          return now(lookups_per_second(
              data, ++seed, present, [&](const Key& key) { return our_get(ours.reader(), key); }));
        },
        [&] {
          return lookups_per_second(data, seed, present,
                                    [&](const Key& key) { return rocks.get(key, value); });
        });
  }
  const auto cursor = ours.reader().cursor({});
  const auto iterator = rocks.iterator(true);
  co_await comparison.row(
      "seek, warm", "k/s", 1e-3, "SstFileReader Seek",
      [&] {
        return now(lookups_per_second(data, ++seed, true, [&](const Key& key) {
          auto motion = cursor->seek(key.view());
          ASSERT(motion.ready());
          must(std::move(motion).take());
          return cursor->valid();
        }));
      },
      [&] {
        return lookups_per_second(data, seed, true, [&](const Key& key) {
          iterator->Seek(key.slice());
          return iterator->Valid();
        });
      });
}

Task<int> compare(Runtime& runtime, const Options& options, Report& report) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / fmt::format("bench-sstable-{}", ::getpid());
  std::filesystem::create_directories(directory);
  const Data data(options.quick ? 1'000'000 : 10'000'000);
  Comparison comparison(report, options.quick);
  {
    Ours ours(runtime, directory);
    Rocks rocks(directory);
    co_await comparison.row(
        "write", "k/s", 1e-3, "SstFileWriter", [&] { return ours.write(data); },
        [&] { return rocks.write(data); });
    co_await ours.open();
    rocks.open();
    report.row({.name = "size of the file",
                .value = static_cast<double>(ours.file_size()) / 1e6,
                .unit = "MB",
                .peer = "SstFileWriter",
                .peer_value = static_cast<double>(rocks.file_size()) / 1e6});
    for (const bool forward : {true, false}) {
      co_await comparison.row(
          forward ? "scan" : "scan backward", "M/s", 1e-6, "SstFileReader",
          [&] { return ours.scan(data, forward); },
          [&] { return rocks_scan(rocks, data, forward); });
    }
    co_await ours.warm();
    rocksdb::PinnableSlice value;
    Key key;
    for (std::uint64_t i = 0; i < data.rows(); ++i) {
      data.key(i, key.bytes);
      ASSERT(rocks.get(key, value));
    }
    co_await compare_lookups(comparison, data, ours, rocks);
  }
  std::filesystem::remove_all(directory);
  co_return 0;
}

void run(const Options& options, Report& report) {
  auto host = must(runtime::native::NativeHost::open({.cores = 1}));
  host->run(
      [&](Runtime& runtime, runtime::StopToken) { return compare(runtime, options, report); });
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::run);
}
