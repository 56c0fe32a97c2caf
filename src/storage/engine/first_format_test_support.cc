#include "storage/engine/first_format_test_support.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "causality/codec.h"
#include "storage/entry/entry.h"
#include "storage/manifest/knowledge.h"
#include "storage/manifest/manifest.h"
#include "storage/sstable/sstable_cursor.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/sstable/sstable_writer.h"

namespace helenus::storage::testing {

using base::Result;
using runtime::Runtime;
using runtime::Task;

namespace {

// The entries of one partition, as they are read and as they are to be written.
class Partition {
 public:
  explicit Partition(base::ByteView bytes) : bytes_(base::as_text(bytes)) {}

  base::ByteView bytes() const { return base::as_bytes(bytes_); }
  std::uint64_t row_deletes() const { return row_deletes_; }

  Result<void> take(RowKey key, const base::Bytes& value) {
    TRY(Entry entry, decode_entry(value));
    const EntryKey parts = key_parts(key.bytes, key.partition_size);
    for (const causality::RangeDelete& range_delete : entry.deleted_ranges())
      deleted_ranges_.absorb(range_delete);
    if (parts.kind == EntryKind::deleted_ranges) return {};
    const auto row = base::Bytes::copy_of(parts.clustering);
    if (!entry.row_deletes().empty()) {
      ++row_deletes_;
      deleted_ranges_.absorb(
          causality::RangeDelete{causality::range_of_row(row), entry.row_deletes()});
    }
    if (entry.row().empty()) return {};
    base::Buffer encoded;
    base::Encoder out(encoded);
    constexpr std::uint8_t kFirstFormat = 1;
    out.u8(kFirstFormat);
    out.varint(0);
    causality::encode(out, entry.row());
    rows_.emplace_back(std::string(base::as_text(key.bytes)), std::move(encoded).freeze());
    return {};
  }

  // How many entries of ranges it has now.
  Task<Result<std::uint64_t>> write(SstableWriter& writer) const {
    const auto size = static_cast<std::uint16_t>(bytes_.size());
    if (!deleted_ranges_.deleted_ranges().empty()) {
      base::Buffer encoded;
      base::Encoder out(encoded);
      encode(out, deleted_ranges_);
      const std::string key = encode_key({bytes(), EntryKind::deleted_ranges, {}});
      CO_TRY_VOID(co_await writer.add({.bytes = base::as_bytes(key), .partition_size = size},
                                      encoded.view()));
    }
    for (const auto& [key, value] : rows_) {
      CO_TRY_VOID(
          co_await writer.add({.bytes = base::as_bytes(key), .partition_size = size}, value));
    }
    co_return deleted_ranges_.deleted_ranges().empty() ? 0 : 1;
  }

 private:
  const std::string bytes_;
  Entry deleted_ranges_;
  std::vector<std::pair<std::string, base::Bytes>> rows_;
  std::uint64_t row_deletes_ = 0;
};

Task<Result<std::vector<Partition>>> partitions_of(std::shared_ptr<SstableReader> reader) {
  std::vector<Partition> partitions;
  SstableCursor cursor(std::move(reader), {});
  CO_TRY_VOID(co_await cursor.seek_first());
  while (cursor.valid()) {
    const base::ByteView partition = cursor.key().partition();
    if (partitions.empty() || !base::equal(partitions.back().bytes(), partition)) {
      partitions.emplace_back(partition);
    }
    CO_TRY_VOID(partitions.back().take(cursor.key(), cursor.share_value()));
    CO_TRY_VOID(co_await cursor.next());
  }
  co_return partitions;
}

// Returns the deletes of rows.
Task<Result<std::uint64_t>> rewrite(Runtime& runtime, const EngineOptions& options,
                                    std::string folder, std::string path, SstableRecord& record) {
  SstableShared shared(1 << 20);
  CO_TRY(auto reader, co_await SstableReader::open(runtime, shared, path, {}, {}));
  CO_TRY(auto metadata, decode_sstable_metadata(reader->metadata()));
  CO_TRY(const auto partitions, co_await partitions_of(reader));
  reader.reset();
  const std::string made = path + ".made";
  CO_TRY(const auto writer,
         co_await SstableWriter::create(runtime, made, {.block_bytes = options.block_bytes}));
  metadata.deleted_ranges = 0;
  std::uint64_t row_deletes = 0;
  for (const Partition& partition : partitions) {
    CO_TRY(const std::uint64_t deleted_ranges, co_await partition.write(*writer));
    metadata.deleted_ranges += deleted_ranges;
    row_deletes += partition.row_deletes();
  }
  CO_TRY(const auto statistics, co_await writer->finish(encode(metadata)));
  CO_TRY_VOID(co_await runtime.files.rename(made, path));
  CO_TRY_VOID(co_await runtime.files.sync_directory(std::move(folder)));
  CO_TRY(const auto info, co_await runtime.files.info(path));
  record.bytes = info.size;
  record.keys = statistics.key_count;
  record.key_first = statistics.first_key;
  record.key_last = statistics.last_key;
  co_return row_deletes;
}

}  // namespace

Task<Result<std::uint64_t>> write_in_first_format(Runtime& runtime, EngineOptions options) {
  std::uint64_t row_deletes = 0;
  for (std::uint32_t shard = 0; shard < options.shards; ++shard) {
    const auto folder = [&](std::size_t directory) {
      return fmt::format("{}/shard-{:04}", options.data_directories[directory], shard);
    };
    const std::string path = folder(0) + "/manifest";
    auto state = co_await read_manifest(runtime, path);
    if (state.failed_with(base::Errc::not_found)) continue;
    if (!state) co_return std::move(state).error();
    for (auto& [id, table] : state->tables) {
      for (SstableRecord& record : table.sstables) {
        const std::string where = folder(record.directory);
        const std::string file = fmt::format("{}/{:010}.sst", where, record.number.value());
        CO_TRY(const std::uint64_t here, co_await rewrite(runtime, options, where, file, record));
        row_deletes += here;
      }
    }
    CO_TRY_VOID(co_await write_manifest(runtime, path, *state));
  }
  co_return row_deletes;
}

}  // namespace helenus::storage::testing
