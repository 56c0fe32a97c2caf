// For tests: parts of frames as they are on the wire.
#pragma once

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::rpc {

// With a right checksum of its own, whatever it says of the body.
inline base::Bytes head_of_frame(std::uint32_t size, std::uint32_t checksum) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u32_le(size);
  out.u32_le(checksum);
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

}  // namespace helenus::rpc
