// Digests of answers (R7): what decides what a reader is shown, as sixteen bytes. Replicas that
// have the same of a request have equal digests, whatever else they have; then the full answer of
// one of them shows what a merge of all would show, and none of them lacks anything of it.
//
//   digest_of(names, rows)   of rows that were asked for by their names
//   digest_of(answer)        of rows of a tablet, with where they end: the span is a part of it
//   (R6)
//
// In a digest are, of each cell, its column and the dot, the timestamp and the expiry of the
// version that wins, deletes included, and of each row the same of the newest delete of a range
// that holds it. The value is the dot's. A version that has expired is in it as long as it is
// stored: when it expires to a reader is up to the reader's moment (R8), so the wall times of all
// answers go beside their digests.
//
// Why equal winners give an equal merge: timestamps extend causality, so a winner is newer than all
// that its replica has ever seen go; whatever one replica has and another lacks is then defeated by
// the common winner, or the replica that has it would have it as its winner.
// Why deletes are named although they show nothing: a reader that was shown nothing, as one replica
// has a delete and another has heard of nothing, must not see the value when it next reads of the
// second and of a third that has it. So these two differ, everything is asked for, and the delete
// is brought to who lacks it. Where a column is nowhere, only a delete of a range can be why, and
// the newest that holds the row defeats all that the others do.
//
// Requires: a table where the newest write wins, and nobody who wants a context of what is shown:
// that is of all a replica has seen. Counters are folded at each replica at another moment, and
// have no digest.
//
// Pure.
#pragma once

#include <optional>
#include <span>

#include "base/hash.h"
#include "replication/messages/messages.h"
#include "replication/request/rows_request.h"
#include "storage/read/row_read.h"

namespace helenus::replication {

// What is left out on purpose, for tests that must find it.
struct DigestOptions {
  bool without_dots = false;
  bool without_deletes = false;
};

// Of the first ones of the names, as many as there are reads. None where a cell is a counter's.
// Requires: no more reads than names.
std::optional<base::Hash128> digest_of(std::span<const RowName> names,
                                       std::span<const storage::RowRead> reads,
                                       DigestOptions options = {});
std::optional<base::Hash128> digest_of(const RowsAnswer& answer, DigestOptions options = {});

}  // namespace helenus::replication
