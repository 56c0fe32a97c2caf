// Hostile bytes against what nodes tell each other of a change of the ring: what decodes encodes to
// the same bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "node/ring_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;  // NOLINT: a main is nobody's header
  using Codec = rpc::Codec<node::RingProgressReply>;
  constexpr rpc::ProtocolVersion kVersion{};
  const auto bytes = base::Bytes::copy_of(std::as_bytes(std::span(data, size)));
  const auto reply = Codec::decode(bytes, kVersion);
  if (reply) ASSERT(Codec::encode(*reply, kVersion) == bytes);
  const auto request = rpc::Codec<node::RingProgressRequest>::decode(bytes, kVersion);
  if (request) ASSERT(bytes.size() == 1);
  return 0;
}
