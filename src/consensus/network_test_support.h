// A small world for the register: nodes with an acceptor, a disk and a client each, a network that
// loses, repeats, delays and reorders, all in virtual time and out of one seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/prng.h"
#include "consensus/acceptor.h"
#include "consensus/history_test_support.h"
#include "consensus/message.h"
#include "consensus/proposer.h"

namespace helenus::consensus {

inline base::Uuid uuid_of(std::uint64_t kind, std::uint64_t number) {
  return base::Uuid::from_random(kind << 32 | number, number);
}
inline model::NodeId node_id(std::uint64_t number) {
  return model::NodeId(uuid_of(1, number));
}
inline ChangeId change_id(std::uint64_t number) {
  return ChangeId(uuid_of(2, number));
}
inline ProposerId proposer_id(std::uint64_t number) {
  return ProposerId(uuid_of(3, number));
}
inline std::vector<model::NodeId> node_ids(std::uint64_t count) {
  std::vector<model::NodeId> nodes;
  for (std::uint64_t i = 1; i <= count; ++i) nodes.push_back(node_id(i));
  return nodes;
}
inline Document founding_document(std::uint64_t acceptors) {
  auto document = found(RegisterId(uuid_of(4, 1)), node_ids(acceptors), {});
  ASSERT(document);
  return *document;
}
// The content of the test's documents: the ids of all changes, one after another.
inline base::Bytes appended(const base::Bytes& content, ChangeId id) {
  base::Buffer buffer;
  buffer.append(content);
  buffer.append(id.value().bytes());
  return std::move(buffer).freeze();
}

// What a change that appends its id makes of the document before.
inline Document next_document(const Document& previous, std::uint64_t id = 1) {
  auto document = apply({.id = change_id(id),
                         .expected = previous.version,
                         .acceptors = previous.acceptors,
                         .content = appended(previous.content, change_id(id))},
                        previous);
  ASSERT(document);
  return *document;
}

class World {
 public:
  struct Options {
    std::uint64_t nodes = 4;
    std::uint64_t founders = 3;
    double loss = 0.1;
    double repeat = 0.1;
    bool crashes = true;
    bool moves_acceptors = true;
    bool disks_lie = false;  // a crash undoes the last write, though its completion was told
  };

  World(std::uint64_t seed, Options options)
      : options_(options),
        prng_(seed),
        founding_(founding_document(options.founders)),
        history_(founding_) {
    for (std::uint64_t i = 1; i <= options_.nodes; ++i) {
      const bool founds = i <= options_.founders;
      const auto state = founds ? AcceptorState::founding(node_id(i), founding_)
                                : AcceptorState::blank(node_id(i));
      nodes_.push_back({.id = node_id(i), .disk = encode(state)});
      start_acceptor(nodes_.back());
    }
    for (auto& node : nodes_) {
      start_client(node);
      if (options_.crashes) plan_trouble(node);
    }
  }

  void run_for(runtime::Duration duration) {
    const auto end = now_ + duration;
    while (!events_.empty() && events_.begin()->first <= end) {
      auto event = events_.extract(events_.begin());
      now_ = event.key();
      event.mapped()();
    }
    now_ = end;
  }

  // No more faults and no more changes; what is under way comes to an end.
  void heal() {
    is_faulty_ = false;
    run_for(runtime::Duration(std::chrono::seconds(10)));
    for (auto& node : nodes_) {
      if (!node.acceptor) start_acceptor(node);
      if (!node.proposer) start_client(node);
    }
    run_for(runtime::Duration(std::chrono::seconds(5)));
  }

  // Every client reads; what they got.
  std::vector<Outcome> read_everywhere() {
    std::vector<Outcome> outcomes;
    for (auto& node : nodes_) {
      invoke(node, std::nullopt);
      run_for(runtime::Duration(std::chrono::seconds(5)));
      if (node.last) outcomes.push_back(*node.last);
    }
    return outcomes;
  }

  const History& history() const { return history_; }
  std::uint64_t node_count() const { return options_.nodes; }

 private:
  struct Node {
    model::NodeId id;
    base::Bytes disk;
    base::Bytes disk_before = disk;
    std::optional<base::Bytes> write_under_way = std::nullopt;
    std::unique_ptr<Acceptor> acceptor = nullptr;
    std::uint64_t acceptor_life = 0;

    std::unique_ptr<Proposer> proposer = nullptr;
    std::uint64_t client_life = 0;
    std::optional<std::size_t> operation = std::nullopt;
    std::optional<Change> change = std::nullopt;
    bool tried_before = false;
    runtime::MonotonicTime tick_planned = runtime::MonotonicTime::never();
    std::optional<Outcome> last = std::nullopt;
  };

  static constexpr std::uint64_t kMicrosecond = 1000;
  static constexpr std::uint64_t kMillisecond = 1000 * kMicrosecond;

  void in(std::uint64_t nanoseconds, std::function<void()> event) {
    events_.emplace(now_ + runtime::Duration(static_cast<std::int64_t>(nanoseconds)),
                    std::move(event));
  }
  Node& at(model::NodeId id) {
    const auto found_at = std::ranges::find(nodes_, id, &Node::id);
    ASSERT(found_at != nodes_.end());
    return *found_at;
  }

  void start_acceptor(Node& node) {
    auto state = decode_acceptor_state(node.disk);
    ASSERT(state && state->node == node.id);
    ++node.acceptor_life;
    node.acceptor = std::make_unique<Acceptor>(*std::move(state));
  }
  void crash_acceptor(Node& node) {
    ++node.acceptor_life;
    node.acceptor.reset();
    // What was being written may or may not have reached the disk.
    if (node.write_under_way && prng_.chance(0.5)) node.disk = *node.write_under_way;
    node.write_under_way.reset();
    if (options_.disks_lie) node.disk = node.disk_before;
  }

  void plan_trouble(Node& node) {
    in(prng_.between(20, 600) * kMillisecond, [this, id = node.id] {
      if (!is_faulty_) return;
      Node& victim = at(id);
      if (prng_.chance(0.5)) {
        if (victim.acceptor) {
          crash_acceptor(victim);
        } else {
          start_acceptor(victim);
        }
      } else {
        // A proposer dies midway; its operation never returns.
        victim.proposer.reset();
        victim.operation.reset();
        start_client(victim);
      }
      plan_trouble(victim);
    });
  }

  Document some_decided_document() {
    const auto& documents = history_.documents();
    auto chosen = documents.begin();
    std::advance(chosen, prng_.below(documents.size()));
    return prng_.chance(0.3) ? Document() : chosen->second;
  }

  void start_client(Node& node) {
    const Proposer::Config config{.round_timeout = runtime::Duration(60 * kMillisecond),
                                  .pause_min = runtime::Duration(5 * kMillisecond),
                                  .pause_max = runtime::Duration(100 * kMillisecond)};
    node.proposer = std::make_unique<Proposer>(proposer_id(++proposers_), some_decided_document(),
                                               node_ids(options_.nodes), prng_.next(), config);
    ++node.client_life;
    node.tick_planned = runtime::MonotonicTime::never();
    plan_operation(node);
  }

  void plan_operation(Node& node) {
    in(prng_.between(0, 60) * kMillisecond, [this, id = node.id, life = node.client_life] {
      Node& client = at(id);
      if (client.client_life != life || !is_faulty_) return;
      const Document& known = client.proposer->known();
      if (known.is_blank() || prng_.chance(0.4)) return invoke(client, std::nullopt);
      const ChangeId change = change_id(++changes_);
      invoke(client, Change{.id = change,
                            .expected = known.version,
                            .acceptors = next_acceptors(known),
                            .content = appended(known.content, change)});
    });
  }

  std::vector<model::NodeId> next_acceptors(const Document& known) {
    if (!options_.moves_acceptors || prng_.chance(0.6)) return known.acceptors;
    auto nodes = node_ids(options_.nodes);
    prng_.shuffle(nodes);
    nodes.resize(prng_.between(1, nodes.size()));
    return nodes;
  }

  void invoke(Node& node, std::optional<Change> change) {
    node.operation = history_.invoke(change);
    node.change = std::move(change);
    node.tried_before = false;
    node.last.reset();
    begin(node);
  }

  void begin(Node& node) {
    const auto deadline = now_ + runtime::Duration((is_faulty_ ? 700 : 4000) * kMillisecond);
    if (node.change) {
      ASSERT(node.proposer->change(*node.change, now_, deadline));
    } else {
      node.proposer->read(now_, deadline);
    }
    pump_client(node);
  }

  void pump_client(Node& node) {
    for (auto& message : node.proposer->take_messages()) send(node.id, message);
    if (auto outcome = node.proposer->take_outcome()) on_outcome(node, *outcome);
    const auto wakes_at = node.proposer->wakes_at();
    if (wakes_at.is_never() || wakes_at == node.tick_planned) return;
    node.tick_planned = wakes_at;
    events_.emplace(std::max(wakes_at, now_), [this, id = node.id, life = node.client_life] {
      Node& client = at(id);
      if (client.client_life != life) return;
      client.tick_planned = runtime::MonotonicTime::never();
      client.proposer->tick(now_);
      pump_client(client);
    });
  }

  void on_outcome(Node& node, const Outcome& outcome) {
    const bool is_open = outcome.kind == Outcome::Kind::unknown ||
                         (node.tried_before && outcome.kind == Outcome::Kind::unavailable);
    if (is_open && node.change && is_faulty_ && prng_.chance(0.7)) {
      node.tried_before = true;
      return begin(node);
    }
    if (!is_open) history_.complete(*node.operation, outcome);
    node.last = outcome;
    node.operation.reset();
    plan_operation(node);
  }

  void pump_acceptor(Node& node) {
    if (auto write = node.acceptor->next_write()) {
      node.write_under_way = write->state;
      in(prng_.between(10, 5000) * kMicrosecond,
         [this, id = node.id, life = node.acceptor_life, sequence = write->sequence] {
           Node& writer = at(id);
           if (writer.acceptor_life != life) return;
           writer.disk_before = writer.disk;
           writer.disk = *std::exchange(writer.write_under_way, std::nullopt);
           writer.acceptor->written(sequence);
           history_.saw(writer.acceptor->durable_document());
           pump_acceptor(writer);
         });
    }
    for (auto& answer : node.acceptor->take_answers()) send(node.id, answer);
  }

  void send(model::NodeId from, const Outgoing& outgoing) {
    if (is_faulty_ && prng_.chance(options_.loss)) return;
    const unsigned copies = is_faulty_ && prng_.chance(options_.repeat) ? 2 : 1;
    for (unsigned i = 0; i < copies; ++i) {
      const std::uint64_t delay_max = is_faulty_ && prng_.chance(0.05) ? 400'000 : 15'000;
      in(prng_.between(50, delay_max) * kMicrosecond,
         [this, from, to = outgoing.to, bytes = encode(outgoing.message)] {
           deliver(from, at(to), bytes);
         });
    }
  }

  void deliver(model::NodeId from, Node& to, const base::Bytes& bytes) {
    const auto message = decode_message(bytes);
    ASSERT(message);
    if (is_question(*message) && to.acceptor) {
      to.acceptor->receive(from, *message);
      pump_acceptor(to);
    } else if (!is_question(*message) && to.proposer) {
      to.proposer->receive(from, *message, now_);
      pump_client(to);
    }
  }

  const Options options_;
  base::Prng prng_;
  Document founding_;
  History history_;
  std::vector<Node> nodes_;
  std::multimap<runtime::MonotonicTime, std::function<void()>> events_;
  runtime::MonotonicTime now_;
  bool is_faulty_ = true;
  std::uint64_t changes_ = 0;
  std::uint64_t proposers_ = 0;
};

}  // namespace helenus::consensus
