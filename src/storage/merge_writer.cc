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
      if (!entry_.scopes().empty()) ++scopes_written_;
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
  entry_ = Entry();
  if (partition_gone_) return {};
  TRY_VOID(source.absorb_into(entry_));
  if (known_ == nullptr) return {};
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
  partition_whole_ = false;
  partition_gone_ = std::ranges::any_of(
      plan_.gone, [&](const KeyRange& range) { return range.contains(partition); });
  known_ = nullptr;
  while (tablet_index_ < plan_.tablets.size()) {
    const KeyRange& range = plan_.tablets[tablet_index_].range;
    if (!range.to || base::compare(partition, *range.to) < 0) break;
    ++tablet_index_;
  }
  if (tablet_index_ == plan_.tablets.size()) return;
  const TabletRange& tablet = plan_.tablets[tablet_index_];
  if (!tablet.range.contains(partition)) return;
  const auto at = plan_.knowledge.find(tablet.id);
  if (at == plan_.knowledge.end()) return;
  known_ = &at->second;
  const ByteView scopes_key = base::as_bytes(scopes_key_);
  const std::uint64_t hash = key_hash(scopes_key);
  scopes_elsewhere_ = std::ranges::any_of(plan_.others, [&](const auto& other) {
    return other->metadata.scopes > 0 && other->may_hold(scopes_key, hash);
  });
}

void MergeWriter::settle_scopes() {
  for (const causality::ScopedStore& scoped : entry_.scopes()) scopes_.absorb(scoped);
  partition_whole_ = !others_hold_partition();
  if (!partition_whole_) return;
  ++counts_.keys_whole;
  entry_.drop_stable_scopes(plan_.policy, known_->stable);
  entry_.strip(known_->base);
}

void MergeWriter::settle_row(ByteView key, ByteView clustering) {
  const bool whole = scopes_.empty() ? !scopes_elsewhere_ && !others_hold(key) : partition_whole_;
  if (!whole) return;
  ++counts_.keys_whole;
  entry_.settle_row(plan_.policy, known_->base, known_->stable, scopes_, clustering);
}

bool MergeWriter::others_hold(ByteView key) const {
  const std::uint64_t hash = key_hash(key);
  return std::ranges::any_of(plan_.others,
                             [&](const auto& other) { return other->may_hold(key, hash); });
}

bool MergeWriter::others_hold_partition() const {
  const ByteView partition = base::as_bytes(partition_);
  const std::uint64_t hash = key_hash(partition);
  return std::ranges::any_of(
      plan_.others, [&](const auto& other) { return other->may_hold_partition(partition, hash); });
}

SstableMetadata MergeWriter::metadata() const {
  return {.table = plan_.table,
          .freeze_first = plan_.freeze_first,
          .freeze_last = plan_.freeze_last,
          .scopes = scopes_written_,
          .at_last_freeze = plan_.knowledge};
}

}  // namespace helenus::storage
