// Whole small files: reading one with a limit, and replacing one so that after any crash either
// the old content or the new is there.
#pragma once

#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::runtime {

// Errors: those of the file system; corrupt if the file is longer than `size_max`.
// What is read need not be durable: a process that replaced the file may have been killed before it
// synced the directory. Whoever tells others of it syncs the directory first.
Task<base::Result<base::Bytes>> read_file(Runtime& runtime, std::string path, std::size_t size_max);

// Writes `path`.new, syncs it, renames it to `path` and syncs the directory. When it returns
// success the new content is durable; after an error or a crash, the old one may be there still.
// Requires: nobody else replaces this path meanwhile.
Task<base::Result<void>> replace_file(Runtime& runtime, std::string path, base::Bytes content);
// The same with a file that nobody but its owner may read.
Task<base::Result<void>> replace_secret_file(Runtime& runtime, std::string path,
                                             base::Bytes content);

// Makes the directory and its parents, and returns when they are durable: every directory above it
// is synced, those that were there already too, as they may have been made by a process that was
// killed before it came to sync them. One above it that may not be read is passed over.
Task<base::Result<void>> make_directories_durably(Runtime& runtime, std::string path);

// The directory a path lies in: "." if it names none.
std::string directory_of(const std::string& path);

}  // namespace helenus::runtime
