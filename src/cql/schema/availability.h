// Availability: whether the replicas that are alive suffice for a consistency level.
//
// A keyspace says how many replicas its rows have, and a level how many of them must answer. Where
// there are fewer, nothing is tried: the client is told so (UNAVAILABLE), with the numbers, and no
// row has changed. So far one node keeps all rows (CatalogSnapshot::has_all_rows): of the replicas
// that a keyspace wants at most the one here is alive, and whatever passes is answered by it.
//
//   ANY                        nothing must be alive
//   ONE, TWO, THREE            so many replicas, wherever
//   QUORUM, SERIAL             a majority of all that are wanted
//   ALL                        all that are wanted
//   LOCAL_ONE                  one in this node's data centre
//   LOCAL_QUORUM, LOCAL_SERIAL a majority of those wanted in it
//   EACH_QUORUM                a majority in every data centre
//
// What is not understood, a strategy or a level, is an error and never enough: nobody knows how
// many replicas would have to answer. LocalStrategy alone, that of the system's own keyspaces, has
// nothing to count.
//
// As in Cassandra, SimpleStrategy knows no data centres: its local levels want a majority of all.
//
// Immutable; part of a plan.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cql/errors/query_error.h"
#include "model/consistency.h"
#include "model/schema.h"

namespace helenus::cql {

class Availability {
 public:
  // Of the system's own keyspaces: always available.
  Availability() = default;
  // Of a keyspace on the only node that there is, which is in `data_center`.
  Availability(const model::Keyspace& keyspace, std::string_view data_center);

  // Errors: unavailable; server_error for what is not understood.
  QueryResult<void> check(model::Consistency level) const;

 private:
  // Of a place: how many are wanted there, and how many there are.
  struct Replicas {
    std::uint32_t factor = 0;
    std::uint32_t alive = 0;
  };

  bool is_checked_ = false;
  std::string problem_;  // with the strategy
  Replicas all_;
  Replicas local_;
  std::map<std::string, Replicas> data_centers_;  // none: the strategy knows none
};

// How many nodes each data centre has.
using NodeCounts = std::map<std::string, std::uint32_t>;

// What a client is warned of who wants more replicas than there are nodes.
std::vector<std::string> factor_warnings(const model::Keyspace& keyspace, const NodeCounts& nodes);

}  // namespace helenus::cql
