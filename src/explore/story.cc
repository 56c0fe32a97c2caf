#include "explore/story.h"

#include <fmt/format.h>

#include "explore/rules.h"

namespace helenus::explore {

namespace {

std::string joined(unsigned mask, const std::function<std::string(int)>& name) {
  std::string text;
  each(mask, [&](int index) {
    if (!text.empty()) text += ", ";
    text += name(index);
  });
  return text.empty() ? "nothing" : text;
}

std::string told_write(const State& state, const Scope& scope, const Action& action) {
  const char* verb = action.operation == Kind::put ? "writes" : "deletes";
  std::string text = fmt::format("a client {} {} through {}", verb, names_of_cells(action.what),
                                 name_of_replica(action.replica));
  if ((action.flags & kScoped) != 0) text += " as a range";
  if ((action.flags & kReplaces) != 0) text += " in the place of all that is in its row";
  if ((action.flags & kExpires) != 0) text += ", to expire";
  if (scope.policy == Policy::lww) {
    text += fmt::format(" at {}time {}", (action.flags & kExplicit) != 0 ? "the explicit " : "",
                        action.timestamp);
  }
  if ((action.flags & kQuorum) != 0) {
    text += fmt::format(", under the clocks of it and {}", name_of_replica(action.peer));
  } else if (action.peer != kNobody) {
    text += fmt::format(", with the context it read at {}", name_of_replica(action.peer));
  } else {
    text += ", blindly";
  }
  State next = state;
  if (!step(next, scope, action) || next.events == state.events) return text;
  const Event& event = next.event[state.events];
  text += fmt::format(": {}", name_of_event(next, state.events));
  if (scope.policy == Policy::lww) text += fmt::format(" at time {}", event.timestamp);
  return text + fmt::format(", having seen {}", names_of(next, event.past));
}

std::string told_receive(const State& state, const Action& action) {
  const Message& message = state.message[action.what];
  const std::string to = name_of_replica(message.to);
  const std::string from = name_of_replica(message.from);
  std::string text;
  switch (message.kind) {
    case MessageKind::pull_reply:
      text = fmt::format("{} gets the reply that {} sent earlier: {}", to, from,
                         names_of(state, message.served));
      break;
    case MessageKind::announcement:
      text = fmt::format("{} gets the clock that {} told earlier: {}", to, from,
                         names_of(state, message.clock));
      break;
    case MessageKind::repair:
      text = fmt::format("{} gets the read repair of {} that {} sent earlier", to,
                         names_of_cells(bit(message.cell)), from);
      break;
    case MessageKind::scan:
      text = fmt::format("the scan of {} reaches its end and {} is installed", from, to);
      break;
    case MessageKind::none:
      text = "nothing arrives";
      break;
  }
  return text + (action.flags != 0 ? " (it will come again)" : "");
}

}  // namespace

std::string name_of_replica(int replica) {
  return std::string(1, static_cast<char>('a' + replica));
}
std::string names_of_replicas(Mask replicas) {
  return joined(replicas, name_of_replica);
}
std::string name_of_event(const State& state, int event) {
  const Event& it = state.event[static_cast<unsigned>(event)];
  const char letter = it.kind == Kind::put ? 'w' : it.kind == Kind::remove ? 'd' : 'i';
  return fmt::format("{}{}", letter, event + 1);
}
std::string names_of(const State& state, Events events) {
  return joined(events, [&](int event) { return name_of_event(state, event); });
}
std::string names_of_cells(Mask cells) {
  return joined(cells, [](int cell) {
    return fmt::format("cell {} of row {}", cell % kCellsPerTable + 1, cell / kCellsPerTable + 1);
  });
}

std::string told(const State& state, const Scope& scope, const Action& action) {
  const std::string self = name_of_replica(action.replica);
  const std::string peer = action.peer == kNobody ? "" : name_of_replica(action.peer);
  switch (action.kind) {
    case ActionKind::write:
      return told_write(state, scope, action);
    case ActionKind::deliver:
      return fmt::format("{} reaches {}", name_of_event(state, action.what), self);
    case ActionKind::pull:
      return fmt::format("{} pulls from {} all that it lacks", self, peer);
    case ActionKind::pull_page:
      return fmt::format("{} pulls from {}, and only {} arrives", self, peer,
                         name_of_event(state, action.what));
    case ActionKind::send_reply:
      return fmt::format("{} asks {} for what it lacks; the reply is on its way", self, peer);
    case ActionKind::announce:
      return fmt::format("{} tells {} what it has synced", peer, self);
    case ActionKind::send_announcement:
      return fmt::format("{} tells {} what it has synced; that is on its way", peer, self);
    case ActionKind::receive:
      return told_receive(state, action);
    case ActionKind::repair:
      return fmt::format("read repair brings {} from {} to {}", names_of_cells(bit(action.what)),
                         peer, self);
    case ActionKind::send_repair:
      return fmt::format("read repair of {} leaves {} for {}", names_of_cells(bit(action.what)),
                         peer, self);
    case ActionKind::sync:
      return fmt::format("{} syncs its commit log", self);
    case ActionKind::freeze:
      return fmt::format("{} freezes the memtable of row {}", self, action.what + 1);
    case ActionKind::flush:
      return fmt::format("{} flushes row {} and installs the sstable", self, action.what + 1);
    case ActionKind::compact:
      return fmt::format("{} compacts sstables {:b} of row {}", self, action.flags,
                         action.what + 1);
    case ActionKind::merge_all:
      return fmt::format("{} merges all that it holds of row {}", self, action.what + 1);
    case ActionKind::tick:
      return fmt::format("the wall clock of {} passes the expiry", self);
    case ActionKind::crash:
      return fmt::format("{} crashes, loses the unsynced tail of its log, and comes back", self);
    case ActionKind::reconcile:
      return fmt::format("{} reconciles with {}, object by object", self, peer);
    case ActionKind::cap_log:
      return fmt::format("the mutation log of {} reaches its cap", self);
    case ActionKind::adopt:
      return fmt::format("{} learns of epoch {}", self, state.replica[action.replica].epoch + 1);
    case ActionKind::remove:
      return fmt::format("the operator removes {} (epoch {})", self, state.epochs);
    case ActionKind::join:
      return fmt::format("{} is made pending (epoch {})", self, state.epochs);
    case ActionKind::start_scan:
      return fmt::format("{} begins to copy {}", self, peer);
    case ActionKind::install:
      return fmt::format("{} installs a copy of {}", self, peer);
    case ActionKind::promote:
      return fmt::format("{} is made a member (epoch {})", self, state.epochs);
    case ActionKind::gain_range:
      return fmt::format("{} gains the range of row 2 and streams it from {}", self, peer);
  }
  return {};
}

std::string story_of(const Scope& scope, std::span<const Action> schedule,
                     const Violation& violation) {
  constexpr const char* kNames[] = {"I0", "I1", "I2", "I2", "A1", "S2", "T", "D", "Q"};
  State state = initial_state(scope);
  std::string text;
  int number = 0;
  for (const Action& action : schedule) {
    text += fmt::format("  {:2}. {}\n", ++number, told(state, scope, action));
    if (!step(state, scope, action)) {
      text += "      (and that was not possible)\n";
      break;
    }
  }
  return text + fmt::format("  => {}: {}\n", kNames[static_cast<int>(violation.invariant)],
                            violation.what);
}

}  // namespace helenus::explore
