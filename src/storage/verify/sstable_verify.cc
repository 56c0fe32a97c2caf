#include "storage/verify/sstable_verify.h"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "storage/manifest/knowledge.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/verify/entry_verify.h"

namespace helenus::storage {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

// Bytes of the file in order, read in large pieces.
class Sequence {
 public:
  explicit Sequence(std::shared_ptr<SstableBlocks> blocks) : blocks_(std::move(blocks)) {}

  std::uint64_t offset() const { return offset_; }
  void skip(std::size_t size) { offset_ += size; }

  // The next bytes, without passing them. Requires: they lie inside the file.
  Task<Result<Bytes>> peek(std::size_t size, Until until) {
    if (offset_ < window_offset_ || offset_ + size > window_offset_ + window_.size()) {
      const std::uint64_t left = blocks_->file_size() - offset_;
      const std::size_t wanted = std::max(size, kWindowSize);
      window_ = {};
      CO_TRY(window_, co_await blocks_->read(
                          offset_, static_cast<std::size_t>(std::min<std::uint64_t>(left, wanted)),
                          std::move(until)));
      window_offset_ = offset_;
    }
    co_return window_.slice(static_cast<std::size_t>(offset_ - window_offset_), size);
  }

 private:
  static constexpr std::size_t kWindowSize = std::size_t{1} << 20;

  std::shared_ptr<SstableBlocks> blocks_;
  std::uint64_t offset_ = 0;
  Bytes window_;
  std::uint64_t window_offset_ = 0;
};

// A block that no index node has named yet.
struct Unclaimed {
  BlockHandle handle;
  std::uint64_t first_ordinal = 0;
  Bytes first_key;
  Bytes last_key;
};

class Verifier {
 public:
  explicit Verifier(SstableReader& reader) : reader_(reader) {
    if (auto metadata = decode_sstable_metadata(reader.metadata())) {
      metadata_ = *std::move(metadata);
    }
  }

  // One block, in the order of the file.
  Result<void> take(const BlockHead& head, BlockHandle handle, const Block& block);
  Result<void> finish() const;

  std::uint64_t keys() const { return counted_.key_count; }
  bool checks_entries() const { return metadata_.has_value(); }

 private:
  Result<void> take_data(BlockHandle handle, const Block& block);
  Result<void> take_node(BlockHandle handle, const Block& node);
  void count_row(const RowKey& key, ByteView value);
  Result<void> check_counts() const;

  SstableReader& reader_;
  std::optional<SstableMetadata> metadata_;  // if it is the engine's
  EntryVerifier entries_;
  SstableStatistics counted_;
  base::Buffer last_key_;
  base::Buffer partition_;
  // By height above the data; the root ends up alone on top.
  std::array<std::deque<Unclaimed>, kIndexDepthMax + 1> unclaimed_;
};

Result<void> Verifier::take(const BlockHead& head, BlockHandle handle, const Block& block) {
  if (auto checked = block.check(); !checked) return checked;
  return head.kind == BlockKind::data ? take_data(handle, block) : take_node(handle, block);
}

void Verifier::count_row(const RowKey& key, ByteView value) {
  const bool same_partition =
      counted_.key_count > 0 && base::equal(partition_.view(), key.partition());
  if (!same_partition) {
    ++counted_.partition_count;
    partition_.clear();
    partition_.append(key.partition());
  }
  ++counted_.key_count;
  counted_.key_bytes += key.bytes.size();
  counted_.value_bytes += value.size();
  counted_.key_size_max = std::max<std::uint64_t>(counted_.key_size_max, key.bytes.size());
  counted_.value_size_max = std::max<std::uint64_t>(counted_.value_size_max, value.size());
}

Result<void> Verifier::take_data(BlockHandle handle, const Block& block) {
  if (block.entry_count() > kDataBlockEntriesMax) {
    return Error(Errc::corrupt, "holds {} keys, at most {} are allowed", block.entry_count(),
                 kDataBlockEntriesMax);
  }
  Unclaimed seen{
      .handle = handle, .first_ordinal = counted_.key_count, .first_key = {}, .last_key = {}};
  BlockCursor cursor;
  cursor.enter(block);
  for (std::size_t i = 0; i < block.entry_count(); ++i) {
    cursor.move_to(i);
    const RowKey key = cursor.key();
    if (i == 0) {
      if (counted_.key_count > 0 && base::compare(last_key_.view(), key.bytes) >= 0) {
        return Error(Errc::corrupt, "begins with a key that is not above the block before it");
      }
      if (counted_.key_count == 0) counted_.first_key = Bytes::copy_of(key.bytes);
      seen.first_key = Bytes::copy_of(key.bytes);
    }
    if (!reader_.may_hold_row(key.bytes, key_hash(key.bytes)) ||
        !reader_.may_hold_partition(key.partition(), key_hash(key.partition()))) {
      return Error(Errc::corrupt, "key {} of the block is denied by the filter", i);
    }
    if (metadata_) TRY_VOID(entries_.take(key, Bytes::copy_of(cursor.value_view())));
    count_row(key, cursor.value_view());
    if (i + 1 == block.entry_count()) {
      last_key_.clear();
      last_key_.append(key.bytes);
      seen.last_key = Bytes::copy_of(key.bytes);
    }
  }
  ++counted_.data_block_count;
  counted_.data_payload_bytes += block.payload().size();
  counted_.data_stored_bytes += handle.size;
  unclaimed_[0].push_back(std::move(seen));
  return {};
}

Result<void> Verifier::take_node(BlockHandle handle, const Block& node) {
  ++counted_.index_block_count;
  counted_.index_stored_bytes += handle.size;
  const auto child_at = [&](std::size_t i) {
    return IndexEntry::decode(node.value_view(i).data());
  };
  // The oldest unclaimed block of some height is its first child.
  std::size_t height = 0;
  while (height < kIndexDepthMax &&
         (unclaimed_[height].empty() || unclaimed_[height].front().handle != child_at(0).handle)) {
    ++height;
  }
  if (height == kIndexDepthMax) {
    return Error(Errc::corrupt, "its first child at {} is no block that waits for its node",
                 child_at(0).handle.offset);
  }
  std::deque<Unclaimed>& children = unclaimed_[height];
  Unclaimed seen = children.front();
  seen.handle = handle;
  base::Buffer scratch;
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const IndexEntry entry = child_at(i);
    const ByteView separator = node.key(i, scratch).bytes;
    if (children.empty() || children.front().handle != entry.handle ||
        children.front().first_ordinal != entry.first_ordinal) {
      return Error(Errc::corrupt, "entry {} is not the next block, or counts wrongly", i);
    }
    if (base::compare(separator, children.front().last_key) < 0) {
      return Error(Errc::corrupt, "separator {} is below its child's last key", i);
    }
    seen.last_key = Bytes::copy_of(separator);
    children.pop_front();
    if (!children.empty() && base::compare(separator, children.front().first_key) >= 0) {
      return Error(Errc::corrupt, "separator {} is not below the next child's first key", i);
    }
  }
  unclaimed_[height + 1].push_back(std::move(seen));
  return {};
}

Result<void> Verifier::check_counts() const {
  const SstableStatistics& claimed = reader_.statistics();
  const auto check = [](const char* what, std::uint64_t counted,
                        std::uint64_t stated) -> Result<void> {
    if (counted == stated) return {};
    return Error(Errc::corrupt, "state {} {}, the file has {}", stated, what, counted);
  };
  TRY_VOID(check("keys", counted_.key_count, claimed.key_count));
  TRY_VOID(check("partitions", counted_.partition_count, claimed.partition_count));
  TRY_VOID(check("bytes of keys", counted_.key_bytes, claimed.key_bytes));
  TRY_VOID(check("bytes of values", counted_.value_bytes, claimed.value_bytes));
  TRY_VOID(check("bytes in the largest key", counted_.key_size_max, claimed.key_size_max));
  TRY_VOID(check("bytes in the largest value", counted_.value_size_max, claimed.value_size_max));
  TRY_VOID(check("data blocks", counted_.data_block_count, claimed.data_block_count));
  TRY_VOID(check("bytes of data", counted_.data_payload_bytes, claimed.data_payload_bytes));
  TRY_VOID(check("bytes of stored data", counted_.data_stored_bytes, claimed.data_stored_bytes));
  TRY_VOID(check("index blocks", counted_.index_block_count, claimed.index_block_count));
  TRY_VOID(check("bytes of index", counted_.index_stored_bytes, claimed.index_stored_bytes));
  if (counted_.first_key != claimed.first_key || !base::equal(last_key_.view(), claimed.last_key)) {
    return Error(Errc::corrupt, "state other first and last keys than the file has");
  }
  return {};
}

Result<void> Verifier::finish() const {
  const std::size_t depth = reader_.statistics().index_depth;
  for (std::size_t height = 0; height < unclaimed_.size(); ++height) {
    const bool is_root = depth > 0 && height == depth;
    if (unclaimed_[height].size() == (is_root ? 1 : 0)) continue;
    return Error(Errc::corrupt, "{} blocks at height {} are in no index node",
                 unclaimed_[height].size(), height);
  }
  if (depth > 0 && unclaimed_[depth].front().handle != reader_.footer().root) {
    return Error(Errc::corrupt, "the footer names another root than the index has");
  }
  if (metadata_) TRY_VOID(entries_.check_counts(*metadata_));
  return check_counts();
}

// The next frame: checked, taken apart, and handed to the verifier.
Task<Result<void>> verify_block(Sequence& sequence, SstableBlocks& blocks, Verifier& verifier,
                                Until until) {
  const std::uint64_t offset = sequence.offset();
  const std::uint64_t left = blocks.blocks_end() - offset;
  const auto where = [&] { return fmt::format("{}: block at offset {}", blocks.path(), offset); };
  if (left < kBlockHeadSize) {
    co_return Error(Errc::corrupt, "{}: {} bytes are no block", where(), left);
  }
  CO_TRY(const Bytes head_bytes, co_await sequence.peek(kBlockHeadSize, until));
  auto head = BlockHead::decode(head_bytes);
  if (!head) co_return std::move(head).error().within(where());
  const std::uint64_t size = std::uint64_t{head->stored_size} + kBlockFrameSize;
  if (size > left) {
    co_return Error(Errc::corrupt, "{}: {} bytes reach into the footer", where(), size);
  }
  CO_TRY(const Bytes frame, co_await sequence.peek(static_cast<std::size_t>(size), until));
  sequence.skip(frame.size());
  const BlockHandle handle{.offset = offset, .size = static_cast<std::uint32_t>(size)};
  if (head->kind != BlockKind::data && head->kind != BlockKind::index) {
    const auto payload = blocks.decode(head->kind, offset, frame, BlockDecoder::Memory::copy);
    if (!payload) co_return payload.error();
    co_return {};
  }
  CO_TRY(const Block block, blocks.decode_entries(head->kind, offset, frame,
                                                  BlockDecoder::Memory::copy, CacheUse::bypass));
  auto taken = verifier.take(*head, handle, block);
  if (!taken) co_return blocks.at(head->kind, offset, std::move(taken).error());
  co_return {};
}

}  // namespace

Task<Result<VerifyProgress>> verify_sstable(runtime::Runtime& runtime, SstableShared& shared,
                                            std::string path, OnVerifyProgress on_progress,
                                            Until until) {
  constexpr std::uint64_t kProgressBytes = std::uint64_t{1} << 20;
  CO_TRY(const auto reader, co_await SstableReader::open(runtime, shared, path, {}, until));
  CO_TRY(const auto blocks, co_await SstableBlocks::open(runtime, shared, path, {}));
  blocks->set_identity(reader->id(), reader->file_size() - SstableFooter::kSize);
  Sequence sequence(blocks);
  Verifier verifier(*reader);
  VerifyProgress progress;
  progress.bytes_total = reader->file_size();
  progress.entries_checked = verifier.checks_entries();
  std::uint64_t told_at = 0;

  CO_TRY(const Bytes header_bytes, co_await sequence.peek(SstableHeader::kSize, until));
  auto header = SstableHeader::decode(header_bytes);
  if (!header) {
    co_return std::move(header).error().within(fmt::format("{}: header at offset 0", path));
  }
  if (header->id != reader->id()) {
    co_return Error(Errc::corrupt, "{}: header at offset 0 names another file than the footer",
                    path);
  }
  sequence.skip(SstableHeader::kSize);
  while (sequence.offset() < blocks->blocks_end()) {
    CO_TRY_VOID(co_await verify_block(sequence, *blocks, verifier, until));
    ++progress.blocks;
    progress.bytes_done = sequence.offset();
    progress.keys = verifier.keys();
    if (progress.bytes_done - told_at >= kProgressBytes) {
      told_at = progress.bytes_done;
      if (on_progress) on_progress(progress);
    }
  }
  if (auto finished = verifier.finish(); !finished) {
    co_return blocks->at(BlockKind::statistics, reader->footer().statistics.offset,
                         std::move(finished).error());
  }
  progress.bytes_done = progress.bytes_total;
  if (on_progress) on_progress(progress);
  co_return progress;
}

}  // namespace helenus::storage
