#include "cql/plan/moment.h"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "cql/plan/time_uuid.h"

namespace helenus::cql {
namespace {

using namespace std::chrono_literals;

std::uint64_t time_of(const base::Uuid& uuid) {
  const std::byte* octets = uuid.bytes().data();
  const std::uint64_t high = base::load_be<std::uint16_t>(octets + 6) & 0x0FFFU;
  const std::uint64_t middle = base::load_be<std::uint16_t>(octets + 4);
  return high << 48 | middle << 32 | base::load_be<std::uint32_t>(octets);
}

// Two cores of a node, and somebody who sets the clock back between them.
TEST(Moment, TimeUuidsDoNotGoBackWithTheWallClock) {
  NewestTimeUuid newest;
  const runtime::WallTime noon = runtime::WallTime() + 1h;
  Moment before(noon, base::Prng(1), &newest);
  Moment after(runtime::WallTime() + 30min, base::Prng(2), &newest);
  Moment later(noon + 1us, base::Prng(3), &newest);
  const base::Uuid first = time_uuid_of(before);
  const base::Uuid second = time_uuid_of(after);
  EXPECT_EQ(time_of(second), time_of(first));
  EXPECT_NE(first, second);
  EXPECT_EQ(time_of(time_uuid_of(later)), time_of(first) + 10);
  // Everything else goes by the clock.
  EXPECT_LT(after.microseconds(), before.microseconds());
}

}  // namespace
}  // namespace helenus::cql
