#include "sim/machine.h"

#include <algorithm>

#include "sim/sim_file_system.h"
#include "sim/sim_transport.h"
#include "sim/world.h"

namespace helenus::sim {

namespace {

// A machine has been up for a while when its process starts; how long differs.
constexpr std::uint64_t kUptimeNsMax = 3'600'000'000'000;

}  // namespace

Incarnation::Incarnation(World& world, Machine& machine, std::uint32_t number) : number_(number) {
  for (std::uint16_t index = 0; index < machine.core_count(); ++index) {
    cores_.push_back(std::make_unique<Core>(world, machine, *this, index));
  }
}

Incarnation::~Incarnation() {
  // What runs for other cores may lean on the process, and the process's coroutine on both.
  for (auto& core : cores_) core->drop_guests();
  root_.reset();
  process_.reset();
}

void Incarnation::start(const ProcessFactory& factory) {
  runtime::Runtime& runtime = cores_.front()->runtime();
  process_ = factory(runtime);
  root_ = std::make_unique<runtime::TaskGroup>(runtime);
  root_->spawn(run_process(*this));
}

runtime::Task<void> Incarnation::run_process(Incarnation& self) {
  co_await self.process_->run(self.stop_.token());
  self.returned_ = true;
}

bool Incarnation::over() const {
  return returned_ && root_->empty() &&
         std::ranges::all_of(cores_, [](const auto& core) { return core->quiet(); });
}

void Incarnation::resume() {
  paused_ = false;
  wake_cores();
}

void Incarnation::wake_cores() {
  for (auto& core : cores_) core->wake();
}

void Incarnation::halt() {
  for (auto& core : cores_) core->halt();
}

// Puts the machine's name and virtual time on every line.
class Machine::Log final : public base::LogSink {
 public:
  Log(World& world, const Machine& machine) : world_(world), machine_(machine) {}
  base::LogLevel level_for(std::string_view module) const override {
    return world_.log().level_for(module);
  }
  void write(const base::LogRecord& record) override {
    world_.log().write(world_.now(), machine_.name(), record);
  }

 private:
  World& world_;
  const Machine& machine_;
};

Machine::Machine(World& world, MachineId id, MachineOptions options, ProcessFactory factory)
    : world_(world),
      id_(id),
      options_(std::move(options)),
      factory_(std::move(factory)),
      disk_(id + 1, base::Prng::for_purpose(world.seed(), "disk", id), options_.disk),
      disk_queue_(world, id, disk_),
      log_sink_(std::make_unique<Log>(world, *this)) {
  ASSERT(options_.cores > 0);
  if (options_.name.empty()) options_.name = fmt::format("m{}", id);
  new_boot_id();
}

Machine::~Machine() {
  kill();
}

void Machine::note(std::string_view what) {
  world_.log().note(world_.now(), name(), what);
}

Machine::State Machine::state() const {
  if (incarnation_ == nullptr) return State::down;
  return incarnation_->paused() ? State::paused : State::running;
}

runtime::Address Machine::address(std::uint16_t port) const {
  const auto byte = [&](unsigned shift) { return static_cast<std::uint8_t>((id_ + 1) >> shift); };
  return runtime::Address::v4({10, byte(16), byte(8), byte(0)}, port);
}

runtime::Address Machine::address_v6(std::uint16_t port) const {
  const auto byte = [&](unsigned shift) { return static_cast<std::uint8_t>((id_ + 1) >> shift); };
  std::array<std::uint8_t, 16> ip{0xfd};
  ip[13] = byte(16);
  ip[14] = byte(8);
  ip[15] = byte(0);
  return runtime::Address::v6(ip, port);
}

void Machine::new_boot_id() {
  boot_id_ = fmt::format("boot-{:016x}", world_.clock_stream().next());
  clock_.reboot(world_.now(), Duration(world_.clock_stream().below(kUptimeNsMax)));
}

void Machine::start() {
  ASSERT(incarnation_ == nullptr, "{} is up already", name());
  if (powered_off_) new_boot_id();
  powered_off_ = false;
  note("starts");
  incarnation_ = std::make_unique<Incarnation>(world_, *this, ++starts_);
  incarnation_->start(factory_);
}

void Machine::request_stop() {
  if (incarnation_ != nullptr) incarnation_->request_stop();
}

void Machine::kill() {
  if (incarnation_ == nullptr) return;
  note("is killed");
  incarnation_->halt();
  world_.tcp().on_kill(id_);
  disk_queue_.abandon_all();
  disk_.on_kill();
  end_incarnation();
}

void Machine::power_loss() {
  note("loses its power");
  powered_off_ = true;
  if (incarnation_ != nullptr) incarnation_->halt();
  world_.tcp().on_power_loss(id_);
  disk_queue_.abandon_all();
  disk_.on_power_loss();
  end_incarnation();
}

void Machine::end_incarnation() {
  // Destructors may still ask the machine for its incarnation.
  std::unique_ptr<Incarnation> ending = std::move(incarnation_);
  ending.reset();
}

void Machine::reap() {
  if (incarnation_ == nullptr || !incarnation_->over()) return;
  note("ends");
  ++exits_;
  end_incarnation();
  if (options_.restart_after == Duration::max()) return;
  world_.after(options_.restart_after, [this] {
    if (!is_up() && powered() && options_.restart_after != Duration::max()) start();
  });
}

void Machine::pause() {
  if (incarnation_ == nullptr) return;
  note("stands still");
  incarnation_->pause();
}

void Machine::resume() {
  if (incarnation_ == nullptr || !incarnation_->paused()) return;
  note("goes on");
  incarnation_->resume();
}

void Machine::set_clock_rate(std::int64_t rate_ppb) {
  clock_.set_rate(world_.now(), rate_ppb);
  if (incarnation_ != nullptr) incarnation_->wake_cores();
}

std::unique_ptr<runtime::FileSystem> Machine::make_file_system(Core& core) {
  return std::make_unique<SimFileSystem>(core.runtime(), disk_queue_);
}

std::unique_ptr<runtime::Transport> Machine::make_transport(Core& core) {
  return std::make_unique<SimTransport>(core, world_.tcp());
}

}  // namespace helenus::sim
