#include "storage/table/table_store.h"

#include <algorithm>
#include <utility>

#include "causality/codec.h"

namespace helenus::storage {

void join_clocks(ManifestState& state, const Clocks& clocks) {
  for (const auto& [id, clock] : clocks) {
    const auto tablet = state.tablets.find(id);
    if (tablet == state.tablets.end()) continue;
    tablet->second.clock = causality::join(tablet->second.clock, clock);
  }
}

void MemtableDots::add(TabletId tablet, const causality::Dot& dot) {
  auto at = clocks_.find(tablet);
  if (at == clocks_.end()) {
    at = clocks_.emplace(tablet, causality::Clock()).first;
    memory_bytes_ += sizeof(Clocks::value_type);
  }
  const causality::Counter last = at->second.max_of(dot.actor);
  if (last == 0) memory_bytes_ += sizeof(causality::Clock::Entry);
  if (last + 1 != dot.counter) memory_bytes_ += sizeof(causality::CounterRange);
  at->second.add(dot);
}

namespace {

// What lasts as long need not be said twice.
bool says_the_same(const DerivedEntry& a, const DerivedEntry& b) {
  return a.partition == b.partition && a.cell.row == b.cell.row && a.cell.column == b.cell.column &&
         !a.cell.expires && !b.cell.expires;
}

}  // namespace

void TableStore::apply_entries(TabletId tablet, base::ByteView tablet_from,
                               base::ByteView partition, const IndexedMutation& mutation,
                               std::uint64_t sequence, DerivedEntry* last) {
  if (derive_entries_ == nullptr) return;
  std::vector<DerivedEntry> entries;
  derive_entries_(tablet_from, partition, mutation.cells, entries);
  for (DerivedEntry& entry : entries) {
    if (last != nullptr && says_the_same(*last, entry)) continue;
    if (last != nullptr) *last = entry;
    causality::Delta delta;
    delta.dot = mutation.dot;
    delta.context = mutation.context;
    delta.timestamp = mutation.timestamp;
    delta.cells.push_back(std::move(entry.cell));
    active_->apply(entry.partition, delta, causality::encoded(delta), sequence);
    note_applied(tablet, mutation.dot);
  }
}

Clocks TableStore::dots_in_memory() const {
  Clocks all = active_dots_.clocks();
  for (const FrozenMemtable& frozen : frozen_) {
    for (const auto& [tablet, dots] : frozen.dots) all[tablet] = causality::join(all[tablet], dots);
  }
  return all;
}

bool TableStore::has_in_memory(TabletId tablet) const {
  return active_dots_.clocks().contains(tablet) ||
         std::ranges::any_of(
             frozen_, [&](const FrozenMemtable& frozen) { return frozen.dots.contains(tablet); });
}

TableView TableStore::view() const {
  return view(sstables_);
}

TableView TableStore::view(std::shared_ptr<const SstableList> files) const {
  std::vector<std::shared_ptr<const Memtable>> frozen;
  frozen.reserve(frozen_.size());
  for (const FrozenMemtable& each : frozen_) frozen.push_back(each.memtable);
  return {active_, std::move(frozen), std::move(files)};
}

void TableStore::freeze(FreezeState at) {
  ASSERT(!active_->empty());
  ASSERT(frozen_.empty() || frozen_.back().at.number < at.number);
  active_->freeze();
  const std::size_t bytes = active_bytes();
  auto full = std::exchange(active_, std::make_shared<Memtable>(options_.policy, memtable_seed_));
  frozen_.push_back({.memtable = std::move(full),
                     .dots = std::exchange(active_dots_, {}).clocks(),
                     .at = std::move(at),
                     .bytes = bytes});
}

void TableStore::replace_oldest_frozen(std::shared_ptr<const Sstable> file) {
  ASSERT(!frozen_.empty());
  frozen_.pop_front();
  flushed_since_collection_ = true;
  if (file != nullptr) add_sstable(std::move(file));
}

void TableStore::add_sstable(std::shared_ptr<const Sstable> file) {
  replace_sstables({}, {std::move(file)});
}

void TableStore::replace_sstables(const FileSet& inputs, SstableList outputs) {
  auto list = std::make_shared<SstableList>();
  for (const auto& sstable : *sstables_) {
    if (!inputs.contains(sstable->record.number)) list->push_back(sstable);
  }
  ASSERT(list->size() + inputs.size() == sstables_->size(), "a file of the merge is not there");
  std::ranges::move(outputs, std::back_inserter(*list));
  std::ranges::sort(*list, {}, [](const auto& sstable) { return sstable->record.number; });
  sstables_ = std::move(list);
  for (const FileNumber input : inputs) {
    busy_.erase(input);
    aside_.erase(input);
    rests_.erase(input);
    garbage_left_.erase(input);
  }
}

void TableStore::rest(FileNumber file, runtime::MonotonicTime now, runtime::Duration first) {
  const auto [at, is_first] = rests_.try_emplace(file, Rest{.until = now, .length = first});
  if (!is_first) at->second.length = std::min(2 * at->second.length, kRestMax);
  at->second.until = now + at->second.length;
}

bool TableStore::rests(FileNumber file, runtime::MonotonicTime now) const {
  const auto at = rests_.find(file);
  return at != rests_.end() && now < at->second.until;
}

std::vector<CompactionCandidate> TableStore::compaction_candidates(
    runtime::MonotonicTime now) const {
  std::vector<CompactionCandidate> candidates;
  candidates.reserve(sstables_->size());
  for (const auto& sstable : *sstables_) {
    const SstableRecord& record = sstable->record;
    if (aside_.contains(record.number)) continue;
    candidates.push_back({.number = record.number,
                          .bytes = record.bytes,
                          .busy = busy(record.number) || rests(record.number, now),
                          .level = record.level,
                          .newest_write = sstable->metadata.newest_write.value(),
                          .key_first = record.key_first.view(),
                          .key_last = record.key_last.view()});
  }
  return candidates;
}

Collectable collectable(const SstableMetadata& metadata, const Knowledge& knowledge) {
  Collectable sum;
  for (const auto& [tablet, garbage] : metadata.garbage) {
    const auto known = knowledge.find(tablet);
    if (known != knowledge.end()) sum += garbage.collectable(known->second.stable);
  }
  return sum;
}

std::vector<CollectionCandidate> TableStore::collection_candidates(
    const Knowledge& knowledge, runtime::MonotonicTime now) const {
  std::vector<CollectionCandidate> candidates;
  candidates.reserve(sstables_->size());
  for (const auto& sstable : *sstables_) {
    const SstableRecord& record = sstable->record;
    // What a merge without it may not drop, since it may hold the key, the merge leaves.
    if (aside_.contains(record.number)) continue;
    const auto left = garbage_left_.find(record.number);
    candidates.push_back({.number = record.number,
                          .bytes = record.bytes,
                          .cells = sstable->metadata.cells,
                          .collectable = collectable(sstable->metadata, knowledge),
                          .left = left == garbage_left_.end() ? Collectable() : left->second,
                          .busy = busy(record.number) || rests(record.number, now)});
  }
  return candidates;
}

}  // namespace helenus::storage
