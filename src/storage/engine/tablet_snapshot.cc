#include "storage/engine/tablet_snapshot.h"

#include <utility>

namespace helenus::storage {

namespace {

class EntriesInRange final : public EntrySource {
 public:
  EntriesInRange(KeyRange range, std::unique_ptr<EntrySource> entries)
      : range_(std::move(range)), entries_(std::move(entries)) {}

  Motion seek(base::ByteView key) override {
    const bool is_before = base::compare(key, range_.from) < 0;
    return entries_->seek(is_before ? base::ByteView(range_.from) : key);
  }
  Motion seek_before(base::ByteView key) override { return entries_->seek_before(key); }
  Motion next() override { return entries_->next(); }
  Motion previous() override { return entries_->previous(); }
  bool valid() const override {
    return entries_->valid() && range_.contains(entries_->key().bytes);
  }
  RowKey key() const override { return entries_->key(); }
  std::uint64_t sequence() const override { return entries_->sequence(); }
  base::Result<void> absorb_into(Entry& entry) const override {
    return entries_->absorb_into(entry);
  }

 private:
  const KeyRange range_;
  const std::unique_ptr<EntrySource> entries_;
};

}  // namespace

std::unique_ptr<EntrySource> entries_in(KeyRange range, std::unique_ptr<EntrySource> entries) {
  return std::make_unique<EntriesInRange>(std::move(range), std::move(entries));
}

std::unique_ptr<EntrySource> no_entries() {
  return std::make_unique<MergedEntries>(std::vector<std::unique_ptr<EntrySource>>());
}

std::unique_ptr<EntrySource> TabletSnapshot::entries(TableId table,
                                                     const runtime::Until& until) const {
  const auto view = views_.find(table);
  if (view == views_.end()) return no_entries();
  return entries_in(range_, view->second.entries({.cache_use = CacheUse::bypass, .until = until}));
}

}  // namespace helenus::storage
