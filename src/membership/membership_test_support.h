// Names and times for the tests of membership.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"
#include "membership/gossip.h"
#include "membership/message.h"
#include "model/node_id.h"
#include "runtime/time.h"

namespace helenus::membership::testing {

// Ascending with the number.
inline model::NodeId node_of(std::uint64_t number) {
  base::Uuid::Octets octets{};
  base::store_be(octets.data() + 8, number);
  return model::NodeId(base::Uuid(octets));
}

inline runtime::MonotonicTime at_ms(std::int64_t milliseconds) {
  return runtime::MonotonicTime(std::chrono::milliseconds(milliseconds));
}

// A value of that many bytes.
inline base::Bytes value_of(std::size_t size, char fill = 'v') {
  return base::Bytes::copy_of(std::string(size, fill));
}

inline StateKey key_of(unsigned number) {
  return static_cast<StateKey>(number);
}

// The first state of a node, as others would tell it.
inline Delta first_delta(model::NodeId node, Generation generation = 1) {
  return {.node = node,
          .generation = generation,
          .after = 0,
          .states = {{.key = StateKey::heartbeat, .version = 1, .value = {}}}};
}

}  // namespace helenus::membership::testing
