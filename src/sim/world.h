// World: a whole cluster in one thread, in virtual time, from one 64-bit seed.
//
// It owns the machines, the network between them, the true time, and the queue of what will
// happen. Running it means taking the earliest event, moving time there, and letting it happen;
// nothing else moves time. Everything random comes from streams split from the seed, one for each
// purpose, so that a draw more in one place does not shift the others. The same seed and the same
// calls give the same run, in any build.
//
// The world knows the runtime's interfaces and nothing of the product: what runs on its machines
// comes in as ProcessFactory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/prng.h"
#include "sim/buggify.h"
#include "sim/event_queue.h"
#include "sim/log_ring.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/tcp.h"
#include "sim/world_time.h"

namespace helenus::sim {

struct WorldOptions {
  // Ready jobs run in any order; in the order posted if false.
  bool shuffle = true;
  bool buggify = false;
  // A run that dispatches more events than this is stuck in a loop.
  std::uint64_t events_max = 200'000'000;
  LogRing::Options log = {};
  NetworkOptions network = {};
  TcpOptions tcp = {};
};

class World {
 public:
  explicit World(std::uint64_t seed, WorldOptions options = {});
  // Kills what still runs.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::uint64_t seed() const { return seed_; }
  WorldTime now() const { return now_; }

  // The machine is down until it is started.
  Machine& add_machine(MachineOptions options, ProcessFactory factory);
  Machine& machine(MachineId id) { return *machines_[id]; }
  MachineId machine_count() const { return static_cast<MachineId>(machines_.size()); }

  // Calls back at that moment (at once, from the event loop, if it has passed).
  void at(WorldTime moment, std::move_only_function<void()> call);
  void after(Duration delay, std::move_only_function<void()> call) {
    at(now_ + delay, std::move(call));
  }

  // Lets the next event happen. False if there is none, or too many have happened.
  bool step();
  // Lets time pass.
  void run_for(Duration duration);
  // Until the condition holds: true; false if it does not before `limit` has passed.
  bool run_until(const std::function<bool()>& condition, Duration limit);
  bool exhausted() const { return events_ >= options_.events_max; }

  // Events taken from the queue, and jobs run in the turns among them.
  std::uint64_t event_count() const { return events_; }
  std::uint64_t job_count() const { return jobs_; }
  // Events still to come.
  std::size_t pending_count() const { return queue_.size(); }
  // What happened so far and how everything stands. Draws once from every stream, so it belongs
  // at the end of a run.
  std::uint64_t state_hash();

  LogRing& log() { return log_; }
  // Into the log: what happens to the world, for the trace of a run that fails.
  void note(std::string_view what) { log_.note(now_, "world", what); }
  SimBuggify& buggify() { return buggify_; }
  Network& network() { return network_; }
  Tcp& tcp() { return tcp_; }

  // For what the world is made of.
  void schedule(const Event& event) { queue_.push(event); }
  void note_job(MachineId machine) {
    ++jobs_;
    digest_.add(machine);
  }
  bool shuffles() const { return options_.shuffle; }
  base::Prng& schedule_stream() { return schedule_stream_; }
  base::Prng& clock_stream() { return clock_stream_; }
  base::Prng& nemesis_stream() { return nemesis_stream_; }
  base::Prng& workload_stream() { return workload_stream_; }

 private:
  void dispatch(const Event& event);
  void take_turn(const Event& event);

  const std::uint64_t seed_;
  const WorldOptions options_;
  WorldTime now_;
  EventQueue queue_;
  std::uint64_t events_ = 0;
  std::uint64_t jobs_ = 0;
  base::Digest digest_;
  base::Prng schedule_stream_;
  base::Prng clock_stream_;
  base::Prng nemesis_stream_;
  base::Prng workload_stream_;
  LogRing log_;
  SimBuggify buggify_;
  Network network_;
  Tcp tcp_;
  std::vector<std::move_only_function<void()>> controls_;
  std::vector<std::uint32_t> controls_free_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

}  // namespace helenus::sim
