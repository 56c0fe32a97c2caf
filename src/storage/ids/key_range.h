// Ids of tablets, and the ranges of partitions that they have.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/strong.h"

namespace helenus::storage {

// Given once in the life of a data folder.
using TabletId = base::Strong<struct TabletIdTag, std::uint64_t>;

// The partitions whose keys are at or above `from` and below `to`; an absent end is none. No
// partition's key is a proper prefix of a bound (Engine::stage refuses it), so that the key of an
// entry, which begins with its partition's, lies on the same side of a bound as that one.
struct KeyRange {
  base::Bytes from;
  std::optional<base::Bytes> to;
  bool contains(base::ByteView key) const {
    return base::compare(key, from) >= 0 && (!to || base::compare(key, *to) < 0);
  }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

}  // namespace helenus::storage
