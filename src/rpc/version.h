// The versions of the protocol between nodes, and how two nodes agree on one.
//
// A version is spoken on a connection and seen by the codecs of messages: a release that adds a
// field to a message writes it from that version on, and writes the message as before to a peer
// that is behind. A release speaks its own version and at least the one before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/strong.h"

namespace helenus::rpc {

using ProtocolVersion = base::Strong<struct ProtocolVersionTag, std::uint16_t>;

struct VersionRange {
  ProtocolVersion oldest;
  ProtocolVersion newest;

  bool contains(ProtocolVersion version) const { return oldest <= version && version <= newest; }
  friend bool operator==(const VersionRange&, const VersionRange&) = default;
};

// What this release speaks.
inline constexpr VersionRange kVersions{.oldest = ProtocolVersion(1), .newest = ProtocolVersion(1)};

// The newest that both speak; none if there is no such.
constexpr std::optional<ProtocolVersion> common_version(VersionRange a, VersionRange b) {
  const ProtocolVersion version = std::min(a.newest, b.newest);
  if (version < std::max(a.oldest, b.oldest)) return std::nullopt;
  return version;
}

}  // namespace helenus::rpc
