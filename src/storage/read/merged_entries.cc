#include "storage/read/merged_entries.h"

#include <algorithm>
#include <utility>

namespace helenus::storage {

using base::Result;

std::uint64_t MergedEntries::sequence() const {
  std::uint64_t newest = 0;
  for (const std::size_t index : here_) newest = std::max(newest, sources_[index]->sequence());
  return newest;
}

Result<void> MergedEntries::absorb_into(Entry& entry) const {
  for (const std::size_t index : here_) TRY_VOID(sources_[index]->absorb_into(entry));
  return {};
}

MergedEntries::Motion MergedEntries::seek_all(base::ByteView key, Direction direction) {
  here_.clear();
  for (std::size_t index = 0; index < sources_.size(); ++index) {
    Motion motion = direction == Direction::forward ? sources_[index]->seek(key)
                                                    : sources_[index]->seek_before(key);
    if (!motion.ready()) return seek_rest(index, std::move(motion), key, direction);
    if (auto moved = std::move(motion).take(); !moved) return fail(std::move(moved).error());
  }
  skip_to_row(direction);
  return Result<void>();
}

runtime::Task<Result<void>> MergedEntries::seek_rest(std::size_t index, Motion motion,
                                                     base::ByteView key, Direction direction) {
  for (;;) {
    auto moved = co_await std::move(motion);
    if (!moved) co_return fail(std::move(moved).error());
    if (++index == sources_.size()) break;
    motion = direction == Direction::forward ? sources_[index]->seek(key)
                                             : sources_[index]->seek_before(key);
  }
  skip_to_row(direction);
  co_return {};
}

MergedEntries::Motion MergedEntries::step(Direction direction) {
  ASSERT(valid());
  if (direction != direction_) return turn(direction);
  for (std::size_t place = 0; place < here_.size(); ++place) {
    Motion motion = move(here_[place], direction);
    if (!motion.ready()) return step_rest(place, std::move(motion), direction);
    if (auto moved = std::move(motion).take(); !moved) return fail(std::move(moved).error());
  }
  if (!still_foremost(direction)) skip_to_row(direction);
  return Result<void>();
}

runtime::Task<Result<void>> MergedEntries::step_rest(std::size_t place, Motion motion,
                                                     Direction direction) {
  for (;;) {
    auto moved = co_await std::move(motion);
    if (!moved) co_return fail(std::move(moved).error());
    if (++place == here_.size()) break;
    motion = move(here_[place], direction);
  }
  skip_to_row(direction);
  co_return {};
}

MergedEntries::Motion MergedEntries::turn(Direction direction) {
  turning_at_.assign(base::as_text(key().bytes));
  Motion motion = seek_all(base::as_bytes(turning_at_), direction);
  if (!motion.ready()) return turn_rest(std::move(motion), direction);
  if (auto moved = std::move(motion).take(); !moved) return std::move(moved);
  return leave_turning_point(direction);
}

runtime::Task<Result<void>> MergedEntries::turn_rest(Motion motion, Direction direction) {
  CO_TRY_VOID(co_await std::move(motion));
  co_return co_await leave_turning_point(direction);
}

MergedEntries::Motion MergedEntries::leave_turning_point(Direction direction) {
  // Going back, a seek leads past the key; going forward, some stand on it still.
  if (!valid() || base::as_text(key().bytes) != turning_at_) return Result<void>();
  return step(direction);
}

MergedEntries::Motion MergedEntries::move(std::size_t index, Direction direction) {
  return direction == Direction::forward ? sources_[index]->next() : sources_[index]->previous();
}

bool MergedEntries::still_foremost(Direction direction) const {
  if (here_.size() != 1 || !sources_[here_.front()]->valid()) return false;
  if (next_ == kNone) return true;
  const auto order =
      base::compare(sources_[here_.front()]->key().bytes, sources_[next_]->key().bytes);
  return order != 0 && (order < 0) == (direction == Direction::forward);
}

void MergedEntries::skip_to_row(Direction direction) {
  direction_ = direction;
  here_.clear();
  next_ = kNone;
  base::ByteView foremost;
  base::ByteView following;
  const auto before = [direction](base::ByteView a, base::ByteView b) {
    return (base::compare(a, b) < 0) == (direction == Direction::forward);
  };
  for (std::size_t index = 0; index < sources_.size(); ++index) {
    if (!sources_[index]->valid()) continue;
    const base::ByteView key = sources_[index]->key().bytes;
    if (!here_.empty() && base::equal(key, foremost)) {
      here_.push_back(index);
    } else if (here_.empty() || before(key, foremost)) {
      if (!here_.empty()) {
        next_ = here_.front();
        following = foremost;
      }
      foremost = key;
      here_.assign(1, index);
    } else if (next_ == kNone || before(key, following)) {
      next_ = index;
      following = key;
    }
  }
}

Result<void> MergedEntries::fail(base::Error error) {
  here_.clear();
  return error;
}

}  // namespace helenus::storage
