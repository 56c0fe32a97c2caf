#include "storage/log/log_needs.h"

#include <algorithm>

#include "base/assert.h"

namespace helenus::storage {

void LogNeeds::begin_segment(SegmentId segment) {
  ASSERT(segments_.empty() || segments_.back().id < segment);
  segments_.push_back({.id = segment, .last_offset = {}});
  last_slot_ = nullptr;
}

void LogNeeds::recorded(TableId table, LogPosition position) {
  ASSERT(!segments_.empty() && position.segment == segments_.back().id);
  if (last_slot_ == nullptr || table != last_table_) {
    last_slot_ = &segments_.back().last_offset[table];
    last_table_ = table;
  }
  *last_slot_ = position.offset;
}

void LogNeeds::needed_from(TableId table, LogPosition position) {
  LogPosition& known = needed_from_[table];
  known = std::max(known, position);
}

void LogNeeds::forget_table(TableId table) {
  for (Segment& segment : segments_) segment.last_offset.erase(table);
  needed_from_.erase(table);
  last_slot_ = nullptr;
}

bool LogNeeds::needs(TableId table, LogPosition last) const {
  const auto from = needed_from_.find(table);
  return from == needed_from_.end() || last >= from->second;
}

const LogNeeds::Segment* LogNeeds::find(SegmentId segment) const {
  const auto at = std::ranges::lower_bound(segments_, segment, {}, &Segment::id);
  return at == segments_.end() || at->id != segment ? nullptr : &*at;
}

bool LogNeeds::needed(SegmentId segment) const {
  const Segment* found = find(segment);
  return found != nullptr && std::ranges::any_of(found->last_offset, [&](const auto& entry) {
           return needs(entry.first, {segment, entry.second});
         });
}

std::vector<TableId> LogNeeds::tables_needing(SegmentId segment) const {
  std::vector<TableId> tables;
  const Segment* found = find(segment);
  if (found == nullptr) return tables;
  for (const auto& [table, offset] : found->last_offset) {
    if (needs(table, {segment, offset})) tables.push_back(table);
  }
  std::ranges::sort(tables);
  return tables;
}

void LogNeeds::drop_segment(SegmentId segment) {
  const auto at = std::ranges::lower_bound(segments_, segment, {}, &Segment::id);
  if (at == segments_.end() || at->id != segment) return;
  segments_.erase(at);
  last_slot_ = nullptr;
}

}  // namespace helenus::storage
