#include "sim/world.h"

#include <algorithm>
#include <utility>

namespace helenus::sim {

World::World(std::uint64_t seed, WorldOptions options)
    : seed_(seed),
      options_(std::move(options)),
      schedule_stream_(base::Prng::for_purpose(seed, "schedule")),
      clock_stream_(base::Prng::for_purpose(seed, "clocks")),
      nemesis_stream_(base::Prng::for_purpose(seed, "nemesis")),
      workload_stream_(base::Prng::for_purpose(seed, "workload")),
      log_(options_.log),
      buggify_(seed, options_.buggify),
      network_(*this, options_.network),
      tcp_(*this, network_, options_.tcp) {}

World::~World() {
  for (auto& machine : machines_) machine->kill();
}

Machine& World::add_machine(MachineOptions options, ProcessFactory factory) {
  const auto id = static_cast<MachineId>(machines_.size());
  network_.add_machine();
  tcp_.add_machine();
  machines_.push_back(std::make_unique<Machine>(*this, id, std::move(options), std::move(factory)));
  return *machines_.back();
}

void World::at(WorldTime moment, std::move_only_function<void()> call) {
  std::uint32_t slot = 0;
  if (controls_free_.empty()) {
    slot = static_cast<std::uint32_t>(controls_.size());
    controls_.push_back(std::move(call));
  } else {
    slot = controls_free_.back();
    controls_free_.pop_back();
    controls_[slot] = std::move(call);
  }
  schedule({.at = std::max(moment, now_), .kind = EventKind::control, .argument = slot});
}

bool World::step() {
  if (queue_.empty() || exhausted()) return false;
  const Event event = queue_.pop();
  ASSERT(event.at >= now_, "time does not go back");
  now_ = event.at;
  ++events_;
  digest_.add(static_cast<std::uint64_t>(event.at.since_origin().count()));
  digest_.add((std::uint64_t{static_cast<std::uint8_t>(event.kind)} << 48) |
              (std::uint64_t{event.core} << 32) | event.machine);
  dispatch(event);
  return true;
}

void World::dispatch(const Event& event) {
  switch (event.kind) {
    case EventKind::core_turn:
      return take_turn(event);
    case EventKind::core_message:
      if (Incarnation* life = machine(event.machine).incarnation(event.argument >> 16)) {
        life->core(event.core).arrive(static_cast<std::uint16_t>(event.argument));
      }
      return;
    case EventKind::control: {
      auto call = std::exchange(controls_[event.argument], nullptr);
      controls_free_.push_back(static_cast<std::uint32_t>(event.argument));
      return call();
    }
    case EventKind::packet:
      return tcp_.on_packet(event.argument);
    case EventKind::tcp_timer:
      return tcp_.on_timer(event.argument);
    case EventKind::disk:
      return machine(event.machine).disk_queue().on_event(event.argument);
  }
}

void World::take_turn(const Event& event) {
  Machine& machine_here = machine(event.machine);
  Incarnation* life = machine_here.incarnation(event.argument);
  if (life == nullptr) return;
  life->core(event.core).turn(event.at);
  machine_here.reap();
}

void World::run_for(Duration duration) {
  const WorldTime end = now_ + duration;
  while (!queue_.empty() && queue_.next().at <= end) {
    if (!step()) return;
  }
  now_ = end;
}

bool World::run_until(const std::function<bool()>& condition, Duration limit) {
  const WorldTime end = now_ + limit;
  while (!condition()) {
    if (queue_.empty() || queue_.next().at > end || !step()) return condition();
  }
  return true;
}

std::uint64_t World::state_hash() {
  base::Digest digest = digest_;
  digest.add(static_cast<std::uint64_t>(now_.since_origin().count()));
  digest.add(events_);
  digest.add(jobs_);
  for (base::Prng* stream : {&schedule_stream_, &clock_stream_, &nemesis_stream_, &workload_stream_,
                             &network_.stream()}) {
    digest.add(stream->next());
  }
  for (auto& machine_here : machines_) machine_here->disk().add_to(digest);
  buggify_.add_to(digest);
  return digest.value();
}

}  // namespace helenus::sim
