// Digests of answers (R7): what a reader would be shown, as sixteen bytes. Replicas that show the
// same of a request have equal digests, whatever else they have; then the full answer of one of
// them is what a merge of all would show.
//
//   digest_of(rows)     of rows that were asked for by their names
//   digest_of(answer)   of rows of a tablet, with where they end: the span is a part of it (R6)
//
// In a digest is, of each cell that shows something, its column and the dot, the timestamp and the
// expiry of the version that wins; the value is the dot's. A cell in which a delete has won is in
// it as little as one that is nowhere, and one that has expired is in it as long as it is stored:
// when it expires to a reader is up to the reader's moment (R8), so that the wall times of all
// answers go beside their digests.
//
// Why equal winners are enough: timestamps extend causality (rules (a) and (b), raised where need
// be), so a winner defeats what its context names; nothing that one replica has and another lacks
// can then defeat the common winner, or the replica that has it would show that instead.
//
// Requires: a table where the newest write wins, and nobody who wants a context of what is shown:
// that is of all a replica has seen. Counters are folded at each replica at another moment, and have
// no digest.
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

// `without_dots`: a bug, for tests that must find it.
struct DigestOptions {
  bool without_dots = false;
};

// Of the first ones of the names, as many as there are reads. None where a cell is a counter's.
// Requires: no more reads than names.
std::optional<base::Hash128> digest_of(std::span<const RowName> names,
                                       std::span<const storage::RowRead> reads,
                                       DigestOptions options = {});
std::optional<base::Hash128> digest_of(const RowsAnswer& answer, DigestOptions options = {});

}  // namespace helenus::replication
