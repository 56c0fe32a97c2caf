#include "sim/scenarios/echo.h"

#include <utility>
#include <vector>

#include "base/codec.h"
#include "runtime/random.h"
#include "runtime/sleep.h"
#include "sim/scenarios/service.h"
#include "sim/scenarios/wire.h"

namespace helenus::sim {

namespace {

using base::Result;
using runtime::Task;
using runtime::Until;

constexpr Duration kCallTimeout = 5s;
constexpr Duration kThinkTimeMax = 200ms;
constexpr std::uint64_t kSizeMax = 64 * 1024;
constexpr std::uint32_t kFinalCalls = 3;

struct Board {
  std::uint64_t calls = 0;
  std::uint64_t answers = 0;
  std::vector<std::string> wrong;
  base::Digest digest;
  bool healed = false;
  std::uint32_t clients_done = 0;
};

class EchoServer final : public Process, private RequestHandler {
 public:
  EchoServer(runtime::Runtime& runtime, runtime::Address address)
      : runtime_(runtime), address_(address) {}

  Task<void> run(runtime::StopToken stop) override {
    const auto served = co_await serve(runtime_, address_, *this, std::move(stop));
    ASSERT(served.has_value(), "{}", served.error());
  }

 private:
  Task<Result<base::Bytes>> handle(base::Bytes request) override { co_return request; }

  runtime::Runtime& runtime_;
  const runtime::Address address_;
};

class EchoClient final : public Process {
 public:
  EchoClient(runtime::Runtime& runtime, runtime::Address server, Board& board)
      : runtime_(runtime), board_(board), dice_(runtime.random.fork()), caller_(runtime, server) {}

  Task<void> run(runtime::StopToken stop) override {
    std::uint32_t final_calls = 0;
    while (!stop.stop_requested()) {
      const bool answered = co_await call(stop);
      if (board_.healed && answered && ++final_calls == kFinalCalls) ++board_.clients_done;
      const Duration think(dice_.below(static_cast<std::uint64_t>(kThinkTimeMax.count())));
      if (!co_await runtime::sleep_for(runtime_, think, stop)) break;
    }
  }

 private:
  // Mostly small, sometimes large, sometimes empty.
  base::Bytes draw_frame() {
    const std::uint64_t size = dice_.below(dice_.below(4) == 0 ? kSizeMax : 64);
    base::Buffer buffer(size);
    for (std::byte& byte : buffer.extend(size)) byte = static_cast<std::byte>(dice_.next() >> 56);
    return std::move(buffer).freeze();
  }

  Task<bool> call(runtime::StopToken stop) {
    const base::Bytes sent = draw_frame();
    ++board_.calls;
    const auto answer = co_await caller_.call(sent, Until::after(runtime_, kCallTimeout, stop));
    if (!answer) co_return false;
    ++board_.answers;
    board_.digest.add(*answer);
    if (*answer != sent) {
      board_.wrong.push_back(fmt::format("{} bytes were sent, {} others came back: {} / {}",
                                         sent.size(), answer->size(), base::to_hex(sent, 32),
                                         base::to_hex(*answer, 32)));
    }
    co_return true;
  }

  runtime::Runtime& runtime_;
  Board& board_;
  base::Prng dice_;
  Caller caller_;
};

class EchoScenario final : public Scenario {
 public:
  FaultBudget budget() const override {
    return {.permitted = kNetworkFaults | kProcessFaults | kClockFaults | FaultSet{Fault::buggify}};
  }

  void setup(World& world, base::Prng& dice) override {
    client_count_ = static_cast<std::uint32_t>(dice.between(1, 5));
    Machine& server = world.add_machine({.name = "server"}, {});
    const runtime::Address address = server.address(kServicePort);
    server.set_process([address](runtime::Runtime& runtime) {
      return std::make_unique<EchoServer>(runtime, address);
    });
    server.start();
    server_ = server.id();
    for (std::uint32_t number = 0; number < client_count_; ++number) {
      Machine& machine = world.add_machine(
          {.name = fmt::format("client{}", number)}, [this, address](runtime::Runtime& runtime) {
            return std::make_unique<EchoClient>(runtime, address, board_);
          });
      machine.start();
    }
  }

  std::vector<MachineId> targets() const override { return {server_}; }
  void on_healed() override { board_.healed = true; }
  bool quiet() const override { return board_.clients_done == client_count_; }
  void check(Violations& violations) override {
    for (const std::string& wrong : board_.wrong) violations.add(wrong);
  }
  void add_to(base::Digest& digest) const override {
    digest.add(board_.calls);
    digest.add(board_.answers);
    digest.add(board_.digest.value());
  }

 private:
  Board board_;
  MachineId server_ = 0;
  std::uint32_t client_count_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_echo_scenario() {
  return std::make_unique<EchoScenario>();
}

}  // namespace helenus::sim
