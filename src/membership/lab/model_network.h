// ModelNetwork: a small deterministic network of Membership machines, for tests and the lab:
// virtual time, latency, loss, partitions, pauses, stalls, crashes, restarts and clocks that jump.
// Every message of gossip goes through the codec; probes travel beside them. It judges every event
// against the truth, which it alone knows, and ends the program at one that is no change.
//
// It costs little for each message, so that a thousand nodes fit into one test; what rpc and
// connections add is for sim::World and GossipService.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "base/prng.h"
#include "membership/lab/prober.h"
#include "membership/membership.h"
#include "model/node_id.h"

namespace helenus::membership {

using MakeDetector = std::function<std::unique_ptr<FailureDetector>(model::NodeId self)>;

struct ModelNetworkConfig {
  std::size_t nodes = 3;
  std::uint64_t seed = 1;
  double loss = 0;
  std::int64_t latency_ms_max = 50;
  std::int64_t round_ms = 1'000;
  std::int64_t tick_ms = 500;  // divides round_ms
  // A node now and then stands still for a while, as one does that collects garbage or waits for
  // its disk. Nobody is told. Never, unless there is a mean.
  std::int64_t stall_every_ms_mean = 0;
  std::int64_t stall_ms_max = 0;
  GossipLimits limits = {};
  MakeDetector make_detector;
};

// How good a detector was.
struct DetectionReport {
  std::size_t false_suspicions = 0;  // DOWN of a node that ran and could be reached
  std::size_t detections = 0;        // DOWN of a node that had crashed, by each observer
  std::int64_t detection_ms_sum = 0;
  std::int64_t detection_ms_max = 0;

  std::int64_t detection_ms_mean() const {
    return detections == 0 ? 0 : detection_ms_sum / static_cast<std::int64_t>(detections);
  }
};

class ModelNetwork {
 public:
  static constexpr const char* kCluster = "net";

  explicit ModelNetwork(ModelNetworkConfig config)
      : config_(std::move(config)), random_(config_.seed) {
    for (std::size_t i = 0; i < config_.nodes; ++i) {
      members_.emplace_back();
      indexes_.emplace(id_of(i), i);
      members_[i].round_offset_ms = static_cast<std::int64_t>(
          random_.below(static_cast<std::uint64_t>(config_.round_ms / config_.tick_ms)) *
          static_cast<std::uint64_t>(config_.tick_ms));
      start(i);
    }
  }

  // Nodes 0 and 1 are the seeds. A generation is what a wall clock says.
  void start(std::size_t index) {
    Member& member = members_[index];
    MembershipConfig config;
    config.cluster = kCluster;
    config.self = id_of(index);
    config.generation = static_cast<Generation>(1'000'000 + now_ms_ / 1'000 + member.wall_jump_s);
    config.seed_count = 2;
    config.limits = config_.limits;
    auto detector = config_.make_detector(config.self);
    auto* probing = dynamic_cast<ProbingDetector*>(detector.get());
    member.machine = std::make_unique<Membership>(config, std::move(detector));
    member.prober.emplace(*member.machine, probing);
    member.told.clear();
    member.started_ms = now_ms_;
    const bool is_said = member.machine->set(StateKey::status, encode_status(Status::normal)) &&
                         member.machine->set(StateKey::load, encode_load(index));
    ASSERT(is_said);
  }
  void crash(std::size_t index) {
    members_[index].prober.reset();
    members_[index].machine.reset();
    members_[index].crashed_ms = now_ms_;
  }
  void restart(std::size_t index) {
    crash(index);
    start(index);
  }
  void set_paused(std::size_t index, bool paused) {
    members_[index].paused = paused;
    disturbed_ms_ = now_ms_;
  }
  void jump_monotonic(std::size_t index, std::int64_t ms) { members_[index].clock_ahead_ms += ms; }
  void jump_wall(std::size_t index, std::int64_t s) { members_[index].wall_jump_s += s; }
  void set_loss(double loss) { config_.loss = loss; }
  // Nodes below `border` do not hear the others.
  void partition(std::size_t border) {
    border_ = border;
    disturbed_ms_ = now_ms_;
  }
  void heal() {
    border_ = 0;
    disturbed_ms_ = now_ms_;
  }

  void run_ms(std::int64_t duration_ms) {
    const std::int64_t end = now_ms_ + duration_ms;
    while (now_ms_ < end) {
      deliver_until(now_ms_);
      for (std::size_t i = 0; i < members_.size(); ++i) {
        Member& member = members_[i];
        if (config_.stall_every_ms_mean > 0) stall_perhaps(member);
        if (!member.machine || stands_still(member)) continue;
        const bool round = (now_ms_ - member.round_offset_ms) % config_.round_ms == 0;
        const std::vector<OutgoingProbe> probes = member.prober->tick(clock_of(i), random_);
        const Output output =
            round ? member.machine->round(clock_of(i), random_) : member.machine->tick(clock_of(i));
        for (const OutgoingProbe& probe : probes) send(i, probe);
        take(i, output);
      }
      now_ms_ += config_.tick_ms;
    }
  }

  Membership& machine(std::size_t index) { return *members_[index].machine; }
  std::int64_t now_ms() const { return now_ms_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t messages_sent() const { return messages_sent_; }
  std::size_t message_bytes_largest() const { return message_bytes_largest_; }
  const DetectionReport& report() const { return report_; }

  // Empty when every running node knows every running one as it is but for its heartbeat, sees it
  // up, and sees all others down.
  std::string disagreement() const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i].machine) continue;
      for (std::size_t j = 0; j < members_.size(); ++j) {
        if (i == j) continue;
        if (std::string problem = disagreement_about(i, j); !problem.empty()) {
          return fmt::format("node {} about node {}: {}", i, j, problem);
        }
      }
    }
    return {};
  }

 private:
  struct Member {
    std::unique_ptr<Membership> machine;
    std::optional<Prober> prober;  // of the machine
    bool paused = false;
    std::int64_t stalled_until_ms = 0;
    std::int64_t round_offset_ms = 0;
    std::int64_t clock_ahead_ms = 0;
    std::int64_t wall_jump_s = 0;
    std::int64_t started_ms = 0;
    std::int64_t crashed_ms = 0;
    std::map<std::size_t, std::pair<bool, bool>> told;  // member, up: by events alone
  };
  struct Letter {
    std::size_t from;
    std::size_t to;
    std::variant<base::Bytes, Probe> content;
  };

  // Ids in another order than the indexes.
  static model::NodeId id_of(std::size_t index) {
    base::Uuid::Octets octets{};
    base::store_be(octets.data() + 8, std::uint64_t{(index * 7919) % 10'007});
    return model::NodeId(base::Uuid(octets));
  }
  std::size_t index_of(model::NodeId id) const { return indexes_.at(id); }
  runtime::MonotonicTime clock_of(std::size_t index) const {
    return runtime::MonotonicTime(
        std::chrono::milliseconds(now_ms_ + members_[index].clock_ahead_ms));
  }
  bool stands_still(const Member& member) const {
    return member.paused || now_ms_ < member.stalled_until_ms;
  }
  void stall_perhaps(Member& member) {
    const double ticks =
        static_cast<double>(config_.stall_every_ms_mean) / static_cast<double>(config_.tick_ms);
    if (!random_.chance(1 / ticks)) return;
    member.stalled_until_ms = now_ms_ + static_cast<std::int64_t>(random_.between(
                                            1, static_cast<std::uint64_t>(config_.stall_ms_max)));
  }
  bool reaches(std::size_t from, std::size_t to) const {
    return border_ == 0 || (from < border_) == (to < border_);
  }

  void take(std::size_t from, const Output& output) {
    for (const Event& event : output.events) judge(from, index_of(event.node), event.kind);
    for (const Outgoing& outgoing : output.messages) {
      const auto* seed = std::get_if<Seed>(&outgoing.to);
      const std::size_t to =
          seed != nullptr ? seed->value() : index_of(std::get<model::NodeId>(outgoing.to));
      base::Bytes bytes = encode(outgoing.message);
      const std::size_t size = bytes.size();
      post({from, to, std::move(bytes)}, size);
    }
  }
  void send(std::size_t from, const OutgoingProbe& probe) {
    post({from, index_of(probe.to), probe.probe}, encoded_size(probe.probe, kCluster));
  }
  void post(Letter letter, std::size_t size) {
    ++messages_sent_;
    bytes_sent_ += size;
    message_bytes_largest_ = std::max(message_bytes_largest_, size);
    if (!reaches(letter.from, letter.to) || random_.chance(config_.loss)) return;
    const auto latency = static_cast<std::int64_t>(
        random_.between(1, static_cast<std::uint64_t>(config_.latency_ms_max)));
    letters_.emplace(std::pair(now_ms_ + latency, ++letter_number_), std::move(letter));
  }

  // Letters set out from when they are delivered, so an exchange of three needs no three ticks.
  void deliver_until(std::int64_t end_ms) {
    const std::int64_t restore_ms = now_ms_;
    while (!letters_.empty() && letters_.begin()->first.first <= end_ms) {
      now_ms_ = letters_.begin()->first.first;
      const Letter letter = std::move(letters_.begin()->second);
      letters_.erase(letters_.begin());
      Member& member = members_[letter.to];
      if (!member.machine || !reaches(letter.from, letter.to)) continue;
      if (stands_still(member)) {
        letters_.emplace(std::pair(end_ms + config_.tick_ms, ++letter_number_), letter);
        continue;
      }
      if (const auto* probe = std::get_if<Probe>(&letter.content)) {
        const auto next = member.prober->receive(*probe, id_of(letter.from), clock_of(letter.to));
        if (next) send(letter.to, *next);
        continue;
      }
      const auto message = decode(std::get<base::Bytes>(letter.content));
      ASSERT(message.has_value(), "{}", message.error().to_string());
      const auto output = member.machine->receive(*message, clock_of(letter.to), random_);
      ASSERT(output.has_value(), "{}", output.error().to_string());
      take(letter.to, *output);
    }
    now_ms_ = restore_ms;
  }

  // Each event must be a change, and a suspicion is right, wrong, or nobody's fault.
  void judge(std::size_t observer, std::size_t subject, Event::Kind kind) {
    auto& [member, up] = members_[observer].told[subject];
    const auto was_member = member;
    const auto was_up = up;
    const bool is_change = [&] {
      switch (kind) {
        case Event::Kind::new_node:
          return !std::exchange(member, true);
        case Event::Kind::removed_node:
          up = false;
          return std::exchange(member, false);
        case Event::Kind::up:
          return member && !std::exchange(up, true);
        case Event::Kind::down:
          return std::exchange(up, false);
      }
      UNREACHABLE();
    }();
    ASSERT(is_change, "node {} told {} of node {}, which was {}a member and {}up", observer,
           name_of(kind), subject, was_member ? "" : "not ", was_up ? "" : "not ");
    if (kind == Event::Kind::down) count_down(observer, subject);
  }
  void count_down(std::size_t observer, std::size_t subject) {
    constexpr std::int64_t kAftermathMs = 60'000;
    const Member& member = members_[subject];
    if (!member.machine) {
      const std::int64_t took_ms = now_ms_ - member.crashed_ms;
      ++report_.detections;
      report_.detection_ms_sum += took_ms;
      report_.detection_ms_max = std::max(report_.detection_ms_max, took_ms);
      return;
    }
    const bool restarted = member.crashed_ms > 0 && now_ms_ - member.started_ms < kAftermathMs;
    const bool disturbed = disturbed_ms_ && now_ms_ - *disturbed_ms_ < kAftermathMs;
    if (restarted || disturbed || member.paused || !reaches(subject, observer)) return;
    ++report_.false_suspicions;
  }

  std::string disagreement_about(std::size_t observer, std::size_t subject) const {
    const Membership& here = *members_[observer].machine;
    const ClusterView::Node* seen = here.view().find(id_of(subject));
    if (!members_[subject].machine) return seen != nullptr && seen->up ? "it is dead" : "";
    if (seen == nullptr || !seen->up) return "it is up";
    const NodeStates& truth = members_[subject].machine->gossip().own();
    const NodeStates& known = *here.gossip().find(id_of(subject));
    if (known.generation() != truth.generation()) return "another generation";
    for (const State& state : truth.states()) {
      const base::Bytes* value = known.find(state.key);
      if (value == nullptr || *value != state.value) return "another state";
    }
    const auto told = members_[observer].told.find(subject);
    if (told == members_[observer].told.end() || told->second != std::pair(true, true)) {
      return "events told something else";
    }
    return {};
  }

  ModelNetworkConfig config_;
  base::Prng random_;
  std::vector<Member> members_;
  std::map<model::NodeId, std::size_t> indexes_;
  std::map<std::pair<std::int64_t, std::uint64_t>, Letter> letters_;
  std::uint64_t letter_number_ = 0;
  std::int64_t now_ms_ = 0;
  std::size_t border_ = 0;
  std::optional<std::int64_t> disturbed_ms_;
  std::uint64_t messages_sent_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::size_t message_bytes_largest_ = 0;
  DetectionReport report_;
};

}  // namespace helenus::membership
