// UUIDs of version 1: a time in ticks of 100 ns, and a clock sequence and node.
#pragma once

#include <cstdint>

#include "base/uuid.h"
#include "cql/plan/moment.h"

namespace helenus::cql {

// From 1582-10-15, where the time of such a UUID begins, to 1970, in its ticks.
inline constexpr std::int64_t kGregorianOffset = 0x01b21dd213814000;
// The times since 1970 that one can hold, in ticks.
inline constexpr std::int64_t kTimeUuidTicksMin = -kGregorianOffset;
inline constexpr std::int64_t kTimeUuidTicksMax = (std::int64_t{1} << 60) - 1 - kGregorianOffset;

// Requires: ticks (since 1970) in those limits.
base::Uuid time_uuid(std::int64_t ticks, std::uint64_t clock_and_node);
// A clock sequence and node that nobody else has.
std::uint64_t random_node(Moment& moment);
// Of this moment, and unlike any other.
base::Uuid time_uuid_of(Moment& moment);

}  // namespace helenus::cql
