// CRC32C (Castagnoli), the checksum of every record, block and message of ours.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace helenus::base {

// The CRC32C of `bytes`, or of what `previous` covered followed by `bytes`.
std::uint32_t crc32c(ByteView bytes, std::uint32_t previous = 0);

}  // namespace helenus::base
