#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "storage/sstable_cursor.h"
#include "storage/sstable_reader.h"
#include "storage/sstable_test_support.h"
#include "storage/sstable_writer.h"

namespace helenus::storage {

bool operator==(const contract::ContractValue& a, const contract::ContractValue& b);

namespace {

using base::as_bytes;
using base::Bytes;
using base::Errc;
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

}  // namespace
}  // namespace helenus::storage
