// SstableReader: one sorted, immutable file, open for lookups and cursors.
//
// A lookup goes  filter ─▶ index root (both in memory) ─▶ index node ─▶ data block  and reads what
// is not in the block cache. When everything is, it neither waits nor allocates, and the value it
// returns is a slice that keeps its block alive.
//
// Absent is not unknown: a lookup that could not read what it needed is an error that names file
// and offset, never an empty answer.
//
// Ownership: shared by the tables that list it and the cursors over it; the file stays open, and so
// readable though it be unlinked, until the last of them lets go.
// Core affinity: belongs to the core that opened it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/maybe_task.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/entry/cursor.h"
#include "storage/sstable/block.h"
#include "storage/sstable/sstable_blocks.h"
#include "storage/sstable/sstable_filter.h"
#include "storage/sstable/sstable_format.h"

namespace helenus::storage {

// An entry that was found.
struct Found {
  base::Bytes value;
  // The entry's place among all of the file, from zero: what a side file knows it by.
  std::uint64_t ordinal = 0;
};

struct Lookup {
  std::optional<Found> found;
  bool ended_at_filter = false;
  std::uint32_t blocks_read = 0;
};

struct SstableCursorOptions {
  CacheUse cache_use = CacheUse::keep;
  // A cursor that goes through neighbouring blocks reads ahead, twice as much each time, from the
  // first to the second of these. Zero: one block at a time.
  std::size_t read_ahead_bytes_min = std::size_t{64} << 10;
  std::size_t read_ahead_bytes_max = std::size_t{512} << 10;
  runtime::Until until = {};
};

class SstableReader : public std::enable_shared_from_this<SstableReader> {
 public:
  using Options = SstableBlocks::Options;

  // Reads and checks what is kept in memory: footer, statistics, metadata, index root, filters.
  // Errors: corrupt, unsupported, and those of the file system; each names the file.
  static runtime::Task<base::Result<std::shared_ptr<SstableReader>>> open(runtime::Runtime& runtime,
                                                                          SstableShared& shared,
                                                                          std::string path,
                                                                          Options options,
                                                                          runtime::Until until);

  SstableReader(const SstableReader&) = delete;
  SstableReader& operator=(const SstableReader&) = delete;
  ~SstableReader() = default;

  const std::string& path() const { return blocks_->path(); }
  const FileId& id() const { return footer_.id; }
  std::uint64_t file_size() const { return blocks_->file_size(); }
  const SstableFooter& footer() const { return footer_; }
  const SstableStatistics& statistics() const { return statistics_; }
  // What the writer's caller gave to finish().
  const base::Bytes& metadata() const { return metadata_; }
  // Kept in memory as long as the file is open, besides the cache.
  std::size_t resident_bytes() const;
  // One for every stretch of keys; none in a file without filters.
  const std::vector<SstableFilter>& filters() const { return filters_; }
  // Of these, what filters take.
  std::size_t filter_bytes() const { return filter_bytes_; }

  // Looks the key up. The key is borrowed until the lookup is over.
  // Requires: hash == key_hash(key); the reader outlives the wait.
  // Errors: corrupt, unsupported, io_error, timeout, cancelled.
  runtime::MaybeTask<base::Result<Lookup>> get(base::ByteView key, std::uint64_t hash,
                                               const runtime::Until& until);

  // Whether this row, or any row of this partition, may be in the file: "no" is certain. Never
  // waits, never allocates. get() asks by itself; whoever would open a cursor may ask first.
  // Requires: hash == key_hash of the first argument.
  bool may_hold_row(base::ByteView key, std::uint64_t hash) const;
  bool may_hold_partition(base::ByteView partition, std::uint64_t hash) const;

  // A cursor that stands nowhere yet. It keeps the reader alive.
  std::unique_ptr<Cursor> cursor(SstableCursorOptions options);

 private:
  friend class SstableCursor;
  // The end of the file, read at once, as most of what open() needs lies there.
  struct Tail {
    std::uint64_t offset = 0;
    base::Bytes bytes;
  };

  explicit SstableReader(std::shared_ptr<SstableBlocks> blocks) : blocks_(std::move(blocks)) {}

  runtime::Task<base::Result<void>> load_resident(runtime::Until until);
  // Shares the memory of the tail, or of what it reads.
  runtime::Task<base::Result<base::Bytes>> load_payload(BlockKind kind, BlockHandle handle,
                                                        const Tail& tail, runtime::Until until);
  runtime::Task<base::Result<Block>> load_node(BlockKind kind, BlockHandle handle, const Tail& tail,
                                               runtime::Until until);
  runtime::Task<base::Result<void>> load_filters(const Tail& tail, runtime::Until until);
  base::Result<void> check_consistency() const;

  // The child of the node below which the key must be; none if the key is above all.
  static std::optional<IndexEntry> child_for(const Block& node, base::ByteView key);
  bool filters_allow_row(base::ByteView key, std::uint64_t hash) const;
  bool filters_allow_partition(base::ByteView partition, std::uint64_t hash) const;
  base::Error index_disagrees(const IndexEntry& entry) const;
  Lookup answer(const Block& block, const IndexEntry& entry, base::ByteView key, std::uint64_t hash,
                std::uint32_t blocks_read);
  // Goes on from a node or block that is not in memory, `nodes_above_data` levels above the data.
  runtime::Task<base::Result<Lookup>> get_reading(base::ByteView key, std::uint64_t hash,
                                                  IndexEntry entry, std::size_t nodes_above_data,
                                                  runtime::Until until);

  std::shared_ptr<SstableBlocks> blocks_;
  SstableFooter footer_;
  SstableStatistics statistics_;
  base::Bytes metadata_;
  Block root_;  // without entries if the file has none
  // One filter for each entry of its index; none in a file without filters.
  Block filter_index_;
  std::vector<SstableFilter> filters_;
  std::size_t filter_bytes_ = 0;
  mutable base::Buffer separator_;  // for looking at one; kept for its memory
};

}  // namespace helenus::storage
