// Gossip: what every node says of itself, spread to all by Scuttlebutt reconciliation.
//
// A node's states are changed by their owner alone, each change under a new version, so there is
// nothing to resolve: the newer version wins, and of two lives of a node the later one. What a node
// knows of another is always a *prefix* of it:
//
//   Invariant. If this node knows (generation g, version v) of node r, then it has every state that
//   r, in life g, last changed at a version <= v, and none of a later version.
//
// It holds because states leave in ascending order of version whatever the limit cuts off, and
// because a delta is taken only where it continues what is known (message.h). So one number a node
// says exactly what is missing, and that is all a digest holds.
//
// Flow control: no message takes more than a digest's and a delta's limit. When more is missing
// than fits, DeltaOrder says what goes first. (The paper also lets senders slow their updates down;
// ours are a few a second by nature: a heartbeat a round, and what operators do.)
//
// A life that is not the last: a node that finds itself known under a later generation than its own
// (its clock was set back between two starts, or bytes went bad) or at a version that it has not
// reached takes a generation above that one. Nobody could hear it otherwise.
//
// Pure: a value driven by rounds and messages; randomness is passed in. Belongs to one core.
// Cost: a message takes time linear in the nodes it speaks of, times the logarithm of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/prng.h"
#include "base/result.h"
#include "membership/application_state.h"
#include "membership/message.h"
#include "model/node_id.h"

namespace helenus::membership {

// Which of the missing states leave first when not all fit. States of one node leave in ascending
// order of version in any case. Ties are broken at random.
enum class DeltaOrder : std::uint8_t {
  breadth,  // "scuttle-breadth": the oldest of every node, then the second of every node, ...
  depth,    // "scuttle-depth": everything of the node of which most is missing, then of the next
};

struct GossipLimits {
  std::size_t digest_bytes_max = 16 * 1024;  // at least kDigestBytesMin
  std::size_t delta_bytes_max =
      32 * 1024;                 // at least kDeltaBytesMin, for the largest state to pass
  std::size_t nodes_max = 4096;  // at least 1; of nodes beyond that nothing is taken
  DeltaOrder order = DeltaOrder::breadth;
  // For how many rounds nobody can tell this node about one that it forgot. Long enough for all
  // others to forget it as well.
  std::uint32_t quarantine_rounds = 60;

  static constexpr std::size_t kDigestBytesMin = 64;
  static constexpr std::size_t kDeltaBytesMin = kStateValueBytesMax + 64;
};

// One node as known here.
class NodeStates {
 public:
  explicit NodeStates(Generation generation) : generation_(generation) {}

  Generation generation() const { return generation_; }
  Version version() const { return states_.empty() ? 0 : states_.back().version; }
  // Ascending by version; no key twice.
  const std::vector<State>& states() const { return states_; }
  const base::Bytes* find(StateKey key) const;
  // Zero if none is known yet.
  Version heartbeat() const;

  // Requires: the version is above version().
  void put(State state);
  void begin_life(Generation generation);
  // The same states under a later generation. Requires: it is one.
  void raise(Generation generation);

  friend bool operator==(const NodeStates&, const NodeStates&) = default;

 private:
  Generation generation_;
  std::vector<State> states_;
};

// What a message brought about one other node.
struct Progress {
  model::NodeId node;
  bool learned = false;    // it was unknown before
  bool restarted = false;  // it was known in an earlier life
  bool heartbeat = false;  // its heart was seen beating: a later beat of a life already known
  std::uint32_t keys = 0;  // a bit for each key with a new value
  bool changed(StateKey key) const { return (keys >> static_cast<unsigned>(key) & 1U) != 0; }
};

// How far above the life that this node began with another one may lie, in seconds: ten years. No
// clock is that wrong. Without a limit one message with the greatest generation would hide a node
// from the others for ever: it could not begin a later life.
inline constexpr Generation kGenerationLeadMax = 315'360'000;

struct GossipStatistics {
  std::uint64_t deltas_taken = 0;
  std::uint64_t deltas_stale = 0;        // nothing new in them
  std::uint64_t deltas_with_gap = 0;     // did not continue what was known
  std::uint64_t nodes_over_limit = 0;    // refused for nodes_max
  std::uint64_t nodes_quarantined = 0;   // refused because forgotten a short while ago
  std::uint64_t lives_in_future = 0;     // refused for kGenerationLeadMax
  std::uint64_t generations_raised = 0;  // this node was known under a later life than its own
};

class Gossip {
 public:
  struct Received {
    std::optional<Body> reply;
    std::vector<Progress> progress;  // ascending by node
  };

  // Requires: 1 <= generation <= kGenerationMax; limits as stated.
  Gossip(model::NodeId self, Generation generation, const GossipLimits& limits);

  // Says something of this node. The same value again is no change. Errors: invalid_argument for a
  // heartbeat, a key out of range, or a value that is too long.
  base::Result<void> set(StateKey key, base::Bytes value);

  // A round begins: the heart beats, quarantines run down.
  void beat();
  // The digest of the next arc, to open an exchange with.
  Opening open();
  // The digest of an arc that ends with this node and has no other that is known here.
  Opening open_self() const;

  // Takes one of the three messages and says what to send back. Messages may come in any order, be
  // lost or come twice.
  Received receive(const Opening& opening, base::Prng& random);
  Received receive(const Answer& answer, base::Prng& random);
  Received receive(const Closing& closing);

  // Drops what is known of a node and believes nothing of this life of it for quarantine_rounds.
  // Requires: not this node.
  void forget(model::NodeId node);

  model::NodeId self() const { return self_; }
  const NodeStates& own() const { return nodes_.at(self_); }
  const NodeStates* find(model::NodeId node) const;
  // Everybody, this node among them.
  const std::map<model::NodeId, NodeStates>& nodes() const { return nodes_; }
  const GossipStatistics& statistics() const { return statistics_; }

 private:
  struct Quarantine {
    Generation generation;
    std::uint32_t rounds_left;
  };
  struct Missing {
    model::NodeId node;
    const NodeStates* states;
    std::size_t first;  // index of the first state that is missing
    std::size_t taken = 0;
    bool open = true;

    std::size_t count() const { return states->states().size() - first; }
  };

  void add_missing(std::vector<Missing>& missing, model::NodeId node, const NodeStates& states,
                   const Knowledge& known) const;
  bool take_next(Missing& missing, std::size_t& bytes_left) const;
  std::vector<Delta> deltas_of(std::vector<Missing> missing, base::Prng& random) const;
  bool is_wanted(const Knowledge& offered) const;
  std::vector<Progress> apply(const std::vector<Delta>& deltas);
  Progress apply(const Delta& delta);
  bool admits(const Delta& delta);
  void outlive(Generation generation, Version version);

  model::NodeId self_;
  Generation generation_max_;  // of all that is believed
  GossipLimits limits_;
  std::map<model::NodeId, NodeStates> nodes_;
  std::map<model::NodeId, Quarantine> quarantine_;
  std::optional<model::NodeId> arc_after_;
  GossipStatistics statistics_;
};

}  // namespace helenus::membership
