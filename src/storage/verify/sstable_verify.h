// verify_sstable: reads a whole file and checks everything that can be checked.
//
// The file is read front to back once, block by block, without the help of its index: every byte
// belongs to a header, a block or the footer, every checksum fits, every key is above the one
// before it, and no filter denies one. On the way the index is checked against what was seen: its
// nodes follow their children in the file, so a queue of unclaimed blocks a level is all the memory
// it takes. At the end the counts must be those of the statistics. If the metadata is that of a
// file of the engine, its entries are checked, too (entry_verify.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/sstable/sstable_blocks.h"
#include "storage/sstable/sstable_format.h"

namespace helenus::storage {

struct VerifyProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t blocks = 0;
  std::uint64_t keys = 0;
  // Whether they were looked into: those of a file that an engine wrote for a table.
  bool entries_checked = false;
};

// Told after about every megabyte, and at the end.
using OnVerifyProgress = std::function<void(const VerifyProgress&)>;

// What was found in a sound file. Errors: corrupt or unsupported, naming file and offset; those of
// the file system.
runtime::Task<base::Result<VerifyProgress>> verify_sstable(runtime::Runtime& runtime,
                                                           SstableShared& shared, std::string path,
                                                           OnVerifyProgress on_progress,
                                                           runtime::Until until);

}  // namespace helenus::storage
