// How a cluster's metadata changes: functions from one value to the next. Whoever wants a change
// reads the document, computes the next content here, and asks the register to swap; if somebody
// else was first, it computes again from what that one made.
//
//   found ──▶ begin_join ─────▶ (the newcomer copies) ──────┐
//             begin_leave ────▶ (others copy from it) ──────┤
//             begin_removal ──▶ (others copy from those left) ┼▶ join_sets ──▶ (all of the next set
//             begin_replacement ▶ (the newcomer copies) ────┤     pull from all) ──▶ finish_change
//             change_schema, where it alters replication ──┘
//             └─ abandon_change, also when it is joint: the node that joins goes, the one that
//                leaves stays
//   begin_reentry ──▶ (the node catches up with others) ─────▶ finish_reentry
//
// One node joins or leaves at a time; several may be removed at once, as several may die. Tokens
// move as ring::join and ring::leave say: the fewest there can be. Where no replica moves, a change
// is finished without having been joint.
//
// Back from joint is safe as forward is: while it is joint all that is acknowledged is at a
// majority of the old set as well, and replicas refuse what comes in an older epoch (R18).
//
// Every result is valid and may follow what it was made from; both are asserted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "metadata/cluster_metadata.h"
#include "model/schema.h"

namespace helenus::metadata {

struct Founding {
  std::string cluster_name;
  ring::Partitioner partitioner = ring::Partitioner::murmur3;
  std::vector<ring::Position> tokens;  // of the whole cluster, for ever
  std::vector<NodeDescription> nodes;
  ClusterSecret secret = {};
};

// A new cluster without keyspaces. Errors: invalid_argument.
base::Result<ClusterMetadata> found(Founding founding);

// A node that is to take its share of the tokens. Errors: already_exists; refused for one that was
// removed, which must come back as another node; locked while another node joins or goes;
// invalid_argument.
base::Result<ClusterMetadata> begin_join(const ClusterMetadata& metadata, NodeDescription newcomer);

// A living node that is to give its tokens away. Errors: not_found; locked; invalid_argument when
// nobody is left to own them.
base::Result<ClusterMetadata> begin_leave(const ClusterMetadata& metadata, model::NodeId node);

// A dead node, which is fenced off from now on; also one that died while it was leaving. Final.
// Errors: as begin_leave; refused when some tablet would have no member left, unless the loss of
// its data is accepted.
enum class DataLoss : std::uint8_t { refused, accepted };
base::Result<ClusterMetadata> begin_removal(const ClusterMetadata& metadata, model::NodeId node,
                                            DataLoss data_loss);

// A new node in the place of a dead one: it takes its tokens, and the dead one is fenced off from
// now on. Errors: as begin_join and begin_removal; refused if it is of another data centre.
base::Result<ClusterMetadata> begin_replacement(const ClusterMetadata& metadata, model::NodeId dead,
                                                NodeDescription newcomer, DataLoss data_loss);

// The change becomes joint: who is pending counts, and levels are met in both sets. `as_of` is the
// epoch whose pending replicas were all seen to have their data. Errors: not_found if nothing is
// under way; already_exists if it is joint; refused if the replicas have changed since.
base::Result<ClusterMetadata> join_sets(const ClusterMetadata& metadata, Epoch as_of);

// The next set alone counts; leaving nodes are removed. `as_of` is the epoch in which every replica
// of the next set was seen to have pulled from every member. Errors: not_found if nothing is under
// way; refused if the replicas have changed since, or if replicas move and it was not joint.
base::Result<ClusterMetadata> finish_change(const ClusterMetadata& metadata, Epoch as_of);

// The next of the two that is due. Errors: theirs.
base::Result<ClusterMetadata> advance_change(const ClusterMetadata& metadata, Epoch as_of);

// The node that joins is removed, the node that leaves is normal again; where one joins in the
// place of another, that one's removal goes on without it. Changes of replication go on: the schema
// decides on them. Errors: not_found if nobody joins or leaves; refused for a removal.
base::Result<ClusterMetadata> abandon_change(const ClusterMetadata& metadata);

// Another schema. A keyspace that is new or gone takes effect at once, a new one in an epoch of its
// own; altered replication with finish_change. New keyspaces and tables get their numbers. Errors:
// invalid_argument for replication that nobody knows; locked for another replication while a change
// is joint.
base::Result<ClusterMetadata> change_schema(const ClusterMetadata& metadata, model::Schema schema);

// The rows of a table go: those to come lie under the next storage id. Errors: not_found.
base::Result<ClusterMetadata> truncate(const ClusterMetadata& metadata, const base::Uuid& table);

// A node whose replicas may have lost what others count on: they begin anew, in doubt, in an epoch
// that is given to all tablets that the node holds. Again and again, if it happens meanwhile.
// Errors: not_found; refused for one that joins or is being removed.
base::Result<ClusterMetadata> begin_reentry(const ClusterMetadata& metadata, model::NodeId node);

// It has caught up, and counts again. `reentered` is the re-entry that was begun for it, `as_of`
// the epoch of the metadata under which its replicas were seen to have all they need. Errors:
// not_found; refused if it is not in doubt or re-entered again, or if replicas of its tablets have
// changed since.
base::Result<ClusterMetadata> finish_reentry(const ClusterMetadata& metadata, model::NodeId node,
                                             Epoch reentered, Epoch as_of);

// A node that moved to other addresses. Errors: not_found; invalid_argument.
base::Result<ClusterMetadata> change_addresses(const ClusterMetadata& metadata, model::NodeId node,
                                               runtime::Address node_address,
                                               runtime::Address client_address);

}  // namespace helenus::metadata
