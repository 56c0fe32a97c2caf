// EntryVerifier: checks what the entries of a file of the engine must satisfy beyond being sorted:
// keys and values that go together, and deletes of ranges where a reader looks for them
// (range_delete_key.h). A range in the wrong place would be a delete that nobody finds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/entry/entry.h"
#include "storage/ids/row_key.h"
#include "storage/manifest/knowledge.h"

namespace helenus::storage {

class EntryVerifier {
 public:
  // The entries in the order of the file. Errors: corrupt, unsupported.
  base::Result<void> take(RowKey key, const base::Bytes& value);
  // After the last one: what the metadata counts. Errors: corrupt.
  base::Result<void> check_counts(const SstableMetadata& metadata) const;

 private:
  base::Result<void> take_ranges(base::ByteView path, const Entry& entry);

  std::string partition_;
  // Whether the partition under way has an entry under its own key, and what depths that names.
  bool has_own_ = false;
  std::vector<RangeDepth> depths_;
  std::uint64_t deleted_ranges_ = 0;
  std::uint64_t cells_ = 0;
};

}  // namespace helenus::storage
