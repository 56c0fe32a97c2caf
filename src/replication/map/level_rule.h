// LevelRule: what a consistency level asks of the replicas of a keyspace's tablets. AckTally:
// whether the answers that came meet it.
//
//   ANY, ONE, TWO, THREE       so many replicas, wherever
//   QUORUM, SERIAL             a majority of all that are wanted
//   ALL                        all that are wanted
//   LOCAL_ONE                  one in the coordinator's data centre
//   LOCAL_QUORUM, LOCAL_SERIAL a majority of those wanted in it
//   EACH_QUORUM                a majority in every data centre
//
// Wanted are as many as the replication factor says, whether there are so many nodes or not: a
// majority of a majority that is left would not meet another one. As in Cassandra, SimpleStrategy
// knows no data centres: its local levels ask for replicas wherever, EACH_QUORUM for a majority.
//
// Law: the replicas that met QUORUM, LOCAL_QUORUM (of one data centre), EACH_QUORUM or ALL for a
// write and those that met the same level for a read have one in common.
//
// While a change of the replicas is joint (R17) a level asks for what it asks of the set that was
// and for what it asks of the set that follows: a replica of both counts in both. So the law holds
// between requests of a joint change and those before it and after it, too.
//
// Values; nothing allocates for up to four data centres.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <absl/container/inlined_vector.h>

#include "model/consistency.h"
#include "ring/placement.h"

namespace helenus::replication {

// A data centre by its place in the list that the map has.
using DatacentreIndex = std::uint32_t;

// In which sets of a tablet a replica is: bits.
enum class ReplicaSets : std::uint8_t { present = 1, next = 2, both = 3 };

// A replica as levels see it. One of the present set is named by its data centre alone.
struct CountedReplica {
  CountedReplica() = default;
  CountedReplica(DatacentreIndex of,  // NOLINT(google-explicit-constructor)
                 ReplicaSets in = ReplicaSets::present)
      : datacentre(of), sets(in) {}
  DatacentreIndex datacentre = 0;
  ReplicaSets sets = ReplicaSets::present;
};

class LevelRule {
 public:
  // So many of a data centre's replicas, or of all, in one of the sets.
  struct Group {
    std::optional<DatacentreIndex> datacentre;
    std::uint32_t required = 0;
    ReplicaSets set = ReplicaSets::present;  // one of them
    bool counts(CountedReplica replica) const {
      const auto in = static_cast<unsigned>(replica.sets) & static_cast<unsigned>(set);
      return in != 0 && (!datacentre || *datacentre == replica.datacentre);
    }
    friend bool operator==(const Group&, const Group&) = default;
  };
  using Groups = absl::InlinedVector<Group, 4>;

  // `local` is where the coordinator is; it need not have replicas.
  static LevelRule of(const ring::Strategy& strategy, std::span<const std::string> datacentres,
                      std::string_view local, model::Consistency level);
  // Of a joint change: the one, and the other in the next set. Requires: both as of() gives them.
  static LevelRule joint(const LevelRule& present, const LevelRule& next);

  const Groups& groups() const { return groups_; }
  // As an error tells it: of all groups together.
  std::uint32_t required() const;

  friend bool operator==(const LevelRule&, const LevelRule&) = default;

 private:
  Groups groups_;
};

class AckTally {
 public:
  // Of replicas in these data centres, one each. Requires: the rule outlives it.
  AckTally(const LevelRule& rule, std::span<const CountedReplica> replicas);

  // Such a replica has answered, or will not. Requires: one that was given, once.
  void acknowledge(CountedReplica replica);
  void fail(CountedReplica replica);

  bool met() const;
  // Whatever those that are left do.
  bool is_impossible() const;
  // Whether an answer of a replica there would bring it nearer.
  bool still_counts(CountedReplica replica) const;
  std::uint32_t required() const { return rule_.required(); }
  // How many of those that count have answered; as an error tells it.
  std::uint32_t acknowledged() const;
  std::uint32_t failed() const { return failed_; }
  // The group that cannot be met, or is not yet; the first one.
  struct Shortage {
    LevelRule::Group group;
    std::uint32_t alive = 0;  // answered, or may yet
  };
  std::optional<Shortage> shortage() const;

 private:
  struct Count {
    std::uint32_t open = 0;
    std::uint32_t acknowledged = 0;
  };

  const LevelRule& rule_;
  absl::InlinedVector<Count, 4> counts_;  // by group
  std::uint32_t failed_ = 0;
};

}  // namespace helenus::replication
