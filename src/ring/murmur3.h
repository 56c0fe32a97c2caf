// The Murmur3 partitioner: where on the ring a partition lies, as Cassandra and its drivers compute
// it.
//
// It is the first half of MurmurHash3_x64_128 with seed 0, with a quirk that drivers rely on: the
// bytes of the last, incomplete block are sign-extended, so keys with bytes above 0x7f there hash
// otherwise than by the published function.
#pragma once

#include "base/bytes.h"
#include "model/token.h"

namespace helenus::ring {

// The token of a routing key (model/partition_key.h). kTokenMin for the empty key and for no other:
// a hash that would give it gives kTokenMax.
model::Token token_of(base::ByteView routing_key);

}  // namespace helenus::ring
