// What is shown of a run that failed.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/runtime.h"
#include "sim/function_process.h"
#include "sim/log_ring.h"
#include "sim/violations.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

void say(LogRing& log, base::LogLevel level, std::string_view message) {
  log.write({}, "m0", {.level = level, .module = "test", .message = message, .fields = {}});
}

TEST(Trace, KeepsWhatMattersAndFillsUpWithTheLastOfTheRest) {
  LogRing log({});
  log.note({}, "m0", "starts");
  for (int i = 0; i < 10; ++i) say(log, base::LogLevel::info, "chatter " + std::to_string(i));
  say(log, base::LogLevel::warn, "trouble");
  say(log, base::LogLevel::info, "the end");
  EXPECT_THAT(log.trace(4), ElementsAre(EndsWith("m0       starts"), HasSubstr("chatter 9"),
                                        HasSubstr("trouble"), HasSubstr("the end")));
  EXPECT_THAT(log.trace(1), ElementsAre(HasSubstr("trouble")));
  EXPECT_EQ(log.trace(100).size(), 13U);
  EXPECT_THAT(log.trace(0), IsEmpty());
}

TEST(Trace, TellsWhatHappenedToAMachine) {
  World world(1);
  Machine& machine = world.add_machine(
      {.name = "m0"},
      FunctionProcess::factory(
          [](runtime::Runtime&, runtime::StopToken) -> runtime::Task<void> { co_return; }));
  machine.start();
  machine.pause();
  machine.resume();
  machine.kill();
  machine.start();
  machine.power_loss();
  world.note("the network parts");
  EXPECT_THAT(world.log().trace(100),
              ElementsAre(EndsWith("m0       starts"), EndsWith("stands still"),
                          EndsWith("goes on"), EndsWith("is killed"), EndsWith("starts"),
                          EndsWith("loses its power"), EndsWith("world    the network parts")));
}

TEST(Violations, AreCountedAndTheFirstOnesKept) {
  Violations some;
  EXPECT_TRUE(some.expect(true, "not {}", 1));
  EXPECT_TRUE(some.empty());
  for (std::size_t i = 0; i < Violations::kKeptMax + 5; ++i) some.expect(false, "bad {}", i);
  Violations all;
  all.add("first");
  all.add_all(some);
  EXPECT_EQ(all.count(), Violations::kKeptMax + 6);
  EXPECT_EQ(all.kept().size(), Violations::kKeptMax);
  EXPECT_EQ(all.kept()[1], "bad 0");
}

}  // namespace
}  // namespace helenus::sim
