#include "storage/sstable/sstable_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "storage/sstable/sstable_cursor.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

// ---- opening

Task<Result<std::shared_ptr<SstableReader>>> SstableReader::open(runtime::Runtime& runtime,
                                                                 SstableShared& shared,
                                                                 std::string path, Options options,
                                                                 Until until) {
  CO_TRY(auto blocks, co_await SstableBlocks::open(runtime, shared, std::move(path), options));
  const std::shared_ptr<SstableReader> reader(
      std::unique_ptr<SstableReader>(new SstableReader(std::move(blocks))));
  CO_TRY_VOID(co_await reader->load_resident(std::move(until)));
  co_return reader;
}

Task<Result<void>> SstableReader::load_resident(Until until) {
  constexpr std::uint64_t kTailSize = std::uint64_t{64} << 10;
  const std::uint64_t size = blocks_->file_size();
  if (size < SstableHeader::kSize + SstableFooter::kSize) {
    co_return Error(Errc::corrupt, "{}: ends at offset {}, too short for an sstable", path(), size);
  }
  Tail tail;
  tail.offset = size - std::min(size, kTailSize);
  CO_TRY(tail.bytes,
         co_await blocks_->read(tail.offset, static_cast<std::size_t>(size - tail.offset), until));
  auto footer =
      SstableFooter::decode(tail.bytes.view().subspan(tail.bytes.size() - SstableFooter::kSize));
  const std::uint64_t footer_offset = size - SstableFooter::kSize;
  if (!footer) {
    co_return std::move(footer).error().within(
        fmt::format("{}: footer at offset {}", path(), footer_offset));
  }
  if (footer->file_size != size) {
    co_return Error(Errc::corrupt, "{}: footer at offset {}: claims {} bytes, the file has {}",
                    path(), footer_offset, footer->file_size, size);
  }
  footer_ = *footer;
  blocks_->set_identity(footer_.id, footer_offset);

  CO_TRY(const auto encoded,
         co_await load_payload(BlockKind::statistics, footer_.statistics, tail, until));
  auto statistics = SstableStatistics::decode(encoded);
  if (!statistics) {
    co_return blocks_->at(BlockKind::statistics, footer_.statistics.offset,
                          std::move(statistics).error());
  }
  statistics_ = *std::move(statistics);
  if (footer_.metadata.size > 0) {
    CO_TRY(const auto metadata,
           co_await load_payload(BlockKind::metadata, footer_.metadata, tail, until));
    metadata_ = base::Bytes::copy_of(metadata);
  }
  if (footer_.root.size > 0) {
    CO_TRY(root_, co_await load_node(BlockKind::index, footer_.root, tail, until));
  }
  if (footer_.filter_index.size > 0) CO_TRY_VOID(co_await load_filters(tail, until));
  co_return check_consistency();
}

Task<Result<void>> SstableReader::load_filters(const Tail& tail, Until until) {
  CO_TRY(filter_index_,
         co_await load_node(BlockKind::filter_index, footer_.filter_index, tail, until));
  std::uint64_t hashes = 0;
  for (std::size_t i = 0; i < filter_index_.entry_count(); ++i) {
    const BlockHandle handle = IndexEntry::decode(filter_index_.value_view(i).data()).handle;
    CO_TRY(const auto encoded, co_await load_payload(BlockKind::filter, handle, tail, until));
    auto filter = SstableFilter::decode(encoded);
    if (!filter) {
      co_return blocks_->at(BlockKind::filter, handle.offset, std::move(filter).error());
    }
    hashes += filter->hash_count();
    filter_bytes_ += sizeof *filter + filter->memory_bytes();
    filters_.push_back(*std::move(filter));
  }
  if (hashes != statistics_.filter_hash_count) {
    co_return blocks_->at(BlockKind::filter_index, footer_.filter_index.offset,
                          Error(Errc::corrupt, "filters hold {} hashes, the statistics say {}",
                                hashes, statistics_.filter_hash_count));
  }
  co_return {};
}

Result<void> SstableReader::check_consistency() const {
  const bool empty = statistics_.key_count == 0;
  if (empty != (root_.entry_count() == 0) || empty != (statistics_.index_depth == 0)) {
    return blocks_->at(BlockKind::statistics, footer_.statistics.offset,
                       Error(Errc::corrupt, "{} keys under an index of {} levels",
                             statistics_.key_count, statistics_.index_depth));
  }
  return {};
}

Task<Result<base::Bytes>> SstableReader::load_payload(BlockKind kind, BlockHandle handle,
                                                      const Tail& tail, Until until) {
  base::Bytes frame;
  if (handle.offset >= tail.offset) {
    frame = tail.bytes.slice(static_cast<std::size_t>(handle.offset - tail.offset), handle.size);
  } else {
    CO_TRY(frame, co_await blocks_->read(handle.offset, handle.size, std::move(until)));
  }
  co_return blocks_->decode(kind, handle.offset, frame, BlockDecoder::Memory::share);
}

Task<Result<Block>> SstableReader::load_node(BlockKind kind, BlockHandle handle, const Tail& tail,
                                             Until until) {
  base::Bytes frame;
  if (handle.offset >= tail.offset) {
    frame = tail.bytes.slice(static_cast<std::size_t>(handle.offset - tail.offset), handle.size);
  } else {
    CO_TRY(frame, co_await blocks_->read(handle.offset, handle.size, std::move(until)));
  }
  co_return blocks_->decode_entries(kind, handle.offset, frame, BlockDecoder::Memory::copy,
                                    CacheUse::bypass);
}

std::size_t SstableReader::resident_bytes() const {
  return sizeof *this + root_.payload().size() + metadata_.size() + filter_index_.payload().size() +
         filter_bytes_;
}

// ---- filters

bool SstableReader::may_hold_row(ByteView key, std::uint64_t hash) const {
  ASSERT_SLOW(hash == key_hash(key));
  if (root_.entry_count() == 0) return false;
  const bool may = filters_allow_row(key, hash);
  blocks_->shared().counters.filter_negatives += may ? 0 : 1;
  return may;
}

bool SstableReader::may_hold_partition(ByteView partition, std::uint64_t hash) const {
  ASSERT_SLOW(hash == key_hash(partition));
  if (root_.entry_count() == 0) return false;
  const bool may = filters_allow_partition(partition, hash);
  blocks_->shared().counters.filter_negatives += may ? 0 : 1;
  return may;
}

bool SstableReader::filters_allow_row(ByteView key, std::uint64_t hash) const {
  if (filters_.size() <= 1) return filters_.empty() || filters_.front().may_contain(hash);
  const std::size_t stretch = filter_index_.lower_bound(key);
  return stretch < filters_.size() && filters_[stretch].may_contain(hash);
}

bool SstableReader::filters_allow_partition(ByteView partition, std::uint64_t hash) const {
  if (filters_.size() <= 1) return filters_.empty() || filters_.front().may_contain(hash);
  for (std::size_t stretch = filter_index_.lower_bound(partition); stretch < filters_.size();
       ++stretch) {
    if (filters_[stretch].may_contain(hash)) return true;
    // The rows of the partition may begin in the next stretch only if this one ends inside it: a
    // separator may lie above the last key of its stretch and yet begin as the partition does.
    const ByteView end = filter_index_.key(stretch, separator_).bytes;
    if (end.size() < partition.size() || !base::equal(end.first(partition.size()), partition)) {
      return false;
    }
  }
  return false;
}

// ---- looking up

std::optional<IndexEntry> SstableReader::child_for(const Block& node, ByteView key) {
  const std::size_t position = node.lower_bound(key);
  if (position == node.entry_count()) return std::nullopt;
  return IndexEntry::decode(node.value_view(position).data());
}

Error SstableReader::index_disagrees(const IndexEntry& entry) const {
  return blocks_->at(BlockKind::index, entry.handle.offset,
                     Error(Errc::corrupt, "ends before the key that the node above it promises"));
}

Lookup SstableReader::answer(const Block& block, const IndexEntry& entry, ByteView key,
                             std::uint64_t hash, std::uint32_t blocks_read) {
  const std::optional<std::size_t> index = block.find(key, hash);
  SstableCounters& counters = blocks_->shared().counters;
  if (!index.has_value()) {
    counters.filter_false_positives += filters_.empty() ? 0 : 1;
    return {.found = {}, .blocks_read = blocks_read};
  }
  counters.filter_positives += filters_.empty() ? 0 : 1;
  return {.found = Found{.value = block.value(*index), .ordinal = entry.first_ordinal + *index},
          .blocks_read = blocks_read};
}

runtime::MaybeTask<Result<Lookup>> SstableReader::get(ByteView key, std::uint64_t hash,
                                                      const Until& until) {
  ASSERT_SLOW(hash == key_hash(key));
  if (root_.entry_count() == 0) return Result<Lookup>(Lookup{});
  if (!may_hold_row(key, hash)) {
    return Result<Lookup>(Lookup{.found = {}, .ended_at_filter = true});
  }
  std::optional<IndexEntry> entry = child_for(root_, key);
  if (!entry.has_value()) {
    blocks_->shared().counters.filter_false_positives += filters_.empty() ? 0 : 1;
    return Result<Lookup>(Lookup{});
  }
  for (std::size_t nodes_above_data = statistics_.index_depth - 1;; --nodes_above_data) {
    const Block* block = blocks_->cached(entry->handle);
    if (block == nullptr) return get_reading(key, hash, *entry, nodes_above_data, until);
    if (nodes_above_data == 0) return Result<Lookup>(answer(*block, *entry, key, hash, 0));
    const std::optional<IndexEntry> child = child_for(*block, key);
    if (!child.has_value()) return Result<Lookup>(index_disagrees(*entry));
    entry = child;
  }
}

Task<Result<Lookup>> SstableReader::get_reading(ByteView key, std::uint64_t hash, IndexEntry entry,
                                                std::size_t nodes_above_data, Until until) {
  std::uint32_t blocks_read = 0;
  for (;; --nodes_above_data) {
    Block block;
    if (const Block* cached = blocks_->cached(entry.handle); cached != nullptr) {
      block = *cached;
    } else {
      const BlockKind kind = nodes_above_data == 0 ? BlockKind::data : BlockKind::index;
      CO_TRY(block,
             co_await SstableBlocks::load(blocks_, kind, entry.handle, CacheUse::keep, until));
      ++blocks_read;
    }
    if (nodes_above_data == 0) co_return answer(block, entry, key, hash, blocks_read);
    const std::optional<IndexEntry> child = child_for(block, key);
    if (!child.has_value()) co_return index_disagrees(entry);
    entry = *child;
  }
}

std::unique_ptr<Cursor> SstableReader::cursor(SstableCursorOptions options) {
  return std::make_unique<SstableCursor>(shared_from_this(), std::move(options));
}

}  // namespace helenus::storage
