// What must hold of a world of counters, and what tells two of them apart.
#include <algorithm>

#include <fmt/format.h>

#include "base/codec.h"
#include "causality/codec.h"
#include "explore/counter_world.h"

namespace helenus::explore {

using causality::Clock;
using causality::CounterAnswer;

namespace {

char name_of_counter_replica(int r) {
  return static_cast<char>('A' + r);
}

// The sum of the distinct operations that `seen` has a dot of, but for those of which it has one
// that a delete of its names.
std::int64_t truth_of(const CounterState& state, const Clock& seen) {
  Clock deleted;
  for (const CounterEvent& event : state.events) {
    if (event.deletes && seen.contains(event.dot)) {
      deleted = causality::join(deleted, event.context);
    }
  }
  std::int64_t sum = 0;
  std::uint32_t dead = 0;
  for (const CounterEvent& event : state.events) {
    const bool dies = seen.contains(event.dot) && deleted.contains(event.dot);
    if (event.operation != 0 && dies) dead |= 1U << event.operation;
  }
  std::uint32_t counted = dead;
  for (const CounterEvent& event : state.events) {
    if (event.deletes || !seen.contains(event.dot) || deleted.contains(event.dot)) continue;
    if (event.operation != 0) {
      if ((counted >> event.operation & 1U) != 0) continue;
      counted |= 1U << event.operation;
    }
    sum += event.amount;
  }
  return sum;
}

std::vector<int> members_of(const CounterState& state, const CounterScope& scope) {
  std::vector<int> members;
  for (int r = 0; r < scope.replicas; ++r) {
    if (state.replica[static_cast<std::size_t>(r)].phase == CounterPhase::member)
      members.push_back(r);
  }
  return members;
}

std::optional<std::string> check_values(const CounterState& state, const CounterScope& scope) {
  std::vector<int> members = members_of(state, scope);
  std::vector<CounterAnswer> all;
  for (const int r : members) {
    const CounterReplica& replica = state.replica[static_cast<std::size_t>(r)];
    all.push_back({.cell = read_counter(replica), .clock = replica.clock});
    const std::int64_t value = causality::counter_value(all.back().cell);
    const std::int64_t truth = truth_of(state, replica.clock);
    if (value != truth) {
      return fmt::format("{} shows {} and has seen {}: {}", name_of_counter_replica(r), value,
                         truth, all.back().cell);
    }
  }
  for (std::uint32_t some = 1; some < 1U << members.size(); ++some) {
    for (std::size_t first = 0; first < members.size(); ++first) {
      if ((some >> first & 1U) == 0) continue;
      std::vector<CounterAnswer> answers = {all[first]};
      Clock seen = all[first].clock;
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (i == first || (some >> i & 1U) == 0) continue;
        answers.push_back(all[i]);
        seen = causality::join(seen, all[i].clock);
      }
      if (answers.size() < 2) continue;
      const std::int64_t value = merged_value(scope, answers);
      const std::int64_t truth = truth_of(state, seen);
      if (value == truth) continue;
      std::string text = fmt::format("together they show {} and have seen {}:", value, truth);
      for (const CounterAnswer& answer : answers) text += fmt::format(" {};", answer.cell);
      return text;
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_answered(const CounterState& state, const CounterScope& scope) {
  const std::vector<int> members = members_of(state, scope);
  for (int operation = 1; operation <= state.operations; ++operation) {
    if ((state.answered >> operation & 1U) == 0) continue;
    std::size_t without = 0;
    for (const int r : members) {
      const Clock& clock = state.replica[static_cast<std::size_t>(r)].clock;
      without += std::ranges::none_of(state.events, [&](const CounterEvent& event) {
        return event.operation == operation && clock.contains(event.dot);
      });
    }
    if (without > members.size() / 2) {
      return fmt::format("operation {} was answered, and a majority has not seen it", operation);
    }
  }
  return std::nullopt;
}

void put(base::Encoder& out, const CounterReplica& replica) {
  out.u8(static_cast<std::uint8_t>(replica.phase));
  causality::encode(out, replica.clock);
  causality::encode(out, replica.memtable);
  out.varint(replica.files.size());
  for (const CounterFile& file : replica.files) {
    causality::encode(out, file.cell);
    causality::encode(out, file.at_freeze.base);
    causality::encode(out, file.at_freeze.stable.dots);
    out.u8(file.is_copy ? 1 : 0);
  }
  for (const auto& watermark : replica.watermark) {
    out.u8(watermark ? 1 : 0);
    if (watermark) causality::encode(out, *watermark);
  }
  causality::encode(out, replica.record);
  out.varint(static_cast<std::uint64_t>(replica.floor));
  out.u8(replica.pulled);
}

}  // namespace

std::optional<std::string> check(const CounterState& state, const CounterScope& scope) {
  if (auto violation = check_values(state, scope)) return violation;
  return check_answered(state, scope);
}

std::optional<std::string> check_counter_rest(CounterState state, const CounterScope& scope) {
  using Kind = CounterActionKind;
  const auto attempt = [&](CounterAction action) {
    CounterState next = state;
    next.pulls = next.floors = 1;
    if (step(next, scope, action)) state = std::move(next);
  };
  for (int round = 0; round < 5; ++round) {
    for (int r = 0; r < scope.replicas; ++r) {
      attempt({.kind = Kind::install, .replica = r, .peer = 0});
      for (int peer = 0; peer < scope.replicas; ++peer) {
        attempt({.kind = Kind::pull, .replica = r, .peer = peer});
      }
      attempt({.kind = Kind::promote, .replica = r});
      for (int i = 0; i < state.operations; ++i) {
        attempt({.kind = Kind::raise_floor, .replica = r});
      }
      for (const Kind kind : {Kind::merge, Kind::compact, Kind::flush, Kind::compact}) {
        attempt({.kind = kind, .replica = r});
      }
    }
  }
  if (auto violation = check(state, scope)) return "when all is quiet, " + *violation;
  for (int r = 0; r < scope.replicas; ++r) {
    const CounterReplica& replica = state.replica[static_cast<std::size_t>(r)];
    if (replica.phase == CounterPhase::away) continue;
    const causality::CellStore cell = read_counter(replica);
    const bool folded = cell.versions().size() <= 1 && cell.context().empty() &&
                        replica.files.size() <= 1 && replica.record.empty();
    if (!folded)
      return fmt::format("when all is quiet, {} still has {}", name_of_counter_replica(r), cell);
  }
  return std::nullopt;
}

base::Hash128 digest_of(const CounterState& state) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  for (const CounterReplica& replica : state.replica) put(out, replica);
  out.varint(state.events.size());
  for (const CounterEvent& event : state.events) {
    out.varint(event.dot.actor.node.value());
    out.varint(event.dot.counter);
    out.varint(static_cast<std::uint64_t>(event.operation));
    out.signed_varint(event.amount);
    causality::encode(out, event.context);
  }
  for (const int number : {state.operations, state.retries, state.plain, state.deletes,
                           state.floors, state.singles, state.reconciles, state.pulls}) {
    out.varint(static_cast<std::uint64_t>(number));
  }
  out.varint(state.answered);
  out.u8(state.joining ? 1 : 0);
  return base::hash128(buffer.view());
}

std::string story_of(const CounterAction& action) {
  using Kind = CounterActionKind;
  const auto name = [](int r) { return static_cast<char>(name_of_counter_replica(r)); };
  const char r = name(action.replica);
  const char peer = name(action.peer);
  switch (action.kind) {
    case Kind::increment:
      return fmt::format("{} takes a new operation", r);
    case Kind::plain:
      return fmt::format("{} takes an increment without an id", r);
    case Kind::retry:
      return fmt::format("{} is sent operation {} again", r, action.what);
    case Kind::remove:
      return r == peer ? fmt::format("{} takes a delete", r)
                       : fmt::format("{} takes a delete, after what {} has seen", r, peer);
    case Kind::deliver:
      return fmt::format("mutation {} reaches {}", action.what, r);
    case Kind::pull:
      return fmt::format("{} pulls from {}", r, peer);
    case Kind::hear:
      return fmt::format("{} hears of the clock of {}", r, peer);
    case Kind::merge:
      return fmt::format("{} merges what it has", r);
    case Kind::flush:
      return fmt::format("{} writes a file", r);
    case Kind::compact:
      return fmt::format("{} merges its files", r);
    case Kind::compact_two:
      return fmt::format("{} merges two files, from number {} on", r, action.what);
    case Kind::raise_floor:
      return fmt::format("the floor of {} rises", r);
    case Kind::lower_floor:
      return fmt::format("the floor of {} sinks", r);
    case Kind::answer:
      return fmt::format("operation {} is acknowledged", action.what);
    case Kind::begin_join:
      return "a replica begins to join";
    case Kind::install:
      return fmt::format("{} installs a copy of {}", r, peer);
    case Kind::promote:
      return fmt::format("{} becomes a member", r);
    case Kind::reconcile:
      return fmt::format("{} takes over what {} has", r, peer);
  }
  return {};
}

}  // namespace helenus::explore
