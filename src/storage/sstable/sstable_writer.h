// SstableWriter: writes one sorted, immutable file, front to back, in bounded memory.
//
//   create() ─▶ add(), add(), ... ─▶ finish()     the file is whole and synced
//                     │ error, or discard()       the file is removed
//
// Memory: the open data block, one open index node a level, the hashes of one filter, and what
// waits to be written (Options::write_bytes); for a value larger than a block, three times that
// value besides. Nothing grows with the file, so 10^9 keys are no different from ten.
//
// Durability: finish() syncs the file. Its name is durable once the caller has synced the
// directory; then it may be entered into the manifest. A writer that is destroyed before finish()
// or discard() leaves its file behind, as a crash does: the engine removes files that no manifest
// names.
//
// Core affinity: belongs to the core it was made on. One call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/histogram.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/maybe_task.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "storage/ids/row_key.h"
#include "storage/sstable/block.h"
#include "storage/sstable/block_codec.h"
#include "storage/sstable/sstable_filter.h"
#include "storage/sstable/sstable_format.h"
#include "storage/sstable/sstable_index.h"

namespace helenus::storage {

// Asked before every write to the file; may wait, to keep a flush or a compaction from taking all
// of the disk.
class WriteThrottle {
 public:
  virtual ~WriteThrottle() = default;
  // Errors end the file.
  virtual runtime::Task<base::Result<void>> before_write(std::size_t bytes) = 0;
};

class SstableWriter final : private BlockSink {
 public:
  struct Options {
    Compression compression = Compression::lz4;
    int compression_level = 1;  // zstd's
    std::size_t block_bytes = kDataBlockBytesDefault;
    IndexBuilder::Options index = {};
    FilterOptions filter = {};
    // Bytes gathered before they are written.
    std::size_t write_bytes = std::size_t{1} << 20;
    WriteThrottle* throttle = nullptr;  // outlives the writer
    // Ends writing early, with Errc::cancelled.
    runtime::StopToken stop = {};
    // For tests and golden files; drawn at random otherwise.
    std::optional<FileId> id = {};
  };

  // Creates the file. Errors: already_exists, and those of the file system.
  static runtime::Task<base::Result<std::unique_ptr<SstableWriter>>> create(
      runtime::Runtime& runtime, std::string path, Options options);

  SstableWriter(const SstableWriter&) = delete;
  SstableWriter& operator=(const SstableWriter&) = delete;
  ~SstableWriter() = default;

  // Appends an entry; both are copied before it returns, so neither has to outlive the wait.
  // Errors: invalid_argument (the key is not above the last one, or something exceeds its limit),
  // no_space, io_error, cancelled. After an error the file is gone, and every call gives the same.
  runtime::MaybeTask<base::Result<void>> add(RowKey key, base::ByteView value);

  // Writes what is left, with the caller's metadata, and syncs. The writer is spent.
  // Errors: as add(); invalid_argument if the metadata exceeds kMetadataSizeMax.
  runtime::Task<base::Result<SstableStatistics>> finish(base::Bytes metadata);

  // Gives up: removes the file. Harmless after an error.
  runtime::Task<void> discard();

  const std::string& path() const { return path_; }
  const FileId& id() const { return id_; }
  std::uint64_t key_count() const { return statistics_.key_count; }
  // What the file would take if it ended here, but for what its end adds.
  std::uint64_t bytes() const { return file_size_ + out_.size(); }

 private:
  SstableWriter(runtime::Runtime& runtime, std::string path, Options options, FileId id,
                std::unique_ptr<runtime::File> file);

  BlockHandle put(BlockKind kind, base::ByteView payload) override;
  base::Result<void> check(const RowKey& key, base::ByteView value) const;
  void count_row(const RowKey& key, base::ByteView value);
  void end_partition();
  // Puts the open data block into the file. `next` is the key that will follow, if any.
  void end_block(std::optional<base::ByteView> next);
  void end_filter(base::ByteView separator);
  void put_end(const base::Bytes& metadata);

  runtime::Task<base::Result<void>> write_out();
  runtime::Task<base::Result<void>> write_out_or_fail();
  runtime::Task<base::Result<void>> fail(base::Error error);
  runtime::Task<base::Result<void>> finish_file();

  runtime::Runtime& runtime_;
  const std::string path_;
  const Options options_;
  const FileId id_;
  const BlockSeal seal_;
  std::unique_ptr<runtime::File> file_;  // null once finished, failed or discarded
  std::optional<base::Error> fatal_error_;

  BlockEncoder encoder_;
  BlockBuilder block_{BlockBuilder::Shape{}};
  IndexBuilder index_;
  FilterBuilder filter_;
  BlockBuilder filter_index_{{.group_shift = 4, .tags = false}};
  base::Buffer payload_;
  base::Buffer separator_;
  base::Buffer out_;  // encoded, not yet written
  std::uint64_t file_size_ = 0;

  SstableStatistics statistics_;
  std::uint64_t block_first_ordinal_ = 0;
  std::uint64_t filter_first_ordinal_ = 0;
  base::Buffer last_key_;
  // The open partition.
  base::Buffer partition_;
  bool partition_in_filter_ = false;
  std::uint64_t partition_first_ordinal_ = 0;
  std::uint64_t partition_rows_ = 0;
  std::uint64_t partition_bytes_ = 0;
  base::Histogram partition_bytes_histogram_;
  base::Histogram partition_rows_histogram_;
};

}  // namespace helenus::storage
