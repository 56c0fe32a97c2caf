#include "sim/sim_world.h"

#include <utility>

#include <fmt/format.h>

#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::sim {

namespace {

using Body = std::function<runtime::Task<void>(runtime::Runtime&)>;

class SimWorld final : public runtime::contract::World {
 public:
  SimWorld(std::uint32_t cores, std::uint64_t seed)
      : world_(seed),
        machine_(
            world_.add_machine({.name = "sim", .cores = static_cast<std::uint16_t>(cores)}, {})) {
    EXPECT_TRUE(machine_.disk().make_directories(directory()).has_value());
  }

  void run(Body body) override {
    machine_.set_process(FunctionProcess::factory(
        [&](runtime::Runtime& runtime, runtime::StopToken) { return body(runtime); }));
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

runtime::contract::WorldFactory sim_world_factory(std::uint64_t seed) {
  return {fmt::format("seed{}", seed),
          [seed](std::uint32_t cores) { return std::make_unique<SimWorld>(cores, seed); }};
}

}  // namespace helenus::sim
