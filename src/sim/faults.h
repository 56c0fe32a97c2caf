// Faults: what may go wrong in a world, what a scenario says it survives, and what a run of it
// will meet.
//
// A scenario declares a FaultBudget: the kinds of fault it permits, and how many machines may
// have a disk that lies. From it and the seed a FaultPlan is drawn: each permitted kind is on or
// off, with a rate of its own. So runs differ in kind and not only in degree (swarm testing), and
// whatever breaks inside the budget is the fault of the code under test.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "sim/machine_id.h"
#include "sim/world_time.h"

namespace helenus::sim {

enum class Fault : std::uint8_t {
  // The network.
  packet_loss,
  packet_duplication,
  packet_reordering,
  slow_link,
  symmetric_partition,  // two halves that do not hear each other
  one_way_partition,    // a machine that is not heard, or does not hear
  bridge_partition,     // two halves with one machine between them that hears both
  connection_reset,
  // Processes and clocks.
  kill,        // the process dies, its machine lives
  power_loss,  // the machine dies: unsynced bytes and names are lost or torn
  pause,
  clock_offset,
  clock_drift,
  clock_jump,
  // Disks that say so.
  slow_disk,
  slow_sync,  // writes are as fast as ever
  disk_full,
  read_error,
  write_error,
  sync_error,
  // Disks that lie: only on as many machines as the budget says.
  bit_rot,
  misdirected_write,
  older_image,  // a snapshot comes back when the power does
  // Rare branches of the code itself.
  buggify,
};

inline constexpr std::size_t kFaultCount = static_cast<std::size_t>(Fault::buggify) + 1;

std::string_view name_of(Fault fault);
// Whether it strikes now and then, and not all the time.
bool is_episodic(Fault fault);

class FaultSet {
 public:
  constexpr FaultSet() = default;
  constexpr FaultSet(std::initializer_list<Fault> faults) {
    for (const Fault fault : faults) add(fault);
  }

  constexpr bool contains(Fault fault) const { return (bits_ & bit(fault)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr void add(Fault fault) { bits_ |= bit(fault); }
  friend constexpr FaultSet operator|(FaultSet a, FaultSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(FaultSet, FaultSet) = default;

 private:
  static constexpr std::uint32_t bit(Fault fault) {
    return std::uint32_t{1} << static_cast<unsigned>(fault);
  }
  std::uint32_t bits_ = 0;
};

inline constexpr FaultSet kNetworkFaults{Fault::packet_loss,         Fault::packet_duplication,
                                         Fault::packet_reordering,   Fault::slow_link,
                                         Fault::symmetric_partition, Fault::one_way_partition,
                                         Fault::bridge_partition,    Fault::connection_reset};
inline constexpr FaultSet kProcessFaults{Fault::kill, Fault::power_loss, Fault::pause};
inline constexpr FaultSet kClockFaults{Fault::clock_offset, Fault::clock_drift, Fault::clock_jump};
inline constexpr FaultSet kHonestDiskFaults{Fault::slow_disk,   Fault::slow_sync,
                                            Fault::disk_full,   Fault::read_error,
                                            Fault::write_error, Fault::sync_error};
inline constexpr FaultSet kLyingDiskFaults{Fault::bit_rot, Fault::misdirected_write,
                                           Fault::older_image};

struct FaultBudget {
  FaultSet permitted;
  // On how many machines, over the whole run, the lying kinds may strike.
  std::uint32_t liars_max = 0;
};

// How often a kind strikes, for how long, how hard; what of it matters is the kind's.
struct FaultSetting {
  double chance = 0;    // for each packet, or each operation while it lasts
  Duration every{0};    // the mean wait from one strike to the next
  Duration lasting{0};  // the mean duration of a strike
};

struct FaultPlan {
  FaultSet on;
  std::array<FaultSetting, kFaultCount> settings{};
  std::vector<MachineId> liars;

  // `targets` are the machines that may be struck.
  static FaultPlan draw(const FaultBudget& budget, std::vector<MachineId> targets,
                        base::Prng& prng);

  // All of these at once, at middling rates, for a short run that is to meet each of them; without
  // the lying kinds.
  static FaultPlan everything(FaultSet permitted);

  bool has(Fault fault) const { return on.contains(fault); }
  const FaultSetting& setting(Fault fault) const {
    return settings[static_cast<std::size_t>(fault)];
  }
  // One line: "packet_loss 0.02; kill every 3s for 1s; ...", or "no faults".
  std::string to_string() const;
};

}  // namespace helenus::sim
