#include "storage/read/table_view.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/when_all.h"

namespace helenus::storage {

using base::Result;
using runtime::Task;

namespace {

void absorb_memtable(const Memtable& memtable, base::ByteView key, Entry& entry, ReadTrace& trace) {
  const auto sequence = memtable.absorb_into(key, entry);
  if (!sequence) return;
  ++trace.memtables_with_key;
  trace.sequence = std::max(trace.sequence, *sequence);
}

Result<void> absorb_lookup(const Sstable& sstable, base::ByteView key, Result<Lookup> lookup,
                           Entry& entry, ReadTrace& trace) {
  if (!lookup) return std::move(lookup).error();
  trace.blocks_read += lookup->blocks_read;
  if (lookup->ended_at_filter) ++trace.sstables_filtered;
  if (!lookup->found) return {};
  ++trace.sstables_with_key;
  if (auto decoded = absorb_encoded(lookup->found->value, entry); !decoded) {
    return std::move(decoded).error().within(
        fmt::format("{}: entry {}", sstable.reader->path(), base::to_hex(key, 64)));
  }
  return {};
}

}  // namespace

bool Sstable::may_hold_partition(base::ByteView partition, std::uint64_t hash) const {
  const base::ByteView first = record.key_first;
  const auto prefix = first.first(std::min(first.size(), partition.size()));
  return base::compare(prefix, partition) <= 0 && base::compare(partition, record.key_last) <= 0 &&
         (damage || reader->may_hold_partition(partition, hash));
}

void TableView::absorb_active(base::ByteView key, Entry& entry, ReadTrace& trace) const {
  absorb_memtable(*active_, key, entry, trace);
}

Task<Result<Entry>> TableView::find_older(base::ByteView key, runtime::Until until,
                                          ReadTrace& trace) const {
  Entry entry;
  const std::uint64_t hash = key_hash(key);
  for (const auto& memtable : frozen_) absorb_memtable(*memtable, key, entry, trace);
  // What is in memory is merged at once. The files that must be read are read side by side: the
  // disk takes no longer for several than for one.
  std::vector<const Sstable*> reading;
  std::vector<Task<Result<Lookup>>> reads;
  for (const auto& sstable : *sstables_) {
    if (!sstable->in_range(key)) continue;
    ++trace.sstables_in_range;
    if (sstable->damage) co_return *sstable->damage;
    auto lookup = sstable->reader->get(key, hash, until);
    if (lookup.ready()) {
      CO_TRY_VOID(absorb_lookup(*sstable, key, std::move(lookup).take(), entry, trace));
    } else {
      reading.push_back(sstable.get());
      reads.push_back(std::move(lookup).task());
    }
  }
  if (reads.empty()) co_return entry;
  auto lookups = co_await runtime::when_all(std::move(reads));
  for (std::size_t i = 0; i < reading.size(); ++i) {
    CO_TRY_VOID(absorb_lookup(*reading[i], key, std::move(lookups[i]), entry, trace));
  }
  co_return entry;
}

namespace {

std::shared_ptr<const SstableList> without(const SstableList& files,
                                           std::span<const Sstable* const> left_out) {
  auto list = std::make_shared<SstableList>(files);
  std::erase_if(*list, [&](const auto& file) {
    return std::ranges::find(left_out, file.get()) != left_out.end();
  });
  return list;
}

bool has_deletes(const Sstable& file) {
  return std::ranges::any_of(file.metadata.garbage,
                             [](const auto& of) { return of.second.deletes > 0; });
}

}  // namespace

void TableView::begin(base::ByteView key, OlderRow& search, ReadTrace& trace) const {
  search.has_begun = true;
  for (const auto& memtable : frozen_) absorb_memtable(*memtable, key, search.entry, trace);
  search.files.reserve(sstables_->size());
  for (const auto& file : *sstables_) search.files.push_back(file.get());
  std::ranges::sort(search.files, std::ranges::greater(), [](const Sstable* file) {
    return std::pair(file->record.freeze_last, file->record.number);
  });
  if (!search.files.empty()) search.superseded.add(search.entry);
}

Result<bool> TableView::look_in_memory(base::ByteView key, OlderRow& search,
                                       ReadTrace& trace) const {
  if (!search.has_begun) begin(key, search, trace);
  if (search.next == search.files.size()) return true;
  const std::uint64_t hash = key_hash(key);
  for (; search.next < search.files.size(); ++search.next) {
    const Sstable& sstable = *search.files[search.next];
    if (search.superseded.covers(sstable.metadata)) {
      search.left_out.push_back(&sstable);
      if (sstable.may_hold(key, hash)) ++trace.sstables_superseded;
      continue;
    }
    if (!sstable.in_range(key)) continue;
    if (sstable.damage) return *sstable.damage;
    auto lookup = sstable.reader->get(key, hash, runtime::Until::forever());
    search.must_read = !lookup.ready();
    if (search.must_read) return false;
    ++trace.sstables_in_range;
    TRY_VOID(absorb_lookup(sstable, key, std::move(lookup).take(), search.entry, trace));
    search.superseded.add(search.entry);
  }
  return true;
}

Task<Result<Entry>> TableView::find_older_row(base::ByteView key, OlderRow search,
                                              std::shared_ptr<const SstableList>& needed,
                                              runtime::Until until, ReadTrace& trace) const {
  std::vector<const Sstable*> reading;
  std::vector<Task<Result<Lookup>>> reads;
  const std::uint64_t hash = key_hash(key);
  for (;; ++search.next) {
    if (!search.must_read) {
      CO_TRY(const bool is_all, look_in_memory(key, search, trace));
      if (is_all) break;
    }
    search.must_read = false;
    const Sstable& sstable = *search.files[search.next];
    ++trace.sstables_in_range;
    auto lookup = sstable.reader->get(key, hash, until);
    if (!lookup.ready() && !has_deletes(sstable)) {
      // Read side by side with others: the disk takes no longer for several than for one.
      reading.push_back(&sstable);
      reads.push_back(std::move(lookup).task());
      continue;
    }
    // A delete that it has may spare the reading of older ones.
    auto answer = co_await std::move(lookup);
    CO_TRY_VOID(absorb_lookup(sstable, key, std::move(answer), search.entry, trace));
    search.superseded.add(search.entry);
  }
  needed = search.left_out.empty() ? sstables_ : without(*sstables_, search.left_out);
  if (reads.empty()) co_return std::move(search.entry);
  auto lookups = co_await runtime::when_all(std::move(reads));
  for (std::size_t i = 0; i < reading.size(); ++i) {
    CO_TRY_VOID(absorb_lookup(*reading[i], key, std::move(lookups[i]), search.entry, trace));
  }
  co_return std::move(search.entry);
}

bool TableView::frozen_have_ranges() const {
  return std::ranges::any_of(frozen_, [](const auto& memtable) { return memtable->has_ranges(); });
}

bool TableView::older_may_have_ranges() const {
  return frozen_have_ranges() || std::ranges::any_of(*sstables_, [](const auto& sstable) {
           return sstable->damage || sstable->metadata.deleted_ranges > 0;
         });
}

std::unique_ptr<MergedEntries> TableView::entries(const SstableCursorOptions& options) const {
  std::vector<std::unique_ptr<EntrySource>> sources;
  sources.push_back(entries_of(active_));
  for (const auto& memtable : frozen_) sources.push_back(entries_of(memtable));
  for (const auto& sstable : *sstables_) {
    if (sstable->damage) {
      sources.push_back(entries_that_fail(*sstable->damage));
      continue;
    }
    sources.push_back(entries_of(sstable->reader->cursor(options), sstable->reader->path()));
  }
  return std::make_unique<MergedEntries>(std::move(sources));
}

}  // namespace helenus::storage
