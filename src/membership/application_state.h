// What a node says of itself by gossip: a value for each of a few keys, and how the values are
// written.
//
// Only its owner changes a node's states. Gossip carries values as bytes and looks into none of
// them; a key that this release does not know is kept and passed on like any other, so that a node
// one release behind stands in nobody's way. What is written here spreads, it decides nothing: the
// ring and the schema are decided by the metadata document.
//
// The decoders take what peers sent: bad bytes are Errc::corrupt, never an assertion.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/token.h"
#include "runtime/address.h"

namespace helenus::membership {

// The numbers are the wire's: never used again for something else.
enum class StateKey : std::uint8_t {
  heartbeat = 0,  // no value: its version is the beat
  status = 1,
  load = 2,            // bytes of data held
  schema_version = 3,  // equal UUIDs, equal schemas
  tokens = 4,
  node_address = 5,    // where peers reach it
  client_address = 6,  // where drivers reach it
  datacenter = 7,
  rack = 8,
  release = 9,
  metadata_version = 10,  // of the newest metadata document held
  serves_clients = 11,    // whether drivers are answered at its address for them
  wall_clock = 12,        // what its clock showed when it said so
};

// Keys are below this; those without a name here belong to later releases.
inline constexpr std::uint8_t kStateKeyCountMax = 32;
// Of one value. With the number of keys it bounds what one node can make the others hold.
inline constexpr std::size_t kStateValueBytesMax = 8 * 1024;
inline constexpr std::size_t kTokensMax = kStateValueBytesMax / sizeof(std::int64_t);

// What a node says of its place in the cluster. Whether it lives is for others to find out.
enum class Status : std::uint8_t {
  joining = 0,  // takes over its data; not yet a member
  normal = 1,
  leaving = 2,  // hands over its data; still a member
  left = 3,     // gone for good, or being replaced
};

std::string_view name_of(Status status);

base::Bytes encode_status(Status status);
base::Result<Status> decode_status(base::ByteView value);

base::Bytes encode_load(std::uint64_t bytes);
base::Result<std::uint64_t> decode_load(base::ByteView value);

base::Bytes encode_schema_version(const base::Uuid& version);
base::Result<base::Uuid> decode_schema_version(base::ByteView value);

base::Bytes encode_metadata_version(std::uint64_t version);
base::Result<std::uint64_t> decode_metadata_version(base::ByteView value);

// Microseconds since 1970.
base::Bytes encode_wall_clock(std::uint64_t microseconds);
base::Result<std::uint64_t> decode_wall_clock(base::ByteView value);
base::Bytes encode_serves_clients(bool serves);
base::Result<bool> decode_serves_clients(base::ByteView value);

// Requires: ascending without repetition, at most kTokensMax.
base::Bytes encode_tokens(std::span<const model::Token> tokens);
base::Result<std::vector<model::Token>> decode_tokens(base::ByteView value);

base::Bytes encode_address(const runtime::Address& address);
base::Result<runtime::Address> decode_address(base::ByteView value);

}  // namespace helenus::membership
