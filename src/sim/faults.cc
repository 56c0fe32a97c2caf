#include "sim/faults.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::sim {

namespace {

constexpr std::array<std::string_view, kFaultCount> kNames = {"packet_loss",
                                                              "packet_duplication",
                                                              "packet_reordering",
                                                              "slow_link",
                                                              "symmetric_partition",
                                                              "one_way_partition",
                                                              "bridge_partition",
                                                              "connection_reset",
                                                              "kill",
                                                              "power_loss",
                                                              "pause",
                                                              "clock_offset",
                                                              "clock_drift",
                                                              "clock_jump",
                                                              "slow_disk",
                                                              "slow_sync",
                                                              "disk_full",
                                                              "read_error",
                                                              "write_error",
                                                              "sync_error",
                                                              "bit_rot",
                                                              "misdirected_write",
                                                              "older_image",
                                                              "buggify"};

// One run in this many is calm: what fails without any fault should be seen to.
constexpr std::uint64_t kCalmRunOneIn = 16;

// The chances a kind may have; empty if it has none.
std::vector<double> chances_of(Fault fault) {
  switch (fault) {
    case Fault::packet_loss:
      return {0.001, 0.01, 0.05, 0.2};
    case Fault::packet_duplication:
      return {0.001, 0.01, 0.1};
    case Fault::packet_reordering:
      return {0.01, 0.1, 0.5};
    case Fault::read_error:
    case Fault::write_error:
      return {0.01, 0.1, 0.5};
    case Fault::sync_error:
      return {0.01, 0.1, 0.3};
    case Fault::misdirected_write:
      return {0.01, 0.1};
    default:
      return {};
  }
}

bool lasts(Fault fault) {
  const FaultSet momentary{Fault::connection_reset, Fault::clock_drift, Fault::clock_jump,
                           Fault::bit_rot, Fault::older_image};
  return is_episodic(fault) && !momentary.contains(fault);
}

Duration pick(base::Prng& prng, std::initializer_list<Duration> choices) {
  return choices.begin()[prng.below(choices.size())];
}

std::string text_of(Duration duration) {
  return fmt::format("{}s", static_cast<double>(duration / 1ms) / 1000);
}

}  // namespace

bool is_episodic(Fault fault) {
  const FaultSet steady{Fault::packet_loss,       Fault::packet_duplication,
                        Fault::packet_reordering, Fault::misdirected_write,
                        Fault::clock_offset,      Fault::buggify};
  return !steady.contains(fault);
}

std::string_view name_of(Fault fault) {
  const auto index = static_cast<std::size_t>(fault);
  ASSERT(index < kFaultCount);
  return kNames[index];
}

FaultPlan FaultPlan::draw(const FaultBudget& budget, std::vector<MachineId> targets,
                          base::Prng& prng) {
  FaultPlan plan;
  const bool calm = prng.below(kCalmRunOneIn) == 0;
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    const auto fault = static_cast<Fault>(index);
    // Drawn for every kind, so that a change of the budget leaves the other kinds as they were.
    base::Prng dice(prng.next());
    FaultSetting setting;
    const bool wanted = dice.chance(0.5);
    if (const auto chances = chances_of(fault); !chances.empty()) {
      setting.chance = chances[dice.below(chances.size())];
    }
    if (is_episodic(fault)) setting.every = pick(dice, {500ms, 2s, 5s, 10s});
    if (lasts(fault)) setting.lasting = pick(dice, {100ms, 500ms, 2s, 5s});
    if (!wanted || calm || !budget.permitted.contains(fault)) continue;
    if (kLyingDiskFaults.contains(fault) && budget.liars_max == 0) continue;
    plan.on.add(fault);
    plan.settings[index] = setting;
  }
  for (std::uint32_t left = budget.liars_max; left > 0 && !targets.empty(); --left) {
    const auto chosen = targets.begin() + static_cast<std::ptrdiff_t>(prng.below(targets.size()));
    plan.liars.push_back(*chosen);
    targets.erase(chosen);
  }
  std::ranges::sort(plan.liars);
  return plan;
}

FaultPlan FaultPlan::everything(FaultSet permitted) {
  FaultPlan plan;
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    const auto fault = static_cast<Fault>(index);
    if (!permitted.contains(fault) || kLyingDiskFaults.contains(fault)) continue;
    plan.on.add(fault);
    FaultSetting& setting = plan.settings[index];
    if (const auto chances = chances_of(fault); !chances.empty()) setting.chance = chances[1];
    if (is_episodic(fault)) setting.every = 1s;
    if (lasts(fault)) setting.lasting = 500ms;
  }
  return plan;
}

std::string FaultPlan::to_string() const {
  std::string text;
  for (std::size_t index = 0; index < kFaultCount; ++index) {
    const auto fault = static_cast<Fault>(index);
    if (!on.contains(fault)) continue;
    const FaultSetting& setting = settings[index];
    if (!text.empty()) text += "; ";
    text += name_of(fault);
    if (setting.chance > 0) text += fmt::format(" {}", setting.chance);
    if (setting.every > Duration(0)) text += fmt::format(" every {}", text_of(setting.every));
    if (setting.lasting > Duration(0)) text += fmt::format(" for {}", text_of(setting.lasting));
    if (kLyingDiskFaults.contains(fault)) text += fmt::format(" on {}", fmt::join(liars, ","));
  }
  return text.empty() ? "no faults" : text;
}

}  // namespace helenus::sim
