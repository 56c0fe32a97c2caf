#include <gtest/gtest.h>

#include "runtime/sleep.h"
#include "sim/sim_world.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

TEST(World, ABodyRunsInVirtualTime) {
  auto world = make_sim_world(1);
  world->run([](runtime::Runtime& rt) -> runtime::Task<void> {
    const auto before = rt.clock.now();
    const auto slept = co_await runtime::sleep_for(rt, 1h, {});
    CO_ASSERT_OK(slept);
    EXPECT_GE(rt.clock.now() - before, 1h);
    EXPECT_LT(rt.clock.now() - before, 1h + 1ms);
  });
}

}  // namespace
}  // namespace helenus::sim
