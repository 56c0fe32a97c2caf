// Topology: who is on the ring and where, as of one moment. An immutable snapshot: a change of the
// ring makes a new one, and whoever works with the old one goes on with it undisturbed. Share it as
// TopologyPtr, between cores too.
//
// The tokens of all nodes, in order, cut the ring into tablets: tablet i is the range (token i-1,
// token i], tablet 0 wraps round from behind the last token. A tablet's first replica candidate is
// the owner of its token; who else holds it is the keyspace's affair (placement.h).
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/result.h"
#include "model/node_id.h"
#include "ring/partitioner.h"

namespace helenus::ring {

struct Node {
  model::NodeId id;
  std::string datacentre;
  std::string rack;
  std::vector<Position> tokens;

  friend bool operator==(const Node&, const Node&) = default;
};

// A node or a tablet by its place in one topology. Another topology counts otherwise.
using NodeIndex = std::uint32_t;
using TabletIndex = std::uint32_t;

// A tablet or a part of it.
struct TabletRange {
  Position start;  // exclusive
  Position end;    // inclusive
  TabletIndex tablet;

  friend bool operator==(const TabletRange&, const TabletRange&) = default;
};

class Topology;
using TopologyPtr = std::shared_ptr<const Topology>;

class Topology {
 public:
  static constexpr std::size_t kNodesMax = 4096;
  static constexpr std::size_t kNameSizeMax = 256;

  // The nodes in any order; one without tokens is a member that holds nothing. No nodes is an empty
  // ring.
  // Errors: invalid_argument for more than kNodesMax nodes or kTokensMax tokens, a node id or token
  // that occurs twice, a Murmur3 token of another size than eight bytes, and a name of a datacentre
  // or rack that is empty or too long: drivers ignore a node without.
  // Cost: sorting the tokens.
  static base::Result<TopologyPtr> make(Partitioner partitioner, std::vector<Node> nodes);

  Partitioner partitioner() const { return partitioner_; }
  // By ascending id, each with its tokens in order.
  std::span<const Node> nodes() const { return nodes_; }
  const Node& node(NodeIndex index) const;
  std::optional<NodeIndex> find(model::NodeId id) const;

  std::size_t tablet_count() const { return slots_.size(); }
  // The tablet's last position. Requires: tablet < tablet_count(); so for the others.
  const Position& token_of(TabletIndex tablet) const { return slot(tablet).token; }
  // The last position before the tablet: the token of the tablet before it, round the ring.
  const Position& start_of(TabletIndex tablet) const;
  NodeIndex owner_of(TabletIndex tablet) const { return slot(tablet).owner; }

  // The tablet that holds a position. Requires: tablet_count() > 0. Cost: a binary search.
  TabletIndex tablet_at(const Position& position) const;
  // The range (start, end] cut into tablets, in the ring's order; start == end is the whole ring.
  // A tablet comes once, or as the first and the last where the range ends in the tablet where it
  // begins, but before its beginning.
  std::vector<TabletRange> ranges_in(const Position& start, const Position& end) const;

  // Datacentres and racks as small numbers, for comparing without comparing text. Racks of the
  // same name in two datacentres are two racks.
  std::uint32_t datacentre_number(NodeIndex index) const { return place(index).datacentre; }
  std::uint32_t rack_number(NodeIndex index) const { return place(index).rack; }
  std::span<const std::string> datacentres() const { return datacentres_; }  // by number
  std::size_t rack_count() const { return rack_count_; }

 private:
  struct Slot {
    Position token;
    NodeIndex owner;

    friend auto operator<=>(const Slot&, const Slot&) = default;
  };
  struct Place {
    std::uint32_t datacentre;
    std::uint32_t rack;
  };

  Topology(Partitioner partitioner, std::vector<Node> nodes)
      : partitioner_(partitioner), nodes_(std::move(nodes)) {}
  base::Result<void> check_nodes() const;
  base::Result<void> lay_out_tokens();
  void number_places();
  const Slot& slot(TabletIndex tablet) const {
    ASSERT(tablet < slots_.size(), "tablet {} of {}", tablet, slots_.size());
    return slots_[tablet];
  }
  const Place& place(NodeIndex index) const {
    ASSERT(index < places_.size(), "node {} of {}", index, places_.size());
    return places_[index];
  }

  Partitioner partitioner_;
  std::vector<Node> nodes_;
  std::vector<Slot> slots_;  // by token
  std::vector<Place> places_;
  std::vector<std::string> datacentres_;
  std::size_t rack_count_ = 0;
};

}  // namespace helenus::ring
