#include "sim/scenarios/register.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "runtime/quorum.h"
#include "runtime/random.h"
#include "runtime/sleep.h"
#include "sim/checkers/register_checker.h"
#include "sim/scenarios/register_replica.h"

namespace helenus::sim {

namespace {

using base::Result;
using runtime::Task;
using runtime::Until;

constexpr Duration kOperationTimeout = 2s;
constexpr Duration kThinkTimeMax = 100ms;
constexpr Duration kRestartAfter = 500ms;
constexpr std::size_t kFinalReads = 3;
constexpr std::size_t kAsksMax = 512;

// What all clients of a run share.
struct Board {
  RegisterHistory history;
  std::uint64_t values_made = RegisterHistory::kInitialValue;
  bool healed = false;
  std::uint32_t clients_done = 0;
};

// Calls a replica and reads its answer.
Task<Result<RegisterState>> ask(Caller& caller, base::Bytes request, Until until) {
  CO_TRY(const base::Bytes answer, co_await caller.call(std::move(request), std::move(until)));
  co_return decode_answer(answer);
}

class RegisterClient final : public Process {
 public:
  RegisterClient(runtime::Runtime& runtime, std::uint32_t number, Board& board,
                 const std::vector<runtime::Address>& replicas)
      : runtime_(runtime),
        number_(number),
        board_(board),
        dice_(runtime.random.fork()),
        asks_(runtime, kAsksMax) {
    for (const auto& address : replicas) {
      callers_.push_back(std::make_unique<Caller>(runtime, address));
    }
  }

  Task<void> run(runtime::StopToken stop) override {
    std::size_t final_reads = 0;
    while (!stop.stop_requested()) {
      // Once there are no faults any more, what was written must still be there.
      if (board_.healed && final_reads < kFinalReads) {
        if (co_await read(stop)) ++final_reads;
        if (final_reads == kFinalReads) ++board_.clients_done;
      } else if (dice_.chance(0.5)) {
        co_await write(stop);
      } else {
        co_await read(stop);
      }
      const Duration think(dice_.below(static_cast<std::uint64_t>(kThinkTimeMax.count())));
      if (!co_await runtime::sleep_for(runtime_, think, stop)) break;
    }
    co_await asks_.join();
  }

 private:
  // Whether it returned.
  Task<bool> write(runtime::StopToken stop) {
    const std::uint64_t value = ++board_.values_made;
    const std::size_t operation = board_.history.invoke_write(number_, value);
    const Until until = Until::after(runtime_, kOperationTimeout, stop);
    const auto latest = co_await majority(encode_get(), until);
    if (!latest) co_return false;
    // Larger than any seen, and than any of our own: one that timed out may be out there.
    counter_ = std::max(counter_, latest->version.counter) + 1;
    const RegisterState state{.version = {.counter = counter_, .client = number_}, .value = value};
    const auto stored = co_await majority(encode_put(state), until);
    if (!stored) co_return false;
    board_.history.return_write(operation);
    co_return true;
  }

  Task<bool> read(runtime::StopToken stop) {
    const std::size_t operation = board_.history.invoke_read(number_);
    const Until until = Until::after(runtime_, kOperationTimeout, stop);
    const auto latest = co_await majority(encode_get(), until);
    if (!latest) co_return false;
    const auto stored = co_await majority(encode_put(*latest), until);
    if (!stored) co_return false;
    board_.history.return_read(operation, latest->value);
    co_return true;
  }

  // The latest state among the answers of a majority.
  Task<std::optional<RegisterState>> majority(base::Bytes request, Until until) {
    if (asks_.size() + callers_.size() > kAsksMax) co_return std::nullopt;
    std::vector<Task<Result<RegisterState>>> tasks;
    for (const auto& caller : callers_) tasks.push_back(ask(*caller, request, until));
    const auto outcome = co_await runtime::quorum<RegisterState>(
        runtime_, asks_, callers_.size() / 2 + 1, std::move(tasks), until);
    if (!outcome.reached()) co_return std::nullopt;
    RegisterState latest;
    for (const auto& answer : outcome.answers) {
      if (answer.value.version > latest.version) latest = answer.value;
    }
    co_return latest;
  }

  runtime::Runtime& runtime_;
  const std::uint32_t number_;
  Board& board_;
  base::Prng dice_;
  std::uint64_t counter_ = 0;
  std::vector<std::unique_ptr<Caller>> callers_;
  runtime::TaskGroup asks_;
};

class RegisterScenario final : public Scenario {
 public:
  explicit RegisterScenario(RegisterPolicy policy) : policy_(policy) {}

  FaultBudget budget() const override {
    const FaultSet lies{Fault::bit_rot, Fault::misdirected_write};
    return {.permitted = kNetworkFaults | kProcessFaults | kClockFaults | kHonestDiskFaults |
                         FaultSet{Fault::buggify} | lies,
            .liars_max = static_cast<std::uint32_t>((replicas_.size() - 1) / 2)};
  }

  void setup(World& world, base::Prng& dice) override {
    const std::size_t replica_count = dice.chance(0.5) ? 3 : 5;
    client_count_ = static_cast<std::uint32_t>(dice.between(2, 4));
    for (std::size_t number = 0; number < replica_count; ++number) {
      Machine& machine = world.add_machine(
          {.name = fmt::format("replica{}", number), .restart_after = kRestartAfter}, {});
      const runtime::Address address = machine.address(kServicePort);
      addresses_.push_back(address);
      replicas_.push_back(machine.id());
      machine.set_process([this, address](runtime::Runtime& runtime) {
        return std::make_unique<RegisterReplica>(runtime, address, policy_);
      });
      machine.start();
    }
    for (std::uint32_t number = 0; number < client_count_; ++number) {
      Machine& machine = world.add_machine(
          {.name = fmt::format("client{}", number)}, [this, number](runtime::Runtime& runtime) {
            return std::make_unique<RegisterClient>(runtime, number, board_, addresses_);
          });
      machine.start();
    }
  }

  std::vector<MachineId> targets() const override { return replicas_; }
  void on_healed() override { board_.healed = true; }
  bool quiet() const override { return board_.clients_done == client_count_; }

  void check(Violations& violations) override {
    for (std::string& problem : check_register(board_.history.operations())) {
      violations.add(std::move(problem));
    }
  }
  void add_to(base::Digest& digest) const override { board_.history.add_to(digest); }

 private:
  const RegisterPolicy policy_;
  Board board_;
  std::uint32_t client_count_ = 0;
  std::vector<MachineId> replicas_;
  std::vector<runtime::Address> addresses_;
};

}  // namespace

std::unique_ptr<Scenario> make_register_scenario(RegisterPolicy policy) {
  return std::make_unique<RegisterScenario>(policy);
}

}  // namespace helenus::sim
