// What the two Bloom filters share: counting the bits of a table, and judging one by its count.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/envelope.h"

namespace helenus::filters {

std::uint64_t count_bits(base::ByteView bytes);

// Whether a table of bits can hold the keys its header counts: the bits set are those the header
// says (with fewer, keys would be denied), no more than the keys can have set, none without keys,
// and the keys are no more than the filter takes.
base::Result<void> check_bit_table(const Envelope& envelope, base::ByteView body, unsigned probes);

}  // namespace helenus::filters
