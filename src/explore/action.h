// Actions: everything that can happen next in a tablet group, and what it does.
//
// An action is a small value, so that a schedule is a list of them: it can be replayed, shortened
// and told as a story.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "explore/scope.h"
#include "explore/state.h"

namespace helenus::explore {

enum class ActionKind : std::uint8_t {
  write,
  deliver,
  pull,
  pull_page,
  send_reply,
  announce,
  send_announcement,
  receive,
  repair,
  send_repair,
  sync,
  freeze,
  flush,
  compact,
  merge_all,
  tick,
  crash,
  reconcile,
  cap_log,
  adopt,
  remove,
  join,
  start_scan,
  install,
  promote,
  gain_range,
};
inline constexpr int kActionKinds = static_cast<int>(ActionKind::gain_range) + 1;

inline constexpr std::uint8_t kNobody = 0xff;

struct Action {
  ActionKind kind;
  // The replica that acts; for `deliver` and `receive` the one that receives.
  std::uint8_t replica = 0;
  // The other one: reader whose context a write takes, source of a pull or of an announcement, ...
  std::uint8_t peer = kNobody;
  // write: cells; deliver, pull_page: event; repair: cell; storage: table; receive: message.
  std::uint8_t what = 0;
  Kind operation = Kind::put;
  std::uint8_t timestamp = 0;
  // write: see WriteFlags; compact: mask of sstables; receive: 1 keeps the message in flight.
  std::uint8_t flags = 0;
  std::uint8_t unused = 0;
  friend bool operator==(const Action&, const Action&) = default;
};
static_assert(sizeof(Action) == 8);

enum WriteFlags : std::uint8_t {
  kScoped = 1,
  kExpires = 2,
  kExplicit = 4,
  kQuorum = 8,
  // Deletes all cells of the table as one scope, and writes these, under one dot.
  kReplaces = 16,
};

// Calls `emit` for every action that may be possible in `state`; `step` decides. Writes are by far
// the most: a random walk leaves them out here and draws one itself.
enum class Writes : std::uint8_t { all, none };
void each_action(const State& state, const Scope& scope, Writes writes,
                 const std::function<void(Action)>& emit);
// One of the writes that each_action would give, and some that it leaves out as mirror images.
Action random_write(const Scope& scope, base::Prng& random);

// Performs the action. False, with `state` unspecified, when it is not possible here.
bool step(State& state, const Scope& scope, const Action& action);

// The action in words, told in the state it is about to happen in.
std::string told(const State& state, const Scope& scope, const Action& action);

}  // namespace helenus::explore
