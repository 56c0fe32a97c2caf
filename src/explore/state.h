// The state of a whole tablet group, small enough to visit millions of times.
//
// Every mutation is an *event*; events are numbered in the order they are minted, and every set of
// dots (a clock, a context, the versions of a cell) is a bit mask over events. The causality
// library keeps the same sets as ranges; crosscheck.h translates states into its types and compares
// every operation, so that the masks stand for the library and not for themselves.
//
// Beside what a replica knows the state keeps what it cannot know, for the oracle alone: `past` of
// an event (what its writer had truly seen), and of each cell which events were `applied` to it and
// which it `reflects` (those, and all that their writers had seen). Rules never read them.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <type_traits>

namespace helenus::explore {

inline constexpr int kReplicasMax = 4;
inline constexpr int kActorsMax = 8;
inline constexpr int kEventsMax = 12;
inline constexpr int kTables = 2;
inline constexpr int kCellsPerTable = 2;
inline constexpr int kCells = kTables * kCellsPerTable;
inline constexpr int kSstablesMax = 3;
inline constexpr int kEpochsMax = 8;
inline constexpr int kMessagesMax = 2;

// Bit masks: over events, and over small things (replicas, actors, cells).
using Events = std::uint16_t;
using Mask = std::uint8_t;

constexpr bool has(unsigned mask, int bit) {
  return (mask >> bit & 1U) != 0;
}
constexpr Events event_bit(int event) {
  return static_cast<Events>(1U << event);
}
constexpr Mask bit(int index) {
  return static_cast<Mask>(1U << index);
}
constexpr Events without(unsigned from, unsigned what) {
  return static_cast<Events>(from & ~what);
}
// Calls `f` with each element, ascending.
template <class F>
void each(unsigned mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(std::countr_zero(mask));
}

enum class Kind : std::uint8_t { put, remove };

struct Event {
  std::uint8_t actor;
  Kind kind;
  Mask cells;
  // A delete of all cells of a table, kept as one range-scoped version.
  std::uint8_t scoped;
  std::uint8_t timestamp;
  // Whether the value expires: at a moment when a wall clock reads 1.
  std::uint8_t expires;
  std::uint8_t epoch;
  // Members that acknowledged it.
  Mask acks;
  // A mutation that deletes a scope and writes cells in it (docs/adr/0016) is two events under one
  // dot, which are never apart; each has the number of the other, from 1, here.
  std::uint8_t partner;
  std::uint8_t unused;
  Events context;
  // Oracle: what the writer had truly seen.
  Events past;
};

// What one storage layer holds of a cell, or of a table's scope: see causality::CellStore.
struct Fragment {
  Events versions;
  Events context;
  friend bool operator==(const Fragment&, const Fragment&) = default;
};

// Slots of a layer: the cells of the table and, last, its range-scoped deletes.
inline constexpr int kSlots = kCellsPerTable + 1;
inline constexpr int kScopeSlot = kCellsPerTable;
using Layer = std::array<Fragment, kSlots>;

// What is remembered of an instant T at which a memtable was frozen.
struct Freeze {
  Events clock;   // every dot seen at T
  Events base;    // the contiguous part of it: what a strip may go by
  Events stable;  // what was stable at T: what a drop may go by
  Mask closed;
  std::uint8_t expired;  // whether all wall clocks had passed the expiry at T
  // Freezes of a table are numbered. What a compaction wrote spans those of all its inputs.
  std::uint8_t first;
  std::uint8_t last;
};

// One table of a replica: an LSM tree. Sstables are in the order of their newest freezes.
struct Table {
  Layer memtable;
  Layer frozen;
  std::array<Layer, kSstablesMax> sstable;
  Freeze frozen_at;
  std::array<Freeze, kSstablesMax> sstable_at;
  // What the synced part of the commit log would bring back of the two memtables.
  Layer memtable_synced;
  Layer frozen_synced;
  std::array<Events, kCellsPerTable> frozen_applied;
  std::array<Events, kCellsPerTable> frozen_reflected;
  std::uint8_t is_frozen;
  std::uint8_t sstables;
  std::uint8_t freezes;
  std::uint8_t unused;
};

enum class Phase : std::uint8_t {
  absent,
  joining,     // pending and silent until a member's state is installed (S8)
  installed,   // pending, holds a copy, answers pulls
  reentering,  // took a new actor id, silent until reconciled (S14), or until it has pulled (R10)
  active,
  stopped,  // knows that it was removed
};

struct Replica {
  std::array<Table, kTables> table;
  Events clock;
  Events log;
  // Entries of the log that are kept for their timestamps only: the cap took the mutations (S7).
  Events capped;
  Events clock_synced;
  Events log_synced;
  std::array<Events, kReplicasMax> watermark;
  // Oracle: the events applied to each cell, and those with all that their writers had seen.
  std::array<Events, kCells> applied;
  std::array<Events, kCells> reflected;
  std::array<Events, kCells> applied_synced;
  std::array<Events, kCells> reflected_synced;
  Mask closed;
  Mask closed_synced;
  // Members of this epoch whose whole clock was merged since the epoch was adopted.
  Mask pulled;
  // Members reconciled with, or pulled from completely, since re-entry.
  Mask reconciled;
  // Members whose wall clock, as reported in a complete pull, has passed the expiry.
  Mask reported;
  std::uint8_t actor;
  std::uint8_t epoch;
  Phase phase;
  std::uint8_t wall;
  // Mutant P11 alone: whether this node holds the second table's range at all.
  std::uint8_t lacks_range;
};

// The topology document of one epoch.
struct Config {
  Mask members;
  Mask pending;
  Mask removed;  // actors
};

enum class MessageKind : std::uint8_t { none, pull_reply, announcement, repair, scan };

// A reply on its way. Mutations themselves need no message: once minted, a mutation may reach any
// replica at any time, never, or twice, which is what a lossy, reordering network does to it.
struct Message {
  MessageKind kind;
  std::uint8_t from;
  std::uint8_t to;
  std::uint8_t from_actor;
  std::uint8_t to_actor;
  std::uint8_t epoch;
  std::uint8_t cell;
  std::uint8_t wall;
  Events served;  // pull_reply, repair: the mutations in it
  Events clock;   // pull_reply, scan: the sender's clock; announcement: what of it is synced
  Events base;    // pull_reply, announcement: the base of what of that clock is synced
};

struct State {
  std::array<Replica, kReplicasMax> replica;
  std::array<Event, kEventsMax> event;
  std::array<Config, kEpochsMax> config;
  std::array<Message, kMessagesMax> message;
  std::array<std::uint8_t, kActorsMax> slot_of_actor;
  // Events that write cells in the scope that their partners delete.
  Events replacing;
  Events acked;
  // Acknowledged under periodic sync and then lost by every replica that had it.
  Events lost;
  std::uint8_t events;
  std::uint8_t epochs;
  std::uint8_t actors;
  // Replicas whose log tail may still be lost; for the others durability is not tracked.
  Mask crashable;
  // What is left of the scope's budgets.
  std::uint8_t crashes_left;
  std::uint8_t freezes_left;
  std::uint8_t repairs_left;
  std::uint8_t delays_left;
  std::uint8_t removals_left;
  std::uint8_t joins_left;
  std::uint8_t reconciles_left;
  std::uint8_t pulls_left;
  // Set by a rule that caught itself minting a dot twice (I0).
  std::uint8_t dot_minted_twice;
  // Set when a quorum delete did not cover an acknowledged write (S2).
  std::uint8_t delete_missed_acknowledged;
  // Set when a write's timestamp does not exceed that of an unstable one it had seen.
  std::uint8_t timestamp_below_past;
  // Set when an explicit timestamp is not the one that was given.
  std::uint8_t explicit_timestamp_raised;
  std::uint8_t unused;
  // Oracle: the wall clocks of all members at once had passed the expiry: it is over for good.
  std::uint8_t expiry_passed;
};

// States are hashed and compared as bytes.
static_assert(std::is_trivially_copyable_v<State>);
static_assert(std::has_unique_object_representations_v<State>);

inline const Config& newest(const State& state) {
  return state.config[state.epochs - 1U];
}

inline Replica& replica_of(State& state, int replica) {
  return state.replica[static_cast<unsigned>(replica)];
}
inline const Replica& replica_of(const State& state, int replica) {
  return state.replica[static_cast<unsigned>(replica)];
}
inline const Event& event_of(const State& state, int event) {
  return state.event[static_cast<unsigned>(event)];
}
// The topology of the epoch that the replica has adopted.
inline const Config& config_of(const State& state, const Replica& replica) {
  return state.config[replica.epoch];
}

// Events minted by any of `actors`.
inline Events minted_by(const State& state, Mask actors) {
  Events events = 0;
  for (int e = 0; e < state.events; ++e) {
    if (has(actors, state.event[static_cast<unsigned>(e)].actor)) events |= event_bit(e);
  }
  return events;
}

}  // namespace helenus::explore
