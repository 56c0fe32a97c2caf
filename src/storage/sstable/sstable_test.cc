#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"
#include "storage/sstable/sstable_cursor.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/sstable/sstable_test_support.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

const std::string kPath = "/table.sst";
constexpr std::size_t kCacheBytes = std::size_t{64} << 20;

// ---- the contract of cursors

class SstableSubject final : public contract::CursorSubject {
 public:
  explicit SstableSubject(SstableWriter::Options options, std::size_t cache_bytes,
                          SstableCursorOptions cursor_options)
      : options_(std::move(options)), cache_bytes_(cache_bytes), cursor_(cursor_options) {}

  void run(const Rows& entries, contract::CursorBody body) override {
    machine_.run([&](Runtime& runtime) { return write_and_use(runtime, *this, entries, body); });
  }

 private:
  static Task<void> write_and_use(Runtime& runtime, const SstableSubject& self, const Rows& entries,
                                  contract::CursorBody body) {
    SstableShared shared(self.cache_bytes_);
    const auto written = co_await write_sstable(runtime, kPath, entries, self.options_);
    CO_ASSERT_OK(written);
    const auto reader = co_await open_sstable(runtime, shared, kPath);
    CO_ASSERT_OK(reader);
    // Whoever holds a cursor can go on though the file's name be gone.
    const auto removed = co_await runtime.files.remove(kPath);
    CO_ASSERT_OK(removed);
    const contract::CursorMaker make = [&] { return (*reader)->cursor(self.cursor_); };
    co_await body(make, entries);
  }

  SimMachine machine_;
  SstableWriter::Options options_;
  std::size_t cache_bytes_;
  SstableCursorOptions cursor_;
};

std::unique_ptr<contract::CursorSubject> sstable_as_usual() {
  return std::make_unique<SstableSubject>(SstableWriter::Options{}, kCacheBytes,
                                          SstableCursorOptions{});
}
std::unique_ptr<contract::CursorSubject> sstable_with_a_deep_index() {
  return std::make_unique<SstableSubject>(small_options(Compression::lz4), kCacheBytes,
                                          SstableCursorOptions{});
}
// Nothing stays in memory: every block is read again.
std::unique_ptr<contract::CursorSubject> sstable_without_cache() {
  SstableWriter::Options options;
  options.block_bytes = 1000;
  options.index.node_bytes = 500;
  return std::make_unique<SstableSubject>(options, 0,
                                          SstableCursorOptions{.cache_use = CacheUse::bypass,
                                                               .read_ahead_bytes_min = 2000,
                                                               .read_ahead_bytes_max = 9000});
}

using contract::CursorContract;
INSTANTIATE_TEST_SUITE_P(Sstable, CursorContract, testing::Values(sstable_as_usual));
INSTANTIATE_TEST_SUITE_P(DeepSstable, CursorContract, testing::Values(sstable_with_a_deep_index));
INSTANTIATE_TEST_SUITE_P(UncachedSstable, CursorContract, testing::Values(sstable_without_cache));

// ---- looking up

runtime::MaybeTask<Result<Lookup>> get(SstableReader& reader, const std::string& key) {
  return reader.get(as_bytes(key), key_hash(as_bytes(key)), Until::forever());
}

// Every row is found under its ordinal, and nothing else is.
Task<void> expect_finds_all(std::shared_ptr<SstableReader> reader, const Rows& rows) {
  std::uint64_t ordinal = 0;
  for (const auto& [key, row] : rows) {
    const auto lookup = co_await get(*reader, key);
    CO_ASSERT_OK(lookup);
    CO_ASSERT_TRUE(lookup->found.has_value());
    EXPECT_EQ(lookup->found->value.text(), row.value);
    EXPECT_EQ(lookup->found->ordinal, ordinal++);
    for (const std::string& absent : {key + std::string(1, '\0'), "x" + key, key + "zz"}) {
      if (rows.contains(absent)) continue;
      const auto miss = co_await get(*reader, absent);
      CO_ASSERT_OK(miss);
      EXPECT_FALSE(miss->found.has_value()) << absent;
    }
  }
}

Task<void> write_then_find_all(Runtime& runtime, const Rows& rows, SstableWriter::Options options,
                               std::size_t cache_bytes) {
  SstableShared shared(cache_bytes);
  const auto written = co_await write_sstable(runtime, kPath, rows, std::move(options));
  CO_ASSERT_OK(written);
  const auto reader = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(reader);
  EXPECT_EQ((*reader)->statistics(), *written);
  co_await expect_finds_all(*reader, rows);
  const auto scanned = co_await scan(*reader);
  CO_ASSERT_OK(scanned);
  EXPECT_TRUE(*scanned == rows);
  const auto removed = co_await runtime.files.remove(kPath);
  CO_ASSERT_OK(removed);
}

Rows numbered(int count, std::size_t value_size = 20) {
  Rows rows;
  for (int i = 0; i < count; ++i) {
    rows[fmt::format("key{:05}", i)] = {
        .value = fmt::format("{}{}", i, std::string(value_size, 'v')), .partition_size = 6};
  }
  return rows;
}

// Short keys and long ones, shared beginnings, values from nothing to many blocks.
Rows random_rows(std::uint64_t seed) {
  base::Prng prng(seed);
  Rows rows;
  const std::uint64_t count = prng.below(400);
  const std::string shared(prng.chance(0.3) ? 3000 : prng.below(30), 's');
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = prng.chance(0.7) ? shared : "";
    for (std::uint64_t left = prng.below(12); left > 0; --left) {
      key.push_back(static_cast<char>(prng.chance(0.8) ? prng.below(3) : prng.below(256)));
    }
    const std::size_t value_size = prng.chance(0.02) ? prng.below(100'000) : prng.below(300);
    const auto partition_size = static_cast<std::uint16_t>(prng.between(0, key.size()));
    rows[key] = {.value = std::string(value_size, static_cast<char>('a' + prng.below(26))),
                 .partition_size = partition_size};
  }
  return rows;
}

RC_GTEST_PROP(Sstable, AnswersAsAMapWould, (std::uint64_t seed)) {
  base::Prng prng(seed);
  const Rows rows = random_rows(seed);
  SstableWriter::Options options;
  options.compression = static_cast<Compression>(prng.below(3));
  options.block_bytes = prng.chance(0.5) ? prng.between(1, 2000) : kDataBlockBytesDefault;
  options.index = {.node_bytes = prng.between(1, 3000), .upper_node_bytes = prng.between(1, 5000)};
  options.filter = {.kind = kFilterKinds[prng.below(kFilterKinds.size())],
                    .false_positive_rate = prng.chance(0.5) ? 0.05 : 0.001,
                    .hashes_max = prng.chance(0.5) ? prng.between(1, 200) : 1'000'000};
  options.write_bytes = prng.between(1, 100'000);
  const std::size_t cache_bytes = prng.chance(0.5) ? prng.below(200'000) : kCacheBytes;
  SimMachine machine;
  machine.run(
      [&](Runtime& runtime) { return write_then_find_all(runtime, rows, options, cache_bytes); });
}

TEST(Sstable, AMillionKeysTakeTwoLevelsOfIndex) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      constexpr std::uint64_t kKeys = 1'000'000;
      SstableShared shared(kCacheBytes);
      const auto writer = co_await SstableWriter::create(runtime, kPath, {});
      CO_ASSERT_OK(writer);
      const auto key_of = [](std::uint64_t i) { return fmt::format("{:016x}", base::mix64(i)); };
      std::vector<std::string> keys;
      for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(key_of(i));
      std::ranges::sort(keys);
      for (const std::string& key : keys) {
        const auto added = co_await (*writer)->add(whole_partition(as_bytes(key)), as_bytes(key));
        CO_ASSERT_OK(added);
      }
      const auto statistics = co_await (*writer)->finish({});
      CO_ASSERT_OK(statistics);
      EXPECT_EQ(statistics->key_count, kKeys);
      EXPECT_EQ(statistics->index_depth, 2u);
      EXPECT_EQ(statistics->data_block_count, (kKeys + 127) / 128);
      const auto reader = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(reader);
      // Twelve bits and a little for each key, and next to nothing for the index.
      EXPECT_LT((*reader)->resident_bytes(), kKeys * 13 / 8 + 100'000);
      base::Prng prng(3);
      for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t ordinal = prng.below(kKeys);
        const auto lookup = co_await get(**reader, keys[ordinal]);
        CO_ASSERT_OK(lookup);
        CO_ASSERT_TRUE(lookup->found.has_value());
        EXPECT_EQ(lookup->found->value.text(), keys[ordinal]);
        EXPECT_EQ(lookup->found->ordinal, ordinal);
      }
      const auto cursor = (*reader)->cursor({});
      const auto moved = co_await cursor->seek_first();
      CO_ASSERT_OK(moved);
      for (const std::string& key : keys) {
        CO_ASSERT_TRUE(cursor->valid() && base::as_text(cursor->key().bytes) == key);
        const auto stepped = co_await cursor->next();
        CO_ASSERT_OK(stepped);
      }
      EXPECT_FALSE(cursor->valid());
    }
  };
  SimMachine().run(Run::body);
}

TEST(Sstable, AValueOfSixtyFiveMegabytesLiesInABlockOfItsOwn) {
  Rows rows = numbered(10);
  base::Prng prng(1);
  std::string large(std::size_t{65} << 20, '\0');
  for (std::size_t i = 0; i + 8 <= large.size(); i += 8) {
    const std::uint64_t word = prng.next();
    std::memcpy(large.data() + i, &word, sizeof word);
  }
  rows["key00005"].value = std::move(large);
  SimMachine().run(
      [&](Runtime& runtime) { return write_then_find_all(runtime, rows, {}, kCacheBytes); });
}

TEST(Sstable, KeysOfTheLargestSizeMakeADeepIndexNotALargeOne) {
  Rows rows;
  for (int i = 0; i < 300; ++i) {
    // Nothing to abbreviate: the keys differ in their last bytes only.
    rows[std::string(kRowKeySizeMax - 3, 'k') + fmt::format("{:03}", i)] = {.value = "v",
                                                                            .partition_size = 8};
  }
  SimMachine machine;
  machine.run(
      [&](Runtime& runtime) { return write_then_find_all(runtime, rows, {}, kCacheBytes); });
}

TEST(Sstable, CountsWhatItHolds) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      Rows rows;
      for (int i = 0; i < 3000; ++i) {
        rows[fmt::format("wide/{:06}", i)] = {.value = std::string(200, 'w'), .partition_size = 5};
      }
      rows["aaa"] = {.value = "small", .partition_size = 3};
      rows["zzz/1"] = {.value = "x", .partition_size = 4};
      rows["zzz/2"] = {.value = std::string(300'000, 'x'), .partition_size = 4};
      const auto written = co_await write_sstable(runtime, kPath, rows, {});
      CO_ASSERT_OK(written);
      const SstableStatistics& s = *written;
      EXPECT_EQ(s.key_count, 3003u);
      EXPECT_EQ(s.partition_count, 3u);
      EXPECT_EQ(s.first_key.text(), "aaa");
      EXPECT_EQ(s.last_key.text(), "zzz/2");
      EXPECT_EQ(s.key_size_max, 11u);
      EXPECT_EQ(s.value_size_max, 300'000u);
      EXPECT_EQ(s.value_bytes, 3000u * 200 + 5 + 1 + 300'000);
      EXPECT_EQ(s.key_bytes, 3000u * 11 + 3 + 10);
      CO_ASSERT_TRUE(s.wide_partitions.size() == 2);
      EXPECT_EQ(s.wide_partitions[0].key.text(), "wide/");
      EXPECT_EQ(s.wide_partitions[0].row_count, 3000u);
      EXPECT_EQ(s.wide_partitions[0].first_ordinal, 1u);
      EXPECT_EQ(s.wide_partitions[1].key.text(), "zzz/");
      base::Decoder in(s.partition_rows_histogram);
      const auto histogram = base::Histogram::decode(in);
      CO_ASSERT_OK(histogram);
      EXPECT_EQ(histogram->max(), 3000u);
      EXPECT_EQ(histogram->count(), 3u);
      base::Buffer encoded;
      s.encode(encoded);
      EXPECT_EQ(SstableStatistics::decode(encoded.view()), s);
    }
  };
  SimMachine().run(Run::body);
}

TEST(Sstable, GivesBackTheCallersMetadata) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      SstableShared shared(kCacheBytes);
      const auto written =
          co_await write_sstable(runtime, kPath, numbered(3), {}, Bytes::copy_of("the clock"));
      CO_ASSERT_OK(written);
      const auto reader = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(reader);
      EXPECT_EQ((*reader)->metadata().text(), "the clock");
    }
  };
  SimMachine().run(Run::body);
}

TEST(Sstable, BlocksInMemoryAnswerWithoutWaiting) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      SstableShared shared(kCacheBytes);
      const Rows rows = numbered(2000);
      const auto written = co_await write_sstable(runtime, kPath, rows, small_options());
      CO_ASSERT_OK(written);
      const auto reader = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(reader);
      EXPECT_FALSE(get(**reader, "key00500").ready());
      const auto cold = co_await get(**reader, "key00500");
      CO_ASSERT_OK(cold);
      EXPECT_EQ(cold->blocks_read, (*reader)->statistics().index_depth);
      auto warm = get(**reader, "key00500");
      CO_ASSERT_TRUE(warm.ready());
      const auto lookup = std::move(warm).take();
      CO_ASSERT_OK(lookup);
      EXPECT_EQ(lookup->blocks_read, 0u);
      EXPECT_EQ(lookup->found->value.text(), rows.at("key00500").value);
      const auto cursor = (*reader)->cursor({});
      EXPECT_TRUE(cursor->seek(as_bytes("key00500")).ready());
      EXPECT_TRUE(cursor->valid());
    }
  };
  SimMachine().run(Run::body);
}

// ---- reads side by side

Task<Result<void>> expect_found(std::shared_ptr<SstableReader> reader, std::string key) {
  const auto lookup = co_await get(*reader, key);
  EXPECT_TRUE(!lookup || lookup->found.has_value()) << key;
  co_return lookup ? Result<void>() : Result<void>(lookup.error());
}

TEST(Sstable, NoMoreReadsAreUnderWayThanAreAllowed) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      constexpr std::size_t kReadsMax = 3;
      runtime::Semaphore turns(runtime, kReadsMax, SIZE_MAX);
      SstableShared shared(0);  // nothing is in memory
      shared.reads = &turns;
      const auto written = co_await write_sstable(runtime, kPath, numbered(2000), small_options());
      CO_ASSERT_OK(written);
      const auto reader = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(reader);
      std::vector<Task<Result<void>>> lookups;
      for (int key = 0; key < 40; ++key) {
        lookups.push_back(expect_found(*reader, fmt::format("key{:05}", key * 50)));
      }
      const auto found = co_await runtime::when_all(std::move(lookups));
      for (const auto& each : found) EXPECT_TRUE(each.has_value());
      EXPECT_GT(shared.counters.reads_delayed, 20u);
      EXPECT_EQ(turns.units_free(), kReadsMax) << "each was given back";
      // Whoever waits for a turn waits no longer than he said, and is told for what.
      const auto all = co_await turns.acquire(kReadsMax, Until::forever());
      CO_ASSERT_OK(all);
      const std::string key = "key00001";
      const auto late =
          co_await (*reader)->get(as_bytes(key), key_hash(as_bytes(key)),
                                  Until::after(runtime, std::chrono::milliseconds(10)));
      CO_ASSERT_TRUE(late.failed_with(Errc::timeout));
      EXPECT_TRUE(late.error().to_string().contains(kPath + ": reading"));
    }
  };
  SimMachine().run(Run::body);
}

TEST(Sstable, TasksThatWantOneBlockReadItOnce) {
  struct Run {
    static Task<Result<Lookup>> one(SstableReader& reader) {
      co_return co_await get(reader, "key00500");
    }
    static Task<void> body(Runtime& runtime) {
      SstableShared shared(kCacheBytes);
      const auto written = co_await write_sstable(runtime, kPath, numbered(2000), {});
      CO_ASSERT_OK(written);
      const auto reader = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(reader);
      const std::uint64_t reads_before = shared.counters.reads;
      std::vector<Task<Result<Lookup>>> tasks;
      for (int i = 0; i < 10; ++i) tasks.push_back(one(**reader));
      const auto lookups = co_await runtime::when_all(std::move(tasks));
      for (const auto& lookup : lookups) {
        CO_ASSERT_OK(lookup);
        EXPECT_TRUE(lookup->found.has_value());
      }
      EXPECT_EQ(shared.counters.reads - reads_before, 1u);
      EXPECT_EQ(shared.counters.reads_shared, 9u);
    }
  };
  SimMachine().run(Run::body);
}

TEST(Sstable, AScanReadsAheadAndLeavesTheCacheAloneIfAsked) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      SstableShared shared(kCacheBytes);
      const Rows rows = numbered(20'000, 100);
      SstableWriter::Options options;
      options.compression = Compression::none;
      const auto written = co_await write_sstable(runtime, kPath, rows, options);
      CO_ASSERT_OK(written);
      const auto reader = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(reader);
      const std::uint64_t reads_before = shared.counters.reads;
      const auto scanned = co_await scan(*reader, {.cache_use = CacheUse::bypass});
      CO_ASSERT_OK(scanned);
      EXPECT_TRUE(*scanned == rows);
      EXPECT_GT(written->data_block_count, 100u);
      EXPECT_LT(shared.counters.reads - reads_before, 12u);
      EXPECT_EQ(shared.cache.block_count(), 0u);
    }
  };
  SimMachine().run(Run::body);
}

// ---- filters

Task<void> expect_filters(Runtime& runtime, FilterOptions filter, double rate_max) {
  SstableShared shared(kCacheBytes);
  Rows rows;
  for (int i = 0; i < 30'000; ++i) {
    rows[fmt::format("partition{:05}/row{}", i / 3, i)] = {.value = "v", .partition_size = 14};
  }
  SstableWriter::Options options;
  options.filter = filter;
  const auto written = co_await write_sstable(runtime, kPath, rows, options);
  CO_ASSERT_OK(written);
  const auto opened = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(opened);
  SstableReader& reader = **opened;
  EXPECT_GE(written->filter_hash_count, 40'000u);
  for (const auto& [key, row] : rows) {
    const auto partition = as_bytes(key).first(row.partition_size);
    CO_ASSERT_TRUE(reader.may_hold_row(as_bytes(key), key_hash(as_bytes(key))));
    CO_ASSERT_TRUE(reader.may_hold_partition(partition, key_hash(partition)));
  }
  constexpr int kAbsent = 20'000;
  int rows_let_through = 0, partitions_let_through = 0;
  for (int i = 0; i < kAbsent; ++i) {
    const std::string key = fmt::format("partition{:05}/absent", i);
    const auto lookup = co_await get(reader, key);
    CO_ASSERT_OK(lookup);
    EXPECT_FALSE(lookup->found.has_value());
    rows_let_through += lookup->ended_at_filter ? 0 : 1;
    const std::string partition = fmt::format("partition{:05}:", i);
    partitions_let_through +=
        reader.may_hold_partition(as_bytes(partition), key_hash(as_bytes(partition))) ? 1 : 0;
  }
  EXPECT_LT(rows_let_through, kAbsent * rate_max);
  EXPECT_LT(partitions_let_through, kAbsent * rate_max);
  EXPECT_EQ(shared.counters.filter_negatives,
            2 * kAbsent - static_cast<unsigned>(rows_let_through + partitions_let_through));
  EXPECT_EQ(shared.counters.filter_false_positives, static_cast<unsigned>(rows_let_through));
}

TEST(SstableFilters, LetThroughFewAbsentKeysAndEveryPresentOne) {
  const auto run = [](FilterOptions filter, double rate_max) {
    SimMachine().run([&](Runtime& runtime) { return expect_filters(runtime, filter, rate_max); });
  };
  for (const std::size_t hashes_max : {std::size_t{5'000}, std::size_t{1} << 20}) {
    run({.kind = FilterKind::cuckoo, .hashes_max = hashes_max}, 0.004);
    run({.kind = FilterKind::cuckoo, .false_positive_rate = 0.04, .hashes_max = hashes_max}, 0.04);
    run({.kind = FilterKind::cuckoo, .false_positive_rate = 1e-4, .hashes_max = hashes_max}, 5e-4);
    run({.kind = FilterKind::bloom, .hashes_max = hashes_max}, 0.013);
    run({.kind = FilterKind::consistent_cuckoo, .hashes_max = hashes_max}, 0.001);
  }
}

Task<void> expect_filter_bytes(Runtime& runtime, FilterOptions filter, double bits_min,
                               double bits_max) {
  SstableShared shared(kCacheBytes);
  Rows rows;
  for (int i = 0; i < 50'000; ++i) {
    const std::string key = fmt::format("{:08}", i);
    rows[key] = {.value = "v", .partition_size = static_cast<std::uint16_t>(key.size())};
  }
  SstableWriter::Options options;
  options.filter = filter;
  const auto written = co_await write_sstable(runtime, kPath, rows, options);
  CO_ASSERT_OK(written);
  const auto opened = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(opened);
  EXPECT_EQ(written->filter_hash_count, filter.kind == FilterKind::none ? 0 : rows.size())
      << "a key that is its partition is added once";
  const double bits =
      8.0 * static_cast<double>((*opened)->filter_bytes()) / static_cast<double>(rows.size());
  EXPECT_GE(bits, bits_min);
  EXPECT_LE(bits, bits_max);
  EXPECT_GT((*opened)->resident_bytes(), (*opened)->filter_bytes());
}

TEST(SstableFilters, TakeTheMemoryTheyAreGivenAndSayHowMuch) {
  const auto run = [](FilterKind kind, double bits_per_hash, double bits_min, double bits_max) {
    const FilterOptions filter{.kind = kind, .bits_per_hash = bits_per_hash};
    SimMachine().run(
        [&](Runtime& runtime) { return expect_filter_bytes(runtime, filter, bits_min, bits_max); });
  };
  for (const double bits : {8.0, 10.0, 16.0, 20.0}) {
    run(FilterKind::bloom, bits, bits, bits + 0.1);
  }
  run(FilterKind::cuckoo, 10, 8, 8.6);
  run(FilterKind::cuckoo, 12, 12, 12.9);
  run(FilterKind::cuckoo, 24, 16, 17.1);
  run(FilterKind::consistent_cuckoo, 10, 34, 39);
  run(FilterKind::none, 10, 0, 0);
}

TEST(SstableFilters, APartitionThatBeginsBehindAStretchIsNotDenied) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      SstableShared shared(kCacheBytes);
      // The first stretch ends with "a": its separator may be the partition's own first bytes.
      Rows rows;
      rows["a"] = {.value = "v", .partition_size = 1};
      rows["b\x02"] = {.value = "v", .partition_size = 1};
      rows["b\x03"] = {.value = "v", .partition_size = 1};
      SstableWriter::Options options;
      options.block_bytes = 1;
      options.filter.hashes_max = 1;
      const auto written = co_await write_sstable(runtime, kPath, rows, options);
      CO_ASSERT_OK(written);
      EXPECT_EQ(written->filter_block_count, 3u);
      const auto opened = co_await open_sstable(runtime, shared, kPath);
      CO_ASSERT_OK(opened);
      for (const char* partition : {"a", "b"}) {
        EXPECT_TRUE(
            (*opened)->may_hold_partition(as_bytes(partition), key_hash(as_bytes(partition))));
      }
      EXPECT_FALSE((*opened)->may_hold_partition(as_bytes("c"), key_hash(as_bytes("c"))));
    }
  };
  SimMachine().run(Run::body);
}

TEST(SstableFilters, HashesMadeToCollideStillGetAFilter) {
  FilterBuilder builder({.kind = FilterKind::cuckoo});
  for (int i = 0; i < 100; ++i) builder.add(42);
  for (std::uint64_t i = 0; i < 100; ++i) builder.add(base::mix64(i));
  const Bytes encoded = builder.finish();
  const auto filter = SstableFilter::decode(encoded);
  ASSERT_TRUE(filter.has_value()) << filter.error().to_string();
  EXPECT_EQ(filter->hash_count(), 200u);
  EXPECT_TRUE(filter->may_contain(42));
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(filter->may_contain(base::mix64(i)));
  EXPECT_EQ(builder.hash_count(), 0u);
}

TEST(SstableFilters, NamesReadBack) {
  for (const auto kind : kFilterKinds) {
    EXPECT_EQ(filter_kind_named(name_of(kind)), kind);
  }
  EXPECT_EQ(filter_kind_named("ribbon"), std::nullopt);
}

// ---- what a writer refuses

Task<void> expect_refused(Runtime& runtime, RowKey key, Bytes value) {
  const auto writer = co_await SstableWriter::create(runtime, kPath, {});
  CO_ASSERT_OK(writer);
  const auto good = co_await (*writer)->add(whole_partition(as_bytes("m")), as_bytes("v"));
  CO_ASSERT_OK(good);
  const auto refused = co_await (*writer)->add(key, value);
  EXPECT_TRUE(refused.failed_with(Errc::invalid_argument));
  EXPECT_EQ(refused.error().context().substr(0, kPath.size()), kPath);
  const auto again = co_await (*writer)->add(whole_partition(as_bytes("z")), as_bytes("v"));
  EXPECT_EQ(again, refused) << "an error is final";
  const auto finished = co_await (*writer)->finish({});
  EXPECT_TRUE(finished.failed_with(Errc::invalid_argument));
  const auto gone = co_await runtime.files.info(kPath);
  EXPECT_TRUE(gone.failed_with(Errc::not_found));
}

TEST(SstableWriter, RefusesKeysThatDoNotAscend) {
  for (const char* key : {"a", "m", ""}) {
    SimMachine().run([&](Runtime& runtime) {
      return expect_refused(runtime, whole_partition(as_bytes(key)), {});
    });
  }
}

TEST(SstableWriter, RefusesWhatExceedsItsLimits) {
  const std::string key(kRowKeySizeMax + 1, 'x');
  SimMachine().run([&](Runtime& runtime) {
    return expect_refused(runtime, {.bytes = as_bytes(key), .partition_size = 1}, {});
  });
  SimMachine().run([&](Runtime& runtime) {
    return expect_refused(runtime, {.bytes = as_bytes("n"), .partition_size = 2}, {});
  });
  base::Buffer value;
  value.extend(kValueSizeMax + 1);
  const Bytes large = std::move(value).freeze();
  SimMachine().run([&](Runtime& runtime) {
    return expect_refused(runtime, whole_partition(as_bytes("n")), large);
  });
}

TEST(SstableWriter, RefusesMetadataBeyondItsLimit) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      base::Buffer metadata;
      metadata.extend(kMetadataSizeMax + 1);
      const auto written =
          co_await write_sstable(runtime, kPath, numbered(1), {}, std::move(metadata).freeze());
      EXPECT_TRUE(written.failed_with(Errc::invalid_argument));
      const auto gone = co_await runtime.files.info(kPath);
      EXPECT_TRUE(gone.failed_with(Errc::not_found));
    }
  };
  SimMachine().run(Run::body);
}

TEST(SstableWriter, DoesNotTouchAFileThatIsThere) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      const auto first = co_await write_sstable(runtime, kPath, numbered(1), {});
      CO_ASSERT_OK(first);
      const auto second = co_await write_sstable(runtime, kPath, numbered(1), {});
      EXPECT_TRUE(second.failed_with(Errc::already_exists));
      const auto still_there = co_await runtime.files.info(kPath);
      CO_ASSERT_OK(still_there);
    }
  };
  SimMachine().run(Run::body);
}

TEST(SstableWriter, DiscardRemovesTheFile) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      const auto writer = co_await SstableWriter::create(runtime, kPath, {});
      CO_ASSERT_OK(writer);
      const auto added = co_await (*writer)->add(whole_partition(as_bytes("k")), as_bytes("v"));
      CO_ASSERT_OK(added);
      co_await (*writer)->discard();
      co_await (*writer)->discard();
      const auto gone = co_await runtime.files.info(kPath);
      EXPECT_TRUE(gone.failed_with(Errc::not_found));
      const auto after = co_await (*writer)->add(whole_partition(as_bytes("l")), as_bytes("v"));
      EXPECT_TRUE(after.failed_with(Errc::cancelled));
    }
  };
  SimMachine().run(Run::body);
}

TEST(SstableWriter, AStopEndsItAndRemovesTheFile) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      runtime::StopSource stop;
      SstableWriter::Options options = small_options();
      options.stop = stop.token();
      stop.request_stop();
      const auto written = co_await write_sstable(runtime, kPath, numbered(1000), options);
      EXPECT_TRUE(written.failed_with(Errc::cancelled));
      const auto gone = co_await runtime.files.info(kPath);
      EXPECT_TRUE(gone.failed_with(Errc::not_found));
    }
  };
  SimMachine().run(Run::body);
}

class CountingThrottle final : public WriteThrottle {
 public:
  explicit CountingThrottle(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  Task<Result<void>> before_write(std::size_t bytes) override {
    bytes_ += bytes;
    if (bytes_ > bytes_max_) co_return Error(Errc::overloaded, "enough");
    co_return {};
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
};

TEST(SstableWriter, AsksTheThrottleForEveryByteAndObeysIt) {
  struct Run {
    static Task<void> body(Runtime& runtime) {
      CountingThrottle patient(UINT64_MAX);
      SstableWriter::Options options = small_options();
      options.throttle = &patient;
      const auto written = co_await write_sstable(runtime, kPath, numbered(1000), options);
      CO_ASSERT_OK(written);
      const auto info = co_await runtime.files.info(kPath);
      CO_ASSERT_OK(info);
      EXPECT_EQ(patient.bytes(), info->size);
      CountingThrottle strict(5000);
      options.throttle = &strict;
      const auto refused = co_await write_sstable(runtime, "/other.sst", numbered(1000), options);
      EXPECT_TRUE(refused.failed_with(Errc::overloaded));
      const auto gone = co_await runtime.files.info("/other.sst");
      EXPECT_TRUE(gone.failed_with(Errc::not_found));
    }
  };
  SimMachine().run(Run::body);
}

}  // namespace
}  // namespace helenus::storage
