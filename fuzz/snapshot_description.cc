// Hostile bytes against what describes a snapshot: what decodes encodes to the same bytes.
#include "node/snapshot_description.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;  // NOLINT: a main is nobody's header
  const auto bytes = base::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  const auto description = node::decode_snapshot_description(bytes.view());
  if (description) ASSERT(node::encode(*description) == bytes);
  return 0;
}
