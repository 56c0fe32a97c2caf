#include "causality/clock.h"

#include <algorithm>
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

const CounterSet* Clock::find(ActorId actor) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), actor, entry_before);
  return at != entries_.end() && at->actor == actor ? &at->counters : nullptr;
}

CounterSet& Clock::at(ActorId actor) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), actor, entry_before);
  if (at == entries_.end() || at->actor != actor) at = entries_.insert(at, Entry{actor, {}});
  return at->counters;
}

bool Clock::is_closed(ActorId actor) const {
  const auto at = std::lower_bound(
      closed_.begin(), closed_.end(), actor,
      [](const ClosedActors& range, ActorId wanted) { return last_of(range) < wanted; });
  return at != closed_.end() && contains_actor(*at, actor);
}

bool Clock::contains(const Dot& dot) const {
  const CounterSet* counters = find(dot.actor);
  if (counters != nullptr) return counters->contains(dot.counter);
  return !closed_.empty() && is_closed(dot.actor);
}

bool Clock::covers(const Clock& other) const {
  for (const Entry& entry : other.entries_) {
    const CounterSet* counters = find(entry.actor);
    if (counters == nullptr ? !is_closed(entry.actor) : !counters->contains_all(entry.counters)) {
      return false;
    }
  }
  return cut(other.closed_, closed_, Keep::what_only_the_first_has).empty();
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
  for (const Entry& entry : entries_) count += entry.counters.size() - entry.counters.base();
  return count;
}

void Clock::add(const DotRange& range) {
  if (!closed_.empty() && is_closed(range.actor)) return;
  CounterSet& counters = at(range.actor);
  counters.insert({range.first, range.last});
  if (counters.base() == kCounterMax) close(range.actor);
}

void Clock::add(ActorId actor, CounterSet counters) {
  if (counters.empty() || (!closed_.empty() && is_closed(actor))) return;
  // Decoders bring actors in order.
  if (entries_.empty() || entries_.back().actor < actor) {
    const bool full = counters.base() == kCounterMax;
    entries_.push_back({actor, std::move(counters)});
    if (full) close(actor);
    return;
  }
  CounterSet& mine = at(actor);
  mine = mine.empty() ? std::move(counters) : unite(mine, counters);
  if (mine.base() == kCounterMax) close(actor);
}

CounterSet& Clock::reopen(ActorId actor) {
  const ClosedActors one[] = {{actor.node, actor.incarnation, actor.incarnation}};
  closed_ = cut(closed_, one, Keep::what_only_the_first_has);
  CounterSet& counters = at(actor);
  counters = CounterSet::up_to(kCounterMax);
  return counters;
}

void Clock::remove(const Dot& dot) {
  if (!closed_.empty() && is_closed(dot.actor)) {
    reopen(dot.actor).erase(dot.counter);
    return;
  }
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), dot.actor, entry_before);
  if (at == entries_.end() || at->actor != dot.actor) return;
  at->counters.erase(dot.counter);
  if (at->counters.empty()) entries_.erase(at);
}

void Clock::close_full_entries() {
  std::vector<ActorId> full;
  for (const Entry& entry : entries_) {
    if (entry.counters.base() == kCounterMax) full.push_back(entry.actor);
  }
  for (const ActorId actor : full) close(actor);
}

void Clock::close(const ClosedActors& actors) {
  ASSERT(actors.first <= actors.last);
  // Decoders bring marks in order.
  if (closed_.empty() || last_of(closed_.back()) < first_of(actors)) {
    append(closed_, actors);
  } else {
    const ClosedActors one[] = {actors};
    closed_ = unite(closed_, one);
  }
  const auto begin =
      std::lower_bound(entries_.begin(), entries_.end(), first_of(actors), entry_before);
  const auto end = std::find_if(begin, entries_.end(),
                                [&](const Entry& entry) { return last_of(actors) < entry.actor; });
  entries_.erase(begin, end);
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
  Clock all;
  if (!a.closed_.empty() || !b.closed_.empty()) all.closed_ = unite(a.closed_, b.closed_);
  const auto keep = [&all](Clock::Entry entry) {
    if (all.closed_.empty() || !all.is_closed(entry.actor)) {
      all.entries_.push_back(std::move(entry));
    }
  };
  all.entries_.reserve(std::max(a.entries_.size(), b.entries_.size()));
  bool full = false;
  auto left = a.entries_.begin();
  auto right = b.entries_.begin();
  while (left != a.entries_.end() && right != b.entries_.end()) {
    if (left->actor < right->actor) {
      keep(*left++);
    } else if (right->actor < left->actor) {
      keep(*right++);
    } else {
      keep({left->actor, unite(left->counters, right->counters)});
      full |= !all.entries_.empty() && all.entries_.back().counters.base() == kCounterMax;
      ++left;
      ++right;
    }
  }
  for (; left != a.entries_.end(); ++left) keep(*left);
  for (; right != b.entries_.end(); ++right) keep(*right);
  if (full) all.close_full_entries();
  return all;
}

Clock meet(const Clock& a, const Clock& b) {
  Clock both;
  both.closed_ = cut(a.closed_, b.closed_, Keep::what_both_have);
  for (const Clock::Entry& entry : a.entries_) {
    if (const CounterSet* counters = b.find(entry.actor)) {
      CounterSet common = intersect(entry.counters, *counters);
      if (!common.empty()) both.entries_.push_back({entry.actor, std::move(common)});
    } else if (b.is_closed(entry.actor)) {
      both.entries_.push_back(entry);
    }
  }
  for (const Clock::Entry& entry : b.entries_) {
    if (a.find(entry.actor) == nullptr && a.is_closed(entry.actor)) {
      both.at(entry.actor) = entry.counters;
    }
  }
  return both;
}

Clock subtract(const Clock& a, const Clock& b) {
  Clock rest;
  rest.closed_ = cut(a.closed_, b.closed_, Keep::what_only_the_first_has);
  for (const Clock::Entry& entry : a.entries_) {
    if (const CounterSet* counters = b.find(entry.actor)) {
      CounterSet left = subtract(entry.counters, *counters);
      if (!left.empty()) rest.entries_.push_back({entry.actor, std::move(left)});
    } else if (!b.is_closed(entry.actor)) {
      rest.entries_.push_back(entry);
    }
  }
  if (rest.closed_.empty()) return rest;
  for (const Clock::Entry& entry : b.entries_) {
    if (!rest.is_closed(entry.actor)) continue;
    CounterSet& counters = rest.reopen(entry.actor);
    counters = subtract(counters, entry.counters);
  }
  return rest;
}

Clock base(const Clock& clock) {
  Clock bases;
  bases.closed_ = clock.closed_;
  bases.entries_.reserve(clock.entries_.size());
  for (const Clock::Entry& entry : clock.entries_) {
    const Counter counter = entry.counters.base();
    if (counter > 0) bases.entries_.push_back({entry.actor, CounterSet::up_to(counter)});
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
