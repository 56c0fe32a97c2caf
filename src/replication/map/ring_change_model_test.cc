// The rules of a change of the ring (R17, R18), searched: every schedule of one write, one read and
// a change of the replicas of one tablet, in small worlds, with the rule of levels that
// coordinators go by. What must hold: a read at QUORUM, in whatever epoch, sees a write that was
// acknowledged at QUORUM before the read began. Each rule that is left out must be found.
//
// A world has the documents before, begin, joint, finish, of which nodes learn when they will. A
// node takes part in the epoch of the newest that it knows, and in no other.
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include "replication/map/level_rule.h"

namespace helenus::replication::ring_change_model {
namespace {

using Nodes = std::uint8_t;  // a set, by bits
constexpr std::size_t kNodesMax = 4;

enum Document : std::uint8_t { before, begun, joint, finished, kDocuments };

enum class Mutant : std::uint8_t {
  none,
  one_swap,             // begin is followed by finish
  finish_without_pull,  // joint is finished as soon as it is there
  newcomers_pull,       // of the next set only who is new pulls
  joint_reads_ask_one,  // reads of joint ask for the set before alone
  joint_writes_ask_one,
  old_epochs_read,  // a replica answers reads of epochs that are over
};

struct World {
  std::size_t nodes = 0;
  Nodes old_set = 0;
  Nodes new_set = 0;
  Nodes fenced = 0;  // of the old set: dead, and removed by `begun`
  std::uint32_t old_factor = 0;
  std::uint32_t new_factor = 0;
};

bool has(Nodes set, std::size_t node) {
  return ((set >> node) & 1U) != 0;
}
Nodes bit(std::size_t node) {
  return static_cast<Nodes>(1U << node);
}

// Everything that the rest of a schedule depends on.
struct State {
  std::array<std::uint8_t, kNodesMax> epochs{};
  std::uint8_t document = before;  // the newest that was decided
  Nodes holds = 0;                 // who has the write
  Nodes filled = 0;
  std::array<Nodes, kNodesMax> pulled{};
  // The write: not yet, under way, or acknowledged.
  std::uint8_t write = 0;
  std::uint8_t minter = 0;
  std::uint8_t write_epoch = 0;
  Nodes acks = 0;
  // The read: not yet, or under way.
  std::uint8_t read = 0;
  std::uint8_t read_epoch = 0;
  bool must_see = false;
  bool has_seen = false;
  Nodes answers = 0;

  std::string key() const {
    std::string text;
    const auto add = [&](auto value) { text.push_back(static_cast<char>(value)); };
    for (const auto epoch : epochs) add(epoch);
    for (const auto from : pulled) add(from);
    for (const auto value :
         {document, holds, filled, write, minter, write_epoch, acks, read, read_epoch, answers}) {
      add(value);
    }
    add(must_see);
    add(has_seen);
    return text;
  }
};

class Search {
 public:
  Search(World world, Mutant mutant) : world_(world), mutant_(mutant) {
    for (const std::uint8_t document : {before, begun, joint, finished}) {
      for (unsigned who = 0; who < (1U << world_.nodes); ++who) {
        for (const bool is_read : {false, true}) {
          met_[document][who][is_read ? 1 : 0] = is_met(document, static_cast<Nodes>(who), is_read);
        }
      }
    }
  }

  // Whether some schedule lets the read miss the write.
  bool finds_a_violation() {
    std::vector<State> open{State()};
    seen_.insert(open.back().key());
    while (!open.empty()) {
      const State state = open.back();
      open.pop_back();
      const auto visit = [&](const State& next) {
        if (seen_.insert(next.key()).second) open.push_back(next);
      };
      if (step(state, visit)) return true;
    }
    return false;
  }
  std::size_t states() const { return seen_.size(); }

 private:
  using Visit = std::function<void(const State&)>;

  Nodes members(std::uint8_t document) const {
    const Nodes left = world_.old_set & static_cast<Nodes>(~world_.fenced);
    switch (document) {
      case before:
        return world_.old_set;
      case begun:
        return left;
      case joint:
        return left | world_.new_set;
      default:
        return world_.new_set;
    }
  }

  LevelRule rule(std::uint8_t document) const {
    const auto quorum = [](std::uint32_t factor) {
      return LevelRule::of(ring::SimpleStrategy{.factor = factor}, {}, "",
                           model::Consistency::quorum);
    };
    if (document == joint) {
      return LevelRule::joint(quorum(world_.old_factor), quorum(world_.new_factor));
    }
    return quorum(document == finished ? world_.new_factor : world_.old_factor);
  }

  bool met(std::uint8_t document, Nodes who, bool is_read) const {
    return met_[document][who][is_read ? 1 : 0];
  }
  bool is_met(std::uint8_t document, Nodes who, bool is_read) const {
    const bool asks_one = document == joint && mutant_ == (is_read ? Mutant::joint_reads_ask_one
                                                                   : Mutant::joint_writes_ask_one);
    const LevelRule level = rule(asks_one ? std::uint8_t{begun} : document);
    const Nodes left = world_.old_set & static_cast<Nodes>(~world_.fenced);
    std::vector<CountedReplica> replicas;
    std::vector<CountedReplica> answered;
    for (std::size_t node = 0; node < world_.nodes; ++node) {
      if (!has(members(document), node)) continue;
      CountedReplica replica(0);
      if (document == joint) {
        const unsigned sets = (has(left, node) ? 1U : 0U) + (has(world_.new_set, node) ? 2U : 0U);
        replica.sets = static_cast<ReplicaSets>(sets);
      }
      replicas.push_back(replica);
      if (has(who, node)) answered.push_back(replica);
    }
    AckTally tally(level, replicas);
    for (const CountedReplica replica : answered) tally.acknowledge(replica);
    return tally.met();
  }

  // Whether the read missed the write.
  bool step(const State& state, const Visit& visit) const {
    decide(state, visit);
    for (std::size_t node = 0; node < world_.nodes; ++node) {
      const bool is_dead = has(world_.fenced, node) && state.document >= begun;
      if (is_dead) continue;
      if (state.epochs[node] < state.document) {
        State next = state;
        ++next.epochs[node];
        visit(next);
      }
      move_data(state, node, visit);
      write(state, node, visit);
      if (read(state, node, visit)) return true;
    }
    return false;
  }

  void decide(const State& state, const Visit& visit) const {
    State next = state;
    const Nodes newcomers = world_.new_set & static_cast<Nodes>(~world_.old_set);
    const Nodes left = world_.old_set & static_cast<Nodes>(~world_.fenced);
    switch (state.document) {
      case before:
        next.document = begun;
        visit(next);
        return;
      case begun:
        if ((state.filled & newcomers) != newcomers) return;
        next.document = mutant_ == Mutant::one_swap ? finished : joint;
        visit(next);
        return;
      case joint:
        for (std::size_t node = 0; node < world_.nodes; ++node) {
          const bool must_pull = has(world_.new_set, node) &&
                                 mutant_ != Mutant::finish_without_pull &&
                                 (mutant_ != Mutant::newcomers_pull || has(newcomers, node));
          const Nodes from = left & static_cast<Nodes>(~bit(node));
          if (must_pull && (state.pulled[node] & from) != from) return;
        }
        next.document = finished;
        visit(next);
        return;
      default:
        return;
    }
  }

  void move_data(const State& state, std::size_t node, const Visit& visit) const {
    const std::uint8_t epoch = state.epochs[node];
    const Nodes left = world_.old_set & static_cast<Nodes>(~world_.fenced);
    for (std::size_t from = 0; from < world_.nodes; ++from) {
      if (from == node || state.epochs[from] != epoch || !has(left, from)) continue;
      State next = state;
      if (has(state.holds, from)) next.holds |= bit(node);
      const bool is_pending = has(world_.new_set, node) && !has(world_.old_set, node);
      if (epoch == begun && is_pending) {
        next.filled |= bit(node);
        visit(next);
      }
      if (epoch == joint && has(world_.new_set, node)) {
        next.pulled[node] |= bit(from);
        visit(next);
      }
    }
  }

  void write(const State& state, std::size_t node, const Visit& visit) const {
    const std::uint8_t epoch = state.epochs[node];
    if (state.write == 0) {
      if (!has(members(epoch), node)) return;
      State next = state;
      next.write = 1;
      next.minter = static_cast<std::uint8_t>(node);
      next.write_epoch = epoch;
      next.holds |= bit(node);
      next.acks = bit(node);
      visit(acknowledged_if_met(next));
      return;
    }
    if (state.write != 1) return;
    // It is sent, and counted, among those of the epoch in which its minter is.
    if (node == state.minter && state.write_epoch != epoch) {
      State next = state;
      next.write_epoch = epoch;
      next.acks = 0;
      if (has(members(epoch), node)) next.acks |= bit(node);
      visit(acknowledged_if_met(next));
      return;
    }
    const bool gets_it = has(members(epoch), node) || (epoch == begun && has(world_.new_set, node));
    if (!gets_it || epoch != state.write_epoch || has(state.acks, node)) return;
    State next = state;
    next.holds |= bit(node);
    if (has(members(epoch), node)) next.acks |= bit(node);
    visit(acknowledged_if_met(next));
  }

  State acknowledged_if_met(State state) const {
    if (met(state.write_epoch, state.acks, false)) {
      state.write = 2;
      state.acks = 0;
    }
    return state;
  }

  bool read(const State& state, std::size_t node, const Visit& visit) const {
    const std::uint8_t epoch = state.epochs[node];
    if (state.read == 0) {
      // Whoever coordinates it need not be a replica, and goes by any document that was decided.
      if (state.write != 2) return false;
      for (std::uint8_t decided = before; decided <= state.document; ++decided) {
        State next = state;
        next.read = 1;
        next.read_epoch = decided;
        next.must_see = true;
        visit(next);
      }
      return false;
    }
    const bool answers = epoch == state.read_epoch ||
                         (mutant_ == Mutant::old_epochs_read && epoch > state.read_epoch);
    if (!answers || !has(members(state.read_epoch), node) || has(state.answers, node)) return false;
    State next = state;
    next.answers |= bit(node);
    next.has_seen = state.has_seen || has(state.holds, node);
    if (met(next.read_epoch, next.answers, true)) return next.must_see && !next.has_seen;
    visit(next);
    return false;
  }

  const World world_;
  const Mutant mutant_;
  std::array<std::array<std::array<bool, 2>, std::size_t{1} << kNodesMax>, kDocuments> met_{};
  std::unordered_set<std::string> seen_;
};

constexpr World kReplacement{.nodes = 4,
                             .old_set = 0b0111,
                             .new_set = 0b1011,
                             .fenced = 0,
                             .old_factor = 3,
                             .new_factor = 3};
constexpr World kDeadReplaced{.nodes = 4,
                              .old_set = 0b0111,
                              .new_set = 0b1011,
                              .fenced = 0b0100,
                              .old_factor = 3,
                              .new_factor = 3};
constexpr World kThreeToOne{
    .nodes = 3, .old_set = 0b111, .new_set = 0b001, .fenced = 0, .old_factor = 3, .new_factor = 1};
constexpr World kOneToThree{
    .nodes = 3, .old_set = 0b001, .new_set = 0b111, .fenced = 0, .old_factor = 1, .new_factor = 3};
TEST(RingChangeModel, ReadsSeeWhatWasAcknowledgedInEverySchedule) {
  for (const World& world : {kReplacement, kDeadReplaced, kThreeToOne, kOneToThree}) {
    Search search(world, Mutant::none);
    EXPECT_FALSE(search.finds_a_violation());
    EXPECT_GT(search.states(), 500U);
    RecordProperty("states", static_cast<int>(search.states()));
  }
}

TEST(RingChangeModel, EveryRuleThatIsLeftOutIsMissed) {
  const auto is_found = [](World world, Mutant mutant) {
    return Search(world, mutant).finds_a_violation();
  };
  EXPECT_TRUE(is_found(kReplacement, Mutant::one_swap));
  EXPECT_TRUE(is_found(kReplacement, Mutant::finish_without_pull));
  EXPECT_TRUE(is_found(kThreeToOne, Mutant::newcomers_pull));
  EXPECT_TRUE(is_found(kReplacement, Mutant::joint_reads_ask_one));
  EXPECT_TRUE(is_found(kReplacement, Mutant::joint_writes_ask_one));
  EXPECT_TRUE(is_found(kReplacement, Mutant::old_epochs_read));
}

}  // namespace
}  // namespace helenus::replication::ring_change_model
