#include "storage/sstable/sstable_cursor.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

SstableCursor::SstableCursor(std::shared_ptr<SstableReader> reader, SstableCursorOptions options)
    : reader_(std::move(reader)),
      options_(std::move(options)),
      path_(reader_->statistics().index_depth) {
  if (!path_.empty()) path_.front().node = reader_->root_;
}

// ---- motions

Cursor::Motion SstableCursor::start(Aim aim, ByteView target) {
  stand_nowhere();
  reading_towards_.reset();
  if (path_.empty()) return Result<void>{};
  aim_ = aim;
  target_ = target;
  levels_known_ = 0;
  auto over = take({}, path_.front().node);
  if (!over) return Result<void>(std::move(over).error());
  return *over ? Motion(Result<void>{}) : go_on();
}

Cursor::Motion SstableCursor::next() {
  ASSERT(valid());
  if (const std::size_t index = entry_.index() + 1; index < entry_.block().entry_count()) {
    arrive(index);
    return Result<void>{};
  }
  return step(Aim::first) ? go_on() : Motion(Result<void>{});
}

Cursor::Motion SstableCursor::previous() {
  ASSERT(valid());
  if (entry_.index() > 0) {
    arrive(entry_.index() - 1);
    return Result<void>{};
  }
  return step(Aim::last) ? go_on() : Motion(Result<void>{});
}

Cursor::Motion SstableCursor::go_on() {
  auto progress = walk();
  if (!progress) return Result<void>(std::move(progress).error());
  if (*progress == Progress::arrived) return Result<void>{};
  return go_on_reading();
}

Task<Result<void>> SstableCursor::go_on_reading() {
  for (;;) {
    const IndexEntry from = wanted();
    CO_TRY(const Block block, co_await read_wanted());
    CO_TRY(const bool over, take(from, block));
    if (over) co_return {};
    CO_TRY(const Progress progress, walk());
    if (progress == Progress::arrived) co_return {};
  }
}

// ---- the way down

IndexEntry SstableCursor::wanted() const {
  const Level& level = path_[levels_known_ - 1];
  return IndexEntry::decode(level.node.value_view(level.position).data());
}

BlockKind SstableCursor::wanted_kind() const {
  return levels_known_ == path_.size() ? BlockKind::data : BlockKind::index;
}

Result<SstableCursor::Progress> SstableCursor::walk() {
  for (;;) {
    const IndexEntry from = wanted();
    Block block;
    if (const Block* cached = reader_->blocks_->cached(from.handle); cached != nullptr) {
      block = *cached;
    } else if (window_holds(from.handle)) {
      TRY(block, from_window(from.handle));
    } else {
      return Progress::must_read;
    }
    TRY(const bool over, take(from, block));
    if (over) return Progress::arrived;
  }
}

Result<bool> SstableCursor::take(const IndexEntry& from, const Block& block) {
  if (levels_known_ == path_.size()) {
    first_ordinal_ = from.first_ordinal;
    return take_data(block);
  }
  const std::size_t last = block.entry_count() - 1;
  std::size_t position = 0;
  switch (aim_) {
    case Aim::first:
      break;
    case Aim::last:
      position = last;
      break;
    case Aim::at_or_after:
      position = block.lower_bound(target_);
      if (position > last) {
        if (levels_known_ == 0) return true;  // above everything: the cursor stands nowhere
        return reader_->index_disagrees(from);
      }
      break;
    case Aim::before:
      position = std::min(block.lower_bound(target_), last);
      break;
  }
  Level& level = path_[levels_known_++];
  if (levels_known_ > 1) level.node = block;
  level.position = position;
  return false;
}

bool SstableCursor::take_data(const Block& block) {
  entry_.enter(block);
  const std::size_t count = block.entry_count();
  switch (aim_) {
    case Aim::first:
      arrive(0);
      return true;
    case Aim::last:
      arrive(count - 1);
      return true;
    case Aim::at_or_after: {
      const std::size_t index = block.lower_bound(target_);
      if (index == count) return !step(Aim::first);
      arrive(index);
      return true;
    }
    case Aim::before: {
      const std::size_t index = block.lower_bound(target_);
      if (index == 0) return !step(Aim::last);
      arrive(index - 1);
      return true;
    }
  }
  UNREACHABLE();
}

bool SstableCursor::step(Aim aim) {
  stand_nowhere();
  const bool forward = aim == Aim::first;
  aim_ = aim;
  if (reading_towards_ != aim) {
    reading_towards_ = aim;
    read_ahead_bytes_ = 0;
  }
  for (std::size_t level = path_.size(); level > 0; --level) {
    Level& above = path_[level - 1];
    const std::size_t edge = forward ? above.node.entry_count() - 1 : 0;
    if (above.position == edge) continue;
    above.position = forward ? above.position + 1 : above.position - 1;
    levels_known_ = level;
    return true;
  }
  return false;
}

void SstableCursor::arrive(std::size_t index) {
  entry_.move_to(index);
  stand_on(entry_.key(), entry_.value_view());
}

// ---- reading

bool SstableCursor::window_holds(const BlockHandle& handle) const {
  return handle.offset >= window_offset_ &&
         handle.offset + handle.size <= window_offset_ + window_.size();
}

Result<Block> SstableCursor::from_window(const BlockHandle& handle) {
  const base::Bytes frame =
      window_.slice(static_cast<std::size_t>(handle.offset - window_offset_), handle.size);
  return reader_->blocks_->decode_entries(wanted_kind(), handle.offset, frame,
                                          BlockDecoder::Memory::copy, options_.cache_use);
}

// How much to read for this block: it alone at first, then more with every step in one direction.
std::size_t SstableCursor::read_ahead_size(const BlockHandle& handle) {
  if (!reading_towards_.has_value() || options_.read_ahead_bytes_max == 0) return handle.size;
  read_ahead_bytes_ =
      std::clamp(read_ahead_bytes_ * 2, options_.read_ahead_bytes_min,
                 std::max(options_.read_ahead_bytes_min, options_.read_ahead_bytes_max));
  return std::max<std::size_t>(read_ahead_bytes_, handle.size);
}

Task<Result<Block>> SstableCursor::read_wanted() {
  const BlockHandle handle = wanted().handle;
  const std::size_t size = read_ahead_size(handle);
  if (size <= handle.size) {
    co_return co_await SstableBlocks::load(reader_->blocks_, wanted_kind(), handle,
                                           options_.cache_use, options_.until);
  }
  std::uint64_t begin = handle.offset;
  std::uint64_t end = handle.offset + handle.size;
  if (reading_towards_ == Aim::first) {
    end = std::min<std::uint64_t>(begin + size, reader_->blocks_->blocks_end());
  } else {
    begin = end - std::min<std::uint64_t>(size, end - SstableHeader::kSize);
  }
  window_ = {};
  CO_TRY(window_, co_await reader_->blocks_->read(begin, static_cast<std::size_t>(end - begin),
                                                  options_.until));
  window_offset_ = begin;
  co_return from_window(handle);
}

}  // namespace helenus::storage
