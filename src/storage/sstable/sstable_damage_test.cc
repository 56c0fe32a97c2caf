// Damage and faults: whatever happens to a file, a reader gives the right answer or an error that
// names file and offset (S6), and a writer that cannot go on leaves nothing behind.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/sstable/sstable_test_support.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Bytes;
using base::Errc;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

const std::string kPath = "/table.sst";
constexpr std::size_t kCacheBytes = std::size_t{1} << 20;
// A sanitizer makes every look several times as dear, and finds as much in one of eleven.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t kStride = 11;
#else
constexpr std::size_t kStride = 1;
#endif

Rows some_rows(int count) {
  Rows rows;
  for (int i = 0; i < count; ++i) {
    rows[fmt::format("key{:03}", i)] = {.value = fmt::format("value {}", i * i),
                                        .partition_size = static_cast<std::uint16_t>(i % 6)};
  }
  return rows;
}

// What became of asking a file everything.
struct Verdict {
  std::size_t errors = 0;
  std::size_t answers = 0;
};

void judge(const base::Error& error, Verdict& verdict) {
  ++verdict.errors;
  EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::unsupported)
      << error.to_string();
  EXPECT_TRUE(error.context().starts_with(kPath)) << error.to_string();
  EXPECT_NE(error.context().find("offset"), std::string_view::npos) << error.to_string();
}

// The same row, or an error.
void judge_lookup(const Result<Lookup>& lookup, const std::string* value, Verdict& verdict) {
  if (!lookup) {
    judge(lookup.error(), verdict);
    return;
  }
  ++verdict.answers;
  EXPECT_EQ(lookup->found.has_value(), value != nullptr);
  if (lookup->found && value != nullptr) EXPECT_EQ(lookup->found->value.text(), *value);
}

// Asks for the row behind and the row before a key that is there.
Task<void> ask_neighbours(Cursor& cursor, const Rows& rows, Rows::const_iterator at,
                          Verdict& verdict) {
  const std::string behind = at->first + "x";
  const auto sought = co_await cursor.seek(as_bytes(behind));
  if (!sought) {
    judge(sought.error(), verdict);
  } else {
    ++verdict.answers;
    const auto next = std::next(at);
    EXPECT_EQ(cursor.valid(), next != rows.end());
    if (cursor.valid()) EXPECT_EQ(base::as_text(cursor.key().bytes), next->first);
  }
  const auto before = co_await cursor.seek_before(as_bytes(at->first));
  if (!before) {
    judge(before.error(), verdict);
  } else {
    ++verdict.answers;
    EXPECT_EQ(cursor.valid(), at != rows.begin());
    if (cursor.valid()) EXPECT_EQ(base::as_text(cursor.value()), std::prev(at)->second.value);
  }
}

Task<void> ask_everything(Runtime& runtime, const Rows& rows, Verdict& verdict) {
  SstableShared shared(kCacheBytes);
  const auto reader = co_await open_sstable(runtime, shared, kPath);
  if (!reader) {
    judge(reader.error(), verdict);
    co_return;
  }
  EXPECT_EQ((*reader)->metadata().text(), "metadata");
  const auto cursor = (*reader)->cursor({});
  for (auto at = rows.begin(); at != rows.end(); ++at) {
    const auto& [key, row] = *at;
    for (const std::string& asked : {key, key + "x"}) {
      const auto lookup =
          co_await (*reader)->get(as_bytes(asked), key_hash(as_bytes(asked)), Until::forever());
      judge_lookup(lookup, asked == key ? &row.value : nullptr, verdict);
    }
    const auto partition = as_bytes(key).first(row.partition_size);
    EXPECT_TRUE((*reader)->may_hold_partition(partition, key_hash(partition)));
    co_await ask_neighbours(*cursor, rows, at, verdict);
  }
  const auto scanned = co_await scan(*reader, {.cache_use = CacheUse::bypass});
  if (!scanned) {
    judge(scanned.error(), verdict);
  } else {
    ++verdict.answers;
    EXPECT_TRUE(*scanned == rows);
  }
}

class DamagedSstable : public testing::TestWithParam<Compression> {
 protected:
  DamagedSstable() {
    machine_.run([&](Runtime& runtime) { return make(runtime); });
    good_ = machine_.content(kPath);
  }
  Task<void> make(Runtime& runtime) {
    const auto written = co_await write_sstable(runtime, kPath, rows_, small_options(GetParam()),
                                                Bytes::copy_of("metadata"));
    CO_ASSERT_OK(written);
    EXPECT_GE(written->index_depth, 2u);
  }
  Verdict verdict() {
    Verdict verdict;
    machine_.run([&](Runtime& runtime) { return ask_everything(runtime, rows_, verdict); });
    return verdict;
  }

  const Rows rows_ = some_rows(40);
  SimMachine machine_;
  Bytes good_;
};
INSTANTIATE_TEST_SUITE_P(Sstable, DamagedSstable,
                         testing::Values(Compression::none, Compression::lz4, Compression::zstd),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(DamagedSstable, WithoutDamageAnswersEverything) {
  EXPECT_EQ(verdict().errors, 0u);
}

TEST_P(DamagedSstable, EveryFlippedBitGivesTheRightAnswerOrAnError) {
  std::size_t silent_bits = 0;
  for (std::size_t bit = 0; bit < good_.size() * 8; bit += kStride) {
    const std::byte flipped = good_[bit / 8] ^ std::byte(1u << (bit % 8));
    machine_.overwrite(kPath, bit / 8, {&flipped, 1});
    silent_bits += verdict().errors == 0 ? 1 : 0;
    machine_.overwrite(kPath, bit / 8, good_.view().subspan(bit / 8, 1));
    ASSERT_FALSE(HasFailure()) << "bit " << bit;
  }
  // Nothing but the header, which readers have no need of, goes unnoticed.
  EXPECT_EQ(silent_bits, (SstableHeader::kSize * 8 + kStride - 1) / kStride);
}

// A file as large as they are: blocks of the usual size, several of everything but levels.
class LargeDamagedSstable : public testing::TestWithParam<Compression> {
 protected:
  static Task<void> make(Runtime& runtime, const Rows& rows) {
    SstableWriter::Options options;
    options.compression = GetParam();
    options.filter = {.kind = FilterKind::bloom, .hashes_max = 1000};
    const auto written =
        co_await write_sstable(runtime, kPath, rows, options, Bytes::copy_of("metadata"));
    CO_ASSERT_OK(written);
    EXPECT_GE(written->filter_block_count, 3u);
  }
  static Task<void> ask(Runtime& runtime, const Rows& rows, Verdict& verdict) {
    SstableShared shared(kCacheBytes);
    const auto reader = co_await open_sstable(runtime, shared, kPath);
    if (!reader) {
      judge(reader.error(), verdict);
      co_return;
    }
    std::size_t count = 0;
    for (const auto& [key, row] : rows) {
      if (++count % 13 != 0) continue;
      const auto lookup =
          co_await (*reader)->get(as_bytes(key), key_hash(as_bytes(key)), Until::forever());
      judge_lookup(lookup, &row.value, verdict);
    }
    const auto scanned = co_await scan(*reader, {.cache_use = CacheUse::bypass});
    if (!scanned) {
      judge(scanned.error(), verdict);
    } else {
      EXPECT_TRUE(*scanned == rows);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Sstable, LargeDamagedSstable,
                         testing::Values(Compression::none, Compression::lz4, Compression::zstd),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(LargeDamagedSstable, DamageAtRandomGivesTheRightAnswerOrAnError) {
  base::Prng prng(11);
  Rows rows;
  for (int i = 0; i < 4000; ++i) {
    rows[fmt::format("partition{:03}/{:05}", i / 100, i)] = {
        .value = std::string(prng.below(150), static_cast<char>('a' + prng.below(26))),
        .partition_size = 13};
  }
  SimMachine machine;
  machine.run([&](Runtime& runtime) { return make(runtime, rows); });
  const Bytes good = machine.content(kPath);
  std::size_t noticed = 0;
  for (int round = 0; round < 60; ++round) {
    const std::size_t at =
        SstableHeader::kSize + prng.below(good.size() - SstableHeader::kSize - 1);
    const std::size_t size = round % 2 == 0 ? 1 : std::min(good.size() - at, prng.below(5000) + 1);
    std::vector<std::byte> garbage(size);
    for (std::byte& byte : garbage) byte = std::byte(prng.below(256));
    // Never what was there.
    garbage[0] = good[at] ^ std::byte(1u << prng.below(8));
    machine.overwrite(kPath, at, garbage);
    Verdict verdict;
    machine.run([&](Runtime& runtime) { return ask(runtime, rows, verdict); });
    noticed += verdict.errors > 0 ? 1 : 0;
    machine.overwrite(kPath, at, good.view().subspan(at, size));
    ASSERT_FALSE(HasFailure()) << size << " bytes at " << at << ", round " << round;
  }
  EXPECT_EQ(noticed, 60u) << "no byte behind the header is without meaning";
}

TEST_P(DamagedSstable, EveryTruncationIsAnErrorAtOpen) {
  for (std::size_t size = 0; size < good_.size(); size += kStride) {
    machine_.replace(kPath, good_.view().first(size));
    const Verdict cut = verdict();
    ASSERT_EQ(cut.errors, 1u) << size;
    ASSERT_EQ(cut.answers, 0u) << size;
  }
}

TEST_P(DamagedSstable, BytesBehindTheEndAreAnErrorAtOpen) {
  machine_.overwrite(kPath, good_.size(), as_bytes("x"));
  EXPECT_EQ(verdict().errors, 1u);
}

TEST_P(DamagedSstable, EverySectorOfZerosGivesTheRightAnswerOrAnError) {
  const std::vector<std::byte> zeros(64);
  for (std::size_t at = SstableHeader::kSize; at + zeros.size() <= good_.size(); at += 32) {
    machine_.overwrite(kPath, at, zeros);
    EXPECT_GT(verdict().errors, 0u);
    machine_.overwrite(kPath, at, good_.view().subspan(at, zeros.size()));
    ASSERT_FALSE(HasFailure()) << at;
  }
}

TEST_P(DamagedSstable, ABlockWhereAnotherBelongsIsAnError) {
  // Blocks of equal size, whose bytes are whole: only the place gives them away.
  std::vector<BlockHandle> data;
  for (std::uint64_t offset = SstableHeader::kSize; offset < good_.size() - SstableFooter::kSize;) {
    const auto head = BlockHead::decode(good_.view().subspan(offset));
    ASSERT_TRUE(head.has_value());
    const auto size = static_cast<std::uint32_t>(head->stored_size + kBlockFrameSize);
    if (head->kind == BlockKind::data) data.push_back({offset, size});
    offset += size;
  }
  std::size_t moved = 0;
  for (const BlockHandle& from : data) {
    for (const BlockHandle& to : data) {
      if (from == to || from.size != to.size) continue;
      ++moved;
      machine_.overwrite(kPath, to.offset, good_.view().subspan(from.offset, from.size));
      EXPECT_GT(verdict().errors, 0u);
      machine_.overwrite(kPath, to.offset, good_.view().subspan(to.offset, to.size));
    }
  }
  EXPECT_GT(moved, 0u);
}

TEST_P(DamagedSstable, ABlockOfAnotherFileIsAnError) {
  struct Run {
    static Task<void> body(Runtime& runtime, const Rows& rows, SstableWriter::Options options) {
      const auto written = co_await write_sstable(runtime, "/other.sst", rows, std::move(options),
                                                  Bytes::copy_of("metadata"));
      CO_ASSERT_OK(written);
    }
  };
  SstableWriter::Options options = small_options(GetParam());
  options.id->bytes[3] ^= std::byte{1};
  machine_.run([&](Runtime& runtime) { return Run::body(runtime, rows_, options); });
  const Bytes other = machine_.content("/other.sst");
  ASSERT_EQ(other.size(), good_.size());
  const std::size_t middle = good_.size() / 2;
  // All up to the middle from the one, the rest from the other: as a lost write leaves it.
  machine_.overwrite(kPath, 0, other.view().first(middle));
  EXPECT_GT(verdict().errors, 0u);
}

// ---- faults of the disk

Task<void> write_and_note(Runtime& runtime, const Rows& rows, Result<void>& result) {
  SstableWriter::Options options = small_options();
  const auto written = co_await write_sstable(runtime, kPath, rows, options);
  if (!written) {
    result = written.error();
  } else {
    result = {};
  }
}

TEST(SstableFaults, AFullDiskAtAnyPointIsReportedLeavesNothingAndPasses) {
  const Rows rows = some_rows(1500);
  std::size_t failed = 0;
  for (std::uint64_t free_pages = 0;; ++free_pages) {
    SimMachine machine;
    const std::uint64_t capacity = machine.disk().capacity();
    machine.disk().set_capacity(machine.disk().used_bytes() + free_pages * 4096);
    Result<void> result;
    machine.run([&](Runtime& runtime) { return write_and_note(runtime, rows, result); });
    if (result) break;
    ++failed;
    EXPECT_EQ(result.error().code(), Errc::no_space) << result.error().to_string();
    EXPECT_NE(result.error().context().find(kPath), std::string_view::npos);
    EXPECT_FALSE(machine.has_file(kPath));
    machine.disk().set_capacity(capacity);
    machine.run([&](Runtime& runtime) { return write_and_note(runtime, rows, result); });
    EXPECT_TRUE(result.has_value());
    ASSERT_FALSE(testing::Test::HasFailure()) << free_pages;
  }
  EXPECT_GT(failed, 5u);
}

TEST(SstableFaults, AWriteOrSyncThatFailsIsReportedAndLeavesNothing) {
  const Rows rows = some_rows(300);
  std::size_t failed = 0;
  for (const bool sync : {false, true}) {
    for (int round = 0; round < 30; ++round) {
      SimMachine machine;
      // Another place of the file each time: the chance is drawn anew at every write.
      for (int draws = 0; draws < round; ++draws) (void)machine.disk().stream().next();
      (sync ? machine.faults().sync_error : machine.faults().write_error) = sync ? 1.0 : 0.05;
      Result<void> result;
      machine.run([&](Runtime& runtime) { return write_and_note(runtime, rows, result); });
      if (result) continue;
      ++failed;
      EXPECT_EQ(result.error().code(), Errc::io_error) << result.error().to_string();
      // The name may stay only if removing it failed as well.
      if (sync) EXPECT_FALSE(machine.has_file(kPath));
    }
  }
  EXPECT_GT(failed, 40u);
}

Task<void> read_through_errors(Runtime& runtime, const Rows& rows, sim::DiskFaults& faults,
                               std::size_t& errors) {
  SstableShared shared(0);
  const auto reader = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(reader);
  faults.read_error = 0.3;
  for (const auto& [key, row] : rows) {
    const auto lookup =
        co_await (*reader)->get(as_bytes(key), key_hash(as_bytes(key)), Until::forever());
    if (!lookup) {
      ++errors;
      EXPECT_EQ(lookup.error().code(), Errc::io_error);
      EXPECT_TRUE(lookup.error().context().starts_with(kPath)) << lookup.error().to_string();
      EXPECT_NE(lookup.error().context().find("offset"), std::string_view::npos);
    } else {
      CO_ASSERT_TRUE(lookup->found.has_value());
      EXPECT_EQ(lookup->found->value.text(), row.value);
    }
    const auto scanned = co_await scan(*reader, {.cache_use = CacheUse::bypass});
    if (scanned) EXPECT_TRUE(*scanned == rows) << "an error is never the end of a scan";
  }
  faults.read_error = 0;
}

TEST(SstableFaults, AReadThatFailsIsAnErrorAndTheNextOneMaySucceed) {
  const Rows rows = some_rows(60);
  SimMachine machine;
  Result<void> result;
  std::size_t errors = 0;
  machine.run([&](Runtime& runtime) { return write_and_note(runtime, rows, result); });
  machine.run([&](Runtime& runtime) {
    return read_through_errors(runtime, rows, machine.faults(), errors);
  });
  EXPECT_GT(errors, 10u);
  EXPECT_LT(errors, rows.size());
}

Task<void> write_durably(Runtime& runtime, const Rows& rows, bool& durable) {
  const auto written =
      co_await write_sstable(runtime, kPath, rows, small_options(), Bytes::copy_of("metadata"));
  CO_ASSERT_OK(written);
  const auto synced = co_await runtime.files.sync_directory("/");
  CO_ASSERT_OK(synced);
  durable = true;
}

TEST(SstableFaults, APowerCutAtAnyStepLeavesAWholeFileOrOneThatDoesNotOpen) {
  const Rows rows = some_rows(100);
  std::size_t absent = 0, broken = 0, whole = 0;
  for (std::uint64_t steps = 1;; ++steps) {
    SimMachine machine;
    for (std::uint64_t draws = 0; draws < steps; ++draws) (void)machine.disk().stream().next();
    bool durable = false;
    const bool cut = machine.run_and_cut_power(
        [&](Runtime& runtime) { return write_durably(runtime, rows, durable); }, steps);
    if (!machine.has_file(kPath)) {
      EXPECT_FALSE(durable);
      ++absent;
    } else {
      Verdict verdict;
      machine.run([&](Runtime& runtime) { return ask_everything(runtime, rows, verdict); });
      if (durable) EXPECT_EQ(verdict.errors, 0u);
      ++(verdict.errors > 0 ? broken : whole);
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "after step " << steps;
    if (!cut) break;
  }
  EXPECT_GT(absent, 0u);
  EXPECT_GT(broken, 0u);
  EXPECT_GT(whole, 0u);
}

Task<void> read_with_deadline(Runtime& runtime) {
  SstableShared shared(kCacheBytes);
  const auto reader = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(reader);
  runtime::StopSource stop;
  stop.request_stop();
  const auto cut = co_await (*reader)->get(as_bytes("key001"), key_hash(as_bytes("key001")),
                                           {.stop = stop.token()});
  EXPECT_TRUE(cut.failed_with(Errc::cancelled));
  const auto late = co_await (*reader)->get(as_bytes("key001"), key_hash(as_bytes("key001")),
                                            Until::after(runtime, runtime::Duration(1)));
  EXPECT_TRUE(late.failed_with(Errc::timeout));
  const auto patient =
      co_await (*reader)->get(as_bytes("key001"), key_hash(as_bytes("key001")), Until::forever());
  CO_ASSERT_OK(patient);
  EXPECT_TRUE(patient->found.has_value());
}

TEST(SstableFaults, AWaitThatIsCutShortIsAnError) {
  SimMachine machine;
  Result<void> result;
  const Rows rows = some_rows(60);
  machine.run([&](Runtime& runtime) { return write_and_note(runtime, rows, result); });
  machine.run(read_with_deadline);
}

}  // namespace
}  // namespace helenus::storage
