// The limits of one mutation. Growth is refused where it enters, by mint, with an error that says
// so.
//
// What is stored or sent grows by merging, and a merge cannot refuse: a cell may come to hold any
// number of versions, a row of columns, a clock of actors and ranges. So decoders have no limits of
// their own, or bytes that we wrote ourselves would be refused as corrupt. Hostile counts are
// bounded by the bytes that are there (base/codec.h), and memory is taken as elements are read.
#pragma once

#include <cstddef>

namespace helenus::causality {

inline constexpr std::size_t kCellsPerMutationMax = 1 << 16;
inline constexpr std::size_t kScopesPerMutationMax = 1 << 12;

}  // namespace helenus::causality
