#include "sim/nemesis.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "sim/world.h"

namespace helenus::sim {

namespace {

constexpr std::uint64_t kOffsetNsMax = 10'000'000'000;
constexpr std::uint64_t kJumpNsMax = 60'000'000'000;
// A clock that keeps bad time gains or loses up to 500 parts in a million; one in eight is worse.
constexpr std::uint64_t kDriftPpbMax = 500'000;
constexpr std::uint64_t kBadDriftPpbMax = 50'000'000;
// A strike hits one machine, or all at once: what they share (a rack, a version, a habit) fails.
constexpr double kOneAloneChance = 0.75;
// What is left when a disk runs full.
constexpr std::uint64_t kFullDiskPagesMax = 8;

Duration either_way(base::Prng& prng, std::uint64_t ns_max) {
  const auto ns = static_cast<std::int64_t>(prng.between(0, 2 * ns_max));
  return Duration(ns - static_cast<std::int64_t>(ns_max));
}

}  // namespace

Nemesis::Nemesis(World& world, FaultPlan plan, std::vector<MachineId> targets)
    : world_(world), plan_(std::move(plan)), targets_(std::move(targets)) {}

Nemesis::~Nemesis() {
  *active_ = false;
}

void Nemesis::start() {
  *active_ = true;
  base::Prng& dice = world_.nemesis_stream();
  world_.network().faults = {.loss = plan_.setting(Fault::packet_loss).chance,
                             .duplication = plan_.setting(Fault::packet_duplication).chance,
                             .reordering = plan_.setting(Fault::packet_reordering).chance};
  world_.buggify().enable(plan_.has(Fault::buggify));
  for (const MachineId id : plan_.liars) {
    world_.machine(id).disk_queue().faults.misdirection =
        plan_.setting(Fault::misdirected_write).chance;
  }
  for (const MachineId id : targets_) {
    const Duration offset = either_way(dice, kOffsetNsMax);
    if (!plan_.has(Fault::clock_offset)) continue;
    world_.machine(id).clock().set_wall(world_.now(), offset);
    ++strikes_[static_cast<std::size_t>(Fault::clock_offset)];
  }
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    const auto fault = static_cast<Fault>(index);
    if (plan_.has(fault) && is_episodic(fault)) schedule(fault);
  }
}

// Anything from nothing to twice the mean; one in eight waits up to sixteen times as long.
Duration Nemesis::around(Duration mean) {
  base::Prng& dice = world_.nemesis_stream();
  const auto bound = static_cast<std::uint64_t>(mean.count());
  return Duration(dice.below(dice.below(8) == 0 ? 16 * bound : 2 * bound));
}

void Nemesis::schedule(Fault fault) {
  world_.after(around(plan_.setting(fault).every), [this, active = active_, fault] {
    if (!*active) return;
    if (strike(fault)) ++strikes_[static_cast<std::size_t>(fault)];
    schedule(fault);
  });
}

void Nemesis::undo_later(Fault fault, std::move_only_function<void()> undo) {
  world_.after(around(plan_.setting(fault).lasting),
               [active = active_, undo = std::move(undo)]() mutable {
                 if (*active) undo();
               });
}

std::vector<Machine*> Nemesis::one_or_all() {
  std::vector<Machine*> chosen;
  for (const MachineId id : targets_) chosen.push_back(&world_.machine(id));
  base::Prng& dice = world_.nemesis_stream();
  Machine* const one = chosen[dice.below(chosen.size())];
  if (dice.chance(kOneAloneChance)) chosen = {one};
  return chosen;
}

Machine* Nemesis::pick_liar() {
  if (plan_.liars.empty()) return nullptr;
  return &world_.machine(plan_.liars[world_.nemesis_stream().below(plan_.liars.size())]);
}

bool Nemesis::strike(Fault fault) {
  if (kNetworkFaults.contains(fault)) return strike_network(fault);
  if (kProcessFaults.contains(fault)) return strike_process(fault);
  if (kClockFaults.contains(fault)) return strike_clock(fault);
  return strike_disk(fault);
}

// ---- The network ----

bool Nemesis::strike_network(Fault fault) {
  switch (fault) {
    case Fault::slow_link:
      return slow_a_link();
    case Fault::symmetric_partition:
      return part_in_two(false);
    case Fault::bridge_partition:
      return part_in_two(true);
    case Fault::one_way_partition:
      return cut_one_way();
    case Fault::connection_reset:
      return world_.tcp().reset_one();
    default:
      return false;
  }
}

bool Nemesis::part_in_two(bool with_bridge) {
  const MachineId count = world_.machine_count();
  if (partitioned_ || count < 2) return false;
  base::Prng& dice = world_.nemesis_stream();
  std::vector<std::uint32_t> group_of(count);
  for (auto& group : group_of) group = static_cast<std::uint32_t>(dice.below(2));
  if (with_bridge) group_of[dice.below(count)] = Network::kEveryGroup;
  world_.network().partition(group_of);
  world_.note(fmt::format("the network parts: {}", fmt::join(group_of, " ")));
  partitioned_ = true;
  undo_later(with_bridge ? Fault::bridge_partition : Fault::symmetric_partition, [this] {
    world_.network().heal_partitions();
    world_.note("the network is whole");
    partitioned_ = false;
  });
  return true;
}

bool Nemesis::cut_one_way() {
  const MachineId count = world_.machine_count();
  if (partitioned_ || count < 2) return false;
  base::Prng& dice = world_.nemesis_stream();
  const auto victim = static_cast<MachineId>(dice.below(count));
  const bool unheard = dice.chance(0.5);
  const bool from_all = dice.chance(0.5);
  const auto single = static_cast<MachineId>((victim + 1 + dice.below(count - 1)) % count);
  for (MachineId other = 0; other < count; ++other) {
    if (other == victim || (!from_all && other != single)) continue;
    world_.network().set_blocked(unheard ? victim : other, unheard ? other : victim, true);
  }
  world_.note(fmt::format("{} {}", world_.machine(victim).name(),
                          unheard ? "is not heard" : "does not hear"));
  partitioned_ = true;
  undo_later(Fault::one_way_partition, [this] {
    world_.network().heal_partitions();
    world_.note("the network is whole");
    partitioned_ = false;
  });
  return true;
}

bool Nemesis::slow_a_link() {
  const MachineId count = world_.machine_count();
  if (count < 2) return false;
  base::Prng& dice = world_.nemesis_stream();
  const auto from = static_cast<MachineId>(dice.below(count));
  const auto to = static_cast<MachineId>((from + 1 + dice.below(count - 1)) % count);
  world_.network().set_slowness(from, to, static_cast<std::uint32_t>(dice.between(5, 500)));
  undo_later(Fault::slow_link, [this, from, to] { world_.network().set_slowness(from, to, 1); });
  return true;
}

// ---- Processes ----

bool Nemesis::strike_process(Fault fault) {
  if (fault == Fault::pause) return pause_some();
  return take_down(fault == Fault::power_loss);
}

bool Nemesis::take_down(bool power) {
  bool hit = false;
  for (Machine* const machine : one_or_all()) {
    if (!machine->is_up()) continue;
    hit = true;
    if (power) {
      machine->power_loss();
    } else {
      machine->kill();
    }
    undo_later(power ? Fault::power_loss : Fault::kill,
               [this, id = machine->id(), power] { bring_back(id, power); });
  }
  return hit;
}

void Nemesis::bring_back(MachineId id, bool power) {
  Machine& machine = world_.machine(id);
  if (machine.is_up()) return;
  const auto snapshot = snapshots_.find(id);
  if (power && snapshot != snapshots_.end() && !machine.powered()) {
    base::Prng& dice = world_.nemesis_stream();
    machine.disk().put_back(*snapshot->second, dice.chance(0.5));
    ++strikes_[static_cast<std::size_t>(Fault::older_image)];
    snapshots_.erase(snapshot);
  }
  machine.start();
}

bool Nemesis::pause_some() {
  bool hit = false;
  for (Machine* const machine : one_or_all()) {
    if (machine->state() != Machine::State::running) continue;
    hit = true;
    machine->pause();
    undo_later(Fault::pause, [this, id = machine->id()] { world_.machine(id).resume(); });
  }
  return hit;
}

// ---- Clocks ----

bool Nemesis::strike_clock(Fault fault) {
  base::Prng& dice = world_.nemesis_stream();
  Machine& machine = world_.machine(targets_[dice.below(targets_.size())]);
  world_.note(fmt::format("{} of {}", name_of(fault), machine.name()));
  if (fault == Fault::clock_jump) {
    machine.clock().jump_wall(either_way(dice, kJumpNsMax));
  } else {
    const std::uint64_t worst = dice.below(8) == 0 ? kBadDriftPpbMax : kDriftPpbMax;
    machine.set_clock_rate(either_way(dice, worst).count());
  }
  return true;
}

// ---- Disks ----

bool Nemesis::strike_disk(Fault fault) {
  if (kLyingDiskFaults.contains(fault)) {
    Machine* const liar = pick_liar();
    if (liar == nullptr) return false;
    if (fault == Fault::bit_rot) return liar->disk().rot();
    // Taken now; it comes back, and counts, at the next power loss.
    snapshots_[liar->id()] = liar->disk().snapshot();
    return false;
  }
  for (Machine* const machine : one_or_all()) disturb_disk(fault, *machine);
  return true;
}

void Nemesis::disturb_disk(Fault fault, Machine& machine) {
  DiskFaults& faults = machine.disk_queue().faults;
  const double chance = plan_.setting(fault).chance;
  world_.note(fmt::format("{} of {}", name_of(fault), machine.name()));
  base::Prng& dice = world_.nemesis_stream();
  switch (fault) {
    case Fault::slow_disk:
      faults.slowness = static_cast<std::uint32_t>(dice.between(5, 500));
      undo_later(fault, [&faults] { faults.slowness = 1; });
      return;
    case Fault::slow_sync:
      faults.sync_slowness = static_cast<std::uint32_t>(dice.between(20, 1000));
      undo_later(fault, [&faults] { faults.sync_slowness = 1; });
      return;
    case Fault::disk_full: {
      SimDisk& disk = machine.disk();
      disk.set_capacity(disk.used_bytes() + dice.below(kFullDiskPagesMax) * FileImage::kPageSize);
      undo_later(fault, [&disk] { disk.set_capacity(disk.options().capacity_bytes); });
      return;
    }
    case Fault::read_error:
      faults.read_error = chance;
      undo_later(fault, [&faults] { faults.read_error = 0; });
      return;
    case Fault::write_error:
      faults.write_error = chance;
      undo_later(fault, [&faults] { faults.write_error = 0; });
      return;
    case Fault::sync_error:
      faults.sync_error = chance;
      undo_later(fault, [&faults] { faults.sync_error = 0; });
      return;
    default:
      UNREACHABLE("{} is no fault of a disk", name_of(fault));
  }
}

// ---- What happened ----

std::uint64_t Nemesis::happened(Fault fault) const {
  const NetworkCounts& network = world_.network().counts();
  std::uint64_t sum = 0;
  const auto over_targets = [&](auto count_of) {
    for (const MachineId id : targets_) sum += count_of(world_.machine(id));
    return sum;
  };
  switch (fault) {
    case Fault::packet_loss:
      return network.lost;
    case Fault::packet_duplication:
      return network.duplicated;
    case Fault::packet_reordering:
      return network.reordered;
    case Fault::disk_full:
      return over_targets([](Machine& m) { return m.disk_queue().counts().no_space; });
    case Fault::read_error:
      return over_targets([](Machine& m) { return m.disk_queue().counts().read_errors; });
    case Fault::write_error:
      return over_targets([](Machine& m) { return m.disk_queue().counts().write_errors; });
    case Fault::sync_error:
      return over_targets([](Machine& m) { return m.disk_queue().counts().sync_errors; });
    case Fault::misdirected_write:
      return over_targets([](Machine& m) { return m.disk().counts().writes_misdirected; });
    case Fault::buggify:
      for (const auto& [name, site] : world_.buggify().sites()) sum += site.fired;
      return sum;
    default:
      return strikes(fault);
  }
}

void Nemesis::stop() {
  *active_ = false;
  world_.network().faults = {};
  world_.network().heal_partitions();
  world_.network().heal_slowness();
  world_.buggify().enable(false);
  for (const MachineId id : targets_) {
    Machine& machine = world_.machine(id);
    machine.disk_queue().faults = {};
    machine.disk().set_capacity(machine.disk().options().capacity_bytes);
    machine.resume();
    if (!machine.is_up()) machine.start();
  }
}

}  // namespace helenus::sim
