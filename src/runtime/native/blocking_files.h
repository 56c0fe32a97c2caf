// The calls about files that block, as plain functions with Results: what the file system's tasks
// run on the thread pool. Every error names its path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/file_system.h"
#include "runtime/native/descriptor.h"

namespace helenus::runtime::native {

// Not empty, not too long, no NUL inside. Errors: invalid_argument.
base::Result<void> check_path(const std::string& path);
// Errors: invalid_argument for options that contradict each other.
base::Result<void> check_options(const std::string& path, const OpenOptions& options);

struct OpenedFile {
  Descriptor descriptor;
  std::uint64_t size = 0;
};

base::Result<OpenedFile> open_file(const std::string& path, const OpenOptions& options);
base::Result<void> make_directories_blocking(const std::string& path);
base::Result<std::vector<DirectoryEntry>> list_directory(const std::string& path);
base::Result<FileInfo> info_of(const std::string& path);
base::Result<void> rename_file(const std::string& from, const std::string& to);
base::Result<void> remove_file(const std::string& path);
base::Result<void> link_file(const std::string& from, const std::string& to);
base::Result<void> sync_directory_blocking(const std::string& path);
// The lock lives as long as the descriptor.
base::Result<Descriptor> lock_file(const std::string& path);
base::Result<DiskSpace> space_at(const std::string& path);

// Of an open file; `path` is for the error.
base::Result<std::uint64_t> size_of(int descriptor, const std::string& path);
base::Result<void> preallocate_file(int descriptor, std::uint64_t size, const std::string& path);
base::Result<void> truncate_file(int descriptor, std::uint64_t size, const std::string& path);
base::Result<void> close_file(Descriptor descriptor, const std::string& path);

}  // namespace helenus::runtime::native
