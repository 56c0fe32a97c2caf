#include "storage/compaction/merge_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "causality/codec.h"
#include "storage/compaction/background_slice.h"
#include "storage/entry/range_delete_key.h"

namespace helenus::storage {

using base::ByteView;
using base::Result;
using runtime::Task;

namespace {

// What things take of memory, about, with what an allocation costs.
constexpr std::size_t kAllocationBytes = 16;

std::size_t memory_of(const causality::Clock& clock) {
  if (clock.empty()) return 0;
  constexpr std::size_t kEntriesInline = 3;
  const auto entries = clock.entries();
  std::size_t bytes = 2 * kAllocationBytes + kEntriesInline * sizeof(causality::Clock::Entry) +
                      clock.closed().size() * sizeof(causality::ClosedActors);
  if (entries.size() > kEntriesInline) bytes += entries.size() * sizeof(causality::Clock::Entry);
  for (const causality::Clock::Entry& entry : entries) {
    const std::size_t ranges = entry.counters.ranges().size();
    if (ranges > 1) bytes += kAllocationBytes + ranges * sizeof(causality::CounterRange);
  }
  return bytes;
}

std::size_t memory_of_bounds(const causality::RowRange& row_range) {
  return (row_range.from ? kAllocationBytes + row_range.from->size() : 0) +
         (row_range.to ? kAllocationBytes + row_range.to->size() : 0);
}

std::size_t memory_of_versions(const causality::CellStore& store) {
  const std::size_t count = store.versions().size();
  return count > 1 ? kAllocationBytes + count * sizeof(causality::Version) : 0;
}

std::size_t memory_of(const causality::RangeDelete& range_delete) {
  return sizeof range_delete + memory_of_bounds(range_delete.range) +
         memory_of_versions(range_delete.store) + memory_of(range_delete.store.context());
}

// What a merge holds of a range at the most: as it came, as it is judged and as it is laid out, in
// vectors that grow. These share the bounds; and the context, until it is stripped.
std::size_t held_of(const causality::RangeDelete& range_delete) {
  constexpr std::size_t kForms = 3;
  return kForms * (sizeof range_delete + memory_of_versions(range_delete.store)) +
         sizeof range_delete / 2 + memory_of_bounds(range_delete.range) +
         2 * memory_of(range_delete.store.context());
}

}  // namespace

MergeWriter::MergeWriter(runtime::Runtime& runtime, MergePlan plan)
    : runtime_(runtime), plan_(std::move(plan)) {
  for (const auto& other : plan_.others) {
    ASSERT(other->record.freeze_first <= plan_.freeze_last, "file {} came later",
           other->record.number);
  }
}

Task<Result<void>> MergeWriter::run(EntrySource& source, SstableWriter& writer,
                                    runtime::StopToken stop) {
  if (!plan_.goes_on) CO_TRY_VOID(co_await source.seek({}));
  while (source.valid()) {
    const RowKey key = source.key();
    if (counts_.keys_read == 0 || base::as_text(key.partition()) != partition_) {
      if (!gathered_.empty()) CO_TRY_VOID(co_await end_ranges(writer, stop));
      if (counts_.keys_read > 0 && writer.bytes() >= plan_.file_bytes_max) co_return {};
      begin_partition(key.partition());
    }
    ++counts_.keys_read;
    if (key_parts(key.bytes, key.partition_size).kind == EntryKind::deleted_ranges) {
      CO_TRY_VOID(take_ranges(source));
      if (unsettled_ || gathered_bytes_ > plan_.ranges_bytes_max) {
        CO_TRY_VOID(co_await write_as_gathered(writer, stop));
      }
    } else {
      if (!gathered_.empty()) CO_TRY_VOID(co_await end_ranges(writer, stop));
      if (known_of_partition_ != nullptr) {
        const EntryKey parts = key_parts(key.bytes, key.partition_size);
        CO_TRY_VOID(co_await find_around(parts.clustering, stop));
      }
      CO_TRY_VOID(take_row(source));
      CO_TRY_VOID(co_await write(key, writer));
    }
    if (step_is_over()) {
      if (plan_.keys_done != nullptr) note_progress();
      CO_TRY_VOID(co_await end_slice(runtime_, stop));
    }
    CO_TRY_VOID(co_await source.next());
  }
  if (!gathered_.empty()) CO_TRY_VOID(co_await end_ranges(writer, stop));
  co_return {};
}

void MergeWriter::note_progress() {
  *plan_.keys_done += counts_.keys_read - std::exchange(keys_told_, counts_.keys_read);
}

runtime::MaybeTask<Result<void>> MergeWriter::write(RowKey key, SstableWriter& writer) {
  step_bytes_ += key.bytes.size();
  if (entry_.empty()) {
    ++counts_.keys_gone;
    return Result<void>();
  }
  encoded_.clear();
  base::Encoder out(encoded_);
  encode(out, entry_);
  count_written();
  step_bytes_ += encoded_.size();
  return writer.add(key, encoded_.view());
}

bool MergeWriter::step_is_over() {
  if (step_bytes_ < kBytesPerLook) return false;
  step_bytes_ = 0;
  return true;
}

Result<void> MergeWriter::take_ranges(EntrySource& source) {
  if (partition_gone_) {
    ++counts_.keys_gone;
    return {};
  }
  Gathered gathered{.key = std::string(base::as_text(source.key().bytes)), .entry = {}};
  TRY_VOID(source.absorb_into(gathered.entry));
  gathered.entry.apply_range_deletes();
  gathered_bytes_ += gathered.key.size();
  for (const causality::RangeDelete& range_delete : gathered.entry.deleted_ranges()) {
    gathered_bytes_ += held_of(range_delete);
    step_bytes_ += memory_of(range_delete);
  }
  gathered_.push_back(std::move(gathered));
  return {};
}

Result<void> MergeWriter::take_row(EntrySource& source) {
  entry_.clear();
  if (partition_gone_) return {};
  TRY_VOID(source.absorb_into(entry_));
  if (tablet_) apply_ranges_to_row(source.key().bytes);
  return {};
}

Task<Result<void>> MergeWriter::write_as_gathered(SstableWriter& writer, runtime::StopToken stop) {
  if (!unsettled_) ++counts_.partitions_unsettled;
  unsettled_ = true;
  has_ranges_ = true;
  const std::vector<Gathered> gathered = std::exchange(gathered_, {});
  gathered_bytes_ = 0;
  for (const Gathered& each : gathered) {
    entry_ = each.entry;
    const RowKey key{.bytes = base::as_bytes(each.key),
                     .partition_size = static_cast<std::uint16_t>(partition_.size())};
    CO_TRY_VOID(co_await write(key, writer));
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  co_return {};
}

Task<Result<void>> MergeWriter::end_ranges(SstableWriter& writer, runtime::StopToken stop) {
  has_ranges_ = true;
  known_of_partition_ = tablet_ ? knowledge_for_partition() : nullptr;
  if (known_of_partition_ != nullptr) ++counts_.keys_whole;
  CO_TRY(range_groups_, co_await group_ranges(stop));
  CO_TRY(auto settled, co_await apply_range_deletes(stop));
  CO_TRY(auto by_path, co_await lay_out(std::move(settled), stop));
  co_return co_await write_ranges(std::move(by_path), writer, stop);
}

Task<Result<std::vector<MergeWriter::RangeGroup>>> MergeWriter::group_ranges(
    runtime::StopToken stop) {
  absl::btree_map<causality::RowRange, causality::CellStore> in_order;
  std::vector<Gathered> gathered = std::exchange(gathered_, {});
  gathered_bytes_ = 0;
  for (Gathered& each : gathered) {
    const Entry entry = std::exchange(each.entry, {});
    for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
      in_order[range_delete.range].absorb(range_delete.store);
      count_ranges(1, memory_of(range_delete));
      if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
    }
  }
  std::vector<RangeGroup> groups;
  for (auto& [row_range, store] : in_order) {
    const bool apart = groups.empty() || (groups.back().end && row_range.from &&
                                          *row_range.from >= *groups.back().end);
    if (apart) {
      groups.push_back({.deleted_ranges = {}, .end = row_range.to});
    } else if (!row_range.to || (groups.back().end && *row_range.to > *groups.back().end)) {
      groups.back().end = row_range.to;
    }
    groups.back().deleted_ranges.push_back({row_range, std::move(store)});
    count_ranges(1, memory_of(groups.back().deleted_ranges.back()));
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  co_return groups;
}

namespace {

void take_out_empty(std::vector<causality::RangeDelete>& deleted_ranges) {
  std::erase_if(deleted_ranges, [](const causality::RangeDelete& range_delete) {
    return range_delete.store.empty();
  });
}

}  // namespace

Task<Result<std::vector<causality::RangeDelete>>> MergeWriter::apply_range_deletes(
    runtime::StopToken stop) {
  std::vector<causality::RangeDelete> left;
  for (RangeGroup& group : range_groups_) {
    CO_TRY(auto settled, co_await apply_group(group, stop));
    std::ranges::move(settled, std::back_inserter(left));
  }
  co_return left;
}

Task<Result<std::vector<causality::RangeDelete>>> MergeWriter::apply_group(
    RangeGroup& group, runtime::StopToken stop) {
  causality::RangesInside inside(group.deleted_ranges);
  while (!inside.advance(kRangesPerLook)) {
    count_ranges(kRangesPerLook, 0);
    CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  take_out_empty(group.deleted_ranges);
  std::vector<causality::RangeDelete> settled;
  settled.reserve(group.deleted_ranges.size());
  for (const causality::RangeDelete& range_delete : group.deleted_ranges) {
    settled.push_back(range_delete);
    if (known_of_partition_ != nullptr) {
      causality::drop_over(settled.back().store, known_of_partition_->stable);
    }
    count_ranges(1, memory_of(range_delete));
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  if (known_of_partition_ == nullptr) co_return settled;
  causality::RangesStripping stripping(settled, known_of_partition_->base);
  while (!stripping.advance(kRangesPerLook)) {
    count_ranges(kRangesPerLook, 0);
    CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  take_out_empty(settled);
  co_return settled;
}

// The first of them, under the partition's own key, names the depths of the others.
Task<Result<MergeWriter::EntriesByPath>> MergeWriter::lay_out(
    std::vector<causality::RangeDelete> deleted_ranges, runtime::StopToken stop) {
  std::size_t bytes = 0;
  for (const causality::RangeDelete& range_delete : deleted_ranges) {
    if (bytes > kRangesTogetherBytesMax) break;
    bytes += causality::encoded(range_delete).size();
  }
  const bool together = bytes <= kRangesTogetherBytesMax;
  EntriesByPath by_path;
  for (const causality::RangeDelete& range_delete : deleted_ranges) {
    const RangeDepth depth = together ? 0 : depth_of(range_delete.range, partition_.size());
    if (depth == 0) {
      by_path[{}].absorb(range_delete);
    } else {
      by_path[{}].add_depth(depth);
      by_path[range_path(*range_delete.range.from, depth)].absorb(range_delete);
    }
    count_ranges(1, memory_of(range_delete));
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  co_return by_path;
}

Task<Result<void>> MergeWriter::write_ranges(EntriesByPath by_path, SstableWriter& writer,
                                             runtime::StopToken stop) {
  if (by_path.empty()) ++counts_.keys_gone;
  for (auto& [path, entry] : by_path) {
    const std::string key =
        encode_key({base::as_bytes(partition_), EntryKind::deleted_ranges, base::as_bytes(path)});
    entry_ = std::move(entry);
    const RowKey row_key{.bytes = base::as_bytes(key),
                         .partition_size = static_cast<std::uint16_t>(partition_.size())};
    CO_TRY_VOID(co_await write(row_key, writer));
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  co_return {};
}

void MergeWriter::begin_partition(ByteView partition) {
  partition_.assign(base::as_text(partition));
  ranges_key_ = encode_key({partition, EntryKind::deleted_ranges, {}});
  has_ranges_ = false;
  unsettled_ = false;
  range_groups_.clear();
  group_ = 0;
  swept_group_.reset();
  sweep_ = {};
  around_.reset();
  known_of_partition_ = nullptr;
  partition_gone_ = std::ranges::any_of(
      plan_.gone, [&](const KeyRange& range) { return range.contains(partition); });
  tablet_.reset();
  while (tablet_index_ < plan_.tablets.size()) {
    const KeyRange& range = plan_.tablets[tablet_index_].range;
    if (!range.to || base::compare(partition, *range.to) < 0) break;
    ++tablet_index_;
  }
  if (tablet_index_ == plan_.tablets.size()) return;
  const TabletRange& tablet = plan_.tablets[tablet_index_];
  if (!tablet.range.contains(partition)) return;
  tablet_ = tablet.id;
  find_knowledge(tablet.id);
  const ByteView ranges_key = base::as_bytes(ranges_key_);
  const std::uint64_t hash = key_hash(ranges_key);
  ranges_in_files_ = std::ranges::any_of(plan_.others, [&](const auto& other) {
    // Of a file that cannot be read nobody knows whether it has ranges.
    return (other->damage || other->metadata.deleted_ranges > 0) &&
           other->may_hold(ranges_key, hash);
  });
  ranges_outside_ = known_now_ != nullptr && outside_holds(ranges_key);
}

// What is known now is gone by only if nothing has been forgotten since the freeze, as when a
// member joins and nothing counts as stable until it has been heard of.
void MergeWriter::find_knowledge(TabletId tablet) {
  const auto find = [&](const Knowledge& knowledge) {
    const auto at = knowledge.find(tablet);
    return at == knowledge.end() ? nullptr : &at->second;
  };
  known_at_freeze_ = find(plan_.knowledge);
  known_now_ = plan_.store == nullptr ? nullptr : find(plan_.knowledge_now);
  if (known_now_ == nullptr || known_at_freeze_ == nullptr) return;
  if (!known_now_->covers(*known_at_freeze_)) known_now_ = nullptr;
}

void MergeWriter::apply_ranges_to_row(ByteView key) {
  const TabletKnowledge* known = has_ranges_ ? known_of_partition_ : knowledge_for_row(key);
  if (known == nullptr) return;
  ++counts_.keys_whole;
  if (around_) {
    entry_.apply_ranges_to_row(*around_);
    count_around();
  } else {
    causality::RangesAround nothing(plan_.policy, known->base, known->stable);
    entry_.apply_ranges_to_row(nothing);
  }
}

Task<Result<void>> MergeWriter::pass_groups(ByteView clustering, runtime::StopToken stop) {
  const auto is_past = [&](const RangeGroup& group) {
    return group.end && base::compare(*group.end, clustering) <= 0;
  };
  while (group_ < range_groups_.size() && is_past(range_groups_[group_])) {
    around_.reset();
    count_ranges(1, kBytesPerStep);
    range_groups_[group_++].deleted_ranges = {};
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  co_return {};
}

Task<Result<void>> MergeWriter::find_around(ByteView clustering, runtime::StopToken stop) {
  CO_TRY_VOID(co_await pass_groups(clustering, stop));
  if (group_ == range_groups_.size()) co_return {};
  if (swept_group_ != group_) {
    sweep_ = causality::RangeSweep(range_groups_[group_].deleted_ranges);
    swept_group_ = group_;
    around_.emplace(plan_.policy, known_of_partition_->base, known_of_partition_->stable);
    around_steps_ = 0;
  }
  const auto row = base::Bytes::copy_of(clustering);
  const auto follow = [this](const causality::RangeDelete& range_delete, bool opens) {
    opens ? around_->add(range_delete) : around_->remove(range_delete);
  };
  while (!sweep_.advance(row, 1, follow)) {
    count_around();
    if (step_is_over()) CO_TRY_VOID(co_await end_slice(runtime_, stop));
  }
  co_return {};
}

void MergeWriter::count_around() {
  const std::uint64_t steps = around_->steps() - around_steps_;
  around_steps_ = around_->steps();
  count_ranges(steps, steps * kBytesPerStep);
}

void MergeWriter::count_ranges(std::size_t deleted_ranges, std::size_t bytes) {
  counts_.range_steps += deleted_ranges;
  step_bytes_ += bytes;
}

bool MergeWriter::may_fold() const {
  if (plan_.counters == nullptr) return true;
  if (plan_.counters->is_folding_held()) return false;
  return std::ranges::none_of(plan_.counters->sstables(), [&](const auto& file) {
    return file->metadata.is_copy && !plan_.inputs.contains(file->record.number);
  });
}

const TabletKnowledge* MergeWriter::knowledge_for_row(ByteView key) const {
  if (!may_fold()) return nullptr;
  if (known_now_ != nullptr && !ranges_outside_ && !outside_holds(key)) return known_now_;
  return ranges_in_files_ || files_hold(key) ? nullptr : known_at_freeze_;
}

const TabletKnowledge* MergeWriter::knowledge_for_partition() const {
  if (!may_fold()) return nullptr;
  if (known_now_ != nullptr && !outside_holds_partition()) return known_now_;
  const ByteView partition = base::as_bytes(partition_);
  const std::uint64_t hash = key_hash(partition);
  const bool held = std::ranges::any_of(
      plan_.others, [&](const auto& other) { return other->may_hold_partition(partition, hash); });
  return held ? nullptr : known_at_freeze_;
}

bool MergeWriter::files_hold(ByteView key) const {
  const std::uint64_t hash = key_hash(key);
  return std::ranges::any_of(plan_.others,
                             [&](const auto& other) { return other->may_hold(key, hash); });
}

bool MergeWriter::outside_holds(ByteView key) const {
  const TableStore& store = *plan_.store;
  if (store.active().contains(key)) return true;
  for (const FrozenMemtable& frozen : store.frozen()) {
    if (frozen.memtable->contains(key)) return true;
  }
  const std::uint64_t hash = key_hash(key);
  return std::ranges::any_of(store.sstables(), [&](const auto& file) {
    return !plan_.inputs.contains(file->record.number) && file->may_hold(key, hash);
  });
}

bool MergeWriter::outside_holds_partition() const {
  const TableStore& store = *plan_.store;
  const ByteView partition = base::as_bytes(partition_);
  if (store.active().contains_partition(partition)) return true;
  for (const FrozenMemtable& frozen : store.frozen()) {
    if (frozen.memtable->contains_partition(partition)) return true;
  }
  const std::uint64_t hash = key_hash(partition);
  return std::ranges::any_of(store.sstables(), [&](const auto& file) {
    return !plan_.inputs.contains(file->record.number) && file->may_hold_partition(partition, hash);
  });
}

void MergeWriter::count_written() {
  if (entry_.holds_ranges()) ++ranges_written_;
  newest_write_ = std::max(newest_write_, newest_write(entry_));
  Garbage uncounted;
  cells_written_ += count_garbage(entry_, tablet_ ? garbage_[*tablet_] : uncounted);
  if (tablet_) named_.add(*tablet_, entry_, known_at_freeze_);
}

SstableMetadata MergeWriter::metadata() const {
  GarbageByTablet garbage = garbage_;
  absl::erase_if(garbage, [](const auto& each) { return each.second.empty(); });
  return {.table = plan_.table,
          .freeze_first = plan_.freeze_first,
          .freeze_last = plan_.freeze_last,
          .deleted_ranges = ranges_written_,
          .cells = cells_written_,
          .garbage = std::move(garbage),
          .newest_write = newest_write_,
          .at_last_freeze = plan_.knowledge,
          .named_above = named_.by_tablet(),
          .is_copy = plan_.is_copy};
}

}  // namespace helenus::storage
