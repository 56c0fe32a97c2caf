#include "sim/core.h"

#include <algorithm>
#include <bit>

#include "base/codec.h"
#include "runtime/file_system.h"
#include "runtime/transport.h"
#include "sim/machine.h"
#include "sim/world.h"

namespace helenus::sim {

namespace {

// How long until a core that was asked to do something does it: its scheduler, and the turn that
// it was busy with.
constexpr Duration kTurnGapMin{100};
constexpr std::uint64_t kTurnGapSpread = 1024;
// A message between cores: a cache line or two, and the other core's turn.
constexpr std::uint64_t kMessageDelaySpread = 4096;

}  // namespace

Core::Core(World& world, Machine& machine, Incarnation& incarnation, std::uint16_t index)
    : world_(world),
      machine_(machine),
      incarnation_(incarnation),
      index_(index),
      timers_(*this),
      prng_(base::Prng::for_purpose(world.seed(), "machine",
                                    (std::uint64_t{machine.id()} << 40) |
                                        (std::uint64_t{incarnation.number()} << 8) | index)),
      inboxes_(machine.core_count()),
      files_(machine.make_file_system(*this)),
      transport_(machine.make_transport(*this)),
      runtime_{.executor = *this,
               .clock = *this,
               .timers = *this,
               .files = *files_,
               .transport = *transport_,
               .random = *this,
               .cores = *this,
               .log_sink = machine.log_sink(),
               .buggify_points = world.buggify(),
               .boot_id = machine.boot_id()},
      guests_(std::make_unique<runtime::TaskGroup>(runtime_, kGuestsMax)) {}

Core::~Core() = default;

void Core::turn(WorldTime scheduled_at) {
  if (scheduled_at != turn_at_) return;
  turn_at_ = WorldTime::never();
  if (halted_ || incarnation_.paused()) return;
  in_turn_ = true;
  // A timer that is armed meanwhile waits for the next turn, even if it is due at once.
  const runtime::MonotonicTime local_now = now();
  for (std::size_t left = timers_.size(); left > 0 && !halted_; --left) {
    runtime::Timer* const timer = timers_.take_due(local_now);
    if (timer == nullptr) break;
    timer->fire();
  }
  run_arrived();
  const bool background_waits = any_in(lanes(runtime::Priority::background));
  run_foreground();
  if (!has_foreground() || (background_waits && background_share_.is_due(worked_until_))) {
    run_background();
  }
  in_turn_ = false;
  wake();
}

void Core::run_arrived() {
  for (std::size_t left = arrived_.size(); left > 0 && !halted_; --left) {
    Inbox& inbox = inboxes_[arrived_.front()];
    arrived_.pop_front();
    Inbox::Entry entry = std::move(inbox.entries.front());
    inbox.entries.pop_front();
    if (entry.counted) --inbox.counted;
    entry.message(runtime_);
  }
}

void Core::run_foreground() {
  std::size_t left = kJobsPerTurnMax;
  while (left > 0 && !halted_ && run_one(lanes(runtime::Priority::foreground))) --left;
}

void Core::run_background() {
  const runtime::MonotonicTime began_at = worked_until_;
  running_ = runtime::Priority::background;
  std::size_t left = kBackgroundJobsPerTurnMax;
  while (left > 0 && !halted_ && run_one(lanes(runtime::Priority::background))) {
    --left;
    // Who was woken by this goes before the rest.
    if (any_in(lanes(runtime::Priority::foreground))) break;
  }
  running_ = runtime::Priority::foreground;
  if (worked_until_ > began_at) background_share_.ran(began_at, worked_until_);
}

bool Core::run_one(Lanes& lanes) {
  std::uint32_t filled = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (!lanes[lane].empty()) filled |= 1U << lane;
  }
  if (filled == 0) return false;
  if (const int choices = std::popcount(filled); choices > 1) {
    for (auto skip = world_.schedule_stream().below(static_cast<unsigned>(choices)); skip > 0;
         --skip) {
      filled &= filled - 1;
    }
  }
  runtime::Job& job = lanes[static_cast<std::size_t>(std::countr_zero(filled))].pop_front();
  world_.note_job(machine_.id());
  worked_until_ = worked_until_ + kJobTime;
  job.run();
  return true;
}

bool Core::any_in(const Lanes& lanes) {
  return std::ranges::any_of(lanes, [](const auto& lane) { return !lane.empty(); });
}

bool Core::has_foreground() {
  return any_in(lanes(runtime::Priority::foreground)) || !arrived_.empty() ||
         timers_.next_at() <= now();
}

bool Core::ready() const {
  return !arrived_.empty() || std::ranges::any_of(lanes_, any_in);
}

// No time passes while a job runs: every step ends its slice, and others get their turns.
bool Core::slice_is_over() {
  return true;
}

bool Core::quiet() const {
  return guests_->empty() && !ready() &&
         std::ranges::all_of(inboxes_, [](const Inbox& inbox) { return inbox.entries.empty(); });
}

void Core::wake() {
  if (halted_) return;
  if (ready()) return schedule_soon();
  if (timers_.empty()) return;
  const WorldTime due = machine_.clock().reached_at(timers_.next_at());
  if (due <= world_.now()) return schedule_soon();
  schedule_turn(due);
}

void Core::schedule_soon() {
  const std::uint64_t spread = world_.schedule_stream().next() % kTurnGapSpread;
  schedule_turn(world_.now() + kTurnGapMin + Duration(spread));
}

void Core::schedule_turn(WorldTime at) {
  if (at >= turn_at_ || incarnation_.paused()) return;
  turn_at_ = at;
  world_.schedule({.at = at,
                   .kind = EventKind::core_turn,
                   .core = index_,
                   .machine = machine_.id(),
                   .argument = incarnation_.number()});
}

void Core::halt() {
  ASSERT(!in_turn_, "nothing destroys the code that runs: ask the world to do it afterwards");
  halted_ = true;
  for (Lanes& lanes : lanes_) {
    for (auto& lane : lanes) {
      while (!lane.empty()) lane.pop_front();
    }
  }
  timers_.clear();
}

void Core::drop_guests() {
  ASSERT(halted_ || quiet());
  arrived_.clear();
  for (Inbox& inbox : inboxes_) inbox.entries.clear();
  guests_.reset();
}

void Core::post(runtime::Job& job) {
  if (halted_) return;
  const std::size_t lane = world_.shuffles() ? world_.schedule_stream().next() % kLanes : 0;
  lanes(job.priority())[lane].push_back(job);
  if (!in_turn_) schedule_soon();
}

runtime::MonotonicTime Core::now() const {
  return machine_.clock().monotonic_at(world_.now());
}

runtime::WallTime Core::wall_now() const {
  return machine_.clock().wall_at(world_.now());
}

void Core::arm(runtime::Timer& timer, runtime::MonotonicTime at) {
  if (halted_) return;
  timers_.arm(timer, at);
  if (!in_turn_ && timers_.next_at() == at) wake();
}

void Core::fill_secret(base::MutableByteView into) {
  for (std::byte& byte : into) byte = static_cast<std::byte>(prng_.next() >> 56);
}

std::uint32_t Core::count() const {
  return machine_.core_count();
}

base::Result<void> Core::send(runtime::CoreId to, runtime::CoreMessage message) {
  ASSERT(to.value() < count(), "core {} of {}", to, count());
  Core& there = incarnation_.core(static_cast<std::uint16_t>(to.value()));
  if (halted_ || there.halted_) return base::Error(base::Errc::closed, "core {}", to);
  if (there.inboxes_[index_].counted >= kWaitingMax) {
    return base::Error(base::Errc::overloaded, "{} messages wait for core {}", kWaitingMax, to);
  }
  there.take_in(index_, std::move(message), true);
  return {};
}

void Core::reply(runtime::CoreId to, runtime::CoreMessage message) {
  ASSERT(to.value() < count(), "core {} of {}", to, count());
  Core& there = incarnation_.core(static_cast<std::uint16_t>(to.value()));
  if (halted_ || there.halted_) return;
  there.take_in(index_, std::move(message), false);
}

void Core::take_in(std::uint16_t from, runtime::CoreMessage message, bool counted) {
  Inbox& inbox = inboxes_[from];
  inbox.entries.push_back({std::move(message), counted});
  if (counted) ++inbox.counted;
  const std::uint64_t delay = world_.schedule_stream().next() % kMessageDelaySpread;
  inbox.last_at = std::max(inbox.last_at, world_.now() + kTurnGapMin + Duration(delay));
  world_.schedule({.at = inbox.last_at,
                   .kind = EventKind::core_message,
                   .core = index_,
                   .machine = machine_.id(),
                   .argument = (std::uint64_t{incarnation_.number()} << 16) | from});
}

void Core::arrive(std::uint16_t from) {
  if (halted_) return;
  arrived_.push_back(from);
  schedule_soon();
}

}  // namespace helenus::sim
