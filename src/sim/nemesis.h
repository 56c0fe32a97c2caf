// Nemesis: makes the faults of a plan happen to a world, and takes them back.
//
// Each kind that is on strikes by itself, at waits drawn around its mean; a strike that lasts is
// undone by itself. stop() ends all of them and heals what can be healed: partitions, paused and
// dead machines, full and failing disks. What a disk lost stays lost.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "sim/faults.h"
#include "sim/machine_id.h"
#include "sim/sim_disk.h"
#include "sim/world_time.h"

namespace helenus::sim {

class Machine;
class World;

class Nemesis {
 public:
  // The world outlives it, and runs no further after it is gone unless it was stopped.
  Nemesis(World& world, FaultPlan plan, std::vector<MachineId> targets);
  ~Nemesis();
  Nemesis(const Nemesis&) = delete;
  Nemesis& operator=(const Nemesis&) = delete;

  void start();
  void stop();

  // How often a kind was seen to happen: packets, operations and branches that it hit, or else how
  // often it struck.
  std::uint64_t happened(Fault fault) const;
  // How often a kind struck; those that hit single packets or operations do not strike.
  std::uint64_t strikes(Fault fault) const { return strikes_[static_cast<std::size_t>(fault)]; }

 private:
  using Snapshot = std::shared_ptr<const SimDisk::Image>;

  // Strikes now, and again and again.
  void schedule(Fault fault);
  // Whether it could strike: there may be nobody left to hit.
  bool strike(Fault fault);
  bool strike_network(Fault fault);
  bool strike_process(Fault fault);
  bool strike_clock(Fault fault);
  bool strike_disk(Fault fault);

  bool part_in_two(bool with_bridge);
  bool cut_one_way();
  bool slow_a_link();
  bool take_down(bool power);
  bool pause_some();
  void disturb_disk(Fault fault, Machine& machine);
  void bring_back(MachineId machine, bool power);

  // Undoes something after the kind's duration, unless all was undone before.
  void undo_later(Fault fault, std::move_only_function<void()> undo);
  Duration around(Duration mean);
  // Whom a strike hits; up or down.
  std::vector<Machine*> one_or_all();
  Machine* pick_liar();

  World& world_;
  const FaultPlan plan_;
  const std::vector<MachineId> targets_;
  std::array<std::uint64_t, kFaultCount> strikes_{};
  std::map<MachineId, Snapshot> snapshots_;
  bool partitioned_ = false;
  // Shared with what is scheduled: false once stopped or gone.
  std::shared_ptr<bool> active_ = std::make_shared<bool>(false);
};

}  // namespace helenus::sim
