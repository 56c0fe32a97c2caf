#include "storage/sstable/sstable_blocks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "storage/sstable/sstable_format.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

// Registered as long as it lives; wakes those who waited for it when it ends, however it ends.
class SstableBlocks::Loading {
 public:
  Loading(std::shared_ptr<SstableBlocks> blocks, std::uint64_t offset)
      : waiting(blocks->runtime_), blocks_(std::move(blocks)), offset_(offset) {
    blocks_->loading_.emplace(offset, this);
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;
  ~Loading() {
    blocks_->loading_.erase(offset_);
    if (!blocks_->runtime_.executor.halted()) waiting.wake_all();
  }

  runtime::WaitQueue waiting;

 private:
  std::shared_ptr<SstableBlocks> blocks_;
  std::uint64_t offset_;
};

Task<Result<std::shared_ptr<SstableBlocks>>> SstableBlocks::open(runtime::Runtime& runtime,
                                                                 SstableShared& shared,
                                                                 std::string path,
                                                                 Options options) {
  CO_TRY(auto file,
         co_await runtime.files.open(path, {.direct = options.direct, .random_access = true}));
  CO_TRY(const std::uint64_t size, co_await file->size());
  co_return std::make_shared<SstableBlocks>(runtime, shared, options, std::move(file), size);
}

SstableBlocks::SstableBlocks(runtime::Runtime& runtime, SstableShared& shared, Options options,
                             std::unique_ptr<runtime::File> file, std::uint64_t file_size)
    : runtime_(runtime),
      shared_(shared),
      options_(options),
      file_(std::move(file)),
      file_size_(file_size),
      number_(shared.cache.open_file()) {}

SstableBlocks::~SstableBlocks() {
  shared_.cache.close_file(number_);
}

Error SstableBlocks::at(BlockKind kind, std::uint64_t offset, Error error) const {
  return std::move(error).within(fmt::format("{}: {} at offset {}", path(), name_of(kind), offset));
}

// ---- reading

Task<Result<base::Bytes>> SstableBlocks::read(std::uint64_t offset, std::size_t size,
                                              runtime::Until until) {
  ASSERT(size > 0);
  const std::size_t alignment = options_.direct ? runtime::kDirectAlignment : 1;
  const std::uint64_t begin = offset / alignment * alignment;
  const std::uint64_t end = (offset + size + alignment - 1) / alignment * alignment;
  const auto wanted = static_cast<std::size_t>(end - begin);
  base::Buffer buffer(wanted, std::max(alignment, alignof(std::max_align_t)));
  const base::MutableByteView into = buffer.extend(wanted);
  const auto here = [&](Error error) {
    return std::move(error).within(
        fmt::format("{}: reading {} bytes at offset {}", path(), size, offset));
  };
  runtime::Permit permit;
  if (shared_.reads != nullptr) {
    permit = shared_.reads->try_acquire(1);
    if (permit.units() == 0) {
      ++shared_.counters.reads_delayed;
      auto turn = co_await shared_.reads->acquire(1, until);
      if (!turn) co_return here(std::move(turn).error());
      permit = *std::move(turn);
    }
  }
  ++shared_.counters.reads;
  auto got = co_await file_->read_at(begin, into, std::move(until));
  permit.release();
  if (!got) co_return here(std::move(got).error());
  if (begin + *got < offset + size) {
    co_return Error(Errc::corrupt, "{}: ends at {}, inside the {} bytes at offset {}", path(),
                    begin + *got, size, offset);
  }
  shared_.counters.bytes_read += *got;
  const base::Bytes bytes = std::move(buffer).freeze();
  co_return bytes.slice(static_cast<std::size_t>(offset - begin), size);
}

Task<Result<Block>> SstableBlocks::load(std::shared_ptr<SstableBlocks> self, BlockKind kind,
                                        BlockHandle handle, CacheUse cache_use,
                                        runtime::Until until) {
  // Another task may be reading this very block: wait for it, and read it only if that came to
  // nothing. That task's error is its own, as its deadline may have been.
  for (auto other = self->loading_.find(handle.offset); other != self->loading_.end();
       other = self->loading_.find(handle.offset)) {
    ++self->shared_.counters.reads_shared;
    CO_TRY_VOID(co_await other->second->waiting.wait(until));
    if (const Block* block = self->cached(handle); block != nullptr) co_return *block;
  }
  const Loading loading(self, handle.offset);
  auto frame = co_await self->read(handle.offset, handle.size, std::move(until));
  if (!frame) co_return std::move(frame).error();
  co_return self->decode_entries(kind, handle.offset, *frame, BlockDecoder::Memory::share,
                                 cache_use);
}

// ---- decoding

Result<base::Bytes> SstableBlocks::decode(BlockKind kind, std::uint64_t offset,
                                          const base::Bytes& frame, BlockDecoder::Memory memory) {
  auto payload = shared_.decoder.decode(seal_, kind, offset, frame, memory);
  if (!payload) return at(kind, offset, std::move(payload).error());
  return payload;
}

Result<Block> SstableBlocks::decode_entries(BlockKind kind, std::uint64_t offset,
                                            const base::Bytes& frame, BlockDecoder::Memory memory,
                                            CacheUse cache_use) {
  TRY(auto payload, decode(kind, offset, frame, memory));
  auto block = Block::open(std::move(payload));
  if (!block) return at(kind, offset, std::move(block).error());
  if (kind == BlockKind::data) {
    ++shared_.counters.data_blocks_read;
  } else {
    ++shared_.counters.index_blocks_read;
    if (auto checked = check_node(*block); !checked) {
      return at(kind, offset, std::move(checked).error());
    }
  }
  if (cache_use == CacheUse::keep) {
    shared_.cache.insert({.file = number_, .offset = offset}, *block);
  }
  return block;
}

Result<void> SstableBlocks::check_node(const Block& node) const {
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const base::ByteView value = node.value_view(i);
    if (value.size() != IndexEntry::kSize) {
      return Error(Errc::corrupt, "entry {} has {} bytes", i, value.size());
    }
    const BlockHandle handle = IndexEntry::decode(value.data()).handle;
    if (handle.offset < SstableHeader::kSize || handle.offset > blocks_end_ ||
        handle.size > blocks_end_ - handle.offset || handle.size <= kBlockFrameSize) {
      return Error(Errc::corrupt, "entry {} points to {} bytes at {}, outside the file", i,
                   handle.size, handle.offset);
    }
  }
  return {};
}

}  // namespace helenus::storage
