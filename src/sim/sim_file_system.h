// SimFileSystem: the file system of one simulated core, over the machine's SimDisk.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/file_system.h"
#include "sim/disk_queue.h"

namespace helenus::sim {

class SimFile final : public runtime::File {
 public:
  // Holds the inode.
  SimFile(runtime::Runtime& runtime, DiskQueue& queue, std::string path, InodeId inode,
          runtime::OpenOptions options);
  ~SimFile() override;

  runtime::Task<base::Result<std::uint64_t>> size() override;
  runtime::Task<base::Result<void>> preallocate(std::uint64_t size) override;
  runtime::Task<base::Result<void>> truncate(std::uint64_t size) override;
  runtime::Task<base::Result<void>> close() override;

  InodeId inode() const { return inode_; }
  void on_operation_begun() { ++pending_; }
  void on_operation_over() { --pending_; }

 private:
  void start_read(ReadAt& read) override;
  void start_write(Write& write) override;
  void cancel(ReadAt& read) override { queue_.cancel(read); }
  void cancel(Write& write) override { queue_.cancel(write); }

  base::Result<void> check_open() const;
  base::Result<void> check_resize(std::uint64_t size) const;
  base::Result<void> check_transfer(std::uint64_t offset, base::ByteView memory) const;

  DiskQueue& queue_;
  SimDisk& disk_;
  const InodeId inode_;
  const std::uint64_t epoch_;
  const runtime::OpenOptions options_;
  std::size_t pending_ = 0;
  bool closed_ = false;
};

class SimFileSystem final : public runtime::FileSystem {
 public:
  // `runtime` need not be complete yet.
  SimFileSystem(runtime::Runtime& runtime, DiskQueue& queue)
      : runtime_(runtime), queue_(queue), disk_(queue.disk()) {}

  runtime::Task<base::Result<std::unique_ptr<runtime::File>>> open(
      std::string path, runtime::OpenOptions options) override;
  runtime::Task<base::Result<void>> make_directories(std::string path) override;
  runtime::Task<base::Result<std::vector<runtime::DirectoryEntry>>> list(
      std::string directory) override;
  runtime::Task<base::Result<runtime::FileInfo>> info(std::string path) override;
  runtime::Task<base::Result<void>> rename(std::string from, std::string to) override;
  runtime::Task<base::Result<void>> remove(std::string path) override;
  runtime::Task<base::Result<void>> link(std::string from, std::string to) override;
  runtime::Task<base::Result<void>> sync_directory(std::string path) override;
  runtime::Task<base::Result<std::unique_ptr<runtime::FileLock>>> lock(std::string path) override;
  runtime::Task<base::Result<runtime::DiskSpace>> space(std::string path) override;

 private:
  enum class Access : unsigned char { look, change };

  // Does it at one end of a wait, and reports it at the other: a crash in between finds it done
  // or not.
  template <class T>
  runtime::Task<base::Result<T>> perform(std::string path, Access access,
                                         std::function<base::Result<T>()> action);

  runtime::Runtime& runtime_;
  DiskQueue& queue_;
  SimDisk& disk_;
};

}  // namespace helenus::sim
