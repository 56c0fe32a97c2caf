// For tests: what a tablet of an engine must hold, kept as a map of dot stores that never strips,
// drops, flushes or forgets; and the peer it replicates with, a clock and a stock of deltas.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot_store.h"
#include "storage/ids/table_id.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage::testing {

inline constexpr std::uint32_t kHistoryColumns = 3;

// A mutation that was minted here or at the peer.
struct KnownDelta {
  TableId table;
  std::string partition;
  causality::Delta delta;
  bool acknowledged = false;
  bool at_peer = false;
  bool in_engine = false;
  bool gone = false;  // its table was dropped: the dot stays, the data does not
};

// Key and what a reader sees, for people to compare.
using ShownRows = std::vector<std::pair<std::string, std::string>>;

// What a reader sees of a row.
std::string shown_row(const causality::PartitionStore& partition, const base::Bytes& row,
                      causality::Policy policy, causality::WallTime now);

// Whether some cell is touched by both.
bool overlap(const causality::Delta& a, const causality::Delta& b);

class TabletOracle {
 public:
  TabletOracle() = default;
  explicit TabletOracle(causality::ActorId peer_actor) : peer_actor_(peer_actor) {}

  const std::map<causality::Dot, KnownDelta>& deltas() const { return deltas_; }
  KnownDelta* find(const causality::Dot& dot);
  bool in_engine(const causality::Dot& dot) const;

  // ---- What happens ----
  // The engine minted it.
  void add_minted(TableId table, const std::string& partition, const causality::Delta& delta);
  void acknowledge(const causality::Dot& dot);
  // The peer mints for itself.
  void mint_at_peer(TableId table, const std::string& partition, causality::Policy policy,
                    causality::Mutation mutation);
  // The engine took what the peer has.
  void enter(KnownDelta& known, causality::Policy policy);
  void give_to_peer(const causality::Dot& dot);
  // The table's data is gone, the dots are not. What the peer has of it and the engine has not will
  // never come: from then on the peer cannot be pulled from completely.
  void drop_table(TableId table);
  // Every reader may have seen them.
  void see(const causality::Dot& dot) { seen_.insert(dot); }
  bool seen(const causality::Dot& dot) const { return seen_.contains(dot); }
  // A start has found just these dots. Returns those that were acknowledged and are not among them;
  // what is neither there nor at the peer never was.
  std::vector<causality::Dot> adopt(const causality::Clock& found);

  // ---- What must be ----
  void set_policy(TableId table, causality::Policy policy) { policies_[table] = policy; }
  const causality::PartitionStore& partition(TableId table, const std::string& partition) const;
  ShownRows rows(TableId table, causality::WallTime now) const;
  causality::Clock dots_in_engine() const;
  std::uint64_t count_in_engine() const;

  // ---- The peer ----
  const causality::Clock& peer_clock() const { return peer_clock_; }
  // Whether the engine has, acknowledged, everything that the peer has.
  bool pulled_completely() const;

  // What the engine was told to be stable, in any life; and whether, in this one, everything is.
  causality::Clock told_stable;
  bool told_alone = false;

 private:
  void absorb(const KnownDelta& known);

  std::map<causality::Dot, KnownDelta> deltas_;
  std::set<causality::Dot> seen_;
  std::map<TableId, causality::Policy> policies_;
  // Of what is in the engine.
  std::map<TableId, std::map<std::string, causality::PartitionStore>> stores_;
  causality::ActorId peer_actor_;
  causality::Clock peer_clock_;
  bool peer_is_cut_off_ = false;
};

}  // namespace helenus::storage::testing
