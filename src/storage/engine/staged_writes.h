// StagedWrites: which writes have their place in the log and are not known to be durable yet.
//
// Writes are numbered as they are staged. The log makes them durable in that order, so one number
// says it of all before: a reader remembers the largest it has seen and waits for that one.
//
// S1 rests on it: a tablet's durable clock gets a dot here and nowhere else while the engine is
// open (but for dots that a manifest has: cover()), and not before the log says that the record is
// durable.
//
// Owns: the numbers and the positions of the writes under way.
// Borrows: their tablets. Whoever removes one calls forget() first.
// Invariant: the writes under way ascend by number, without gaps, and by position.
//
// Core affinity: the engine's.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "causality/dot.h"
#include "storage/engine/tablet.h"
#include "storage/ids/log_position.h"

namespace helenus::storage {

class StagedWrites {
 public:
  // What was replayed.
  static constexpr std::uint64_t kReplayed = 1;

  std::uint64_t last_sequence() const { return last_sequence_; }
  // Every write up to this one is durable, as of the last advance().
  std::uint64_t durable_sequence() const { return durable_sequence_; }
  // Of the last write; none if there was none since the start.
  const std::optional<LogPosition>& last_position() const { return last_position_; }

  // The number of a write that the log has taken. add() follows before the next one.
  std::uint64_t next_sequence() { return ++last_sequence_; }
  void add(std::uint64_t sequence, LogPosition position, Tablet& tablet, causality::Dot dot) {
    under_way_.push_back(
        {.sequence = sequence, .position = position, .tablet = &tablet, .dot = dot});
    last_position_ = position;
  }
  // The log is durable up to there.
  void advance(LogPosition durable);
  // Where the log has it. Requires: not durable as of the last advance().
  LogPosition position_of(std::uint64_t sequence) const;
  // The tablet goes; its writes become durable all the same.
  void forget(const Tablet& tablet);

  // ---- Which durable clocks have changed ----
  // Tablets whose durable clock has grown since they were let go. In the order in which they came.
  const std::vector<Tablet*>& changed() const { return changed_; }
  void note_changed(Tablet& tablet) {
    if (tablet.has_changed) return;
    tablet.has_changed = true;
    changed_.push_back(&tablet);
  }
  // All but those that are to be looked at again.
  void let_go_of_changed(const std::vector<Tablet*>& kept);

 private:
  struct StagedWrite {
    std::uint64_t sequence = 0;
    LogPosition position;
    Tablet* tablet = nullptr;
    causality::Dot dot;
  };

  std::uint64_t last_sequence_ = kReplayed;
  std::uint64_t durable_sequence_ = kReplayed;
  std::deque<StagedWrite> under_way_;
  std::vector<Tablet*> changed_;
  std::optional<LogPosition> last_position_;
};

}  // namespace helenus::storage
