// Files of every version ever released must be readable for ever.
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "storage/sstable/sstable_test_support.h"
#include "storage/verify/sstable_verify.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Bytes;
using runtime::Runtime;
using runtime::Task;

const std::string kPath = "/golden.sst";

// The file that docs/formats/sstable.md takes apart.
Rows rows_of_the_example() {
  return {{"apple", {.value = "red", .partition_size = 5}},
          {"plum/1", {.value = "blue", .partition_size = 5}},
          {"plum/2", {.value = "", .partition_size = 5}}};
}

Rows many_rows() {
  base::Prng prng(2026);
  Rows rows;
  for (int i = 0; i < 500; ++i) {
    rows[fmt::format("partition{:03}/{:04}", i / 40, i)] = {
        .value = std::string(prng.below(60), static_cast<char>('a' + prng.below(26))),
        .partition_size = 13};
  }
  rows["zzz large"] = {.value = std::string(30'000, 'z'), .partition_size = 3};
  return rows;
}

SstableWriter::Options golden_options(Compression compression, FilterKind filter) {
  SstableWriter::Options options;
  options.compression = compression;
  options.block_bytes = 1000;
  options.index = {.node_bytes = 600, .upper_node_bytes = 600};
  options.filter = {.kind = filter, .hashes_max = 300};
  FileId& id = options.id.emplace();
  for (unsigned i = 0; i < 16; ++i) id.bytes[i] = std::byte(i);
  return options;
}

Bytes golden(const std::string& name) {
  std::ifstream file(std::string(HELENUS_TESTDATA "/") + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return Bytes::copy_of(std::string(std::istreambuf_iterator<char>(file), {}));
}

Task<void> expect_holds(Runtime& runtime, const Rows& rows) {
  SstableShared shared(1 << 20);
  const auto verified =
      co_await verify_sstable(runtime, shared, kPath, {}, runtime::Until::forever());
  CO_ASSERT_OK(verified);
  const auto reader = co_await open_sstable(runtime, shared, kPath);
  CO_ASSERT_OK(reader);
  EXPECT_EQ((*reader)->metadata().text(), "the clock at freeze");
  const auto scanned = co_await scan(*reader);
  CO_ASSERT_OK(scanned);
  EXPECT_TRUE(*scanned == rows);
  for (const auto& [key, row] : rows) {
    const auto lookup =
        co_await (*reader)->get(as_bytes(key), key_hash(as_bytes(key)), runtime::Until::forever());
    CO_ASSERT_OK(lookup);
    CO_ASSERT_TRUE(lookup->found.has_value());
    EXPECT_EQ(lookup->found->value.text(), row.value);
  }
}

void expect_reads(const std::string& name, const Rows& rows) {
  SimMachine machine;
  machine.replace(kPath, golden(name));
  machine.run([&](Runtime& runtime) { return expect_holds(runtime, rows); });
}

Task<void> write(Runtime& runtime, const Rows& rows, SstableWriter::Options options) {
  const auto written = co_await write_sstable(runtime, kPath, rows, std::move(options),
                                              Bytes::copy_of("the clock at freeze"));
  CO_ASSERT_OK(written);
}

void expect_writes(const std::string& name, const Rows& rows, SstableWriter::Options options) {
  SimMachine machine;
  machine.run([&](Runtime& runtime) { return write(runtime, rows, options); });
  EXPECT_EQ(base::to_hex(machine.content(kPath)), base::to_hex(golden(name)));
}

TEST(SstableGolden, VersionOneReads) {
  expect_reads("sstable-v1", rows_of_the_example());
  expect_reads("sstable-v1-none", many_rows());
  expect_reads("sstable-v1-lz4", many_rows());
  expect_reads("sstable-v1-zstd", many_rows());
}

// Compressors may change their output; what they are given may not.
TEST(SstableGolden, VersionOneIsWhatIsWritten) {
  expect_writes("sstable-v1", rows_of_the_example(),
                golden_options(Compression::none, FilterKind::cuckoo));
  expect_writes("sstable-v1-none", many_rows(),
                golden_options(Compression::none, FilterKind::bloom));
}

}  // namespace
}  // namespace helenus::storage
