#include "storage/merge_writer.h"

#include <algorithm>
#include <utility>

#include "runtime/sleep.h"

namespace helenus::storage {

using base::ByteView;
using base::Result;
using runtime::Task;

MergeWriter::MergeWriter(runtime::Runtime& runtime, MergePlan plan)
    : runtime_(runtime), plan_(std::move(plan)) {
  for (const auto& other : plan_.others) {
    ASSERT(other->record.freeze_first <= plan_.freeze_last, "file {} came later",
           other->record.number);
  }
}

Task<Result<void>> MergeWriter::run(EntrySource& source, SstableWriter& writer,
                                    runtime::StopToken stop) {
  std::size_t turn_bytes = 0;
  CO_TRY_VOID(co_await source.seek({}));
  while (source.valid()) {
    CO_TRY_VOID(take(source));
    const RowKey key = source.key();
    if (!entry_.empty()) {
      encoded_.clear();
      base::Encoder out(encoded_);
      encode(out, entry_);
      count_written();
      CO_TRY_VOID(co_await writer.add(key, encoded_.view()));
    } else {
      ++counts_.keys_gone;
    }
    turn_bytes += key.bytes.size() + encoded_.size();
    if (turn_bytes >= kBytesPerTurn) {
      turn_bytes = 0;
      CO_TRY_VOID(co_await runtime::yield_now(runtime_, stop));
    }
    CO_TRY_VOID(co_await source.next());
  }
  co_return {};
}

// The entry the source stands on, as it is to be written.
Result<void> MergeWriter::take(EntrySource& source) {
  const RowKey key = source.key();
  if (counts_.keys_read++ == 0 || base::as_text(key.partition()) != partition_) {
    begin_partition(key.partition());
  }
  entry_.clear();
  if (partition_gone_) return {};
  TRY_VOID(source.absorb_into(entry_));
  if (!tablet_) return {};
  const EntryKey parts = key_parts(key.bytes, key.partition_size);
  if (parts.kind == EntryKind::scopes) {
    settle_scopes();
  } else {
    settle_row(key.bytes, parts.clustering);
  }
  return {};
}

void MergeWriter::begin_partition(ByteView partition) {
  partition_.assign(base::as_text(partition));
  scopes_key_ = encode_key({partition, EntryKind::scopes, {}});
  scopes_ = {};
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
  const ByteView scopes_key = base::as_bytes(scopes_key_);
  const std::uint64_t hash = key_hash(scopes_key);
  scopes_in_files_ = std::ranges::any_of(plan_.others, [&](const auto& other) {
    // Of a file that cannot be read nobody knows whether it has scopes.
    return (other->damage || other->metadata.scopes > 0) && other->may_hold(scopes_key, hash);
  });
  scopes_outside_ = known_now_ != nullptr && outside_holds(scopes_key);
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

void MergeWriter::settle_scopes() {
  for (const causality::ScopedStore& scoped : entry_.scopes()) scopes_.absorb(scoped);
  known_of_partition_ = knowledge_for_partition();
  if (known_of_partition_ == nullptr) return;
  ++counts_.keys_whole;
  entry_.drop_stable_scopes(plan_.policy, known_of_partition_->stable);
  entry_.strip(known_of_partition_->base);
}

void MergeWriter::settle_row(ByteView key, ByteView clustering) {
  const TabletKnowledge* known = scopes_.empty() ? knowledge_for_row(key) : known_of_partition_;
  if (known == nullptr) return;
  ++counts_.keys_whole;
  entry_.settle_row(plan_.policy, known->base, known->stable, scopes_, clustering);
}

const TabletKnowledge* MergeWriter::knowledge_for_row(ByteView key) const {
  if (known_now_ != nullptr && !scopes_outside_ && !outside_holds(key)) return known_now_;
  return scopes_in_files_ || files_hold(key) ? nullptr : known_at_freeze_;
}

const TabletKnowledge* MergeWriter::knowledge_for_partition() const {
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
  if (!entry_.scopes().empty()) ++scopes_written_;
  Garbage uncounted;
  cells_written_ += count_garbage(entry_, tablet_ ? garbage_[*tablet_] : uncounted);
}

SstableMetadata MergeWriter::metadata() const {
  GarbageByTablet garbage = garbage_;
  absl::erase_if(garbage, [](const auto& each) { return each.second.empty(); });
  return {.table = plan_.table,
          .freeze_first = plan_.freeze_first,
          .freeze_last = plan_.freeze_last,
          .scopes = scopes_written_,
          .cells = cells_written_,
          .garbage = std::move(garbage),
          .at_last_freeze = plan_.knowledge};
}

}  // namespace helenus::storage
