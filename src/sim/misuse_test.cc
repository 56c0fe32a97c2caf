// What the runtime's assertions catch: uses that would otherwise leave something dangling. Each
// stops the process with a word about what was wrong.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/event.h"
#include "runtime/gate.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "sim/sim_world.h"

namespace helenus::sim {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::TaskGroup;
using runtime::Until;
using namespace std::chrono_literals;

using Story = Task<void> (*)(Runtime&);

void tell(Story story) {
  sim_world_factory(1).make(1)->run(story);
}

Task<void> wait_an_hour(Runtime& rt) {
  const auto slept = co_await runtime::sleep_for(rt, 1h, {});
  EXPECT_TRUE(slept.has_value());
}

TEST(MisuseDeathTest, AGroupIsJoinedBeforeItIsDestroyed) {
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 TaskGroup group(rt);
                 group.spawn(wait_an_hour(rt));
                 co_return;
               }),
               "1 tasks still running");
}

TEST(MisuseDeathTest, ATaskDoesNotOwnItsGroup) {
  struct Service {
    explicit Service(Runtime& runtime) : group(runtime) {}
    static Task<void> work(Runtime& rt, std::shared_ptr<Service> self) {
      EXPECT_EQ(self->group.size(), 1U);
      const auto yielded = co_await runtime::yield_now(rt);
      EXPECT_TRUE(yielded.has_value());
    }
    TaskGroup group;
  };
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 auto service = std::make_shared<Service>(rt);
                 service->group.spawn(Service::work(rt, service));
                 service.reset();
                 co_await wait_an_hour(rt);
               }),
               "1 tasks still running");
}

TEST(MisuseDeathTest, AGroupTakesNoMoreThanItsMaximum) {
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 TaskGroup group(rt, 1);
                 group.spawn(wait_an_hour(rt));
                 group.spawn(wait_an_hour(rt));
                 co_await group.join();
               }),
               "group is full at 1 tasks");
}

TEST(MisuseDeathTest, ASemaphoreOutlivesItsPermits) {
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 auto semaphore = std::make_unique<runtime::Semaphore>(rt, 3, 1);
                 const runtime::Permit permit = semaphore->try_acquire(2);
                 semaphore.reset();
                 co_return;
               }),
               "2 units are out");
}

TEST(MisuseDeathTest, AnEventOutlivesItsWaiters) {
  struct Waiter {
    static Task<void> wait(runtime::Event& event) {
      const auto waited = co_await event.wait(Until::forever());
      EXPECT_TRUE(waited.has_value());
    }
  };
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 TaskGroup group(rt);
                 auto event = std::make_unique<runtime::Event>(rt);
                 group.spawn(Waiter::wait(*event));
                 const auto slept = co_await runtime::sleep_for(rt, 1ms, {});
                 EXPECT_TRUE(slept.has_value());
                 event.reset();
                 co_await group.join();
               }),
               "destroyed with waiters");
}

TEST(MisuseDeathTest, AGateOutlivesThoseInside) {
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 auto gate = std::make_unique<runtime::Gate>(rt);
                 const auto pass = gate->enter();
                 gate.reset();
                 co_return;
               }),
               "1 inside");
}

TEST(MisuseDeathTest, ATaskIsAwaitedOnce) {
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 Task<void> task = wait_an_hour(rt);
                 co_await std::move(task);
                 co_await std::move(task);
               }),
               "a task is awaited once");
}

TEST(MisuseDeathTest, ASemaphoreHandsOutNoMoreThanItHas) {
  EXPECT_DEATH(tell([](Runtime& rt) -> Task<void> {
                 runtime::Semaphore semaphore(rt, 2, 1);
                 const auto permit = co_await semaphore.acquire(3, Until::forever());
                 EXPECT_FALSE(permit.has_value());
               }),
               "3 of 2 units");
}

TEST(MisuseDeathTest, AnExceptionDoesNotLeaveACoroutine) {
  EXPECT_DEATH(tell([](Runtime&) -> Task<void> {
                 const std::string beyond = std::string("end").substr(7);
                 co_return;
               }),
               "exception left a coroutine: .*substr");
}

}  // namespace
}  // namespace helenus::sim
