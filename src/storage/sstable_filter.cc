#include "storage/sstable_filter.h"

#include "base/assert.h"

namespace helenus::storage {

void FilterBuilder::finish(base::Buffer&) {
  UNREACHABLE("no kind of filter yet");
}

}  // namespace helenus::storage
