#include "explore/action.h"

#include "explore/parts.h"

namespace helenus::explore {

namespace {

bool perform(State& state, const Scope& scope, const Action& action) {
  switch (action.kind) {
    case ActionKind::write:
      return write(state, scope, action);
    case ActionKind::deliver:
      return deliver(state, scope, action);
    case ActionKind::pull:
      return pull(state, scope, action);
    case ActionKind::pull_page:
      return pull_page(state, scope, action);
    case ActionKind::send_reply:
      return send_reply(state, scope, action);
    case ActionKind::announce:
      return announce(state, scope, action);
    case ActionKind::send_announcement:
      return send_announcement(state, scope, action);
    case ActionKind::receive:
      return receive(state, scope, action);
    case ActionKind::repair:
      return repair(state, scope, action);
    case ActionKind::send_repair:
      return send_repair(state, scope, action);
    case ActionKind::sync:
      return sync(state, action);
    case ActionKind::freeze:
      return freeze(state, scope, action);
    case ActionKind::flush:
      return flush(state, scope, action);
    case ActionKind::compact:
      return compact(state, scope, action);
    case ActionKind::merge_all:
      return merge_all(state, scope, action);
    case ActionKind::tick:
      return tick(state, scope, action);
    case ActionKind::crash:
      return crash(state, scope, action);
    case ActionKind::reconcile:
      return take_reconcile(state, scope, action);
    case ActionKind::cap_log:
      return cap_log(state, action);
    case ActionKind::adopt:
      return adopt_next(state, scope, action);
    case ActionKind::remove:
      return remove(state, action);
    case ActionKind::join:
      return join(state, scope, action);
    case ActionKind::start_scan:
      return start_scan(state, scope, action);
    case ActionKind::install:
      return install(state, scope, action);
    case ActionKind::promote:
      return promote(state, scope, action);
    case ActionKind::gain_range:
      return gain_range(state, scope, action);
  }
  return false;
}

}  // namespace

bool step(State& state, const Scope& scope, const Action& action) {
  if (!perform(state, scope, action)) return false;
  acknowledge(state, scope);
  if (scope.expiring && state.expiry_passed == 0) {
    bool all = true;
    each(newest(state).members, [&](int r) { all = all && replica_of(state, r).wall != 0; });
    if (all) state.expiry_passed = 1;
  }
  return true;
}

}  // namespace helenus::explore
