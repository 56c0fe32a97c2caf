// The names of things that happen: actors, dots, epochs, timestamps.
//
// Every mutation of a tablet has one Dot: the actor that minted it and the actor's counter. An
// actor is one incarnation of a tablet replica on one node; it is unique for ever, because a
// replica that may have lost the tail of its log comes back under the next incarnation (rule S1).
// So a dot names one mutation for ever (invariant I0).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "base/strong.h"

namespace helenus::causality {

// The number the cluster's metadata document gave to a node, and which life of a tablet replica on
// that node this is. Both come from a linearizable document, so pairs never repeat.
using NodeNumber = base::Strong<struct NodeNumberTag, std::uint32_t>;
using Incarnation = base::Strong<struct IncarnationTag, std::uint32_t>;

struct ActorId {
  NodeNumber node;
  Incarnation incarnation;
  friend constexpr auto operator<=>(const ActorId&, const ActorId&) = default;
  template <class H>
  friend H AbslHashValue(H state, const ActorId& actor) {
    return H::combine(std::move(state), actor.node, actor.incarnation);
  }
};

constexpr ActorId actor_of(std::uint32_t node, std::uint32_t incarnation) {
  return {NodeNumber{node}, Incarnation{incarnation}};
}

// Counters of an actor begin at 1. The largest one is never minted by a living actor: the set
// 1..kCounterMax is how "all dots of this actor, those to come too" reads as a range.
using Counter = std::uint64_t;
inline constexpr Counter kCounterMax = std::numeric_limits<Counter>::max() - 1;

struct Dot {
  ActorId actor;
  Counter counter = 0;
  friend constexpr auto operator<=>(const Dot&, const Dot&) = default;
  template <class H>
  friend H AbslHashValue(H state, const Dot& dot) {
    return H::combine(std::move(state), dot.actor, dot.counter);
  }
};

// The dots of `actor` from `first` to `last`, both included.
struct DotRange {
  ActorId actor;
  Counter first = 0;
  Counter last = 0;
  friend constexpr auto operator<=>(const DotRange&, const DotRange&) = default;
};

// The version of the topology document that a message, a context or a replica goes by (S10).
using Epoch = base::Strong<struct EpochTag, std::uint64_t>;

// Microseconds since 1970, as CQL counts them. Only breaks ties between concurrent versions.
using Timestamp = base::Strong<struct TimestampTag, std::int64_t>;
inline constexpr Timestamp kTimestampMin{std::numeric_limits<std::int64_t>::min()};
inline constexpr Timestamp kTimestampMax{std::numeric_limits<std::int64_t>::max()};

// A wall clock reading in seconds since 1970: when a value expires, and what members report.
using WallTime = base::Strong<struct WallTimeTag, std::int64_t>;

}  // namespace helenus::causality

// "3.1" is node 3, incarnation 1; "3.1:17" its seventeenth dot; "3.1:17-20" four of them.
template <>
struct fmt::formatter<helenus::causality::ActorId> : fmt::formatter<std::string> {
  auto format(const helenus::causality::ActorId& actor, fmt::format_context& ctx) const {
    return fmt::format_to(ctx.out(), "{}.{}", actor.node, actor.incarnation);
  }
};

template <>
struct fmt::formatter<helenus::causality::Dot> : fmt::formatter<std::string> {
  auto format(const helenus::causality::Dot& dot, fmt::format_context& ctx) const {
    return fmt::format_to(ctx.out(), "{}:{}", dot.actor, dot.counter);
  }
};

template <>
struct fmt::formatter<helenus::causality::DotRange> : fmt::formatter<std::string> {
  auto format(const helenus::causality::DotRange& range, fmt::format_context& ctx) const {
    if (range.first == range.last) {
      return fmt::format_to(ctx.out(), "{}:{}", range.actor, range.first);
    }
    if (range.last == helenus::causality::kCounterMax) {
      return fmt::format_to(ctx.out(), "{}:{}-", range.actor, range.first);
    }
    return fmt::format_to(ctx.out(), "{}:{}-{}", range.actor, range.first, range.last);
  }
};
