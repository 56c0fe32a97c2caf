#include "storage/engine/tablet_oracle_test_support.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "causality/counter.h"
#include "causality/resolve.h"

namespace helenus::storage::testing {

using causality::Policy;

namespace {

constexpr causality::Epoch kEpoch{1};

}  // namespace

std::string shown_row(const causality::PartitionStore& partition, const base::Bytes& row,
                      Policy policy, causality::WallTime now) {
  std::string text;
  for (std::uint32_t column = 0; column < kHistoryColumns; ++column) {
    const causality::CellStore cell = partition.cell(row, causality::ColumnId{column});
    const auto seen = causality::visible(cell, policy, now);
    if (policy == Policy::counter) {
      // However much of it is folded.
      if (!seen.empty()) text += fmt::format("{}={} ", column, causality::counter_value(cell));
      continue;
    }
    for (const causality::Version* version : seen) {
      text +=
          fmt::format("{}={}+{}@{} ", column, version->value.text(), version->amount, version->dot);
    }
  }
  return text;
}

bool overlap(const causality::Delta& a, const causality::Delta& b) {
  const auto same_cell = [&](const causality::CellChange& x) {
    return std::ranges::any_of(b.cells, [&](const causality::CellChange& y) {
      return x.row == y.row && x.column == y.column;
    });
  };
  const auto range_meets = [](const causality::RowRange& row_range, const causality::Delta& other) {
    return std::ranges::any_of(other.cells,
                               [&](const auto& cell) { return row_range.contains(cell.row); }) ||
           std::ranges::any_of(other.deleted_ranges,
                               [&](const auto& each) { return row_range.overlaps(each); });
  };
  return std::ranges::any_of(a.cells, same_cell) ||
         std::ranges::any_of(a.deleted_ranges,
                             [&](const auto& row_range) { return range_meets(row_range, b); }) ||
         std::ranges::any_of(b.deleted_ranges,
                             [&](const auto& row_range) { return range_meets(row_range, a); });
}

KnownDelta* TabletOracle::find(const causality::Dot& dot) {
  const auto at = deltas_.find(dot);
  return at == deltas_.end() ? nullptr : &at->second;
}

bool TabletOracle::in_engine(const causality::Dot& dot) const {
  const auto at = deltas_.find(dot);
  return at != deltas_.end() && at->second.in_engine;
}

void TabletOracle::absorb(const KnownDelta& known) {
  if (known.gone) return;
  stores_[known.table][known.partition].absorb(
      causality::fragment_of(known.delta, policies_.at(known.table)));
}

void TabletOracle::add_minted(TableId table, const std::string& partition,
                              const causality::Delta& delta) {
  if (told_alone) told_stable.add(delta.dot);
  KnownDelta& known = deltas_[delta.dot];
  known = {.table = table, .partition = partition, .delta = delta, .in_engine = true};
  absorb(known);
}

void TabletOracle::acknowledge(const causality::Dot& dot) {
  deltas_.at(dot).acknowledged = true;
  see(dot);
}

void TabletOracle::mint_at_peer(TableId table, const std::string& partition, Policy policy,
                                causality::Mutation mutation) {
  // Conservative: above everything that the peer has.
  causality::Timestamp floor = causality::kTimestampMin;
  for (const auto& [dot, known] : deltas_) {
    if (known.at_peer) floor = std::max(floor, known.delta.timestamp);
  }
  auto delta =
      causality::mint(peer_clock_, peer_actor_, kEpoch, policy, std::move(mutation), floor);
  ASSERT(delta.has_value());
  see(delta->dot);
  deltas_[delta->dot] = {
      .table = table, .partition = partition, .delta = *std::move(delta), .at_peer = true};
}

void TabletOracle::enter(KnownDelta& known, Policy policy) {
  policies_[known.table] = policy;
  if (known.in_engine) return;
  known.in_engine = true;
  absorb(known);
}

void TabletOracle::give_to_peer(const causality::Dot& dot) {
  deltas_.at(dot).at_peer = true;
  peer_clock_.add(dot);
}

void TabletOracle::drop_table(TableId table) {
  stores_.erase(table);
  for (auto& [dot, known] : deltas_) {
    if (known.table != table) continue;
    known.gone = true;
    if (!known.in_engine) peer_is_cut_off_ = true;
  }
}

std::vector<causality::Dot> TabletOracle::adopt(const causality::Clock& found) {
  std::vector<causality::Dot> lost;
  stores_.clear();
  for (auto at = deltas_.begin(); at != deltas_.end();) {
    KnownDelta& known = at->second;
    const bool there = found.contains(at->first);
    if (!there && known.acknowledged) lost.push_back(at->first);
    if (!there && known.gone) peer_is_cut_off_ = true;
    known.in_engine = there;
    known.acknowledged = there;
    if (there) see(at->first);
    if (there) absorb(known);
    at = there || known.at_peer ? std::next(at) : deltas_.erase(at);
  }
  return lost;
}

const causality::PartitionStore& TabletOracle::partition(TableId table,
                                                         const std::string& partition) const {
  static const causality::PartitionStore kEmpty;
  const auto stores = stores_.find(table);
  if (stores == stores_.end()) return kEmpty;
  const auto store = stores->second.find(partition);
  return store == stores->second.end() ? kEmpty : store->second;
}

ShownRows TabletOracle::rows(TableId table, causality::WallTime now) const {
  ShownRows rows;
  const auto stores = stores_.find(table);
  if (stores == stores_.end()) return rows;
  for (const auto& [partition, store] : stores->second) {
    for (const auto& [row, unused] : store.rows()) {
      const std::string text = shown_row(store, row, policies_.at(table), now);
      if (!text.empty()) rows.emplace_back(partition + "/" + std::string(row.text()), text);
    }
  }
  return rows;
}

causality::Clock TabletOracle::dots_in_engine() const {
  causality::Clock clock;
  for (const auto& [dot, known] : deltas_) {
    if (known.in_engine) clock.add(dot);
  }
  return clock;
}

std::uint64_t TabletOracle::count_in_engine() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(deltas_, [](const auto& each) { return each.second.in_engine; }));
}

bool TabletOracle::pulled_completely() const {
  return !peer_is_cut_off_ && std::ranges::all_of(deltas_, [](const auto& each) {
    return !each.second.at_peer || each.second.acknowledged;
  });
}

}  // namespace helenus::storage::testing
