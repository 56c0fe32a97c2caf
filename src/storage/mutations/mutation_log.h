// MutationLog: the dotted mutation log of one tablet replica (theory S5, S7): for every dot that
// some peer may not have seen, the mutation itself.
//
//   stage ──▶ here, in memory ──flush of its memtable──▶ a mutation file ──stable──▶ gone
//                    │                                        │ over the cap
//                    └── stable: gone                         └──▶ shed
//   (of a table that is dropped: covered)
//
// It has no record of its own. A mutation here is the very record of the commit log, and as long as
// it is in memory that record is still needed, since its memtable is not flushed: a start replays
// both together. The flush that lets the record go writes what is not stable by then into a
// mutation file (mutation_file.h), entered by the same edit of the manifest. So the log, the data
// and the clock are recovered together or not at all.
//
// A tablet without peers keeps nothing: its mutations are stable at replication, their records say
// so, and neither a write, nor a flush, nor a start pays anything.
//
// Invariants, by sets of dots:
//   kept()   what a peer can be given: in memory, or alive in a mutation file
//   shed()   what it cannot be given though it may need it: cut off by the cap, and not stable
//   covered()  whose table was dropped: there is nothing to give, and nothing to be missed. A peer
//            takes the dot alone: what the mutation did is gone everywhere, by the order of the
//            schema, so the dot claims no more than is true (S5)
//   clock \ stable  =  kept ∪ shed ∪ covered  (what was not cut off is there)
// It is the record of operation ids as well (theory R15): as long as an id may come again, the
// mutation that it made is here. So its owner calls stable only what may go for the ids' sake, too
// (operation_hold.h).
// What a peer lacks and is not in kept() is withheld, never skipped: whoever asks is told, and the
// asker takes a copy of the tablet. Nothing here ever claims a dot (S5); a shed mutation is still
// in the tables, only no longer to be found by its dot.
//
// Pure, but for the memory of records. Core affinity: that of its tablet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include "base/bytes.h"
#include "causality/clock.h"
#include "causality/dot.h"
#include "causality/operation.h"
#include "storage/ids/table_id.h"

namespace helenus::storage {

struct KeptMutation {
  causality::Dot dot;
  TableId table;
  // kTimestampMin where timestamps settle nothing: of a table that is not 'lww'.
  causality::Timestamp timestamp;
  base::Bytes record;  // as the commit log has it: mutation_record.h
  std::optional<causality::OperationId> operation = std::nullopt;
};

class MutationLog {
 public:
  // Staged as write number `sequence`. Cost: one descent of a B-tree.
  void add(KeptMutation mutation, std::uint64_t sequence);

  // Those of the table up to that write that are in memory: what goes with the flush of a memtable.
  // Ascending by dot.
  std::vector<KeptMutation> of_table(TableId table, std::uint64_t sequence_last) const;
  // They are in a file. Those that have become stable meanwhile are gone from here already.
  void moved_to_file(const std::vector<KeptMutation>& mutations);
  // A file that holds these dots was found at a start.
  void found_in_file(const causality::Clock& dots);
  // A start found that these were shed.
  void found_shed(const causality::Clock& dots);
  // A file that was the only place of these dots goes, and they are not stable.
  void shed(const causality::Clock& dots);

  // Their table was dropped, or a start found that it was.
  void cover(const causality::Clock& dots);

  // All members have these dots; only grows.
  void collect(const causality::Clock& stable);

  const causality::Clock& kept() const { return kept_; }
  const causality::Clock& shed() const { return shed_; }
  const causality::Clock& covered() const { return covered_; }
  const causality::Clock& stable() const { return stable_; }

  // Those in memory that are in `wanted`, ascending by dot, until `bytes_max` are reached; at least
  // one. Sets `all` if there are no more.
  std::vector<KeptMutation> in_memory(const causality::Clock& wanted, std::size_t bytes_max,
                                      bool& all) const;

  // A mutation in memory that has this operation id; of aliases that of the least dot.
  std::optional<KeptMutation> find(const causality::OperationId& operation) const;

  std::size_t operations_in_memory() const { return by_operation_.size(); }
  std::size_t count_in_memory() const { return held_.size(); }
  std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Held {
    TableId table;
    std::uint64_t sequence = 0;
    causality::Timestamp timestamp;
    base::Bytes record;
    std::optional<causality::OperationId> operation;
  };
  using HeldByDot = absl::btree_map<causality::Dot, Held>;
  // A tree's entry and the head of a record's memory, about.
  static constexpr std::size_t kBytesPerMutation = 112;

  static constexpr std::size_t kBytesPerOperation = 40;

  static std::size_t bytes_of(const Held& held) {
    return held.record.size() + kBytesPerMutation + (held.operation ? kBytesPerOperation : 0);
  }
  static KeptMutation kept_of(causality::Dot dot, const Held& held) {
    return {.dot = dot,
            .table = held.table,
            .timestamp = held.timestamp,
            .record = held.record,
            .operation = held.operation};
  }
  void erase(causality::Dot first, causality::Dot last);
  // Those of no closed actor.
  void erase(const causality::Clock& dots);

  HeldByDot held_;
  absl::btree_set<std::pair<causality::OperationId, causality::Dot>> by_operation_;
  std::size_t memory_bytes_ = 0;
  causality::Clock kept_;
  causality::Clock shed_;
  causality::Clock covered_;
  causality::Clock stable_;
};

}  // namespace helenus::storage
