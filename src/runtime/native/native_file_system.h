// NativeFileSystem: the files of the machine, for one core.
//
// Reads, writes and syncs go through the core's FileQueue (io_uring, or the thread pool where the
// kernel refuses it). Everything about names, sizes and locks is rare and blocks, so it always goes
// to the thread pool.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/file_system.h"
#include "runtime/native/blocking_files.h"
#include "runtime/native/file_request.h"
#include "runtime/native/in_pool.h"

namespace helenus::runtime::native {

// What the files of a core share. Outlives them.
struct FileServices {
  Runtime& runtime;
  ThreadPool& pool;
  Inbox& inbox;
  FileRequests& requests;
  FileQueue& queue;

  template <class T>
  InPool<T> blocking(typename InPool<T>::Function function) {
    return {runtime, pool, inbox, std::move(function)};
  }
};

class NativeFileSystem final : public FileSystem {
 public:
  explicit NativeFileSystem(FileServices services) : services_(services) {}

  Task<base::Result<std::unique_ptr<File>>> open(std::string path, OpenOptions options) override;
  Task<base::Result<void>> make_directories(std::string path) override;
  Task<base::Result<std::vector<DirectoryEntry>>> list(std::string directory) override;
  Task<base::Result<FileInfo>> info(std::string path) override;
  Task<base::Result<void>> rename(std::string from, std::string to) override;
  Task<base::Result<void>> remove(std::string path) override;
  Task<base::Result<void>> link(std::string from, std::string to) override;
  Task<base::Result<void>> sync_directory(std::string path) override;
  Task<base::Result<std::unique_ptr<FileLock>>> lock(std::string path) override;
  Task<base::Result<DiskSpace>> space(std::string path) override;

 private:
  FileServices services_;
};

}  // namespace helenus::runtime::native
