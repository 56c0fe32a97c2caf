// Paging state: where the next page of a SELECT begins, as bytes that a client keeps and gives
// back.
//
// It works on any node and after a restart, for the statement with the values it was made for and
// for no other: it carries a fingerprint of both. A client may send anything: what is not a state
// of this statement is refused.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "cql/errors/query_error.h"
#include "cql/plan/row.h"

namespace helenus::cql {

struct PagingState {
  std::uint64_t statement = 0;  // the fingerprint
  RowPosition after;
  std::optional<std::uint64_t> rows_left;  // of LIMIT
  friend bool operator==(const PagingState&, const PagingState&) = default;
};

base::Bytes encode(const PagingState& state);
// Errors: a protocol error for bytes that are no state, as Cassandra's; invalid for one of another
// statement: drivers close a connection upon the former.
QueryResult<PagingState> decode_paging_state(base::ByteView bytes, std::uint64_t statement);

}  // namespace helenus::cql
