#include "sim/scenarios/mint.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/crc32c.h"
#include "base/hash.h"
#include "runtime/files.h"
#include "runtime/sleep.h"

namespace helenus::sim {

namespace {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

constexpr Duration kRestartAfter = 300ms;
constexpr Duration kPause = 20ms;
constexpr std::uint64_t kBatch = 16;
constexpr std::uint64_t kFinalNumbers = 100;
constexpr std::size_t kFileSizeMax = 1024;
constexpr std::string_view kPath = "/mint";

struct Number {
  std::uint64_t actor = 0;
  std::uint64_t counter = 0;
  friend auto operator<=>(const Number&, const Number&) = default;
};

// What the world saw of the node.
struct Board {
  std::set<Number> given;
  std::vector<Number> given_again;
  bool healed = false;
  std::uint64_t given_since_healed = 0;
};

// Numbers of `actor` below `reserved` may be in use already.
struct Reservation {
  std::string boot_id;
  std::uint64_t actor = 0;
  std::uint64_t reserved = 0;
};

base::Bytes encode(const Reservation& reservation) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.prefixed(reservation.boot_id);
  out.u64_le(reservation.actor);
  out.u64_le(reservation.reserved);
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<Reservation> decode(const base::Bytes& content) {
  base::Decoder in(content);
  Reservation reservation;
  reservation.boot_id = std::string(in.prefixed_text());
  reservation.actor = in.u64_le();
  reservation.reserved = in.u64_le();
  const std::size_t covered = in.offset();
  const std::uint32_t checksum = in.u32_le();
  TRY_VOID(in.finish());
  if (base::crc32c(content.view().first(covered)) != checksum) {
    return Error(Errc::corrupt, "fails its checksum");
  }
  return reservation;
}

class Mint final : public Process {
 public:
  Mint(runtime::Runtime& runtime, MintPolicy policy, Board& board)
      : runtime_(runtime), policy_(policy), board_(board), log_(runtime.logger("sim.mint")) {}

  Task<void> run(runtime::StopToken stop) override {
    const auto failed = co_await give_numbers(std::move(stop));
    if (!failed) log_.warn("gives no more numbers", base::kv("error", failed.error()));
  }

 private:
  Task<Result<void>> give_numbers(runtime::StopToken stop) {
    CO_TRY_VOID(co_await recover());
    while (!stop.stop_requested()) {
      if (next_ == mine_.reserved) CO_TRY_VOID(co_await reserve());
      give({.actor = mine_.actor, .counter = next_++});
      if (!co_await runtime::sleep_for(runtime_, kPause, stop)) break;
    }
    co_return {};
  }

  Task<Result<void>> recover() {
    mine_ = {.boot_id = runtime_.boot_id, .actor = runtime_.random.next()};
    auto content = co_await runtime::read_file(runtime_, std::string(kPath), kFileSizeMax);
    const bool unreadable =
        content.failed_with(Errc::not_found) || content.failed_with(Errc::corrupt);
    if (!content && !unreadable) co_return std::move(content).error();
    const auto found = content ? decode(*content) : Result<Reservation>(std::move(content).error());
    // As long as the power stays on, the kernel shows what was written last.
    const bool up_to_date = found && (found->boot_id == runtime_.boot_id || policy_.trusts_image);
    if (up_to_date) {
      mine_.actor = found->actor;
      mine_.reserved = next_ = found->reserved;
    }
    log_.info("counts", base::kv("actor", mine_.actor), base::kv("from", next_),
              base::kv("goes_on", up_to_date));
    co_return {};
  }

  Task<Result<void>> reserve() {
    mine_.reserved += runtime_.buggify("mint.small_batch") ? 1 : kBatch;
    return runtime::replace_file(runtime_, std::string(kPath), encode(mine_));
  }

  void give(Number number) {
    if (!board_.given.insert(number).second) board_.given_again.push_back(number);
    if (board_.healed) ++board_.given_since_healed;
  }

  runtime::Runtime& runtime_;
  const MintPolicy policy_;
  Board& board_;
  base::Logger log_;
  Reservation mine_;
  std::uint64_t next_ = 0;
};

class MintScenario final : public Scenario {
 public:
  explicit MintScenario(MintPolicy policy) : policy_(policy) {}

  // Everything: what the disk says is never needed, and only sometimes believed.
  FaultBudget budget() const override {
    return {.permitted = kProcessFaults | kClockFaults | kHonestDiskFaults | kLyingDiskFaults |
                         FaultSet{Fault::buggify},
            .liars_max = 1};
  }
  void setup(World& world, base::Prng&) override {
    Machine& machine = world.add_machine({.name = "mint", .restart_after = kRestartAfter},
                                         [this](runtime::Runtime& runtime) {
                                           return std::make_unique<Mint>(runtime, policy_, board_);
                                         });
    machine.start();
    machine_ = machine.id();
  }
  std::vector<MachineId> targets() const override { return {machine_}; }
  void on_healed() override { board_.healed = true; }
  bool quiet() const override { return board_.given_since_healed >= kFinalNumbers; }
  void check(Violations& violations) override {
    for (const Number& number : board_.given_again) {
      violations.add(fmt::format("number {} of actor {:016x} was given out again", number.counter,
                                 number.actor));
    }
  }
  void add_to(base::Digest& digest) const override {
    for (const Number& number : board_.given) {
      digest.add(number.actor);
      digest.add(number.counter);
    }
    digest.add(board_.given_again.size());
  }

 private:
  const MintPolicy policy_;
  Board board_;
  MachineId machine_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_mint_scenario(MintPolicy policy) {
  return std::make_unique<MintScenario>(policy);
}

}  // namespace helenus::sim
