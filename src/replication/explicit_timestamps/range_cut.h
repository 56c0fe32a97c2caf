// Sets of rows as lists of ranges. A delete with an explicit timestamp is cut around newer rows and
// newer deletes (ExplicitTimestampFilter).
#pragma once

#include <span>
#include <vector>

#include "causality/dot_store.h"

namespace helenus::replication {

// What is left of the range without the holes: ascending, disjoint, none empty. The holes may
// overlap one another and reach beyond the range, in any order.
// Law: a row is in the result exactly if it is in the range and in no hole.
std::vector<causality::RowRange> cut(const causality::RowRange& row_range,
                                     std::vector<causality::RowRange> holes);

// The ranges without what they have in common: ascending, disjoint, none touching another.
// Law: a row is in the result exactly if it is in one of them.
std::vector<causality::RowRange> joined(std::vector<causality::RowRange> deleted_ranges);
// Whether any of these holds the row. Requires: they are ascending and disjoint. Cost: logarithmic.
bool holds_any(std::span<const causality::RowRange> among, const causality::RowKey& row);
// Whether a range overlaps any of these. Requires: they are joined. Cost: logarithmic.
bool overlaps_any(const causality::RowRange& row_range, std::span<const causality::RowRange> among);

}  // namespace helenus::replication
