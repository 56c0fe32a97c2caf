// Network: the wires between machines, one link for each direction of each pair. It carries
// packets: delays them, loses, doubles and reorders some, and lets none pass where a partition is.
//
//   latency    a minimum drawn for each link, a little jitter, and a long tail (latency.h)
//   bandwidth  a packet waits for those before it on its link; when they would keep it waiting
//              longer than kQueueDelayMax, it is dropped, as by a full switch
//   order      first in, first out within a connection, unless `reordering` strikes; never
//              between connections
//
// A machine talks to itself over a link without faults. All in integers: every build agrees.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/prng.h"
#include "sim/event_queue.h"
#include "sim/machine_id.h"
#include "sim/world_time.h"

namespace helenus::sim {

class World;

using EndpointId = std::uint64_t;  // zero is nobody; see tcp.h

struct Packet {
  static constexpr std::uint8_t kSyn = 1;
  static constexpr std::uint8_t kAck = 2;
  static constexpr std::uint8_t kFin = 4;
  static constexpr std::uint8_t kReset = 8;
  static constexpr std::uint8_t kProbe = 16;  // asks for an answer, carries nothing

  EndpointId from = 0;
  EndpointId to = 0;
  std::uint64_t sequence = 0;
  std::uint64_t acknowledged = 0;
  std::uint32_t size = 0;
  std::uint32_t window = 0;
  MachineId source = 0;
  MachineId destination = 0;
  std::uint8_t flags = 0;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};

// What happens to packets between different machines; all off at first.
struct NetworkFaults {
  double loss = 0;         // chance that a packet is lost
  double duplication = 0;  // that it comes twice
  double reordering = 0;   // that others overtake it
};

struct NetworkOptions {
  // The minimum latency of a link is drawn from here.
  Duration latency_min = 50us;
  Duration latency_max = 2ms;
  // How long 1024 bytes take: 10 Gbit/s.
  std::uint32_t ns_per_kib = 819;
  // What a packet carries at most: large, as with segmentation offload.
  std::uint32_t segment_size = 16 * 1024;
};

struct NetworkCounts {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t cut_off = 0;    // by a partition
  std::uint64_t congested = 0;  // dropped by a full queue
};

class Network {
 public:
  static constexpr Duration kQueueDelayMax = 250ms;

  Network(World& world, NetworkOptions options);

  // Links to and from the machine with the next number.
  void add_machine();

  // Sends a packet off; returns how many copies are on their way, none to two. `last_at` is when
  // the last packet of the same connection arrives: none overtakes it but by a fault.
  int send(const Packet& packet, WorldTime& last_at);
  // Takes the packet of a packet event.
  Packet take(std::uint64_t slot);

  NetworkFaults faults;
  const NetworkOptions& options() const { return options_; }
  const NetworkCounts& counts() const { return counts_; }

  // Stops or lets through what `from` sends to `to`.
  void set_blocked(MachineId from, MachineId to, bool blocked);
  bool blocked(MachineId from, MachineId to) const { return links_[from][to].blocked; }
  // Machines with different numbers in `group_of` no longer hear each other; those with
  // kEveryGroup hear and are heard by all, as the bridge between two halves.
  static constexpr std::uint32_t kEveryGroup = UINT32_MAX;
  void partition(std::span<const std::uint32_t> group_of);
  void heal_partitions();

  // From now on the link takes `factor` times as long, and carries a factor less; 1 is normal.
  void set_slowness(MachineId from, MachineId to, std::uint32_t factor);
  void heal_slowness();

  base::Prng& stream() { return stream_; }

 private:
  struct Link {
    std::uint64_t latency_ns = 0;
    std::uint32_t slowness = 1;
    bool blocked = false;
    WorldTime free_at;  // when its wire has sent what was handed to it
  };

  std::uint64_t draw_link_latency_ns(const Link& link);
  void launch(const Packet& packet, WorldTime at);

  World& world_;
  const NetworkOptions options_;
  base::Prng stream_;
  NetworkCounts counts_;
  std::vector<std::vector<Link>> links_;
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> packets_free_;
};

}  // namespace helenus::sim
