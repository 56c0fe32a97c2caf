// The messages of gossip and their bytes.
//
// Reconciliation after van Renesse, Dumitriu, Gough and Thomas, "Efficient Reconciliation and Flow
// Control for Anti-Entropy Protocols" (LADIS 2008), in three messages:
//
//   Opening   what I know, as a digest
//   Answer    what you lack of it; and what I lack, as a list of versions
//   Closing   what you asked for
//
// A digest speaks for an arc of the node ids: it names every node of that arc which its sender
// knows, so a node of the arc that is missing is one its sender has never heard of. This is what
// lets a digest have a limit: a large cluster is covered arc by arc, in several rounds.
//
// A delta says what it continues: all states of a node with versions in (after, last of these]. Its
// receiver takes it only if it knows everything up to `after`. In print the digest alone decides,
// which leaves a gap for ever when an answer reaches a node that restarted since it asked.
//
// Every message names the cluster.
//
// Releases. A reader keeps what follows the fields it knows as `later`, and makes nothing of it: so
// a release may add a field, and older ones read on. One that changes a field raises the version,
// and writes as before to a reader that is behind, which the handshake of rpc tells. Encoding is
// canonical: what decodes encodes to the same bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "membership/application_state.h"
#include "model/node_id.h"

namespace helenus::membership {

// Which life of a node: larger after each restart. Seconds since 1970 at the start will do.
using Generation = std::uint64_t;
// Counts the changes that a node makes to its states in one life, heartbeats among them.
using Version = std::uint64_t;

// Room above is left so that nobody can be pushed to the end of the numbers.
inline constexpr Generation kGenerationMax = std::uint64_t{1} << 62;
inline constexpr Version kVersionMax = std::uint64_t{1} << 62;
inline constexpr std::size_t kClusterNameBytesMax = 128;
inline constexpr std::size_t kMessageBytesMax = 1024 * 1024;

// How much of a node is known: all states up to `version` of that life. Nothing: both are zero.
struct Knowledge {
  model::NodeId node;
  Generation generation = 0;
  Version version = 0;

  friend bool operator==(const Knowledge&, const Knowledge&) = default;
};

// The nodes in (after, last]; without an end it begins or stops at the end of the ids.
struct Arc {
  std::optional<model::NodeId> after;
  std::optional<model::NodeId> last;

  bool contains(model::NodeId node) const {
    return (!after || node > *after) && (!last || node <= *last);
  }
  friend bool operator==(const Arc&, const Arc&) = default;
};

struct Digest {
  Arc arc;
  std::vector<Knowledge> nodes;  // ascending, all of the arc

  friend bool operator==(const Digest&, const Digest&) = default;
};

struct State {
  StateKey key = StateKey::heartbeat;
  Version version = 0;
  base::Bytes value;

  friend bool operator==(const State&, const State&) = default;
};

struct Delta {
  model::NodeId node;
  Generation generation = 0;
  Version after = 0;
  std::vector<State> states;  // not empty; ascending by version, all above `after`; no key twice

  friend bool operator==(const Delta&, const Delta&) = default;
};

struct Opening {
  Digest digest;
  friend bool operator==(const Opening&, const Opening&) = default;
};
struct Answer {
  std::vector<Knowledge> wanted;  // ascending: what the sender has of the nodes it lacks news of
  std::vector<Delta> deltas;      // ascending
  friend bool operator==(const Answer&, const Answer&) = default;
};
struct Closing {
  std::vector<Delta> deltas;  // ascending
  friend bool operator==(const Closing&, const Closing&) = default;
};

using Body = std::variant<Opening, Answer, Closing>;

struct Message {
  std::string cluster;  // 1 to kClusterNameBytesMax bytes
  model::NodeId sender;
  Body body;
  base::Bytes later{};  // what a later release added

  friend bool operator==(const Message&, const Message&) = default;
};

// Requires: the orders and limits stated above.
base::Bytes encode(const Message& message);
// Errors: corrupt; unsupported for a later version of the format.
base::Result<Message> decode(base::ByteView bytes);

// What the parts take on the wire, for those who fill a message up to a limit. The head of a delta
// is all but its states; `previous` is the version before the state's, or `after`.
std::size_t encoded_size(const Knowledge& knowledge);
std::size_t encoded_head_size(Generation generation, Version after);
std::size_t encoded_size(const State& state, Version previous);

}  // namespace helenus::membership
