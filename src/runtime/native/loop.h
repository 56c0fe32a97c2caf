// Loop: the event loop of one core. It runs ready jobs, fires timers, takes messages from other
// threads, hands file requests to the kernel, and waits for the kernel when there is nothing to do.
//
//   turn:  foreground jobs ready when it begins ─▶ timers due ─▶ inbox ─▶ flush ─▶ poll
//          ─▶ a slice of background jobs, if there is no foreground job, or if they were ready
//          when the turn began and their share is due
//
// Nobody starves: a job that posts itself again waits for the next turn, and a turn goes on for a
// slice (Executor::kSlice), after which what has not run waits for the next. While jobs are ready,
// polling is worth a system call only once a slice, and after each slice of background jobs: a
// request that has come meanwhile goes before the next one.
//
// The clock is looked at after so many jobs that a look comes every kLookGap or so: after each one
// if they are long, after some dozens if they take next to no time. In between, `now_` will do.
//
// Dispatching what the kernel reported never runs code of coroutines: it completes operations,
// which posts jobs. So nothing is destroyed while the reported events are walked.
//
// Core affinity: everything but the inbox belongs to the thread that calls run().
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <sys/epoll.h>

#include "base/result.h"
#include "runtime/clock.h"
#include "runtime/executor.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/inbox.h"
#include "runtime/runtime.h"
#include "runtime/timer_heap.h"

namespace helenus::runtime::native {

class NativeClock final : public Clock {
 public:
  MonotonicTime now() const override;
  WallTime wall_now() const override;
};

// A descriptor the loop watches; told of its events from poll.
class Pollable {
 public:
  // `events` are epoll's. Must not run code of coroutines.
  virtual void on_ready(std::uint32_t events) = 0;

 protected:
  ~Pollable() = default;
};

// Gathers requests during a turn and passes them to the kernel together at its end.
class Flusher {
 public:
  // Says whether it wants another turn soon although nothing else may be ready.
  virtual bool flush() = 0;

 protected:
  ~Flusher() = default;
};

class Loop final : public Executor, public Timers {
 public:
  static constexpr std::size_t kTimersPerTurn = 256;
  static constexpr std::size_t kMessagesPerTurn = 256;
  static constexpr std::size_t kEventsPerPoll = 256;
  static constexpr Duration kLookGap = std::chrono::microseconds(20);
  static constexpr std::uint32_t kStepsPerLookMax = 64;
  // Operations that one job may complete without giving way.
  static constexpr std::uint32_t kImmediateMax = 64;

  // `cores` is how many may send messages here.
  static base::Result<std::unique_ptr<Loop>> open(std::uint32_t cores);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Takes turns until stop(). Messages are run with `runtime`.
  void run(Runtime& runtime);
  void stop() { stopping_ = true; }

  // Events are epoll's. Watching again changes what is watched for and whom to tell. Ends by itself
  // when the descriptor is closed.
  base::Result<void> watch(int descriptor, std::uint32_t events, Pollable& pollable);
  // At most one. Requires: it outlives the loop's running.
  void set_flusher(Flusher* flusher) { flusher_ = flusher; }

  // Whether an operation may complete at once. After kImmediateMax times in one job it must go
  // through the queue, so that a coroutine that never has to wait lets others run.
  bool may_complete_now() { return immediate_++ < kImmediateMax; }

  Inbox& inbox() { return *inbox_; }
  // Messages that have run here, without the host's own.
  std::uint64_t counted_run() const { return counted_run_; }

  void post(Job& job) override { queue(job.priority()).push_back(job); }
  bool halted() const override { return false; }
  bool slice_is_over() override { return clock_.now() >= slice_ends_; }
  void arm(Timer& timer, MonotonicTime at) override { timers_.arm(timer, at); }
  void disarm(Timer& timer) override { timers_.disarm(timer); }

 private:
  Loop(Descriptor epoll, std::unique_ptr<Inbox> inbox, bool coarse_waits)
      : epoll_(std::move(epoll)),
        inbox_(std::move(inbox)),
        coarse_waits_(coarse_waits),
        timers_(*this) {}

  // Queued behind the foreground jobs that are ready when a turn begins; never run.
  struct TurnEnd final : Job {
    void run() override {}
  };

  IntrusiveList<Job>& queue(Priority priority) {
    return queues_[static_cast<std::size_t>(priority)];
  }
  // Whether foreground work is ready.
  bool has_foreground() {
    return !queue(Priority::foreground).empty() || letters_read_ < letters_.size();
  }

  void look() {
    now_ = clock_.now();
    steps_ = 0;
  }
  // Counts something done; looks at the clock when it is time for that.
  void step() {
    if (++steps_ >= steps_per_look_) look_and_adapt();
  }
  void look_and_adapt();

  void run_foreground();
  void run_background();
  void fire_timers();
  void read_inbox(Runtime& runtime);
  void poll(bool may_wait);
  int wait_for_events(MonotonicTime until);

  const Descriptor epoll_;
  const std::unique_ptr<Inbox> inbox_;
  const bool coarse_waits_;
  NativeClock clock_;
  TimerHeap timers_;
  std::array<IntrusiveList<Job>, 2> queues_;  // by priority
  TurnEnd turn_end_;
  MonotonicTime now_;         // as of the last look
  MonotonicTime slice_ends_;  // of the jobs that run now
  MonotonicTime poll_at_;     // at the latest
  std::uint32_t steps_ = 0;   // since the last look
  std::uint32_t steps_per_look_ = 1;
  Flusher* flusher_ = nullptr;
  bool stopping_ = false;
  std::uint32_t immediate_ = 0;
  std::vector<Letter> letters_;
  std::size_t letters_read_ = 0;
  std::uint64_t counted_run_ = 0;
  std::vector<PoolJob*> jobs_back_;
  std::array<epoll_event, kEventsPerPoll> events_;
};

}  // namespace helenus::runtime::native
