#include "membership/cluster_view.h"

#include <utility>

#include "base/assert.h"

namespace helenus::membership {

using model::NodeId;

std::string_view name_of(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::new_node:
      return "NEW_NODE";
    case Event::Kind::removed_node:
      return "REMOVED_NODE";
    case Event::Kind::up:
      return "UP";
    case Event::Kind::down:
      return "DOWN";
  }
  UNREACHABLE("event {}", static_cast<int>(kind));
}

std::string_view name_of(LifeCycle state) {
  switch (state) {
    case LifeCycle::joining:
      return "joining";
    case LifeCycle::normal:
      return "normal";
    case LifeCycle::leaving:
      return "leaving";
    case LifeCycle::left:
      return "left";
    case LifeCycle::down:
      return "down";
  }
  UNREACHABLE("life-cycle state {}", static_cast<int>(state));
}

LifeCycle ClusterView::Node::life_cycle() const {
  if (status == Status::left) return LifeCycle::left;
  if (!alive) return LifeCycle::down;
  switch (status.value_or(Status::joining)) {
    case Status::joining:
      return LifeCycle::joining;
    case Status::normal:
      return LifeCycle::normal;
    case Status::leaving:
      return LifeCycle::leaving;
    case Status::left:
      return LifeCycle::left;
  }
  UNREACHABLE("status {}", static_cast<int>(*status));
}

void ClusterView::set_status(NodeId node, Status status) {
  Node& entry = nodes_[node];
  entry.status = status;
  update_liveness(node, entry);
}

void ClusterView::set_alive(NodeId node, bool alive) {
  Node& entry = nodes_[node];
  entry.alive = alive;
  update_liveness(node, entry);
}

void ClusterView::restarted(NodeId node) {
  set_alive(node, false);
}

void ClusterView::forget(NodeId node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  if (found->second.member) events_.push_back({Event::Kind::removed_node, node});
  nodes_.erase(found);
}

const ClusterView::Node* ClusterView::find(NodeId node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<Event> ClusterView::take_events() {
  return std::exchange(events_, {});
}

// Brings what was told in line with what is so.
void ClusterView::update_liveness(NodeId id, Node& node) {
  const bool member = node.status == Status::normal || node.status == Status::leaving;
  const bool up = member && node.alive;
  if (member && !node.member) events_.push_back({Event::Kind::new_node, id});
  if (!member && node.member) {
    events_.push_back({Event::Kind::removed_node, id});
  } else if (up != node.up) {
    events_.push_back({up ? Event::Kind::up : Event::Kind::down, id});
  }
  node.member = member;
  node.up = up;
}

}  // namespace helenus::membership
