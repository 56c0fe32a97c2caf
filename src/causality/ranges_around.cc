#include "causality/ranges_around.h"

#include <algorithm>
#include <utility>

#include "causality/counter.h"
#include "causality/range_sweep.h"

namespace helenus::causality {

namespace {

bool goes(const Version& version, const Stability& stable) {
  return stable.dots.contains(version.dot) && is_over(version, stable);
}

bool is_stronger(const Version& version, const Version* than) {
  return than == nullptr || defeats(version, *than) > 0;
}

bool is_of_one_row(const RowRange& row_range) {
  return row_range.from && row_range.to && row_range.to->size() == row_range.from->size() + 1 &&
         row_range == range_of_row(*row_range.from);
}

}  // namespace

void RangesAround::add(const RangeDelete& range_delete) {
  steps_ += effort_of(range_delete);
  context_.add(range_delete.store.context());
  of_row_alone_ += is_of_one_row(range_delete.range) ? 1 : 0;
  for (const Version& version : range_delete.store.versions()) {
    if (!goes(version, stable_)) staying_.insert(version.dot);
    dots_[version.dot.actor].insert(version.dot.counter);
    ranked_.insert(&version);
    if (stable_.dots.contains(version.dot)) stable_ranked_.insert(&version);
  }
}

void RangesAround::remove(const RangeDelete& range_delete) {
  steps_ += effort_of(range_delete);
  context_.remove(range_delete.store.context());
  of_row_alone_ -= is_of_one_row(range_delete.range) ? 1 : 0;
  for (const Version& version : range_delete.store.versions()) {
    if (!goes(version, stable_)) staying_.erase(staying_.find(version.dot));
    const auto of_actor = dots_.find(version.dot.actor);
    of_actor->second.erase(of_actor->second.find(version.dot.counter));
    if (of_actor->second.empty()) dots_.erase(of_actor);
    ranked_.erase(&version);
    stable_ranked_.erase(&version);
  }
}

std::uint64_t RangesAround::effort_of(const RangeDelete& range_delete) {
  std::uint64_t effort = 1 + range_delete.store.versions().size();
  for (const Clock::Entry& entry : range_delete.store.context().entries()) {
    effort += entry.counters.ranges().size();
  }
  return effort + range_delete.store.context().closed().size();
}

bool RangesAround::names_all(const Clock& context) const {
  return std::ranges::all_of(dots_, [&](const auto& of_actor) {
    const auto& [actor, counters] = of_actor;
    if (context.is_closed(actor)) return true;
    const auto entries = context.entries();
    const auto entry = std::ranges::lower_bound(entries, actor, {}, &Clock::Entry::actor);
    if (entry == entries.end() || entry->actor != actor) return false;
    auto unnamed = counters.begin();
    for (const CounterRange& range : entry->counters.ranges()) {
      if (unnamed == counters.end() || *unnamed < range.first) break;
      unnamed = counters.upper_bound(range.last);
    }
    return unnamed == counters.end();
  });
}

std::vector<Dot> RangesAround::superseded(std::span<const Version> versions) const {
  std::vector<Dot> dots;
  for (const Version& version : versions) {
    if (!is_record(version.kind) && context_.contains(version.dot)) dots.push_back(version.dot);
  }
  return dots;
}

void RangesAround::drop_superseded(RowStore& row, CellStore& row_deletes) const {
  if (!context_.empty()) {
    row_deletes.forget(superseded(row_deletes.versions()));
    row.update_cells([&](CellStore& cell) {
      cell.drop_named([&](const Dot& dot) { return context_.contains(dot); });
    });
  }
  row.drop_superseded(row_deletes.context());
}

template <class MayBeChosen>
const Version* RangesAround::stronger_of(const Ranked& ranked, const CellStore& own,
                                         const Version* than, MayBeChosen may_be_chosen) {
  for (const Version* version : ranked) {
    ++steps_;
    if (!is_stronger(*version, than)) break;
    // A mutation that deleted a range and wrote the cell: what it wrote stands.
    const bool counts = !own.context().contains(version->dot) &&
                        own.find(version->dot) == nullptr && !context_.contains(version->dot);
    if (counts && may_be_chosen(*version)) return version;
  }
  return than;
}

// As droppable() of the cell merged with all ranges and the row's deletes.
std::vector<Dot> RangesAround::droppable_of(const CellStore& cell, const CellStore& row_deletes) {
  ++steps_;
  const bool alone = ranked_.empty() && row_deletes.versions().empty();
  if (alone || policy_ != Policy::lww) return droppable(cell, policy_, stable_);
  CellStore own = row_deletes;
  own.absorb(cell);
  const bool all_superseded = names_all(own.context());
  const Version* best = nullptr;
  for (const Version& version : own.versions()) {
    if (is_stronger(version, best)) best = &version;
  }
  if (!all_superseded) {
    best = stronger_of(ranked_, own, best, [](const Version&) { return true; });
  }
  const Version* strongest = nullptr;
  const auto may_go = [&](const Version& version) {
    return stable_.dots.contains(version.dot) &&
           (version.dot != best->dot || is_over(version, stable_));
  };
  for (const Version& version : own.versions()) {
    if (may_go(version) && is_stronger(version, strongest)) strongest = &version;
  }
  if (!all_superseded) strongest = stronger_of(stable_ranked_, own, strongest, may_go);
  std::vector<Dot> dots;
  if (strongest == nullptr) return dots;
  for (const Version& version : cell.versions()) {
    if (defeats(version, *strongest) <= 0) dots.push_back(version.dot);
  }
  return dots;
}

void RangesAround::apply_to(RowStore& row, CellStore& row_deletes) {
  drop_superseded(row, row_deletes);
  if (policy_ == Policy::counter) {
    row.update_cells([&](CellStore& cell) { fold(cell, stable_); });
  }
  std::vector<std::pair<ColumnId, std::vector<Dot>>> drops;
  for (const auto& [column, cell] : row.cells()) {
    auto dots = droppable_of(cell, row_deletes);
    if (!dots.empty()) drops.emplace_back(column, std::move(dots));
  }
  for (const auto& [column, dots] : drops) row.forget(column, dots);
  const bool spares_too_many = staying_.size() > kSparedMax;
  std::vector<Dot> spared_by_ranges;
  if (!spares_too_many) spared_by_ranges.assign(staying_.begin(), staying_.end());
  std::vector<Dot> gone;
  std::vector<Dot> spared = spared_by_ranges;
  for (const Version& version : row_deletes.versions()) {
    (goes(version, stable_) ? gone : spared).push_back(version.dot);
  }
  row_deletes.forget(gone);
  if (spares_too_many) return;
  // Deletes of the row that lie among the ranges stay there, and what is here goes on naming them.
  if (of_row_alone_ == 0) row_deletes.strip(known_, spared_by_ranges);
  row.strip(known_, spared);
}

}  // namespace helenus::causality
