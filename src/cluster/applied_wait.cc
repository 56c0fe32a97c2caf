#include "cluster/applied_wait.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster/announcement.h"
#include "runtime/when_all.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using consensus::Version;
using model::NodeId;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

void AppliedWait::on_gossip_start() {
  all_heard_by_ =
      context_.runtime.clock.now() + kRoundsUntilHeard * context_.options.gossip_interval;
}

Task<Result<void>> AppliedWait::wait(Version version, Until until) {
  const auto interval = context_.options.gossip_interval;
  runtime::Clock& clock = context_.runtime.clock;
  std::set<NodeId> unreachable;
  auto look_at = next_look(clock.now(), until.deadline, interval);
  for (;;) {
    const Nodes waited_for = missing(version, unreachable);
    if (waited_for.empty()) co_return {};
    const auto now = clock.now();
    if (now >= until.deadline) {
      co_return Error(Errc::timeout, "version {} of the metadata waits for {}", version,
                      describe(waited_for));
    }
    if (now >= look_at) {
      unreachable = co_await look(version, until.stop);
      look_at = next_look(clock.now(), until.deadline, interval);
      continue;
    }
    auto woken = co_await context_.news.wait({.deadline = look_at, .stop = until.stop});
    if (!woken && !woken.failed_with(Errc::timeout)) co_return std::move(woken).error();
  }
}

AppliedWait::Nodes AppliedWait::missing(Version version,
                                        const std::set<NodeId>& unreachable) const {
  const auto interval = context_.options.gossip_interval;
  const bool all_heard = context_.runtime.clock.now() >= all_heard_by_;
  Nodes nodes;
  if (applier_.applied_version() < version) nodes.push_back(context_.self.id);
  const auto consider = [&](NodeId node) {
    if (must_wait_for(state_of(node, unreachable), version, all_heard, interval)) {
      nodes.push_back(node);
    }
  };
  for (const auto& [node, known] : gossip_.view().nodes()) consider(node);
  for (const metadata::Node& node : known_.metadata()->nodes) {
    const bool is_known = gossip_.view().find(node.id()) != nullptr;
    if (!is_known && node.id() != context_.self.id) consider(node.id());
  }
  return nodes;
}

PeerState AppliedWait::state_of(NodeId node, const std::set<NodeId>& unreachable) const {
  const auto* seen = gossip_.view().find(node);
  const auto beat = gossip_.last_beat(node);
  PeerState state{.applied = applied_version_of(gossip_, node),
                  .is_in_metadata = known_.metadata()->find(node) != nullptr,
                  .is_in_view = seen != nullptr,
                  .is_up = seen != nullptr && seen->up,
                  .is_unreachable = unreachable.contains(node)};
  if (beat) state.silence = context_.runtime.clock.now() - *beat;
  return state;
}

Task<std::set<NodeId>> AppliedWait::look(Version version, StopToken stop) {
  Nodes silent = missing(version, {});
  std::erase_if(silent, [&](NodeId node) {
    return !is_silent(state_of(node, {}), kRoundsUntilDoubt, context_.options.gossip_interval);
  });
  std::vector<Task<bool>> looks;
  for (const NodeId node : silent) looks.push_back(is_unreachable(node, stop));
  const auto answers = co_await runtime::when_all(std::move(looks));
  std::set<NodeId> unreachable;
  for (std::size_t i = 0; i < silent.size(); ++i) {
    if (answers[i]) unreachable.insert(silent[i]);
  }
  co_return unreachable;
}

// No connection can be had to its machine: a process that was killed or a machine that is cut off
// is gone long before the detector is sure of it. A node that is slow to answer is waited for. So
// the outcome of a call does not count: a call is refused at once where a process that hangs did
// not shake hands.
Task<bool> AppliedWait::is_unreachable(NodeId node, StopToken stop) {
  const auto reached =
      co_await rpc_.reach(node, Until::after(context_.runtime, kReachTimeout, stop));
  co_return !reached && !stop.stop_requested();
}

std::string AppliedWait::describe(const Nodes& nodes) const {
  std::vector<std::string> texts;
  for (const NodeId node : nodes) {
    const Version applied =
        node == context_.self.id ? applier_.applied_version() : applied_version_of(gossip_, node);
    texts.push_back(fmt::format("node {} (at version {})", node, applied));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace helenus::cluster
