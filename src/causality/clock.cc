#include "causality/clock.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.h"

namespace helenus::causality {

namespace {

bool entry_before(const Clock::Entry& entry, ActorId actor) {
  return entry.actor < actor;
}

bool contains_actor(const ClosedActors& range, ActorId actor) {
  return range.node == actor.node && range.first <= actor.incarnation &&
         actor.incarnation <= range.last;
}

ActorId first_of(const ClosedActors& range) {
  return {range.node, range.first};
}
ActorId last_of(const ClosedActors& range) {
  return {range.node, range.last};
}

// Adds a range that begins no earlier than any in `ranges`, melting neighbours of one node.
void append(std::vector<ClosedActors>& ranges, const ClosedActors& range) {
  if (!ranges.empty() && ranges.back().node == range.node) {
    ClosedActors& previous = ranges.back();
    const std::uint64_t next = std::uint64_t{previous.last.value()} + 1;
    if (range.first.value() <= next) {
      previous.last = std::max(previous.last, range.last);
      return;
    }
  }
  ranges.push_back(range);
}

std::vector<ClosedActors> unite(std::span<const ClosedActors> a, std::span<const ClosedActors> b) {
  std::vector<ClosedActors> sorted;
  sorted.reserve(a.size() + b.size());
  std::ranges::merge(a, b, std::back_inserter(sorted));
  std::vector<ClosedActors> all;
  for (const ClosedActors& range : sorted) append(all, range);
  return all;
}

enum class Keep { what_both_have, what_only_the_first_has };

std::vector<ClosedActors> cut(std::span<const ClosedActors> a, std::span<const ClosedActors> b,
                              Keep keep) {
  std::vector<ClosedActors> kept;
  for (const ClosedActors& range : a) {
    // 64 bits, so that the incarnation after the largest one is still a number.
    std::uint64_t next = range.first.value();
    const auto keep_up_to = [&](std::uint64_t end) {
      if (next >= end) return;
      append(kept, {range.node, Incarnation{static_cast<std::uint32_t>(next)},
                    Incarnation{static_cast<std::uint32_t>(end - 1)}});
    };
    auto other = std::lower_bound(
        b.begin(), b.end(), first_of(range),
        [](const ClosedActors& closed, ActorId wanted) { return last_of(closed) < wanted; });
    for (; other != b.end() && first_of(*other) <= last_of(range); ++other) {
      const Incarnation first = std::max(range.first, other->first);
      const Incarnation last = std::min(range.last, other->last);
      if (keep == Keep::what_both_have) {
        append(kept, {range.node, first, last});
      } else {
        keep_up_to(first.value());
      }
      next = std::uint64_t{last.value()} + 1;
    }
    if (keep == Keep::what_only_the_first_has) keep_up_to(std::uint64_t{range.last.value()} + 1);
  }
  return kept;
}

}  // namespace

void Clock::release(State* state) {
  if (state->references.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const std::unique_ptr<State> last_reference(state);
}

Clock::State& Clock::own() {
  if (state_ == nullptr) {
    state_ = std::make_unique<State>().release();
  } else if (state_->references.load(std::memory_order_acquire) > 1) {
    auto mine = std::make_unique<State>();
    mine->entries = state_->entries;
    mine->closed = state_->closed;
    release(std::exchange(state_, mine.release()));
  }
  return *state_;
}

const CounterSet* Clock::find(ActorId actor) const {
  const auto here = entries();
  const auto at = std::lower_bound(here.begin(), here.end(), actor, entry_before);
  return at != here.end() && at->actor == actor ? &at->counters : nullptr;
}

CounterSet& Clock::at(ActorId actor) {
  auto& mine = own().entries;
  auto at = std::lower_bound(mine.begin(), mine.end(), actor, entry_before);
  if (at == mine.end() || at->actor != actor) at = mine.insert(at, Entry{actor, {}});
  return at->counters;
}

bool Clock::is_closed(ActorId actor) const {
  const auto marks = closed();
  const auto at = std::lower_bound(
      marks.begin(), marks.end(), actor,
      [](const ClosedActors& range, ActorId wanted) { return last_of(range) < wanted; });
  return at != marks.end() && contains_actor(*at, actor);
}

bool Clock::contains(const Dot& dot) const {
  if (state_ == nullptr) return false;
  const CounterSet* counters = find(dot.actor);
  if (counters != nullptr) return counters->contains(dot.counter);
  return is_closed(dot.actor);
}

bool Clock::covers(const Clock& other) const {
  if (state_ == other.state_) return true;
  for (const Entry& entry : other.entries()) {
    const CounterSet* counters = find(entry.actor);
    if (counters == nullptr ? !is_closed(entry.actor) : !counters->contains_all(entry.counters)) {
      return false;
    }
  }
  return other.closed().empty() ||
         cut(other.closed(), closed(), Keep::what_only_the_first_has).empty();
}

Counter Clock::base_of(ActorId actor) const {
  if (const CounterSet* counters = find(actor)) return counters->base();
  return is_closed(actor) ? kCounterMax : 0;
}

Counter Clock::max_of(ActorId actor) const {
  const CounterSet* counters = find(actor);
  return counters == nullptr ? 0 : counters->max();
}

std::uint64_t Clock::dots_above_base() const {
  std::uint64_t count = 0;
  for (const Entry& entry : entries()) count += entry.counters.size() - entry.counters.base();
  return count;
}

void Clock::add(const DotRange& range) {
  if (is_closed(range.actor)) return;
  CounterSet& counters = at(range.actor);
  counters.insert({range.first, range.last});
  if (counters.base() == kCounterMax) close(range.actor);
}

void Clock::add(ActorId actor, CounterSet counters) {
  if (counters.empty() || is_closed(actor)) return;
  // Decoders bring actors in order.
  if (entries().empty() || entries().back().actor < actor) {
    const bool full = counters.base() == kCounterMax;
    own().entries.push_back({actor, std::move(counters)});
    if (full) close(actor);
    return;
  }
  CounterSet& mine = at(actor);
  mine = mine.empty() ? std::move(counters) : unite(mine, counters);
  if (mine.base() == kCounterMax) close(actor);
}

CounterSet& Clock::reopen(ActorId actor) {
  const ClosedActors one[] = {{actor.node, actor.incarnation, actor.incarnation}};
  State& mine = own();
  mine.closed = cut(mine.closed, one, Keep::what_only_the_first_has);
  CounterSet& counters = at(actor);
  counters = CounterSet::up_to(kCounterMax);
  return counters;
}

void Clock::remove(const Dot& dot) {
  if (is_closed(dot.actor)) {
    reopen(dot.actor).erase(dot.counter);
    return;
  }
  if (!contains(dot)) return;
  auto& mine = own().entries;
  const auto at = std::lower_bound(mine.begin(), mine.end(), dot.actor, entry_before);
  at->counters.erase(dot.counter);
  if (at->counters.empty()) mine.erase(at);
}

void Clock::close_full_entries() {
  std::vector<ActorId> full;
  for (const Entry& entry : entries()) {
    if (entry.counters.base() == kCounterMax) full.push_back(entry.actor);
  }
  for (const ActorId actor : full) close(actor);
}

void Clock::close(const ClosedActors& actors) {
  ASSERT(actors.first <= actors.last);
  State& mine = own();
  // Decoders bring marks in order.
  if (mine.closed.empty() || last_of(mine.closed.back()) < first_of(actors)) {
    append(mine.closed, actors);
  } else {
    const ClosedActors one[] = {actors};
    mine.closed = unite(mine.closed, one);
  }
  const auto begin =
      std::lower_bound(mine.entries.begin(), mine.entries.end(), first_of(actors), entry_before);
  const auto end = std::find_if(begin, mine.entries.end(),
                                [&](const Entry& entry) { return last_of(actors) < entry.actor; });
  mine.entries.erase(begin, end);
}

Dot event(Clock& clock, ActorId actor) {
  ASSERT(!clock.is_closed(actor), "the closed actor {} cannot mint", actor);
  const Counter counter = clock.max_of(actor) + 1;
  ASSERT(counter < kCounterMax, "the actor {} has minted all its dots", actor);
  const Dot dot{actor, counter};
  clock.add(dot);
  return dot;
}

Clock join(const Clock& a, const Clock& b) {
  // Nearly always one is as new as the other, and then it is the answer as it stands.
  if (a.covers(b)) return a;
  if (b.covers(a)) return b;
  Clock all;
  Clock::State& united = all.own();
  if (!a.closed().empty() || !b.closed().empty()) united.closed = unite(a.closed(), b.closed());
  const auto keep = [&](Clock::Entry entry) {
    if (!all.is_closed(entry.actor)) united.entries.push_back(std::move(entry));
  };
  const auto of_a = a.entries();
  const auto of_b = b.entries();
  united.entries.reserve(std::max(of_a.size(), of_b.size()));
  bool full = false;
  auto left = of_a.begin();
  auto right = of_b.begin();
  while (left != of_a.end() && right != of_b.end()) {
    if (left->actor < right->actor) {
      keep(*left++);
    } else if (right->actor < left->actor) {
      keep(*right++);
    } else {
      keep({left->actor, unite(left->counters, right->counters)});
      full |= !united.entries.empty() && united.entries.back().counters.base() == kCounterMax;
      ++left;
      ++right;
    }
  }
  for (; left != of_a.end(); ++left) keep(*left);
  for (; right != of_b.end(); ++right) keep(*right);
  if (full) all.close_full_entries();
  return all;
}

Clock meet(const Clock& a, const Clock& b) {
  Clock both;
  if (a.empty() || b.empty()) return both;
  Clock::State& common = both.own();
  common.closed = cut(a.closed(), b.closed(), Keep::what_both_have);
  for (const Clock::Entry& entry : a.entries()) {
    if (const CounterSet* counters = b.find(entry.actor)) {
      CounterSet here = intersect(entry.counters, *counters);
      if (!here.empty()) common.entries.push_back({entry.actor, std::move(here)});
    } else if (b.is_closed(entry.actor)) {
      common.entries.push_back(entry);
    }
  }
  for (const Clock::Entry& entry : b.entries()) {
    if (a.find(entry.actor) == nullptr && a.is_closed(entry.actor)) {
      both.at(entry.actor) = entry.counters;
    }
  }
  return both;
}

Clock subtract(const Clock& a, const Clock& b) {
  Clock rest;
  if (b.covers(a)) return rest;
  Clock::State& left = rest.own();
  left.closed = cut(a.closed(), b.closed(), Keep::what_only_the_first_has);
  for (const Clock::Entry& entry : a.entries()) {
    if (const CounterSet* counters = b.find(entry.actor)) {
      CounterSet alone = subtract(entry.counters, *counters);
      if (!alone.empty()) left.entries.push_back({entry.actor, std::move(alone)});
    } else if (!b.is_closed(entry.actor)) {
      left.entries.push_back(entry);
    }
  }
  if (left.closed.empty()) return rest;
  for (const Clock::Entry& entry : b.entries()) {
    if (!rest.is_closed(entry.actor)) continue;
    CounterSet& counters = rest.reopen(entry.actor);
    counters = subtract(counters, entry.counters);
  }
  return rest;
}

Clock base(const Clock& clock) {
  const auto is_base = [](const Clock::Entry& entry) {
    return entry.counters.base() == entry.counters.max();
  };
  if (std::ranges::all_of(clock.entries(), is_base)) return clock;
  Clock bases;
  Clock::State& state = bases.own();
  state.closed.assign(clock.closed().begin(), clock.closed().end());
  state.entries.reserve(clock.entries().size());
  for (const Clock::Entry& entry : clock.entries()) {
    const Counter counter = entry.counters.base();
    if (counter > 0) state.entries.push_back({entry.actor, CounterSet::up_to(counter)});
  }
  return bases;
}

namespace {

void append_difference(std::vector<DotRange>& out, const Clock::Entry& theirs,
                       const CounterSet& mine) {
  auto have = mine.ranges().begin();
  const auto have_end = mine.ranges().end();
  for (CounterRange range : theirs.counters.ranges()) {
    // A base shared by both sides is one comparison, however many dots it holds.
    while (have != have_end && have->last < range.first) ++have;
    while (have != have_end && have->first <= range.last) {
      if (have->first > range.first) {
        out.push_back({theirs.actor, range.first, have->first - 1});
      }
      range.first = have->last + 1;
      if (range.first > range.last) break;
      ++have;
    }
    if (range.first <= range.last) out.push_back({theirs.actor, range.first, range.last});
  }
}

}  // namespace

Missing missing(const Clock& mine, const Clock& theirs) {
  Missing lacked;
  const auto entries = mine.entries();
  auto at = entries.begin();
  for (const Clock::Entry& entry : theirs.entries()) {
    while (at != entries.end() && at->actor < entry.actor) ++at;
    if (at != entries.end() && at->actor == entry.actor) {
      append_difference(lacked.dots, entry, at->counters);
    } else if (mine.closed().empty() || !mine.is_closed(entry.actor)) {
      for (const CounterRange& range : entry.counters.ranges()) {
        lacked.dots.push_back({entry.actor, range.first, range.last});
      }
    }
  }
  if (!theirs.closed().empty()) {
    lacked.closed = cut(theirs.closed(), mine.closed(), Keep::what_only_the_first_has);
  }
  return lacked;
}

}  // namespace helenus::causality

fmt::format_context::iterator fmt::formatter<helenus::causality::Clock>::format(
    const helenus::causality::Clock& clock, fmt::format_context& ctx) const {
  auto out = fmt::format_to(ctx.out(), "{{");
  const char* separator = "";
  for (const auto& entry : clock.entries()) {
    for (const auto& range : entry.counters.ranges()) {
      const helenus::causality::DotRange dots{entry.actor, range.first, range.last};
      out = fmt::format_to(out, "{}{}", separator, dots);
      separator = " ";
    }
  }
  for (const auto& actors : clock.closed()) {
    out = fmt::format_to(out, "{}closed {}.{}", separator, actors.node, actors.first);
    if (actors.first != actors.last) {
      out = fmt::format_to(out, "-{}.{}", actors.node, actors.last);
    }
    separator = " ";
  }
  return fmt::format_to(out, "}}");
}
