#include "sim/scenarios/append_log.h"

#include <utility>
#include <vector>

#include "runtime/random.h"
#include "runtime/sleep.h"
#include "sim/checkers/log_checker.h"
#include "sim/scenarios/log_node.h"

namespace helenus::sim {

namespace {

using runtime::Task;
using runtime::Until;

constexpr Duration kCallTimeout = 2s;
constexpr Duration kThinkTimeMax = 50ms;
constexpr Duration kRestartAfter = 300ms;
constexpr double kListChance = 0.05;

struct Board {
  LogHistory history;
  bool healed = false;
  std::uint32_t clients_done = 0;
};

class LogClient final : public Process {
 public:
  LogClient(runtime::Runtime& runtime, runtime::Address server, Board& board)
      : runtime_(runtime), board_(board), dice_(runtime.random.fork()), caller_(runtime, server) {}

  Task<void> run(runtime::StopToken stop) override {
    bool listed = false;
    bool appended = false;
    while (!stop.stop_requested()) {
      if (board_.healed && !listed) {
        listed = co_await list(stop);
      } else if (listed && !appended) {
        // What was kept has been told; now it must take something new.
        appended = co_await append(stop);
        if (appended) ++board_.clients_done;
      } else if (dice_.chance(kListChance)) {
        co_await list(stop);
      } else {
        co_await append(stop);
      }
      const Duration think(dice_.below(static_cast<std::uint64_t>(kThinkTimeMax.count())));
      if (!co_await runtime::sleep_for(runtime_, think, stop)) break;
    }
  }

 private:
  // Whether it was acknowledged.
  Task<bool> append(runtime::StopToken stop) {
    const std::uint64_t record = board_.history.send();
    const auto answer =
        co_await caller_.call(encode_append(record), Until::after(runtime_, kCallTimeout, stop));
    if (answer) board_.history.acknowledge(record);
    co_return answer.has_value();
  }

  // Whether it was answered.
  Task<bool> list(runtime::StopToken stop) {
    const LogHistory::Tick asked = board_.history.ask();
    const auto answer =
        co_await caller_.call(encode_list(), Until::after(runtime_, kCallTimeout, stop));
    if (!answer) co_return false;
    auto records = decode_listing(*answer);
    ASSERT(records.has_value(), "{}", records.error());
    board_.history.list(asked, *std::move(records));
    co_return true;
  }

  runtime::Runtime& runtime_;
  Board& board_;
  base::Prng dice_;
  Caller caller_;
};

class AppendLogScenario final : public Scenario {
 public:
  FaultBudget budget() const override {
    return {.permitted = kNetworkFaults | kProcessFaults | kClockFaults | kHonestDiskFaults |
                         FaultSet{Fault::buggify}};
  }

  void setup(World& world, base::Prng& dice) override {
    client_count_ = static_cast<std::uint32_t>(dice.between(1, 4));
    Machine& node = world.add_machine({.name = "log", .restart_after = kRestartAfter}, {});
    const runtime::Address address = node.address(kServicePort);
    node.set_process([address](runtime::Runtime& runtime) {
      return std::make_unique<LogNode>(runtime, address);
    });
    node.start();
    node_ = node.id();
    for (std::uint32_t number = 0; number < client_count_; ++number) {
      Machine& machine = world.add_machine(
          {.name = fmt::format("client{}", number)}, [this, address](runtime::Runtime& runtime) {
            return std::make_unique<LogClient>(runtime, address, board_);
          });
      machine.start();
    }
  }

  std::vector<MachineId> targets() const override { return {node_}; }
  void on_healed() override { board_.healed = true; }
  bool quiet() const override { return board_.clients_done == client_count_; }
  void check(Violations& violations) override {
    for (std::string& problem : check_log(board_.history)) violations.add(std::move(problem));
  }
  void add_to(base::Digest& digest) const override { board_.history.add_to(digest); }

 private:
  Board board_;
  MachineId node_ = 0;
  std::uint32_t client_count_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_append_log_scenario() {
  return std::make_unique<AppendLogScenario>();
}

}  // namespace helenus::sim
