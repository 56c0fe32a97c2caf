// MergedEntries: several sources as one sorted run. Where more than one of them has a key, its
// entry is the merge of what they have: that is how a read sees a table, and what a compaction
// writes.
//
// All sources are merged, always: the newest need not have the latest version (theory §6).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/task.h"
#include "storage/read/entry_source.h"

namespace helenus::storage {

class MergedEntries final : public EntrySource {
 public:
  explicit MergedEntries(std::vector<std::unique_ptr<EntrySource>> sources)
      : sources_(std::move(sources)) {}

  Motion seek(base::ByteView key) override { return seek_all(key, Direction::forward); }
  Motion seek_before(base::ByteView key) override { return seek_all(key, Direction::backward); }
  Motion next() override { return step(Direction::forward); }
  Motion previous() override { return step(Direction::backward); }

  bool valid() const override { return !here_.empty(); }
  RowKey key() const override { return sources_[here_.front()]->key(); }
  std::uint64_t sequence() const override;
  base::Result<void> absorb_into(Entry& entry) const override;

  // The sources that have the key, ascending. Requires: valid().
  const std::vector<std::size_t>& sources_here() const { return here_; }

 private:
  enum class Direction : unsigned char { forward, backward };

  Motion seek_all(base::ByteView key, Direction direction);
  Motion step(Direction direction);
  // Steps against the direction of the last motion: the sources that do not have the key stand
  // beyond it, and must come back first.
  Motion turn(Direction direction);
  runtime::Task<base::Result<void>> turn_rest(Motion motion, Direction direction);
  Motion leave_turning_point(Direction direction);
  // Moves on from source `index`; `motion` is that one's, under way.
  runtime::Task<base::Result<void>> seek_rest(std::size_t index, Motion motion, base::ByteView key,
                                              Direction direction);
  runtime::Task<base::Result<void>> step_rest(std::size_t place, Motion motion,
                                              Direction direction);
  Motion move(std::size_t index, Direction direction);
  // Finds the foremost key, who has it, and who comes next.
  void skip_to_row(Direction direction);
  // Whether the only source that had the last key is foremost again: the others have not moved, so
  // it is enough to ask the one that came next. Settles nothing otherwise.
  bool still_foremost(Direction direction) const;
  base::Result<void> fail(base::Error error);

  std::vector<std::unique_ptr<EntrySource>> sources_;
  static constexpr std::size_t kNone = SIZE_MAX;

  std::vector<std::size_t> here_;
  std::size_t next_ = kNone;  // has the foremost key of those that are not here
  Direction direction_ = Direction::forward;
  std::string turning_at_;
};

}  // namespace helenus::storage
