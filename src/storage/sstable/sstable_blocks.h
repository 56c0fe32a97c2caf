// SstableBlocks: the blocks of one open file, from the cache or from the disk, checked.
//
// Whatever cannot be read or fails a check is an error that names the file, the kind of block and
// its offset. Several tasks that want the same absent block read it once.
//
// Core affinity: belongs to the core that opened it, with everything it shares there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <absl/container/flat_hash_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "runtime/wait_queue.h"
#include "storage/sstable/block.h"
#include "storage/sstable/block_cache.h"
#include "storage/sstable/block_codec.h"

namespace helenus::storage {

struct SstableCounters {
  std::uint64_t data_blocks_read = 0;
  std::uint64_t index_blocks_read = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t reads = 0;                   // requests to the file system
  std::uint64_t reads_delayed = 0;           // that waited for their turn
  std::uint64_t reads_shared = 0;            // waits for a block that another task was reading
  std::uint64_t filter_negatives = 0;        // lookups and cursors that filters spared
  std::uint64_t filter_positives = 0;        // lookups that went on and found the key
  std::uint64_t filter_false_positives = 0;  // lookups and cursors that went on in vain
};

// What all sstables open on one core share. Outlives them.
struct SstableShared {
  explicit SstableShared(std::size_t cache_bytes_max) : cache(cache_bytes_max) {}

  BlockCache cache;
  BlockDecoder decoder;
  SstableCounters counters;
  // Whoever reads a file takes a unit of it meanwhile; null: as many as want to, at once.
  runtime::Semaphore* reads = nullptr;
};

enum class CacheUse : unsigned char {
  keep,    // what is read is kept in the cache
  bypass,  // what is there is used, what is read is not kept: for compactions
};

class SstableBlocks {
 public:
  struct Options {
    // Reads past the page cache, so that nothing is in memory twice.
    bool direct = false;
  };

  // Errors: those of the file system.
  static runtime::Task<base::Result<std::shared_ptr<SstableBlocks>>> open(runtime::Runtime& runtime,
                                                                          SstableShared& shared,
                                                                          std::string path,
                                                                          Options options);

  SstableBlocks(runtime::Runtime& runtime, SstableShared& shared, Options options,
                std::unique_ptr<runtime::File> file, std::uint64_t file_size);
  SstableBlocks(const SstableBlocks&) = delete;
  SstableBlocks& operator=(const SstableBlocks&) = delete;
  ~SstableBlocks();

  const std::string& path() const { return file_->path(); }
  std::uint64_t file_size() const { return file_size_; }
  SstableShared& shared() { return shared_; }
  // Before anything is decoded: which file this is, and where its blocks end.
  void set_identity(const FileId& id, std::uint64_t blocks_end) {
    seal_ = BlockSeal(id);
    blocks_end_ = blocks_end;
  }
  std::uint64_t blocks_end() const { return blocks_end_; }

  // Null if it is not in memory. The pointer lives until the next block is decoded on this core.
  const Block* cached(const BlockHandle& handle) {
    return shared_.cache.find({.file = number_, .offset = handle.offset});
  }
  // Reads a block of entries (data or index) that is not in memory.
  // Errors: corrupt, unsupported, io_error, timeout, cancelled.
  static runtime::Task<base::Result<Block>> load(std::shared_ptr<SstableBlocks> self,
                                                 BlockKind kind, BlockHandle handle,
                                                 CacheUse cache_use, runtime::Until until);
  // Exactly these bytes. Errors: corrupt if the file ends before.
  runtime::Task<base::Result<base::Bytes>> read(std::uint64_t offset, std::size_t size,
                                                runtime::Until until);

  // Checks and unpacks a frame that was read from `offset`.
  base::Result<base::Bytes> decode(BlockKind kind, std::uint64_t offset, const base::Bytes& frame,
                                   BlockDecoder::Memory memory);
  // The same for a block of entries; an index node's entries are checked, too.
  base::Result<Block> decode_entries(BlockKind kind, std::uint64_t offset, const base::Bytes& frame,
                                     BlockDecoder::Memory memory, CacheUse cache_use);

  // Says where: "path: data block at offset 4096: ...".
  base::Error at(BlockKind kind, std::uint64_t offset, base::Error error) const;

 private:
  // A block that is being read, in the frame of the task that reads it.
  class Loading;

  base::Result<void> check_node(const Block& node) const;

  runtime::Runtime& runtime_;
  SstableShared& shared_;
  const Options options_;
  std::unique_ptr<runtime::File> file_;
  const std::uint64_t file_size_;
  std::uint64_t blocks_end_ = 0;
  BlockSeal seal_;
  const std::uint64_t number_;                            // in the cache
  absl::flat_hash_map<std::uint64_t, Loading*> loading_;  // by offset; never iterated
};

}  // namespace helenus::storage
