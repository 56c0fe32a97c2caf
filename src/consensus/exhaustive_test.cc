// Every order of events at a tiny scope: a few acceptors, two proposers with a short script each,
// and every message delivered at any time after it was sent, or never. What is safe here is safe
// for all schedules of that scope, not for those that a seed happened to draw.
//
// States are told apart by a digest of everything that the future depends on. Losing a message is
// the branch in which it is never delivered.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "consensus/network_test_support.h"

namespace helenus::consensus {
namespace {

enum class Act : std::uint8_t { read, change };

struct Flight {
  model::NodeId from;
  model::NodeId to;
  bool is_question;
  Message message;
};

struct Client {
  Proposer proposer;
  std::vector<Act> script;  // what is still to be done, the next one last
  std::vector<Outcome> outcomes = {};
  unsigned ticks_left = 0;
};

// Which acceptors ever accepted what, under which ballot: more than any of them remembers.
using Accepts = std::map<std::pair<Version, Ballot>, std::pair<Document, std::set<std::size_t>>>;

struct State {
  std::vector<Acceptor> acceptors;
  std::vector<Client> clients;
  std::vector<Flight> flights = {};
  Accepts accepts = {};
};

class Explorer {
 public:
  explicit Explorer(std::size_t states_max) : states_max_(states_max) {}

  void explore(const State& first) {
    std::vector<State> open;
    State start(first);
    for (std::size_t i = 0; i < start.clients.size(); ++i) pump_client(start, i);
    visit(start, open);
    while (!open.empty() && seen_.size() < states_max_ && !testing::Test::HasFailure()) {
      const State state = std::move(open.back());
      open.pop_back();
      for (std::size_t i = 0; i < state.flights.size(); ++i) {
        State next(state);
        deliver(next, i);
        visit(next, open);
      }
      for (std::size_t i = 0; i < state.clients.size(); ++i) {
        if (state.clients[i].ticks_left == 0 || !state.clients[i].proposer.is_busy()) continue;
        State next(state);
        --next.clients[i].ticks_left;
        next.clients[i].proposer.tick(next.clients[i].proposer.wakes_at());
        pump_client(next, i);
        visit(next, open);
      }
    }
    is_complete_ = open.empty();
  }

  std::size_t states() const { return seen_.size(); }
  bool is_complete() const { return is_complete_; }
  // How often the last client of all was done, per kind of its first outcome.
  const std::map<Outcome::Kind, std::size_t>& outcomes() const { return outcomes_; }

 private:
  void visit(State& state, std::vector<State>& open) {
    if (!seen_.insert(digest_of(state)).second) return;
    check(state);
    open.push_back(std::move(state));
  }

  static model::NodeId client_node(std::size_t index) { return node_id(100 + index); }

  static void deliver(State& state, std::size_t index) {
    const Flight flight = state.flights[index];
    state.flights.erase(state.flights.begin() + static_cast<std::ptrdiff_t>(index));
    if (!flight.is_question) {
      for (std::size_t i = 0; i < state.clients.size(); ++i) {
        if (client_node(i) != flight.to) continue;
        state.clients[i].proposer.receive(flight.from, flight.message, {});
        pump_client(state, i);
      }
      return;
    }
    for (std::size_t i = 0; i < state.acceptors.size(); ++i) {
      Acceptor& acceptor = state.acceptors[i];
      if (acceptor.state().node != flight.to) continue;
      acceptor.receive(flight.from, flight.message);
      if (const auto write = acceptor.next_write()) acceptor.written(write->sequence);
      if (const auto& accepted = acceptor.state().accepted) {
        auto& entry = state.accepts[{accepted->document.version, accepted->ballot}];
        entry.first = accepted->document;
        entry.second.insert(i);
      }
      for (auto& answer : acceptor.take_answers()) {
        state.flights.push_back(
            {.from = flight.to, .to = answer.to, .is_question = false, .message = answer.message});
      }
    }
  }

  static void pump_client(State& state, std::size_t index) {
    Client& client = state.clients[index];
    if (auto outcome = client.proposer.take_outcome()) client.outcomes.push_back(*outcome);
    if (!client.proposer.is_busy() && !client.script.empty()) {
      const Act act = client.script.back();
      client.script.pop_back();
      start(client, act, index);
    }
    for (auto& message : client.proposer.take_messages()) {
      state.flights.push_back({.from = client_node(index),
                               .to = message.to,
                               .is_question = true,
                               .message = message.message});
    }
    if (client.proposer.is_busy()) return;
    // What reaches an idle client changes nothing but what it knows.
    std::erase_if(state.flights, [index](const Flight& flight) {
      return !flight.is_question && flight.to == client_node(index);
    });
  }

  static void start(Client& client, Act act, std::size_t index) {
    const auto never = runtime::MonotonicTime::never();
    if (act == Act::read) return client.proposer.read({}, never);
    const Document& known = client.proposer.known();
    const ChangeId id = change_id(index + 1);
    ASSERT(client.proposer.change({.id = id,
                                   .expected = known.version,
                                   .acceptors = known.acceptors,
                                   .content = appended(known.content, id)},
                                  {}, never));
  }

  static std::uint64_t digest_of(const State& state) {
    base::Digest digest;
    for (const auto& acceptor : state.acceptors) digest.add(encode(acceptor.state()));
    for (const auto& client : state.clients) {
      client.proposer.add_to(digest);
      digest.add(client.script.size());
      digest.add(client.ticks_left);
      for (const auto& outcome : client.outcomes) {
        digest.add(static_cast<std::uint64_t>(outcome.kind));
        digest.add(outcome.document.version.value());
      }
    }
    // The order in which messages were sent means nothing to a network that reorders.
    std::uint64_t flights = 0;
    for (const auto& flight : state.flights) {
      base::Digest one;
      one.add(flight.from.value().bytes());
      one.add(flight.to.value().bytes());
      one.add(encode(flight.message));
      flights += one.value();
    }
    digest.add(flights);
    for (const auto& [key, entry] : state.accepts) {
      digest.add(key.first.value());
      digest.add(key.second.round);
      digest.add(key.second.proposer.value().bytes());
      for (const std::size_t acceptor : entry.second) digest.add(acceptor);
    }
    return digest.value();
  }

  void check(const State& state) {
    std::map<Version, Document> chosen;
    for (const auto& [key, entry] : state.accepts) {
      if (entry.second.size() < majority_of(state.acceptors.size())) continue;
      const auto [at, is_new] = chosen.try_emplace(key.first, entry.first);
      EXPECT_TRUE(is_new || at->second == entry.first) << "two documents were chosen";
    }
    std::size_t changed = 0;
    for (const auto& client : state.clients) {
      Version seen(0);
      for (const auto& outcome : client.outcomes) {
        EXPECT_GE(outcome.document.version, seen) << "a client went back";
        seen = outcome.document.version;
        if (seen > Version(1)) {
          EXPECT_EQ(chosen.at(seen), outcome.document) << "a document that was never chosen";
        }
        if (outcome.kind == Outcome::Kind::changed) ++changed;
      }
    }
    EXPECT_LE(changed, chosen.size()) << "a version was made twice";
    const auto& last = state.clients.back();
    if (!last.outcomes.empty() && last.script.empty()) ++outcomes_[last.outcomes.front().kind];
  }

  const std::size_t states_max_;
  std::unordered_set<std::uint64_t> seen_;
  std::map<Outcome::Kind, std::size_t> outcomes_;
  bool is_complete_ = false;
};

State scope(std::uint64_t acceptors, const std::vector<std::vector<Act>>& scripts,
            const std::vector<unsigned>& ticks) {
  const Document founding = founding_document(acceptors);
  State state{.acceptors = {}, .clients = {}};
  for (const auto& node : founding.acceptors) {
    state.acceptors.emplace_back(AcceptorState::founding(node, founding));
  }
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    state.clients.push_back({.proposer = Proposer(proposer_id(i + 1), founding, {}, 1, {}),
                             .script = scripts[i],
                             .ticks_left = ticks[i]});
  }
  return state;
}

constexpr std::size_t kStatesMax = 1'000'000;

// A larger scope, which takes a minute: the one that the worlds of register_test.cc grow with.
bool wants_more() {
  return std::getenv("HELENUS_CONSENSUS_SEEDS") != nullptr ||
         std::getenv("HELENUS_TEST_SCALE") != nullptr;
}

TEST(EverySchedule, OfTwoChangesAmongTwoAcceptorsChoosesOneDocument) {
  Explorer explorer(kStatesMax);
  explorer.explore(scope(2, {{Act::change}, {Act::change}}, {0, wants_more() ? 1U : 0U}));
  EXPECT_TRUE(explorer.is_complete()) << explorer.states();
  EXPECT_GT(explorer.outcomes().at(Outcome::Kind::changed), 0U);
  RecordProperty("states", static_cast<int>(explorer.states()));
}

TEST(EverySchedule, OfAChangeAndReadsShowsOnlyWhatWasChosenAndNeverGoesBack) {
  Explorer explorer(kStatesMax);
  const std::vector<Act> reads(wants_more() ? 2 : 1, Act::read);
  explorer.explore(scope(2, {{Act::change}, reads}, {0, 0}));
  EXPECT_TRUE(explorer.is_complete()) << explorer.states();
  EXPECT_GT(explorer.outcomes().at(Outcome::Kind::read), 0U);
  RecordProperty("states", static_cast<int>(explorer.states()));
}

}  // namespace
}  // namespace helenus::consensus
