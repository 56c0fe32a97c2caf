// SstableCursor: a cursor over one sstable. See cursor.h for the contract.
//
// It stands on a path of index nodes, one position in each, from the root to a data block. A motion
// inside the block touches only the block; one that leaves it climbs to the first node with a
// neighbouring child and goes down again. Going down needs blocks: from the cache, else from the
// window of bytes read ahead, else from the disk, and only then does the motion wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/entry/cursor.h"
#include "storage/sstable/block.h"
#include "storage/sstable/sstable_reader.h"

namespace helenus::storage {

class SstableCursor final : public Cursor {
 public:
  SstableCursor(std::shared_ptr<SstableReader> reader, SstableCursorOptions options);

  Motion seek(base::ByteView key) override { return start(Aim::at_or_after, key); }
  Motion seek_before(base::ByteView key) override { return start(Aim::before, key); }
  Motion seek_first() override { return start(Aim::first, {}); }
  Motion seek_last() override { return start(Aim::last, {}); }
  Motion next() override;
  Motion previous() override;

  base::Bytes share_value() const override { return entry_.value(); }
  // Of the entry it stands on.
  std::uint64_t ordinal() const { return first_ordinal_ + entry_.index(); }

 private:
  // Where to stand in the next block on the way down.
  enum class Aim : unsigned char { first, last, at_or_after, before };
  enum class Progress : unsigned char { arrived, must_read };

  struct Level {
    Block node;
    std::size_t position = 0;
  };

  Motion start(Aim aim, base::ByteView target);
  Motion go_on();
  runtime::Task<base::Result<void>> go_on_reading();
  // Goes down as far as memory allows.
  base::Result<Progress> walk();
  // The block that comes next on the way down. Requires: levels_known_ > 0.
  IndexEntry wanted() const;
  BlockKind wanted_kind() const;
  // Takes the wanted block into the path. True when the motion is over.
  base::Result<bool> take(const IndexEntry& from, const Block& block);
  bool take_data(const Block& block);
  // To the block before or behind; false if there is none.
  bool step(Aim aim);
  void arrive(std::size_t index);

  bool window_holds(const BlockHandle& handle) const;
  base::Result<Block> from_window(const BlockHandle& handle);
  runtime::Task<base::Result<Block>> read_wanted();
  std::size_t read_ahead_size(const BlockHandle& handle);

  std::shared_ptr<SstableReader> reader_;
  const SstableCursorOptions options_;
  std::vector<Level> path_;       // the root first
  std::size_t levels_known_ = 0;  // of the path, for the motion under way
  Aim aim_ = Aim::first;
  base::ByteView target_;  // of the motion under way; borrowed
  BlockCursor entry_;
  std::uint64_t first_ordinal_ = 0;  // of the block

  // Bytes of the file read ahead.
  base::Bytes window_;
  std::uint64_t window_offset_ = 0;
  std::size_t read_ahead_bytes_ = 0;    // at the next read
  std::optional<Aim> reading_towards_;  // the direction of the last steps, if any
};

}  // namespace helenus::storage
