#include "storage/compaction/named_above.h"

namespace helenus::storage {

namespace {

std::size_t ranges_of(const causality::Clock& clock) {
  std::size_t ranges = clock.closed().size();
  for (const causality::Clock::Entry& entry : clock.entries()) {
    ranges += entry.counters.ranges().size();
  }
  return ranges;
}

}  // namespace

void NamedAbove::add_store(Named& named, const causality::CellStore& store,
                           const causality::Clock& base) {
  if (named.too_much) return;
  bool grown = false;
  for (const causality::Version& version : store.versions()) {
    if (base.contains(version.dot) || named.above.contains(version.dot)) continue;
    named.above.add(version.dot);
    grown = true;
  }
  const causality::Clock& context = store.context();
  if (!context.empty() && !base.covers(context) && !named.above.covers(context)) {
    named.above = causality::join(named.above, causality::subtract(context, base));
    grown = true;
  }
  if (!grown || ranges_of(named.above) <= kRangesMax) return;
  named.too_much = true;
  named.above = {};
}

void NamedAbove::add(TabletId tablet, const Entry& entry, const TabletKnowledge* known) {
  const causality::Clock nothing;
  const causality::Clock& base = known == nullptr ? nothing : known->base;
  Named& named = named_[tablet];
  for (const auto& [column, cell] : entry.row().cells()) add_store(named, cell, base);
  add_store(named, entry.row_deletes(), base);
  for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
    add_store(named, range_delete.store, base);
  }
}

absl::btree_map<TabletId, causality::Clock> NamedAbove::by_tablet() const {
  absl::btree_map<TabletId, causality::Clock> all;
  for (const auto& [tablet, named] : named_) {
    if (!named.too_much) all.emplace_hint(all.end(), tablet, named.above);
  }
  return all;
}

}  // namespace helenus::storage
