// DerivedEntry: what a mutation of a table puts into an index of it (docs/adr/0053).
//
// An index is a table of storage's own, beside the one it is of, in the same tablets. Its entries
// follow from the cells that are written, and are never in the log: whoever applies a mutation
// applies its entries under the same dot. What a value is, and where its entry goes, is for those
// to say who know types: storage is given a function for each index.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "causality/delta.h"

namespace helenus::storage {

// The row of the cell begins with the partition that the entry points at, whose size is the column;
// what the keys of the rows begin with that it points at is behind it. Less than the partition's
// size: it is cut off, and points at all that begin so.
struct DerivedEntry {
  base::Bytes partition;  // of the tablet
  causality::CellChange cell;
};

// Adds the entries of these cells of one partition. `tablet_from` is where the tablet's range
// begins. Pure; whatever the bytes are, it only says less than it might.
using DeriveEntries = std::function<void(base::ByteView tablet_from, base::ByteView partition,
                                         std::span<const causality::CellChange> cells,
                                         std::vector<DerivedEntry>& into)>;

// Reads the definition of an index. Null if it is none: then the index stays without entries, and
// is never built.
using ReadIndexDefinition = std::function<DeriveEntries(const base::Bytes& definition)>;

}  // namespace helenus::storage
