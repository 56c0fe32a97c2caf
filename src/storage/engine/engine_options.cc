#include "storage/engine/engine_options.h"

#include "storage/memtable/arena.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

Result<void> EngineOptions::validate() const {
  const auto refuse = [](std::string_view option, std::string_view why) {
    return Error(Errc::invalid_argument, "{}: {}", option, why);
  };
  if (data_directories.empty()) return refuse("data_directories", "none is given");
  if (data_directories.size() > kDataDirectoriesMax) {
    return refuse("data_directories", "more than 64 are given");
  }
  if (shards == 0 || shards > kShardsMax) return refuse("shards", "not between 1 and 4096");
  if (memtable_bytes_flush < Arena::kChunkMin) {
    return refuse("memtable_bytes_flush", "less than 16 KiB");
  }
  if (memtable_keys_flush == 0) return refuse("memtable_keys_flush", "is zero");
  if (memtable_bytes_max < 2 * memtable_bytes_flush) {
    return refuse("memtable_bytes_max", "less than twice memtable_bytes_flush");
  }
  if (block_bytes == 0) return refuse("block_bytes", "is zero");
  if (filter.bits_per_hash &&
      (*filter.bits_per_hash < kFilterBitsMin || *filter.bits_per_hash > kFilterBitsMax)) {
    return refuse("filter.bits_per_hash", "not between 4 and 32");
  }
  if (filter.false_positive_rate < kFilterRateMin || filter.false_positive_rate > kFilterRateMax) {
    return refuse("filter.false_positive_rate", "not between 0.000001 and 0.5");
  }
  if (filter.hashes_max == 0) return refuse("filter.hashes_max", "is zero");
  if (retry_delay < std::chrono::milliseconds(1) || retry_delay > std::chrono::hours(1)) {
    return refuse("retry_delay", "not between 1 ms and 1 h");
  }
  if (file_reads_max == 0) return refuse("file_reads_max", "is zero");
  if (compactions_max == 0) return refuse("compactions_max", "is zero");
  if (sstables_slow < compaction.files_min || sstables_max <= sstables_slow) {
    return refuse("sstables_max", "is not above sstables_slow, or that is below files_min");
  }
  if (operations.window_ms < 1 || operations.window_ms > OperationWindow::kMillisecondsMax ||
      operations.skew_ms < 0 || operations.skew_ms > OperationWindow::kMillisecondsMax) {
    return refuse("operations", "the window or the skew is not between 1 ms and 30 days");
  }
  TRY_VOID(log.validate());
  TRY_VOID(collection.validate());
  return compaction.validate();
}

}  // namespace helenus::storage
