// Sets of rows as lists of ranges. A delete with an explicit timestamp is cut around newer rows and
// newer deletes (PartitionJudge).
#pragma once

#include <span>
#include <vector>

#include "causality/dot_store.h"

namespace helenus::replication {

// What is left of the scope without the holes: ascending, disjoint, none empty. The holes may
// overlap one another and reach beyond the scope, in any order.
// Law: a row is in the result exactly if it is in the scope and in no hole.
std::vector<causality::Scope> cut(const causality::Scope& scope,
                                  std::vector<causality::Scope> holes);

// The scopes without what they have in common: ascending, disjoint, none touching another.
// Law: a row is in the result exactly if it is in one of them.
std::vector<causality::Scope> joined(std::vector<causality::Scope> scopes);
// Whether any of these holds the row. Requires: they are ascending and disjoint. Cost: logarithmic.
bool holds_any(std::span<const causality::Scope> among, const causality::RowKey& row);
// Whether a scope overlaps any of these. Requires: they are joined. Cost: logarithmic.
bool overlaps_any(const causality::Scope& scope, std::span<const causality::Scope> among);

}  // namespace helenus::replication
