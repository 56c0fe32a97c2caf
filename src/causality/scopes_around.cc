#include "causality/scopes_around.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "causality/scope_sweep.h"

namespace helenus::causality {

namespace {

bool goes(const Version& version, const Stability& stable) {
  return stable.dots.contains(version.dot) && is_over(version, stable);
}

bool is_of_one_row(const Scope& scope) {
  return scope.from && scope.to && scope.to->size() == scope.from->size() + 1 &&
         scope == row_scope(*scope.from);
}

}  // namespace

ScopesAround::ScopesAround(std::span<const ScopedStore* const> scopes, Policy policy,
                           const Clock& known, const Stability& stable)
    : policy_(policy), known_(known), stable_(stable) {
  for (const ScopedStore* scoped : scopes) {
    const Clock& context = scoped->store.context();
    if (!context_.covers(context)) context_ = join(context_, context);
    has_row_alone_ = has_row_alone_ || is_of_one_row(scoped->scope);
  }
  std::vector<std::pair<ActorId, Counter>> last;
  for (const ScopedStore* scoped : scopes) {
    for (const Version& version : scoped->store.versions()) {
      if (!spares_too_many_ && !goes(version, stable)) spared_.push_back(version.dot);
      spares_too_many_ = spared_.size() > kSparedMax;
      if (context_.contains(version.dot)) continue;
      ranked_.push_back(&version);
      const auto of_actor =
          std::ranges::find(last, version.dot.actor, &std::pair<ActorId, Counter>::first);
      if (of_actor == last.end()) {
        last.emplace_back(version.dot.actor, version.dot.counter);
      } else {
        of_actor->second = std::max(of_actor->second, version.dot.counter);
      }
    }
  }
  for (const auto& [actor, counter] : last) up_to_last_.add(actor, CounterSet::up_to(counter));
  std::ranges::sort(ranked_,
                    [](const Version* a, const Version* b) { return defeats(*a, *b) > 0; });
  std::ranges::copy_if(ranked_, std::back_inserter(stable_ranked_),
                       [&](const Version* version) { return stable.dots.contains(version->dot); });
}

// As droppable() of the cell merged with all scopes and the row's deletes.
std::vector<Dot> ScopesAround::droppable_of(const CellStore& cell,
                                            const CellStore& row_deletes) const {
  const bool alone = ranked_.empty() && row_deletes.versions().empty();
  if (alone || policy_ != Policy::lww) return droppable(cell, policy_, stable_);
  CellStore own = row_deletes;
  own.absorb(cell);
  const bool all_superseded = ranked_.empty() || own.context().covers(up_to_last_);
  // A mutation that deleted a scope and wrote the cell: what it wrote stands.
  const auto counts = [&](const Version* version) {
    return !own.context().contains(version->dot) && own.find(version->dot) == nullptr;
  };
  const Version* best = nullptr;
  const auto stronger = [](const Version* than, const Version* version) {
    return than == nullptr || defeats(*version, *than) > 0;
  };
  for (const Version& version : own.versions()) {
    if (stronger(best, &version)) best = &version;
  }
  if (!all_superseded) {
    const auto first = std::ranges::find_if(ranked_, counts);
    if (first != ranked_.end() && stronger(best, *first)) best = *first;
  }
  const Version* strongest = nullptr;
  const auto may_go = [&](const Version* version) {
    return stable_.dots.contains(version->dot) &&
           (version->dot != best->dot || is_over(*version, stable_));
  };
  for (const Version& version : own.versions()) {
    if (may_go(&version) && stronger(strongest, &version)) strongest = &version;
  }
  for (const Version* version : stable_ranked_) {
    if (all_superseded || !stronger(strongest, version)) break;
    if (!counts(version) || !may_go(version)) continue;
    strongest = version;
    break;
  }
  std::vector<Dot> dots;
  if (strongest == nullptr) return dots;
  for (const Version& version : cell.versions()) {
    if (defeats(version, *strongest) <= 0) dots.push_back(version.dot);
  }
  return dots;
}

void ScopesAround::settle(RowStore& row, CellStore& row_deletes) const {
  row_deletes.drop_superseded(context_);
  row.drop_superseded(context_);
  row.drop_superseded(row_deletes.context());
  std::vector<std::pair<ColumnId, std::vector<Dot>>> drops;
  for (const auto& [column, cell] : row.cells()) {
    auto dots = droppable_of(cell, row_deletes);
    if (!dots.empty()) drops.emplace_back(column, std::move(dots));
  }
  for (const auto& [column, dots] : drops) row.forget(column, dots);
  std::vector<Dot> gone;
  std::vector<Dot> spared = spared_;
  for (const Version& version : row_deletes.versions()) {
    (goes(version, stable_) ? gone : spared).push_back(version.dot);
  }
  row_deletes.forget(gone);
  if (spares_too_many_) return;
  // Deletes of the row that lie among the scopes stay there, and what is here goes on naming them.
  if (!has_row_alone_) row_deletes.strip(known_, spared_);
  row.strip(known_, spared);
}

}  // namespace helenus::causality
