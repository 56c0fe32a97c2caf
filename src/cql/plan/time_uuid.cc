#include "cql/plan/time_uuid.h"

#include "base/assert.h"
#include "base/codec.h"

namespace helenus::cql {

base::Uuid time_uuid(std::int64_t ticks, std::uint64_t clock_and_node) {
  ASSERT(ticks >= kTimeUuidTicksMin && ticks <= kTimeUuidTicksMax);
  const auto time = static_cast<std::uint64_t>(ticks + kGregorianOffset);
  base::Uuid::Octets octets{};
  base::store_be(octets.data(), static_cast<std::uint32_t>(time));
  base::store_be(octets.data() + 4, static_cast<std::uint16_t>(time >> 32));
  base::store_be(octets.data() + 6, static_cast<std::uint16_t>(((time >> 48) & 0x0fff) | 0x1000));
  base::store_be(octets.data() + 8, clock_and_node);
  return base::Uuid(octets);
}

std::uint64_t random_node(Moment& moment) {
  // Variant bits of RFC 4122, and the bit of the node that says it is no hardware address.
  return (moment.roll() & 0x3fffffffffffffff) | 0x8000000000000000 | 0x0000010000000000;
}

base::Uuid time_uuid_of(Moment& moment) {
  return time_uuid(moment.time_uuid_ticks(), random_node(moment));
}

}  // namespace helenus::cql
