#include "storage/read/table_cursor.h"

#include <algorithm>
#include <string>
#include <utility>

namespace helenus::storage {

using base::Result;
using runtime::Task;

causality::PartitionStore assemble_row(base::ByteView row, Entry entry,
                                       const RowRangeDeletes& older,
                                       const RowRangeDeletes& active) {
  causality::PartitionStore partition;
  const auto key = base::Bytes::copy_of(row);
  if (!entry.row_deletes().empty()) {
    partition.absorb({causality::range_of_row(key), entry.row_deletes()});
  }
  partition.absorb(key, std::move(entry).take_row());
  older.add_to(partition, key);
  active.add_to(partition, key);
  return partition;
}

TableCursor::TableCursor(runtime::Gate::Pass pass, TableView view, KeyRange range,
                         causality::Clock clock, std::uint64_t clock_sequence,
                         SstableCursorOptions options)
    : pass_(std::move(pass)),
      view_(std::move(view)),
      range_(std::move(range)),
      clock_(std::move(clock)),
      clock_sequence_(clock_sequence),
      until_(options.until),
      older_may_have_ranges_(view_.older_may_have_ranges()),
      entries_(view_.entries(options)) {}

base::ByteView TableCursor::row_key() const {
  const RowKey key = entries_->key();
  return key_parts(key.bytes, key.partition_size).clustering;
}

Task<Result<void>> TableCursor::seek(base::Bytes partition, base::Bytes row) {
  if (partition < range_.from) co_return co_await seek_first();
  const std::string key = encode_key({partition, EntryKind::row, row});
  valid_ = false;
  CO_TRY_VOID(co_await seek_entries(base::as_bytes(key), Direction::forward));
  co_return co_await skip_to_row(Direction::forward);
}

Task<Result<void>> TableCursor::seek_before(base::Bytes partition, base::Bytes row) {
  if (range_.to && partition >= *range_.to) co_return co_await seek_last();
  const std::string key = encode_key({partition, EntryKind::row, row});
  valid_ = false;
  CO_TRY_VOID(co_await seek_entries(base::as_bytes(key), Direction::backward));
  co_return co_await skip_to_row(Direction::backward);
}

Task<Result<void>> TableCursor::seek_bound(base::Bytes bound) {
  valid_ = false;
  if (bound < range_.from) bound = range_.from;
  CO_TRY_VOID(co_await seek_entries(bound, Direction::forward));
  co_return co_await skip_to_row(Direction::forward);
}

Task<Result<void>> TableCursor::seek_before_bound(base::Bytes bound) {
  valid_ = false;
  if (range_.to && bound > *range_.to) bound = *range_.to;
  CO_TRY_VOID(co_await seek_entries(bound, Direction::backward));
  co_return co_await skip_to_row(Direction::backward);
}

Task<Result<void>> TableCursor::seek_last() {
  // No key of ours begins with so many of the largest byte that a longer bound were needed.
  if (!range_.to)
    return seek_before_bound(base::Bytes::copy_of(std::string(kRowKeySizeMax + 1, '\xff')));
  return seek_before_bound(*range_.to);
}

TableCursor::Motion TableCursor::seek_entries(base::ByteView key, Direction direction) {
  active_keys_ = view_.active().key_count();
  return direction == Direction::forward ? entries_->seek(key) : entries_->seek_before(key);
}

TableCursor::Motion TableCursor::step(Direction direction) {
  ASSERT(valid_);
  valid_ = false;
  Motion motion = step_entries(direction);
  if (!motion.ready()) return step_waiting(std::move(motion), direction);
  if (auto moved = std::move(motion).take(); !moved) return moved;
  return skip_to_row(direction);
}

Task<Result<void>> TableCursor::step_waiting(Motion motion, Direction direction) {
  CO_TRY_VOID(co_await std::move(motion));
  co_return co_await skip_to_row(direction);
}

bool TableCursor::at_row_or_end() {
  if (!entries_->valid() || !in_tablet()) return true;
  const RowKey key = entries_->key();
  return key_parts(key.bytes, key.partition_size).kind == EntryKind::row;
}

TableCursor::Motion TableCursor::skip_to_row(Direction direction) {
  if (!at_row_or_end()) return skip_to_row_waiting(direction);
  if (!entries_->valid() || !in_tablet()) return Result<void>();
  if (!ranges_loaded()) return skip_to_row_waiting(direction);
  arrive();
  return Result<void>();
}

Task<Result<void>> TableCursor::skip_to_row_waiting(Direction direction) {
  if (!at_row_or_end()) CO_TRY_VOID(co_await step_entries(direction));
  while (!at_row_or_end()) CO_TRY_VOID(co_await leave_ranges(direction));
  if (!entries_->valid() || !in_tablet()) co_return {};
  if (!ranges_loaded()) {
    CO_TRY_VOID(co_await older_ranges_.load_older(view_, partition(), row_key(), until_, trace_));
  }
  arrive();
  co_return {};
}

Task<Result<void>> TableCursor::leave_ranges(Direction direction) {
  // Behind them come the partition's rows, before them lies another partition.
  const bool forward = direction == Direction::forward;
  const std::string key =
      encode_key({partition(), forward ? EntryKind::row : EntryKind::deleted_ranges, {}});
  co_return co_await seek_entries(base::as_bytes(key), direction);
}

void TableCursor::arrive() {
  trace_.sequence = std::max(trace_.sequence, entries_->sequence());
  valid_ = true;
}

bool TableCursor::ranges_loaded() const {
  return !older_may_have_ranges_ || older_ranges_.serves(partition(), row_key());
}

bool TableCursor::in_tablet() const {
  return range_.contains(entries_->key().partition());
}

bool TableCursor::may_have_come_late() const {
  const bool stands_there = entries_->sources_here().front() == 0;
  return !stands_there && view_.active().key_count() != active_keys_;
}

Result<void> TableCursor::absorb_here(Entry& entry) {
  TRY_VOID(entries_->absorb_into(entry));
  trace_.sequence = std::max(trace_.sequence, entries_->sequence());
  if (may_have_come_late()) view_.absorb_active(entries_->key().bytes, entry, trace_);
  return {};
}

Task<Result<void>> TableCursor::seek_ranges(base::Bytes partition) {
  valid_ = false;
  ranges_of_ = std::move(partition);
  const std::string first = encode_key({ranges_of_, EntryKind::deleted_ranges, {}});
  co_return co_await seek_entries(base::as_bytes(first), Direction::forward);
}

bool TableCursor::at_ranges() const {
  if (valid_ || !entries_->valid()) return false;
  const RowKey key = entries_->key();
  return base::equal(key.partition(), ranges_of_) &&
         key_parts(key.bytes, key.partition_size).kind == EntryKind::deleted_ranges;
}

Result<Entry> TableCursor::ranges() {
  ASSERT(at_ranges());
  Entry entry;
  TRY_VOID(absorb_here(entry));
  return entry;
}

Result<Entry> TableCursor::row() {
  ASSERT(valid_);
  Entry entry;
  TRY_VOID(absorb_here(entry));
  return entry;
}

Result<const Entry*> TableCursor::look() {
  ASSERT(valid_);
  row_.clear();
  TRY_VOID(absorb_here(row_));
  return &row_;
}

Result<causality::PartitionStore> TableCursor::read() {
  TRY(auto entry, row());
  if (view_.active().has_ranges()) {
    active_ranges_.load_active(view_, partition(), row_key(), trace_);
  }
  return assemble_row(row_key(), std::move(entry), older_ranges_, active_ranges_);
}

}  // namespace helenus::storage
