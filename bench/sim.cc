// bench-sim: how many events a second the simulator dispatches on one core.
//
// Fifty nodes gossip: each keeps a stream to every other one it has picked and sends small
// messages, which are acknowledged by the simulated TCP and read by a task. The peer does nothing
// but the queueing: a std::priority_queue of events of the same size, each pop followed by a push,
// with as many events pending. What the simulator adds on top is the cost of what happens.
#include <array>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "base/prng.h"
#include "bench/measure.h"
#include "bench/report.h"
#include "bench/stopwatch.h"
#include "runtime/random.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"
#include "sim/process.h"
#include "sim/world.h"

namespace helenus::bench {
namespace {

using namespace std::chrono_literals;
using runtime::Task;
using runtime::Until;

constexpr std::uint16_t kPort = 7000;
constexpr std::uint32_t kNodes = 50;
constexpr std::uint32_t kPeersPerNode = 4;
constexpr std::size_t kMessageSize = 64;
constexpr std::size_t kTasksMax = 1024;
constexpr runtime::Duration kRoundMax = 2ms;

class GossipNode final : public sim::Process {
 public:
  GossipNode(runtime::Runtime& runtime, runtime::Address address,
             std::vector<runtime::Address> peers)
      : runtime_(runtime),
        address_(address),
        peers_(std::move(peers)),
        dice_(runtime.random.fork()),
        tasks_(runtime, kTasksMax) {}

  Task<void> run(runtime::StopToken stop) override {
    const auto listener = runtime_.transport.listen(address_);
    ASSERT(listener.has_value());
    tasks_.spawn(accept(**listener, stop));
    for (const auto& peer : peers_) tasks_.spawn(send(peer, stop));
    co_await tasks_.join();
  }

 private:
  Task<void> accept(runtime::Listener& listener, runtime::StopToken stop) {
    for (;;) {
      auto stream = co_await listener.accept({.stop = stop});
      if (!stream) co_return;
      tasks_.spawn(receive(*std::move(stream), stop));
    }
  }

  Task<void> receive(std::unique_ptr<runtime::Stream> stream, runtime::StopToken stop) {
    std::array<std::byte, 4 * kMessageSize> memory;
    for (;;) {
      const auto count = co_await stream->read(memory, {.stop = stop});
      if (!count || *count == 0) co_return;
    }
  }

  Task<void> send(runtime::Address peer, runtime::StopToken stop) {
    auto stream = co_await runtime_.transport.connect(peer, Until::after(runtime_, 10s, stop));
    if (!stream) co_return;
    std::array<std::byte, kMessageSize> message{};
    for (;;) {
      const runtime::Duration pause(dice_.below(static_cast<std::uint64_t>(kRoundMax.count())));
      if (!co_await runtime::sleep_for(runtime_, pause, stop)) co_return;
      const auto sent = co_await (*stream)->write(message, Until::after(runtime_, 5s, stop));
      if (!sent) co_return;
    }
  }

  runtime::Runtime& runtime_;
  const runtime::Address address_;
  const std::vector<runtime::Address> peers_;
  base::Prng dice_;
  runtime::TaskGroup tasks_;
};

std::unique_ptr<sim::World> make_cluster() {
  auto world = std::make_unique<sim::World>(1);
  for (std::uint32_t number = 0; number < kNodes; ++number) world->add_machine({}, {});
  for (std::uint32_t number = 0; number < kNodes; ++number) {
    std::vector<runtime::Address> peers;
    for (std::uint32_t step = 1; step <= kPeersPerNode; ++step) {
      peers.push_back(world->machine((number + step * step) % kNodes).address(kPort));
    }
    sim::Machine& machine = world->machine(number);
    machine.set_process([address = machine.address(kPort), peers](runtime::Runtime& runtime) {
      return std::make_unique<GossipNode>(runtime, address, peers);
    });
    machine.start();
  }
  world->run_for(1s);
  return world;
}

double simulated_events_per_second(sim::World& world, std::uint64_t events) {
  const std::uint64_t end = world.event_count() + events;
  const Stopwatch stopwatch;
  while (world.event_count() < end) world.step();
  return static_cast<double>(events) / stopwatch.seconds();
}

struct Later {
  bool operator()(const sim::Event& a, const sim::Event& b) const {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

double queued_events_per_second(std::size_t pending, std::uint64_t events) {
  std::priority_queue<sim::Event, std::vector<sim::Event>, Later> queue;
  base::Prng dice(1);
  std::uint64_t order = 0;
  const auto push = [&](sim::WorldTime now) {
    queue.push({.at = now + sim::Duration(dice.below(2'000'000)),
                .order = order++,
                .kind = sim::EventKind::packet,
                .core = 0,
                .machine = 0,
                .argument = 0});
  };
  for (std::size_t i = 0; i < pending; ++i) push({});
  const Stopwatch stopwatch;
  for (std::uint64_t i = 0; i < events; ++i) {
    const sim::WorldTime now = queue.top().at;
    queue.pop();
    push(now);
  }
  keep(queue.top().at);
  return static_cast<double>(events) / stopwatch.seconds();
}

void measure(const Options& options, Report& report) {
  const std::uint64_t events = options.quick ? 200'000 : 4'000'000;
  const auto world = make_cluster();
  const Medians medians = by_turns(
      options.quick ? 3 : 7, [&] { return simulated_events_per_second(*world, events); },
      [&] { return queued_events_per_second(world->pending_count(), events); });
  report.row({.name = "events of 50 gossiping nodes",
              .value = medians.ours / 1e6,
              .unit = "M/s",
              .peer = "bare std::priority_queue",
              .peer_value = medians.peer / 1e6});
}

}  // namespace
}  // namespace helenus::bench

int main(int argc, char** argv) {
  return helenus::bench::benchmark_main(argc, argv, helenus::bench::measure);
}
