#include "sim/network.h"

#include <algorithm>

#include "sim/latency.h"
#include "sim/world.h"

namespace helenus::sim {

namespace {

// What goes over the wire besides the bytes carried.
constexpr std::uint64_t kHeaderSize = 64;
constexpr std::uint64_t kLoopbackLatencyNs = 5'000;

}  // namespace

Network::Network(World& world, NetworkOptions options)
    : world_(world), options_(options), stream_(base::Prng::for_purpose(world.seed(), "network")) {
  ASSERT(options.latency_min.count() > 0 && options.latency_max >= options.latency_min);
  ASSERT(options.segment_size > 0);
}

void Network::add_machine() {
  const auto draw = [&] {
    Link link;
    link.latency_ns = stream_.between(static_cast<std::uint64_t>(options_.latency_min.count()),
                                      static_cast<std::uint64_t>(options_.latency_max.count()));
    return link;
  };
  const std::size_t self = links_.size();
  for (auto& row : links_) row.push_back(draw());
  links_.emplace_back();
  for (std::size_t other = 0; other <= self; ++other) links_.back().push_back(draw());
  links_.back()[self].latency_ns = kLoopbackLatencyNs;
}

std::uint64_t Network::draw_link_latency_ns(const Link& link) {
  return draw_latency_ns(stream_, link.latency_ns * link.slowness);
}

int Network::send(const Packet& packet, WorldTime& last_at) {
  Link& link = links_[packet.source][packet.destination];
  ++counts_.sent;
  if (packet.source == packet.destination) {
    last_at = std::max(last_at, world_.now() + Duration(draw_link_latency_ns(link)));
    launch(packet, last_at);
    return 1;
  }
  if (link.blocked) {
    ++counts_.cut_off;
    return 0;
  }
  if (faults.loss > 0 && stream_.chance(faults.loss)) {
    ++counts_.lost;
    return 0;
  }
  const std::uint64_t wire_ns =
      ((packet.size + kHeaderSize) * options_.ns_per_kib * link.slowness) >> 10;
  const WorldTime sent_at = std::max(link.free_at, world_.now()) + Duration(wire_ns);
  if (sent_at - world_.now() > kQueueDelayMax) {
    ++counts_.congested;
    return 0;
  }
  link.free_at = sent_at;
  WorldTime at = sent_at + Duration(draw_link_latency_ns(link));
  if (faults.reordering > 0 && stream_.chance(faults.reordering)) {
    // Held back somewhere; those behind it need not wait.
    ++counts_.reordered;
    at = at + Duration(stream_.below(8 * link.latency_ns));
  } else {
    at = last_at = std::max(last_at, at);
  }
  launch(packet, at);
  if (faults.duplication > 0 && stream_.chance(faults.duplication)) {
    ++counts_.duplicated;
    launch(packet, at + Duration(draw_link_latency_ns(link)));
    return 2;
  }
  return 1;
}

void Network::launch(const Packet& packet, WorldTime at) {
  std::uint32_t slot = 0;
  if (packets_free_.empty()) {
    slot = static_cast<std::uint32_t>(packets_.size());
    packets_.push_back(packet);
  } else {
    slot = packets_free_.back();
    packets_free_.pop_back();
    packets_[slot] = packet;
  }
  world_.schedule(
      {.at = at, .kind = EventKind::packet, .machine = packet.destination, .argument = slot});
}

Packet Network::take(std::uint64_t slot) {
  packets_free_.push_back(static_cast<std::uint32_t>(slot));
  return packets_[slot];
}

void Network::set_blocked(MachineId from, MachineId to, bool blocked) {
  ASSERT(from != to, "a machine always hears itself");
  links_[from][to].blocked = blocked;
}

void Network::partition(std::span<const std::uint32_t> group_of) {
  ASSERT(group_of.size() == links_.size());
  for (MachineId from = 0; from < links_.size(); ++from) {
    for (MachineId to = 0; to < links_.size(); ++to) {
      const bool together = group_of[from] == group_of[to] || group_of[from] == kEveryGroup ||
                            group_of[to] == kEveryGroup;
      if (from != to) links_[from][to].blocked = !together;
    }
  }
}

void Network::heal_partitions() {
  for (auto& row : links_) {
    for (Link& link : row) link.blocked = false;
  }
}

void Network::set_slowness(MachineId from, MachineId to, std::uint32_t factor) {
  ASSERT(factor > 0);
  links_[from][to].slowness = factor;
}

void Network::heal_slowness() {
  for (auto& row : links_) {
    for (Link& link : row) link.slowness = 1;
  }
}

}  // namespace helenus::sim
