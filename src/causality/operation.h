// OperationId: a client's name for one operation, so that a repetition of it is known as such
// (theory C1 to C4). 16 bytes that carry a time: a UUIDv7, or a version 1 timeuuid.
//
// Identity. What a client names is a request, which may change several partitions. Each of those
// changes is an operation of its own, named by (id, ordinal in the request): nth() mixes the
// ordinal into the part of the id that carries no time. For one id it is a bijection, and the first
// change has the id itself; that two requests collide is as likely as that two ids do.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong.h"

namespace helenus::causality {

using OperationId = std::array<std::byte, 16>;

// Milliseconds since 1970.
using OperationTime = base::Strong<struct OperationTimeTag, std::int64_t>;

// Errors: invalid_argument for another size than 16 bytes, or another version than 1 and 7, saying
// which.
base::Result<OperationId> parse_operation_id(base::ByteView bytes);

// When the client named it, as its clock said. Any 16 bytes have one.
OperationTime time_of(const OperationId& operation);

// The name of the change with that ordinal in the request that `request` names.
OperationId nth(const OperationId& request, std::uint32_t ordinal);

}  // namespace helenus::causality
