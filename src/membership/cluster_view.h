// ClusterView: who is in the cluster as this node sees it, and the events that clients are told.
//
// Two things are known of each node: the status it claims, and whether it is taken to be alive.
// From them follow two facts that matter to clients, and each change of these gives one event:
//
//   member   it claims to be normal or leaving     NEW_NODE when it becomes one, REMOVED_NODE when
//                                                  it is one no more
//   up       it is a member and alive              UP, DOWN; a removal of its own says "down", too
//
//   Law. For each node the events are ( NEW_NODE (UP DOWN)* UP? REMOVED_NODE )* or a beginning of
//   that; whoever counts them along has the same members and the same nodes up as the view.
//
// A restart that was noticed before its silence was is a change, too: connections to the old life
// are dead. It gives DOWN, and UP when the new life is heard of. A life whose status has not come
// yet counts with the status of the one before.
//
// The node itself is not in its view. Belongs to one core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "membership/application_state.h"
#include "model/node_id.h"

namespace helenus::membership {

struct Event {
  enum class Kind : std::uint8_t { new_node, removed_node, up, down };
  Kind kind = Kind::new_node;
  model::NodeId node;

  friend bool operator==(const Event&, const Event&) = default;
};

// As the CQL protocol spells it: "NEW_NODE".
std::string_view name_of(Event::Kind kind);

// What a node is to the others: what it claims, unless it is silent. Who left has left, silent or
// not.
enum class LifeCycle : std::uint8_t { joining, normal, leaving, left, down };

std::string_view name_of(LifeCycle state);

class ClusterView {
 public:
  struct Node {
    std::optional<Status> status;  // none: it has not come yet
    bool alive = false;
    bool member = false;
    bool up = false;

    LifeCycle life_cycle() const;
    friend bool operator==(const Node&, const Node&) = default;
  };

  // A node unknown so far is added.
  void set_status(model::NodeId node, Status status);
  void set_alive(model::NodeId node, bool alive);
  // A new life of the node began; until it is heard of it is not alive.
  void restarted(model::NodeId node);
  void forget(model::NodeId node);

  const Node* find(model::NodeId node) const;
  const std::map<model::NodeId, Node>& nodes() const { return nodes_; }

  // What has happened since the last call, in order.
  std::vector<Event> take_events();

 private:
  void update_liveness(model::NodeId id, Node& node);

  std::map<model::NodeId, Node> nodes_;
  std::vector<Event> events_;
};

}  // namespace helenus::membership
