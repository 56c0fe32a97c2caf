#include "causality/dot_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "causality/range_sweep.h"

namespace helenus::causality {

namespace {

template <class Predicate>
void erase_versions(Versions& versions, Predicate&& predicate) {
  versions.erase(std::remove_if(versions.begin(), versions.end(), predicate), versions.end());
}

bool may_stand_beside(const Version& version, const Clock& context) {
  return is_record(version.kind) || !context.contains(version.dot);
}

}  // namespace

CellStore::CellStore(Versions versions, Clock context)
    : versions_(std::move(versions)), context_(std::move(context)) {
  if (versions_.size() > 1) std::ranges::sort(versions_, {}, &Version::dot);
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    ASSERT(i == 0 || versions_[i - 1].dot != versions_[i].dot);
    ASSERT(may_stand_beside(versions_[i], context_), "{} is in its own context", versions_[i].dot);
  }
}

const Version* CellStore::find(const Dot& dot) const {
  const auto at = std::ranges::lower_bound(versions_, dot, {}, &Version::dot);
  return at != versions_.end() && at->dot == dot ? &*at : nullptr;
}

void CellStore::add(Version version) {
  ASSERT(may_stand_beside(version, context_), "{} is superseded here", version.dot);
  const auto at = std::ranges::lower_bound(versions_, version.dot, {}, &Version::dot);
  ASSERT(at == versions_.end() || at->dot != version.dot, "{} is here already", version.dot);
  versions_.insert(at, std::move(version));
}

void CellStore::discard(const Clock& seen) {
  drop_superseded(seen);
  context_ = join(context_, seen);
}

bool CellStore::bury(Version& version) {
  if (version.kind != VersionKind::increment || version.value.empty()) return false;
  version.kind = VersionKind::dead;
  version.amount = 0;
  return true;
}

bool CellStore::holds_reset() const {
  return std::ranges::find(versions_, VersionKind::reset, &Version::kind) != versions_.end();
}

namespace {

// Which of two versions of one dot is that of the cell, and which that of a range around it.
bool overrides(const Version& a, const Version& b) {
  if (a.timestamp != b.timestamp) return a.timestamp > b.timestamp;
  return a.kind != VersionKind::deletion;
}

// Of two versions that a counter has under one dot: who knows that it is dead, or has folded it,
// knows more.
bool knows_more(const Version& a, const Version& b) {
  return b.kind == VersionKind::increment &&
         (a.kind == VersionKind::dead || a.kind == VersionKind::total ||
          a.kind == VersionKind::folded);
}

// A copy may have put one in the place of the other (counter_difference): then it is the later.
[[maybe_unused]] bool is_copied_over(const Version& a, const Version& b) {
  const auto may_be = [](const Version& version) {
    return version.kind == VersionKind::total || version.kind == VersionKind::folded;
  };
  return may_be(a) && may_be(b) && a.timestamp != b.timestamp;
}

}  // namespace

template <class Iterator>
void CellStore::absorb_from(Iterator first, Iterator last, const Clock& context) {
  drop_superseded(context);
  // What is new goes behind what was here and is put in order once: a cell may hold very many
  // increments.
  const std::size_t before = versions_.size();
  for (; first != last; ++first) {
    const Version& version = *first;
    const bool superseded = !may_stand_beside(version, context_);
    const bool has_name = version.kind == VersionKind::increment && !version.value.empty();
    if (superseded && !has_name) continue;
    const std::span<Version> here(versions_.data(), before);
    const auto at = std::ranges::lower_bound(here, version.dot, {}, &Version::dot);
    if (at == here.end() || at->dot != version.dot) {
      versions_.push_back(*first);
      if (superseded) bury(versions_.back());
    } else if (*at != version && !knows_more(*at, version)) {
      // One mutation deleted the range and wrote the cell: what it wrote stands.
      ASSERT_SLOW(at->kind == VersionKind::deletion || version.kind == VersionKind::deletion ||
                      knows_more(version, *at) || is_copied_over(version, *at),
                  "the dot {} has two versions", version.dot);
      if (knows_more(version, *at) || overrides(version, *at)) *at = *first;
    }
  }
  const bool in_order = before == 0 || before == versions_.size() ||
                        versions_[before - 1].dot < versions_[before].dot;
  if (!in_order) std::ranges::sort(versions_, {}, &Version::dot);
  if (!context.empty()) context_ = join(context_, context);
}

void CellStore::absorb(const CellStore& other) {
  if (empty()) {
    *this = other;
  } else {
    absorb_from(other.versions_.begin(), other.versions_.end(), other.context_);
  }
}

void CellStore::absorb(CellStore&& other) {
  if (empty()) {
    *this = std::move(other);
  } else {
    absorb_from(std::make_move_iterator(other.versions_.begin()),
                std::make_move_iterator(other.versions_.end()), other.context_);
  }
}

void CellStore::strip(const Clock& known) {
  if (!context_.empty() && !holds_reset()) context_ = subtract(context_, known);
}

void CellStore::strip(const Clock& known, std::span<const Dot> spared) {
  if (context_.empty() || holds_reset()) return;
  Clock left = subtract(context_, known);
  for (const Dot& dot : spared) {
    if (context_.contains(dot)) left.add(dot);
  }
  context_ = std::move(left);
}

void CellStore::drop_superseded(const Clock& seen) {
  if (seen.empty()) return;
  drop_named([&](const Dot& dot) { return seen.contains(dot); });
}

void CellStore::forget(std::span<const Dot> dots) {
  if (dots.empty()) return;
  std::vector<Dot> sorted(dots.begin(), dots.end());
  std::ranges::sort(sorted);
  erase_versions(versions_, [&](const Version& version) {
    return std::ranges::binary_search(sorted, version.dot);
  });
}

CellStore sync(const CellStore& a, const CellStore& b) {
  CellStore both = a;
  both.absorb(b);
  return both;
}

CellStore strip(CellStore store, const Clock& known) {
  store.strip(known);
  return store;
}

CellStore fill(CellStore store, const Clock& clock) {
  Clock alive;
  for (const Version& version : store.versions()) {
    if (!is_record(version.kind)) alive.add(version.dot);
  }
  Versions versions(store.versions().begin(), store.versions().end());
  return CellStore(std::move(versions), subtract(join(store.context(), clock), alive));
}

CellStore unseen(CellStore object, const Clock& clock) {
  std::vector<Dot> seen;
  for (const Version& version : object.versions()) {
    if (clock.contains(version.dot)) seen.push_back(version.dot);
  }
  object.forget(seen);
  return object;
}

bool RowRange::contains(const RowRange& other) const {
  const bool begins = !from || (other.from && *from <= *other.from);
  const bool ends = !to || (other.to && *other.to <= *to);
  return begins && ends;
}

bool RowRange::overlaps(const RowRange& other) const {
  return (!to || !other.from || *other.from < *to) && (!other.to || !from || *from < *other.to);
}

RowRange range_of_row(const RowKey& row) {
  base::Buffer after(row.size() + 1);
  after.append(row.view());
  after.push_back(std::byte{0});
  return {row, std::move(after).freeze()};
}

const CellStore& RowStore::cell(ColumnId column) const {
  static const CellStore kNothing;
  const auto at = cells_.find(column);
  return at == cells_.end() ? kNothing : at->second;
}

void RowStore::absorb(ColumnId column, CellStore cell) {
  if (!cell.empty()) cells_[column].absorb(std::move(cell));
}

void RowStore::absorb(RowStore other) {
  cells_.merge(std::move(other.cells_),
               [](CellStore& mine, CellStore&& theirs) { mine.absorb(std::move(theirs)); });
}

void RowStore::strip(const Clock& known) {
  for (auto& [column, cell] : cells_) cell.strip(known);
  cells_.erase_if([](const auto& entry) { return entry.second.empty(); });
}

void RowStore::strip(const Clock& known, std::span<const Dot> spared) {
  for (auto& [column, cell] : cells_) cell.strip(known, spared);
  cells_.erase_if([](const auto& entry) { return entry.second.empty(); });
}

void RowStore::drop_superseded(const Clock& seen) {
  if (seen.empty()) return;
  for (auto& [column, cell] : cells_) cell.drop_superseded(seen);
  cells_.erase_if([](const auto& entry) { return entry.second.empty(); });
}

void RowStore::forget(ColumnId column, std::span<const Dot> dots) {
  const auto at = cells_.find(column);
  if (at == cells_.end()) return;
  at->second.forget(dots);
  if (at->second.empty()) cells_.erase(at);
}

Clock context_of_read(std::span<const CellStore* const> cells, const Clock& clock) {
  Clock common;
  bool first = true;
  for (const CellStore* cell : cells) {
    Clock reflected = cell->context();
    for (const Version& version : cell->versions()) reflected.add(version.dot);
    common = first ? std::move(reflected) : meet(common, reflected);
    first = false;
  }
  return join(common, clock);
}

CellStore PartitionStore::cell(const RowKey& row, ColumnId column) const {
  CellStore found;
  if (const auto at = rows_.find(row); at != rows_.end()) found = at->second.cell(column);
  for (const RangeDelete& range_delete : range_deletes_) {
    if (range_delete.range.contains(row)) found.absorb(range_delete.store);
  }
  return found;
}

void PartitionStore::absorb(const RowKey& row, ColumnId column, CellStore cell) {
  if (!cell.empty()) rows_[row].absorb(column, std::move(cell));
}

void PartitionStore::absorb(const RowKey& row, RowStore store) {
  if (!store.empty()) rows_[row].absorb(std::move(store));
}

void PartitionStore::absorb(const RangeDelete& range_delete) {
  if (range_delete.store.empty()) return;
  const auto at =
      std::ranges::lower_bound(range_deletes_, range_delete.range, {}, &RangeDelete::range);
  if (at != range_deletes_.end() && at->range == range_delete.range) {
    at->store.absorb(range_delete.store);
  } else {
    range_deletes_.insert(at, range_delete);
  }
}

void PartitionStore::absorb(const PartitionStore& other) {
  if (&other == this) return;
  rows_.merge(other.rows_,
              [](RowStore& mine, RowStore&& theirs) { mine.absorb(std::move(theirs)); });
  // One by one each would move those behind it.
  constexpr std::size_t kOneByOneMax = 8;
  if (other.range_deletes_.size() <= kOneByOneMax) {
    for (const RangeDelete& range_delete : other.range_deletes_) absorb(range_delete);
    return;
  }
  std::vector<RangeDelete> both;
  both.reserve(range_deletes_.size() + other.range_deletes_.size());
  auto mine = range_deletes_.begin();
  for (const RangeDelete& theirs : other.range_deletes_) {
    while (mine != range_deletes_.end() && mine->range < theirs.range)
      both.push_back(std::move(*mine++));
    if (mine != range_deletes_.end() && mine->range == theirs.range) {
      mine->store.absorb(theirs.store);
    } else {
      both.push_back(theirs);
    }
  }
  std::move(mine, range_deletes_.end(), std::back_inserter(both));
  range_deletes_ = std::move(both);
}

void PartitionStore::apply_range_deletes_to_rows() {
  for (const RangeDelete& range_delete : range_deletes_) {
    for (auto& [row, store] : rows_) {
      if (range_delete.range.contains(row)) store.drop_superseded(range_delete.store.context());
    }
  }
  rows_.erase_if([](const auto& entry) { return entry.second.empty(); });
}

void PartitionStore::apply_range_deletes() {
  if (range_deletes_.size() < 2) return;
  RangesInside(range_deletes_).advance(range_deletes_.size());
  std::erase_if(range_deletes_,
                [](const RangeDelete& range_delete) { return range_delete.store.empty(); });
}

void PartitionStore::strip(const Clock& known) {
  apply_range_deletes_to_rows();
  for (auto& [row, store] : rows_) {
    Clock spared = known;
    for (const RangeDelete& range_delete : range_deletes_) {
      if (!range_delete.range.contains(row)) continue;
      for (const Version& version : range_delete.store.versions()) spared.remove(version.dot);
    }
    store.strip(spared);
  }
  for (RangeDelete& range_delete : range_deletes_) {
    Clock spared = known;
    for (const RangeDelete& other : range_deletes_) {
      if (!range_delete.range.overlaps(other.range)) continue;
      for (const Version& version : other.store.versions()) spared.remove(version.dot);
    }
    range_delete.store.strip(spared);
  }
  rows_.erase_if([](const auto& entry) { return entry.second.empty(); });
  std::erase_if(range_deletes_,
                [](const RangeDelete& range_delete) { return range_delete.store.empty(); });
}

void PartitionStore::forget(const RowKey& row, ColumnId column, std::span<const Dot> dots) {
  const auto at = rows_.find(row);
  if (at == rows_.end()) return;
  at->second.forget(column, dots);
  if (at->second.empty()) rows_.erase(at);
}

void PartitionStore::forget_range_deletes(std::span<const Dot> dots) {
  // A partition may have as many ranges as dots to forget.
  std::vector<Dot> sorted(dots.begin(), dots.end());
  std::ranges::sort(sorted);
  std::vector<Dot> own;
  for (RangeDelete& range_delete : range_deletes_) {
    own.clear();
    for (const Version& version : range_delete.store.versions()) {
      if (std::ranges::binary_search(sorted, version.dot)) own.push_back(version.dot);
    }
    range_delete.store.forget(own);
  }
  std::erase_if(range_deletes_,
                [](const RangeDelete& range_delete) { return range_delete.store.empty(); });
  rows_.erase_if([](const auto& entry) { return entry.second.empty(); });
}

}  // namespace helenus::causality
