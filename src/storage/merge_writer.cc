#include "storage/merge_writer.h"

#include <algorithm>
#include <utility>

#include "causality/codec.h"
#include "runtime/sleep.h"
#include "storage/scope_place.h"

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
  CO_TRY_VOID(co_await source.seek({}));
  while (source.valid()) {
    const RowKey key = source.key();
    if (counts_.keys_read++ == 0 || base::as_text(key.partition()) != partition_) {
      if (!gathered_.empty()) CO_TRY_VOID(co_await end_scopes(writer, stop));
      begin_partition(key.partition());
    }
    if (key_parts(key.bytes, key.partition_size).kind == EntryKind::scopes) {
      CO_TRY_VOID(take_scopes(source));
    } else {
      if (!gathered_.empty()) CO_TRY_VOID(co_await end_scopes(writer, stop));
      CO_TRY_VOID(take_row(source));
      CO_TRY_VOID(co_await write(key, writer));
    }
    if (turn_is_over()) CO_TRY_VOID(co_await runtime::yield_now(runtime_, stop));
    CO_TRY_VOID(co_await source.next());
  }
  if (!gathered_.empty()) CO_TRY_VOID(co_await end_scopes(writer, stop));
  co_return {};
}

MaybeTask<Result<void>> MergeWriter::write(RowKey key, SstableWriter& writer) {
  turn_bytes_ += key.bytes.size();
  if (entry_.empty()) {
    ++counts_.keys_gone;
    return Result<void>();
  }
  encoded_.clear();
  base::Encoder out(encoded_);
  encode(out, entry_);
  count_written();
  turn_bytes_ += encoded_.size();
  return writer.add(key, encoded_.view());
}

bool MergeWriter::turn_is_over() {
  if (turn_bytes_ < kBytesPerTurn) return false;
  turn_bytes_ = 0;
  return true;
}

Result<void> MergeWriter::take_scopes(EntrySource& source) {
  if (partition_gone_) {
    ++counts_.keys_gone;
    return {};
  }
  entry_.clear();
  TRY_VOID(source.absorb_into(entry_));
  gathered_.insert(gathered_.end(), entry_.scopes().begin(), entry_.scopes().end());
  turn_bytes_ += source.key().bytes.size() + entry_.scopes().size() * sizeof(gathered_.front());
  return {};
}

Result<void> MergeWriter::take_row(EntrySource& source) {
  entry_.clear();
  if (partition_gone_) return {};
  TRY_VOID(source.absorb_into(entry_));
  if (!tablet_) return {};
  const RowKey key = source.key();
  settle_row(key.bytes, key_parts(key.bytes, key.partition_size).clustering);
  return {};
}

Task<Result<void>> MergeWriter::end_scopes(SstableWriter& writer, runtime::StopToken stop) {
  std::ranges::sort(gathered_, {}, &causality::ScopedStore::scope);
  for (const causality::ScopedStore& scoped : gathered_) scopes_.absorb(scoped);
  gathered_ = {};
  scope_index_ = causality::ScopeIndex(scopes_.scoped());
  settled_scopes_ = scopes_;
  if (tablet_) settle_scopes();
  auto by_path = scopes_by_path();
  settled_scopes_ = {};
  if (by_path.empty()) ++counts_.keys_gone;
  for (auto& [path, entry] : by_path) {
    const std::string key =
        encode_key({base::as_bytes(partition_), EntryKind::scopes, base::as_bytes(path)});
    entry_ = std::move(entry);
    const RowKey row_key{.bytes = base::as_bytes(key),
                         .partition_size = static_cast<std::uint16_t>(partition_.size())};
    CO_TRY_VOID(co_await write(row_key, writer));
    if (turn_is_over()) CO_TRY_VOID(co_await runtime::yield_now(runtime_, stop));
  }
  co_return {};
}

// The first of them, under the partition's own key, names the depths of the others.
absl::btree_map<std::string, Entry> MergeWriter::scopes_by_path() const {
  absl::btree_map<std::string, Entry> by_path;
  std::size_t bytes = 0;
  for (const causality::ScopedStore& scoped : settled_scopes_.scoped()) {
    if (bytes <= kScopesTogetherBytesMax) bytes += causality::encoded(scoped).size();
  }
  for (const causality::ScopedStore& scoped : settled_scopes_.scoped()) {
    const ScopeDepth depth =
        bytes <= kScopesTogetherBytesMax ? 0 : depth_of(scoped.scope, partition_.size());
    if (depth == 0) {
      by_path[{}].absorb(scoped);
    } else {
      by_path[{}].add_depth(depth);
      by_path[scope_path(*scoped.scope.from, depth)].absorb(scoped);
    }
  }
  return by_path;
}

void MergeWriter::begin_partition(ByteView partition) {
  partition_.assign(base::as_text(partition));
  scopes_key_ = encode_key({partition, EntryKind::scopes, {}});
  scopes_ = {};
  scope_index_ = {};
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
  known_of_partition_ = knowledge_for_partition();
  if (known_of_partition_ == nullptr) return;
  ++counts_.keys_whole;
  causality::drop_stable(settled_scopes_, plan_.policy, known_of_partition_->stable);
  settled_scopes_.strip(known_of_partition_->base);
}

void MergeWriter::settle_row(ByteView key, ByteView clustering) {
  const TabletKnowledge* known = scopes_.empty() ? knowledge_for_row(key) : known_of_partition_;
  if (known == nullptr) return;
  ++counts_.keys_whole;
  causality::PartitionStore holding;
  if (!scopes_.empty()) {
    scope_index_.each_overlapping(causality::row_scope(base::Bytes::copy_of(clustering)),
                                  [&](const auto& scoped) { holding.absorb(scoped); });
  }
  entry_.settle_row(plan_.policy, known->base, known->stable, holding, clustering);
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
  if (entry_.holds_scopes()) ++scopes_written_;
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
