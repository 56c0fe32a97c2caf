#include "replication/explicit_timestamps/range_cut.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace helenus::replication {

using causality::RowKey;
using causality::Scope;

std::vector<Scope> cut(const Scope& scope, std::vector<Scope> holes) {
  // By where they begin; an absent bound is the least.
  if (!std::ranges::is_sorted(holes)) std::ranges::sort(holes);
  std::vector<Scope> left;
  std::optional<RowKey> from = scope.from;  // where the rest begins
  for (Scope& hole : holes) {
    if (hole.to && from && *hole.to <= *from) continue;
    if (hole.from && scope.to && *scope.to <= *hole.from) break;
    if (hole.from && (!from || *from < *hole.from)) left.push_back({.from = from, .to = hole.from});
    if (!hole.to) return left;
    from = std::move(hole.to);
  }
  if (!from || !scope.to || *from < *scope.to) left.push_back({.from = from, .to = scope.to});
  return left;
}

std::vector<Scope> joined(std::vector<Scope> scopes) {
  std::ranges::sort(scopes);
  std::vector<Scope> apart;
  for (Scope& scope : scopes) {
    const bool joins =
        !apart.empty() && (!apart.back().to || !scope.from || *scope.from <= *apart.back().to);
    if (!joins) {
      apart.push_back(std::move(scope));
    } else if (apart.back().to && (!scope.to || *apart.back().to < *scope.to)) {
      apart.back().to = std::move(scope.to);
    }
  }
  return apart;
}

bool holds_any(std::span<const Scope> among, const RowKey& row) {
  const auto behind = std::ranges::partition_point(
      among, [&](const Scope& scope) { return !scope.from || *scope.from <= row; });
  return behind != among.begin() && std::prev(behind)->contains(row);
}

bool overlaps_any(const Scope& scope, std::span<const Scope> among) {
  const auto first = std::ranges::partition_point(
      among, [&](const Scope& one) { return one.to && scope.from && *one.to <= *scope.from; });
  return first != among.end() && first->overlaps(scope);
}

}  // namespace helenus::replication
