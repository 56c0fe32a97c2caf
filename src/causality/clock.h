// Clock: a set of dots, and the algebra on it.
//
// A tablet replica's clock says which dots it has seen; a context says which dots a writer had
// seen. Both are sets of dots: for each actor a contiguous base and the ranges above it, and marks
// for *closed* actors (S9), all of whose dots count as seen, those to come included. A mark means
// exactly the counters 1..kCounterMax; closed incarnations of one node melt into one mark when they
// adjoin, so that a node that came back a hundred times costs one mark.
//
// Clocks under join are a lattice: join is the least upper bound, meet the greatest lower one.
//   join(a, b) = join(b, a)      join(a, join(b, c)) = join(join(a, b), c)      join(a, a) = a
//   b covers a  <=>  join(a, b) = b  <=>  missing(b, a) is empty
//
// A value: no I/O, no clock on the wall, not shared between cores while it changes. Size and the
// cost of every operation follow actors and gaps, never the number of dots. Copies share what they
// hold until one of them changes: the context of a mutation is one piece of memory for all of its
// cells, and copying a clock costs a count of references. An empty clock has no memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "causality/counter_set.h"
#include "causality/dot.h"

namespace helenus::causality {

// The incarnations of `node` from `first` to `last`, all closed.
struct ClosedActors {
  NodeNumber node;
  Incarnation first;
  Incarnation last;
  friend constexpr auto operator<=>(const ClosedActors&, const ClosedActors&) = default;
};

class Clock {
 public:
  struct Entry {
    ActorId actor;
    CounterSet counters;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  Clock() = default;
  Clock(const Clock& other) : state_(other.state_) {
    if (state_ != nullptr) state_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Clock(Clock&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Clock& operator=(Clock other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Clock() {
    if (state_ != nullptr) release(state_);
  }

  bool empty() const {
    return state_ == nullptr || (state_->entries.empty() && state_->closed.empty());
  }
  bool contains(const Dot& dot) const;
  bool is_closed(ActorId actor) const;
  // Whether every dot of `other` is here.
  bool covers(const Clock& other) const;
  // The contiguous base of `actor`; kCounterMax when it is closed.
  Counter base_of(ActorId actor) const;
  // The largest counter of `actor` seen; 0 when none or closed.
  Counter max_of(ActorId actor) const;
  // How many dots are above a base somewhere; 0 in a clock without gaps.
  std::uint64_t dots_above_base() const;

  // Ascending by actor; no entry is empty, none is of a closed actor.
  std::span<const Entry> entries() const {
    return state_ == nullptr ? std::span<const Entry>() : std::span<const Entry>(state_->entries);
  }
  // Ascending, disjoint, never adjacent.
  std::span<const ClosedActors> closed() const {
    return state_ == nullptr ? std::span<const ClosedActors>()
                             : std::span<const ClosedActors>(state_->closed);
  }

  void reserve(std::size_t actors) {
    if (actors > 0) own().entries.reserve(actors);
  }
  // Adds dots. Dots of a closed actor are here already and change nothing.
  // Requires: counters in 1..kCounterMax.
  void add(const Dot& dot) { add(DotRange{dot.actor, dot.counter, dot.counter}); }
  void add(const DotRange& range);
  void add(ActorId actor, CounterSet counters);
  // Takes one dot out, so that a context does not name what is alive beside it. A closed actor then
  // is no longer closed here: all its other dots are named.
  void remove(const Dot& dot);
  // Treats all dots of `actor`, those to come too, as seen (S9).
  void close(ActorId actor) { close({actor.node, actor.incarnation, actor.incarnation}); }
  void close(const ClosedActors& actors);

  friend bool operator==(const Clock& a, const Clock& b) {
    return a.state_ == b.state_ || (std::ranges::equal(a.entries(), b.entries()) &&
                                    std::ranges::equal(a.closed(), b.closed()));
  }

 private:
  // As many replicas as most tablets have find room without more memory.
  static constexpr std::size_t kEntriesInline = 3;

  struct State {
    std::atomic<std::uint32_t> references{1};
    absl::InlinedVector<Entry, kEntriesInline> entries;
    std::vector<ClosedActors> closed;
  };

  friend Clock join(const Clock&, const Clock&);
  friend Clock meet(const Clock&, const Clock&);
  friend Clock subtract(const Clock&, const Clock&);
  friend Clock base(const Clock&);

  static void release(State* state);
  // What this clock holds, made its own before it is changed.
  State& own();
  const CounterSet* find(ActorId actor) const;
  // Turns the closed mark of `actor` into the range it means.
  CounterSet& reopen(ActorId actor);
  // Turns entries that have come to hold every counter into closed marks.
  void close_full_entries();
  // The entry of `actor`, made when absent.
  CounterSet& at(ActorId actor);

  State* state_ = nullptr;  // null: nothing
};

// Mints the next dot of `actor` and adds it. Law: the dot was not in the clock, is in it now, and
// is larger than every dot of that actor seen before. Nothing derived from it may leave the replica
// before its record is as durable as the sync mode promises (S1).
// Requires: the actor is not closed.
Dot event(Clock& clock, ActorId actor);

// All dots of both. Law: commutative, associative, idempotent; covers both.
Clock join(const Clock& a, const Clock& b);

// The dots that are in both. Law: commutative, associative, idempotent; both cover it; distributes
// over join.
Clock meet(const Clock& a, const Clock& b);

// The dots of `a` that are not in `b`. Law: join(subtract(a, b), b) = join(a, b), and
// meet(subtract(a, b), b) = {}.
Clock subtract(const Clock& a, const Clock& b);

// For each actor the contiguous base alone, and the closed marks. Law: clock covers base(clock);
// base(base(c)) = base(c). What strip may go by (S3), and what a watermark keeps (S7).
Clock base(const Clock& clock);

// What one clock has and another lacks: dots as ranges in ascending order, and closed marks.
struct Missing {
  std::vector<DotRange> dots;
  std::vector<ClosedActors> closed;
  bool empty() const { return dots.empty() && closed.empty(); }
  friend bool operator==(const Missing&, const Missing&) = default;
};

// What `theirs` has and `mine` lacks. Law: empty iff mine covers theirs; adding all of it to mine
// gives join(mine, theirs); no range of it names a dot that is in mine.
// Cost: the actors and ranges of both clocks, never the dots in them; a base that both have is one
// comparison.
Missing missing(const Clock& mine, const Clock& theirs);

}  // namespace helenus::causality

// "{1.1:1-7 1.1:9 2.1:1-3 closed 3.1-3.4}".
template <>
struct fmt::formatter<helenus::causality::Clock> : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const helenus::causality::Clock& clock,
                                       fmt::format_context& ctx) const;
};
