#include "base/crc32c.h"

#include <algorithm>
#include <climits>

#include <isa-l/crc.h>

namespace helenus::base {

std::uint32_t crc32c(ByteView bytes, std::uint32_t previous) {
  // ISA-L counts in int and wants a non-const pointer it does not write through.
  constexpr std::size_t kChunkMax = std::size_t{1} << 30;
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const std::size_t chunk = std::min(bytes.size(), kChunkMax);
    auto* from = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(from, static_cast<int>(chunk), state);
    bytes = bytes.subspan(chunk);
  }
  return ~state;
}

}  // namespace helenus::base
