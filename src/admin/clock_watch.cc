#include "admin/clock_watch.h"

#include <algorithm>

namespace helenus::admin {

using runtime::Duration;

Duration ClockWatch::ahead(const std::deque<Duration>& heard) {
  const auto most = std::ranges::max_element(heard);
  return most == heard.end() ? Duration(0) : std::max(*most, Duration(0));
}

ClockWatch::Change ClockWatch::note(model::NodeId node, runtime::WallTime theirs,
                                    runtime::WallTime ours) {
  std::deque<Duration>& heard = heard_[node];
  const bool was_apart = ahead(heard) > kApart;
  if (heard.size() == kHeardMax) heard.pop_front();
  heard.push_back(theirs - ours);
  const bool is_apart = ahead(heard) > kApart;
  if (was_apart == is_apart) return Change::none;
  return is_apart ? Change::apart : Change::together;
}

std::vector<ClockWatch::Ahead> ClockWatch::all() const {
  std::vector<Ahead> all;
  for (const auto& [node, heard] : heard_) all.push_back({.node = node, .at_least = ahead(heard)});
  return all;
}

}  // namespace helenus::admin
