// Contexts as clients hold them: the bytes of `helenus-context` in the custom payload.
//
// A context serves writes of what it was read with, and of nothing else (docs/adr/0011): under one
// of other rows, or one that was made up, a write would supersede events that nobody has seen. So
// what we give out names its table and its partition and is authenticated by a key (S2); what does
// not fit is refused. A table that was truncated since is another one.
//
//   u8 version | u64 table | 8 bytes of the keyed hash of the partition | the context | 16 bytes of
//   the keyed hash of all before
//
// The keyed hash is HMAC-SHA-256. Clients never see the key.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/secret.h"
#include "causality/context.h"
#include "cql/errors/query_error.h"
#include "replication/request/partition_write.h"
#include "storage/ids/table_id.h"

namespace helenus::cql {

// The custom payload's key under which contexts travel, both ways.
inline constexpr std::string_view kContextKey = "helenus-context";

using ContextSecret = base::Secret<std::array<std::byte, 32>>;

// A context, and what it is of.
struct PlacedContext {
  using PartitionHash = std::array<std::byte, 8>;

  causality::Context context;
  storage::TableId table;
  PartitionHash partition{};
};

base::Bytes seal(const causality::Context& context, storage::TableId table,
                 base::ByteView partition, const ContextSecret& secret);
// Errors: invalid, for what was not sealed with this secret.
QueryResult<PlacedContext> unseal(base::ByteView bytes, const ContextSecret& secret);
// A request under a context writes its partition and no other. Errors: invalid.
QueryResult<void> check_place(const PlacedContext& context,
                              std::span<const replication::PartitionWrite> writes,
                              const ContextSecret& secret);

}  // namespace helenus::cql
