#include "sim/sim_world.h"

#include <utility>

#include "sim/world.h"

namespace helenus::sim {

namespace {

using Body = std::function<runtime::Task<void>(runtime::Runtime&)>;

class BodyProcess final : public Process {
 public:
  BodyProcess(runtime::Runtime& runtime, const Body& body) : runtime_(runtime), body_(body) {}
  runtime::Task<void> run(runtime::StopToken) override { co_await body_(runtime_); }

 private:
  runtime::Runtime& runtime_;
  const Body& body_;
};

class SimWorld final : public runtime::contract::World {
 public:
  explicit SimWorld(std::uint32_t cores)
      : world_(1),
        machine_(
            world_.add_machine({.name = "sim", .cores = static_cast<std::uint16_t>(cores)}, {})) {
    EXPECT_TRUE(machine_.disk().make_directories(directory()).has_value());
  }

  void run(Body body) override {
    machine_.set_process(
        [&](runtime::Runtime& runtime) { return std::make_unique<BodyProcess>(runtime, body); });
    machine_.start();
    const bool returned = world_.run_until([&] { return !machine_.is_up(); }, kVirtualTimeMax);
    EXPECT_TRUE(returned) << "the body waits for something that will never happen";
    machine_.kill();
  }
  std::string directory() override { return "/contract"; }
  runtime::Address loopback() override { return machine_.address(); }
  std::uint32_t core_count() const override { return machine_.core_count(); }

 private:
  static constexpr Duration kVirtualTimeMax = 24h;

  sim::World world_;
  Machine& machine_;
};

}  // namespace

std::unique_ptr<runtime::contract::World> make_sim_world(std::uint32_t cores) {
  return std::make_unique<SimWorld>(cores);
}

}  // namespace helenus::sim
