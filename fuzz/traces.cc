// Hostile bytes against what nodes tell each other of traces: what decodes encodes to bytes that
// decode to the same again.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "node/trace_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;  // NOLINT: a main is nobody's header
  using Codec = rpc::Codec<node::TracesReply>;
  constexpr rpc::ProtocolVersion kVersion{};
  const auto bytes = base::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  const auto reply = Codec::decode(bytes, kVersion);
  if (!reply) return 0;
  const base::Bytes encoded = Codec::encode(*reply, kVersion);
  const auto again = Codec::decode(encoded, kVersion);
  ASSERT(again);
  ASSERT(Codec::encode(*again, kVersion) == encoded);
  return 0;
}
