// bench-await: what waiting costs, in nanoseconds (so a ratio below one is better).
//
// Peers: for tasks a coroutine written by hand for the purpose, with symmetric transfer and nothing
// else (no assertion, no error value); for the ready queue a std::deque of std::function, which is
// what callbacks would sit in; for the hand-over a call of a virtual function, the least any
// indirect hand-over can cost.
#include <coroutine>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "bench/report.h"
#include "runtime/native/native_host.h"
#include "runtime/semaphore.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"

namespace helenus::bench {
namespace {

using runtime::Operation;
using runtime::Runtime;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

// The peer of Task<int>: the least a lazy coroutine with a value can be.
class BareTask {
 public:
  struct promise_type {
    BareTask get_return_object() {
      return BareTask(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Finish {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> frame) noexcept {
          return frame.promise().awaiting;
        }
        void await_resume() noexcept {}
      };
      return Finish{};
    }
    void return_value(int value_) { value = value_; }
    void unhandled_exception() { std::terminate(); }
    int value = 0;
    std::coroutine_handle<> awaiting = std::noop_coroutine();
  };

  BareTask(const BareTask&) = delete;
  BareTask& operator=(const BareTask&) = delete;
  ~BareTask() { frame_.destroy(); }

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) {
    frame_.promise().awaiting = awaiting;
    return frame_;
  }
  int await_resume() { return frame_.promise().value; }
  int run() {
    frame_.resume();
    return frame_.promise().value;
  }

 private:
  explicit BareTask(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

constexpr int kAwaits = 100'000;

double nanoseconds_each(const Stopwatch& stopwatch, int count) {
  return stopwatch.seconds() * 1e9 / count;
}

// noinline: a frame that the compiler can see through is not allocated at all.
[[gnu::noinline]] Task<int> ready(int value) {
  co_return value;
}
[[gnu::noinline]] Task<int> nested(int depth) {
  if (depth == 0) co_return 1;
  const int below = co_await nested(depth - 1);
  co_return below + 1;
}
[[gnu::noinline]] BareTask bare_ready(int value) {
  co_return value;
}
[[gnu::noinline]] BareTask bare_nested(int depth) {
  if (depth == 0) co_return 1;
  const int below = co_await bare_nested(depth - 1);
  co_return below + 1;
}

Task<double> await_ready_tasks(Runtime&) {
  const Stopwatch stopwatch;
  int sum = 0;
  for (int i = 0; i < kAwaits; ++i) sum += co_await ready(i);
  keep(sum);
  co_return nanoseconds_each(stopwatch, kAwaits);
}
Task<double> await_nested_tasks(Runtime&) {
  const Stopwatch stopwatch;
  int sum = 0;
  for (int i = 0; i < kAwaits; ++i) sum += co_await nested(3);
  keep(sum);
  co_return nanoseconds_each(stopwatch, kAwaits);
}
BareTask await_bare_ready() {
  int sum = 0;
  for (int i = 0; i < kAwaits; ++i) sum += co_await bare_ready(i);
  keep(sum);
  co_return 0;
}
BareTask await_bare_nested() {
  int sum = 0;
  for (int i = 0; i < kAwaits; ++i) sum += co_await bare_nested(3);
  keep(sum);
  co_return 0;
}

// Completes in the next turn of the loop.
class NextTurn final : public Operation<void> {
 public:
  explicit NextTurn(Runtime& runtime) : Operation(runtime, Until::forever()), turn_(*this) {}

 private:
  struct Turn final : runtime::Job {
    explicit Turn(NextTurn& operation_) : operation(operation_) {}
    void run() override { operation.complete({}); }
    NextTurn& operation;
  };
  void start() override { runtime().executor.post(turn_); }
  void cancel() override {}

  Turn turn_;
};

// Completes at once.
class AtOnce final : public Operation<void> {
 public:
  explicit AtOnce(Runtime& runtime) : Operation(runtime, Until::forever()) {}

 private:
  void start() override { complete({}); }
  void cancel() override {}
};

Task<double> await_ready_operations(Runtime& rt) {
  const Stopwatch stopwatch;
  for (int i = 0; i < kAwaits; ++i) {
    const auto done = co_await AtOnce(rt);
    keep(done.has_value());
  }
  co_return nanoseconds_each(stopwatch, kAwaits);
}

// Each await is two turns through the queue: the operation's, and the coroutine's.
Task<double> go_through_the_queue(Runtime& rt) {
  const Stopwatch stopwatch;
  for (int i = 0; i < kAwaits / 2; ++i) {
    const auto done = co_await NextTurn(rt);
    keep(done.has_value());
  }
  co_return nanoseconds_each(stopwatch, kAwaits);
}

double callbacks_through_a_deque() {
  std::deque<std::function<void()>> queue;
  int left = kAwaits;
  std::function<void()> post = [&] {
    if (--left > 0) queue.emplace_back([&post] { post(); });
  };
  const Stopwatch stopwatch;
  queue.emplace_back([&post] { post(); });
  while (!queue.empty()) {
    auto callback = std::move(queue.front());
    queue.pop_front();
    callback();
  }
  return nanoseconds_each(stopwatch, kAwaits);
}

Task<void> take_turns(runtime::Semaphore& mine, runtime::Semaphore& other,
                      std::vector<runtime::Permit>& held_by_me,
                      std::vector<runtime::Permit>& held_by_other) {
  for (int i = 0; i < kAwaits / 2; ++i) {
    auto permit = co_await mine.acquire(1, Until::forever());
    held_by_me.push_back(*std::move(permit));
    held_by_other.clear();
    keep(other.units_free());
  }
}

// Two coroutines that wake each other: each gives the unit that the other waits for.
Task<double> hand_over_by_semaphore(Runtime& rt) {
  runtime::Semaphore ping(rt, 1, 2);
  runtime::Semaphore pong(rt, 1, 2);
  std::vector<runtime::Permit> held_ping;
  std::vector<runtime::Permit> held_pong;
  held_pong.push_back(pong.try_acquire(1));
  runtime::TaskGroup group(rt);
  const Stopwatch stopwatch;
  group.spawn(take_turns(ping, pong, held_ping, held_pong));
  group.spawn(take_turns(pong, ping, held_pong, held_ping));
  co_await group.join();
  co_return nanoseconds_each(stopwatch, kAwaits);
}

class Callee {
 public:
  virtual ~Callee() = default;
  virtual int call(int value) = 0;
};
class AddOne final : public Callee {
 public:
  int call(int value) override { return value + 1; }
};

double virtual_calls() {
  const std::unique_ptr<Callee> callee = std::make_unique<AddOne>();
  Callee* volatile opaque = callee.get();
  const Stopwatch stopwatch;
  int sum = 0;
  for (int i = 0; i < kAwaits; ++i) sum = opaque->call(sum);
  keep(sum);
  return nanoseconds_each(stopwatch, kAwaits);
}

Task<int> measure_into(Runtime& rt, Task<double> (*measure)(Runtime&), double& result) {
  result = co_await measure(rt);
  co_return 0;
}

// On a core of its own each time.
double on_a_core(Task<double> (*measure)(Runtime&)) {
  auto host = runtime::native::NativeHost::open({.cores = 1, .handle_signals = false});
  if (!host) std::exit(runtime::native::fail_at_start("bench-await", host.error()));
  double result = 0;
  (*host)->run([&](Runtime& rt, StopToken) { return measure_into(rt, measure, result); });
  return result;
}

double timed(BareTask (*make)()) {
  BareTask task = make();
  const Stopwatch stopwatch;
  keep(task.run());
  return nanoseconds_each(stopwatch, kAwaits);
}

void compare_awaits(const Options& options, Report& report) {
  const int rounds = options.quick ? 3 : 31;
  const auto compare = [&](const char* name, auto&& ours, const char* peer_name, auto&& peer) {
    const Medians medians = by_turns(rounds, ours, peer);
    report.row({.name = name,
                .value = medians.ours,
                .unit = "ns",
                .peer = peer_name,
                .peer_value = medians.peer});
  };
  compare(
      "await of a ready task", [] { return on_a_core(await_ready_tasks); }, "bare coroutine",
      [] { return timed(await_bare_ready); });
  compare(
      "await of a task four deep", [] { return on_a_core(await_nested_tasks); }, "bare coroutine",
      [] { return timed(await_bare_nested); });
  compare(
      "await of a ready operation", [] { return on_a_core(await_ready_operations); },
      "virtual call", [] { return virtual_calls(); });
  compare(
      "a job through the loop", [] { return on_a_core(go_through_the_queue); },
      "deque of std::function", [] { return callbacks_through_a_deque(); });
  compare(
      "semaphore hand-over", [] { return on_a_core(hand_over_by_semaphore); },
      "deque of std::function", [] { return callbacks_through_a_deque(); });
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::compare_awaits);
}
