// The limits of what causality accepts, from clients and from the wire. Bytes that exceed them are
// refused; nothing of ours produces them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace helenus::causality {

inline constexpr std::size_t kActorsPerClockMax = 4096;
inline constexpr std::size_t kClosedPerClockMax = 4096;
inline constexpr std::size_t kRangesPerActorMax = 1 << 20;
inline constexpr std::size_t kVersionsPerCellMax = 1 << 16;
inline constexpr std::size_t kCellsPerDeltaMax = 1 << 16;
inline constexpr std::size_t kScopesPerDeltaMax = 1 << 12;

}  // namespace helenus::causality
