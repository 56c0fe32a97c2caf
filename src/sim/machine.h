// Machine: a host with an address, a disk, a clock, and at most one process at a time.
//
//   start ──▶ running ──▶ exited     run() returned
//                │  ▲
//          pause ▼  │ resume         nothing runs, time goes on, packets arrive
//              paused
//   kill        the process is gone, the kernel lives: what was written stays, peers are told
//   power_loss  the machine is gone: unsynced bytes are lost or torn, nobody is told
//
// An Incarnation is one life of the process: the cores, the Process object, and its coroutines.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "runtime/address.h"
#include "runtime/stop_token.h"
#include "runtime/task_group.h"
#include "sim/core.h"
#include "sim/disk_queue.h"
#include "sim/local_clock.h"
#include "sim/machine_id.h"
#include "sim/process.h"
#include "sim/sim_disk.h"

namespace helenus::runtime {
class FileSystem;
class Transport;
}  // namespace helenus::runtime

namespace helenus::sim {

class World;

struct MachineOptions {
  std::string name = {};  // "m<id>" if empty
  std::uint16_t cores = 1;
  DiskOptions disk = {};
  // A process whose run() returns is started again after this long; max() leaves it at that.
  Duration restart_after = Duration::max();
};

class Incarnation {
 public:
  Incarnation(World& world, Machine& machine, std::uint32_t number);
  // Destroys what still runs where it waits. Requires: halted, or over.
  ~Incarnation();

  void start(const ProcessFactory& factory);
  void request_stop() { stop_.request_stop(); }

  std::uint32_t number() const { return number_; }
  Core& core(std::uint16_t index) { return *cores_[index]; }
  // run() has returned, and nothing that cores asked of one another is left.
  bool over() const;

  bool paused() const { return paused_; }
  void pause() { paused_ = true; }
  void resume();
  void halt();
  void wake_cores();

 private:
  static runtime::Task<void> run_process(Incarnation& self);

  const std::uint32_t number_;
  bool paused_ = false;
  bool returned_ = false;
  std::vector<std::unique_ptr<Core>> cores_;
  runtime::StopSource stop_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<runtime::TaskGroup> root_;
};

class Machine {
 public:
  enum class State : unsigned char { down, running, paused };

  Machine(World& world, MachineId id, MachineOptions options, ProcessFactory factory);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  MachineId id() const { return id_; }
  const std::string& name() const { return options_.name; }
  std::uint16_t core_count() const { return options_.cores; }
  State state() const;
  bool is_up() const { return incarnation_ != nullptr; }
  // Whether its kernel answers, be there a process or not.
  bool powered() const { return !powered_off_; }
  // How often a process was started here.
  std::uint32_t starts() const { return starts_; }
  // How often run() returned.
  std::uint32_t exits() const { return exits_; }
  const std::string& boot_id() const { return boot_id_; }
  LocalClock& clock() { return clock_; }
  const LocalClock& clock() const { return clock_; }
  base::LogSink& log_sink() { return *log_sink_; }
  SimDisk& disk() { return disk_; }
  DiskQueue& disk_queue() { return disk_queue_; }

  // 10.x.y.z and fd00::..., with that port.
  runtime::Address address(std::uint16_t port = 0) const;
  runtime::Address address_v6(std::uint16_t port = 0) const;

  // From now on a process that returns is not started again.
  void let_rest() { options_.restart_after = Duration::max(); }
  // What the next start runs.
  void set_process(ProcessFactory factory) { factory_ = std::move(factory); }

  // Requires: down.
  void start();
  // Asks the process to end in an orderly way. Harmless when down.
  void request_stop();
  // Both are harmless when down.
  void kill();
  void power_loss();
  void pause();
  void resume();
  void set_clock_rate(std::int64_t rate_ppb);

  // For the world's dispatch: the living incarnation of that number, or null.
  Incarnation* incarnation(std::uint64_t number) {
    return incarnation_ != nullptr && incarnation_->number() == number ? incarnation_.get()
                                                                       : nullptr;
  }
  Incarnation* incarnation() { return incarnation_.get(); }
  // For the world, after a turn: lets an incarnation that is over go.
  void reap();

  std::unique_ptr<runtime::FileSystem> make_file_system(Core& core);
  std::unique_ptr<runtime::Transport> make_transport(Core& core);

 private:
  class Log;

  void note(std::string_view what);
  void end_incarnation();
  void new_boot_id();

  World& world_;
  const MachineId id_;
  MachineOptions options_;
  ProcessFactory factory_;
  std::string boot_id_;
  std::uint32_t starts_ = 0;
  std::uint32_t exits_ = 0;
  bool powered_off_ = false;
  LocalClock clock_;
  SimDisk disk_;
  DiskQueue disk_queue_;
  std::unique_ptr<base::LogSink> log_sink_;
  std::unique_ptr<Incarnation> incarnation_;
};

}  // namespace helenus::sim
