// Core: one event loop of a simulated process: ready queue, timers, clock, dice, and messages to
// its sister cores. It implements the runtime's interfaces in virtual time.
//
// It works in turns, as a native event loop does: fire what is due, run what arrived, run some
// jobs, end the turn. A turn takes no time; the next one comes a little later, so time moves on
// even when code never waits. The order of ready jobs is shuffled under the seed: a posted job
// goes to one of a few lanes of its priority, and a turn draws from which lane it takes the next
// one. Background jobs come after the foreground ones of a turn, if none of these is left, or if
// they were ready when the turn began and their share is due; for that each job counts as kJobTime.
// When a slice is over is drawn as well.
//
// Ownership: belongs to its Incarnation, and dies with it. A halted core runs nothing and accepts
// nothing, but stays there for the destructors of what ran on it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/prng.h"
#include "runtime/clock.h"
#include "runtime/cores.h"
#include "runtime/executor.h"
#include "runtime/random.h"
#include "runtime/runtime.h"
#include "runtime/task_group.h"
#include "runtime/timer_heap.h"
#include "sim/world_time.h"

namespace helenus::sim {

class Incarnation;
class Machine;
class World;

class Core final : public runtime::Executor,
                   public runtime::Clock,
                   public runtime::Timers,
                   public runtime::Random,
                   public runtime::Cores {
 public:
  Core(World& world, Machine& machine, Incarnation& incarnation, std::uint16_t index);
  ~Core() override;

  runtime::Runtime& runtime() { return runtime_; }
  Machine& machine() { return machine_; }
  Incarnation& incarnation() { return incarnation_; }
  std::uint16_t index() const { return index_; }

  // One turn of the loop, if this is the one the core waits for.
  void turn(WorldTime scheduled_at);
  // The oldest message on its way from that core has arrived.
  void arrive(std::uint16_t from);
  // Asks for a turn when the next thing is due: after one, after a pause, after a change of the
  // clock.
  void wake();
  // Whether nothing is under way that others asked for.
  bool quiet() const;

  // Nothing runs from now on.
  void halt();
  // Destroys what other cores asked for. Requires: halted, or quiet.
  void drop_guests();

  // Executor.
  void post(runtime::Job& job) override;
  bool halted() const override { return halted_; }
  bool slice_is_over() override;
  // Clock.
  runtime::MonotonicTime now() const override;
  runtime::WallTime wall_now() const override;
  // Timers.
  void arm(runtime::Timer& timer, runtime::MonotonicTime at) override;
  void disarm(runtime::Timer& timer) override { timers_.disarm(timer); }
  // Random.
  std::uint64_t next() override { return prng_.next(); }
  void fill_secret(base::MutableByteView into) override;
  // Cores.
  std::uint32_t count() const override;
  runtime::CoreId here() const override { return runtime::CoreId{index_}; }
  base::Result<void> send(runtime::CoreId to, runtime::CoreMessage message) override;
  void reply(runtime::CoreId to, runtime::CoreMessage message) override;
  runtime::TaskGroup& guests() override { return *guests_; }

 private:
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kJobsPerTurnMax = 32;
  static constexpr std::size_t kBackgroundJobsPerTurnMax = 8;
  // What a job counts for in the share of background jobs.
  static constexpr Duration kJobTime = 20us;
  using Lanes = std::array<runtime::IntrusiveList<runtime::Job>, kLanes>;

  // Messages from one other core, in the order sent.
  struct Inbox {
    struct Entry {
      runtime::CoreMessage message;
      bool counted;  // against kWaitingMax: a send is, a reply is not
    };
    std::deque<Entry> entries;
    std::size_t counted = 0;
    WorldTime last_at;
  };

  void take_in(std::uint16_t from, runtime::CoreMessage message, bool counted);
  Lanes& lanes(runtime::Priority priority) { return lanes_[static_cast<std::size_t>(priority)]; }
  static bool any_in(const Lanes& lanes);
  // Whether foreground work is ready, or may be once the timers that are due have fired.
  bool has_foreground();
  void run_foreground();
  void run_background();
  // Takes a job out and runs it. Says no if there is none.
  bool run_one(Lanes& lanes);
  void run_arrived();
  void schedule_turn(WorldTime at);
  void schedule_soon();
  bool ready() const;

  World& world_;
  Machine& machine_;
  Incarnation& incarnation_;
  const std::uint16_t index_;
  bool halted_ = false;
  bool in_turn_ = false;
  WorldTime turn_at_ = WorldTime::never();
  std::array<Lanes, 2> lanes_;           // by priority
  runtime::MonotonicTime worked_until_;  // if every job had taken kJobTime, and nothing else time
  runtime::TimerHeap timers_;
  base::Prng prng_;
  std::vector<Inbox> inboxes_;
  std::deque<std::uint16_t> arrived_;  // from which core, in the order messages came
  std::unique_ptr<runtime::FileSystem> files_;
  std::unique_ptr<runtime::Transport> transport_;
  runtime::Runtime runtime_;
  std::unique_ptr<runtime::TaskGroup> guests_;
};

}  // namespace helenus::sim
