// What a table tells of its files to whoever decides which to merge (compaction_picker.h).
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "storage/manifest/garbage.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {

struct CompactionCandidate {
  FileNumber number;
  std::uint64_t bytes = 0;
  bool busy = false;  // is being merged already
  std::uint32_t level = 0;
  std::int64_t newest_write = INT64_MIN;  // microseconds since 1970
  // From its first key to its last; borrowed from the file.
  base::ByteView key_first = {};
  base::ByteView key_last = {};
};

struct CollectionCandidate {
  FileNumber number;
  std::uint64_t bytes = 0;
  std::uint64_t cells = 0;
  Collectable collectable = {};
  // What the merge that wrote it for the sake of garbage had to leave: something else holds those
  // keys, too.
  Collectable left = {};
  bool busy = false;
};

}  // namespace helenus::storage
