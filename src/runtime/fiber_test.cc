#include "runtime/fiber.h"

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/sleep.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::runtime {
namespace {

using base::Errc;
using base::Result;
using namespace std::chrono_literals;

// Deep in calls, with something on the stack that has to be given back.
Result<std::uint64_t> depths(base::Pace& pace, unsigned depth) {
  const std::string mine(depth + 20, 'x');
  TRY_VOID(pace.turn());
  if (depth == 0) return mine.size();
  TRY(const std::uint64_t left, depths(pace, depth - 1));
  TRY(const std::uint64_t right, depths(pace, depth - 1));
  return left + right;
}

using Story = std::function<Task<void>(Runtime&)>;

class Teller final : public sim::Process {
 public:
  Teller(Runtime& runtime, const Story& story, bool& is_over)
      : runtime_(runtime), story_(story), is_over_(is_over) {}
  Task<void> run(StopToken stop) override {
    co_await story_(runtime_);
    is_over_ = true;
    std::ignore = co_await sleep_for(runtime_, 1h, stop);
  }

 private:
  Runtime& runtime_;
  const Story& story_;
  bool& is_over_;
};

void tell(const Story& story) {
  sim::World world(1);
  bool is_over = false;
  sim::Machine& machine = world.add_machine(
      {}, [&](Runtime& runtime) { return std::make_unique<Teller>(runtime, story, is_over); });
  machine.start();
  EXPECT_TRUE(world.run_until([&] { return is_over; }, 1min));
  machine.request_stop();
  EXPECT_TRUE(world.run_until([&] { return !machine.is_up(); }, 1min));
}

TEST(Fiber, WorkIsDoneInTurnsWithOthers) {
  tell([](Runtime& runtime) -> Task<void> {
    std::uint64_t sum = 0;
    const auto done = co_await in_turns(runtime, {}, [&](base::Pace& pace) {
      const auto found = depths(pace, 12);
      ASSERT_TRUE(found.has_value());
      sum = *found;
    });
    EXPECT_TRUE(done.has_value());
    EXPECT_EQ(sum, 4096U * 20U);
  });
}

// Left in its middle and never gone on with: what is on its stack is given back all the same.
TEST(Fiber, WorkThatIsGivenUpComesToItsEnd) {
  tell([](Runtime& runtime) -> Task<void> {
    StopSource stop;
    stop.request_stop();
    Result<std::uint64_t> found = std::uint64_t{0};
    const auto done = co_await in_turns(runtime, {.stop = stop.token()},
                                        [&](base::Pace& pace) { found = depths(pace, 16); });
    if (!done) {
      EXPECT_TRUE(done.failed_with(Errc::cancelled));
      EXPECT_TRUE(found.failed_with(Errc::cancelled));
    }
    bool ended = false;
    {
      Fiber fiber(runtime, [&](base::Pace& pace) {
        EXPECT_TRUE(depths(pace, 3).has_value());
        while (pace.turn()) {
        }
        ended = true;
      });
      fiber.resume();
    }
    EXPECT_TRUE(ended);
    const Fiber never_begun(runtime, [](base::Pace&) { ADD_FAILURE(); });
  });
}

TEST(Fiber, ManyAreUnderWayAtOnce) {
  tell([](Runtime& runtime) -> Task<void> {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<unsigned> steps(10);
    for (unsigned& count : steps) {
      fibers.push_back(std::make_unique<Fiber>(runtime, [&count](base::Pace& pace) {
        for (; count < 10'000; ++count) {
          if (!pace.turn()) return;
        }
      }));
    }
    for (bool all = false; !all;) {
      all = true;
      for (const auto& fiber : fibers) {
        if (fiber->has_ended()) continue;
        fiber->resume();
        all = all && fiber->has_ended();
      }
    }
    for (const unsigned count : steps) EXPECT_EQ(count, 10'000U);
    co_return;
  });
}

}  // namespace
}  // namespace helenus::runtime
