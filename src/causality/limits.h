// The limits of one mutation. Growth is refused where it enters, by mint, with an error that says
// so. They bound for how long a mutation has its core to itself, and leave room for what one
// statement may name; what its record takes in the log (storage/log/log_options.h) ends most
// mutations before them.
//
// What is stored or sent grows by merging, and a merge cannot refuse: a cell may come to hold any
// number of versions, a row of columns, a clock of actors and ranges. So decoders have no limits of
// their own, or bytes that we wrote ourselves would be refused as corrupt. Hostile counts are
// bounded by the bytes that are there (base/codec.h), and memory is taken as elements are read.
#pragma once

#include <cstddef>

namespace helenus::causality {

inline constexpr std::size_t kCellsPerMutationMax = 1 << 18;
inline constexpr std::size_t kRangesPerMutationMax = 1 << 16;
// In which its cells lie: each is a key of its own where it is stored.
inline constexpr std::size_t kRowsPerMutationMax = 1 << 16;

}  // namespace helenus::causality
