#include "replication/scope_cut.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace helenus::replication {

using causality::RowKey;
using causality::Scope;

std::vector<Scope> cut(const Scope& scope, std::vector<Scope> holes) {
  // By where they begin; an absent bound is the least.
  std::ranges::sort(holes);
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

}  // namespace helenus::replication
