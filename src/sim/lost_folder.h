// A folder that a disk loses with all that is in it, for good.
#pragma once

#include <string>

#include "base/assert.h"
#include "runtime/file_system.h"
#include "sim/sim_disk.h"

namespace helenus::sim {

// The folder itself stays, empty. Does nothing if it is not there.
inline void lose_folder(SimDisk& disk, const std::string& folder) {
  const auto entries = disk.list(folder);
  if (!entries) return;
  for (const runtime::DirectoryEntry& entry : *entries) {
    const std::string path = folder + "/" + entry.name;
    if (entry.is_directory) lose_folder(disk, path);
    ASSERT(disk.remove(path));
  }
  disk.commit_names(*disk.find_directory(folder), disk.names_mark());
}

}  // namespace helenus::sim
