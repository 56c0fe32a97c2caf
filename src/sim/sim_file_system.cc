#include "sim/sim_file_system.h"

#include <optional>
#include <utility>

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

// ---- SimFile ----

SimFile::SimFile(runtime::Runtime& runtime, DiskQueue& queue, std::string path, InodeId inode,
                 runtime::OpenOptions options)
    : File(runtime, std::move(path)),
      queue_(queue),
      disk_(queue.disk()),
      inode_(inode),
      epoch_(disk_.epoch()),
      options_(options) {
  disk_.hold(inode_);
  append_position_ = disk_.size(inode_);
}

SimFile::~SimFile() {
  ASSERT(pending_ == 0 || runtime_.executor.halted(), "{} destroyed while in use", path());
  if (!closed_) disk_.release(inode_, epoch_);
}

Result<void> SimFile::check_open() const {
  if (closed_) return Error(Errc::closed, "{}", path());
  return {};
}

Result<void> SimFile::check_resize(std::uint64_t size) const {
  TRY_VOID(check_open());
  if (!options_.write) return Error(Errc::invalid_argument, "{}: open for reading", path());
  if (size > SimDisk::kFileSizeMax) {
    return Error(Errc::invalid_argument, "{}: {} bytes are too many", path(), size);
  }
  return {};
}

Result<void> SimFile::check_transfer(std::uint64_t offset, base::ByteView memory) const {
  TRY_VOID(check_open());
  if (memory.size() > runtime::kTransferMax || offset > SimDisk::kFileSizeMax - memory.size()) {
    return Error(Errc::invalid_argument, "{}: {} bytes at {} are too many", path(), memory.size(),
                 offset);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const bool in_line = (offset | memory.size() | address) % runtime::kDirectAlignment == 0;
  if (options_.direct && !in_line) {
    return Error(Errc::invalid_argument, "{}: a direct transfer must be aligned", path());
  }
  return {};
}

void SimFile::start_read(ReadAt& read) {
  auto fine = check_transfer(read.offset, read.into);
  if (!fine) return read.complete(std::move(fine).error());
  queue_.start(*this, read);
}

void SimFile::start_write(Write& write) {
  auto fine = check_open();
  if (fine && write.kind != Write::Kind::sync) {
    fine = check_resize(0);
    if (fine) fine = check_transfer(write.offset, write.from);
  }
  if (!fine) return write.complete(std::move(fine).error());
  queue_.start(*this, write);
}

Task<Result<std::uint64_t>> SimFile::size() {
  CO_TRY_VOID(check_open());
  on_operation_begun();
  const auto paused = co_await DiskPause(runtime_, queue_, DiskPause::Kind::names);
  ASSERT(paused.has_value());
  on_operation_over();
  if (queue_.read_fails(path())) co_return Error(Errc::io_error, "size of {}", path());
  co_return disk_.size(inode_);
}

Task<Result<void>> SimFile::preallocate(std::uint64_t size) {
  CO_TRY_VOID(check_resize(size));
  on_operation_begun();
  const auto paused = co_await DiskPause(runtime_, queue_, DiskPause::Kind::names);
  ASSERT(paused.has_value());
  on_operation_over();
  if (queue_.write_fails(path())) co_return Error(Errc::io_error, "preallocating {}", path());
  auto done = disk_.preallocate(inode_, size);
  if (!done) co_return std::move(done).error().within("preallocating " + path());
  co_return {};
}

Task<Result<void>> SimFile::truncate(std::uint64_t size) {
  CO_TRY_VOID(check_resize(size));
  on_operation_begun();
  const auto paused = co_await DiskPause(runtime_, queue_, DiskPause::Kind::names);
  ASSERT(paused.has_value());
  on_operation_over();
  if (queue_.write_fails(path())) co_return Error(Errc::io_error, "truncating {}", path());
  disk_.truncate(inode_, size);
  co_return {};
}

Task<Result<void>> SimFile::close() {
  CO_TRY_VOID(check_open());
  ASSERT(pending_ == 0, "{} closed while in use", path());
  closed_ = true;
  disk_.release(inode_, epoch_);
  co_return {};
}

// ---- SimFileSystem ----

namespace {

class SimFileLock final : public runtime::FileLock {
 public:
  SimFileLock(SimDisk& disk, InodeId inode) : disk_(disk), inode_(inode), epoch_(disk.epoch()) {
    disk_.hold(inode_);
  }
  ~SimFileLock() override {
    disk_.unlock(inode_, epoch_);
    disk_.release(inode_, epoch_);
  }

 private:
  SimDisk& disk_;
  const InodeId inode_;
  const std::uint64_t epoch_;
};

}  // namespace

template <class T>
Task<Result<T>> SimFileSystem::perform(std::string path, Access access,
                                       std::function<Result<T>()> action) {
  std::optional<Result<T>> result;
  if (disk_.stream().chance(0.5)) result.emplace(action());
  const auto paused = co_await DiskPause(runtime_, queue_, DiskPause::Kind::names);
  ASSERT(paused.has_value());
  const bool fails = access == Access::look ? queue_.read_fails(path) : queue_.write_fails(path);
  if (fails) co_return Error(Errc::io_error, "{}", path);
  if (!result) result.emplace(action());
  co_return *std::move(result);
}

Task<Result<std::unique_ptr<runtime::File>>> SimFileSystem::open(std::string path,
                                                                 runtime::OpenOptions options) {
  const auto open_now = [this, path, options]() -> Result<std::unique_ptr<runtime::File>> {
    TRY(const InodeId inode, disk_.open(path, options));
    return std::make_unique<SimFile>(runtime_, queue_, path, inode, options);
  };
  const Access access = options.create || options.truncate ? Access::change : Access::look;
  return perform<std::unique_ptr<runtime::File>>(path, access, open_now);
}

Task<Result<void>> SimFileSystem::make_directories(std::string path) {
  return perform<void>(path, Access::change, [this, path] { return disk_.make_directories(path); });
}

Task<Result<std::vector<runtime::DirectoryEntry>>> SimFileSystem::list(std::string directory) {
  return perform<std::vector<runtime::DirectoryEntry>>(
      directory, Access::look, [this, directory] { return disk_.list(directory); });
}

Task<Result<runtime::FileInfo>> SimFileSystem::info(std::string path) {
  return perform<runtime::FileInfo>(path, Access::look, [this, path] { return disk_.info(path); });
}

Task<Result<void>> SimFileSystem::rename(std::string from, std::string to) {
  return perform<void>(from, Access::change, [this, from, to] { return disk_.rename(from, to); });
}

Task<Result<void>> SimFileSystem::remove(std::string path) {
  return perform<void>(path, Access::change, [this, path] { return disk_.remove(path); });
}

Task<Result<void>> SimFileSystem::link(std::string from, std::string to) {
  return perform<void>(from, Access::change, [this, from, to] { return disk_.link(from, to); });
}

Task<Result<void>> SimFileSystem::sync_directory(std::string path) {
  CO_TRY(const InodeId directory, disk_.find_directory(path));
  const std::uint64_t mark = disk_.names_mark();
  const auto paused = co_await DiskPause(runtime_, queue_, DiskPause::Kind::names_sync);
  ASSERT(paused.has_value());
  if (queue_.sync_fails(path)) co_return Error(Errc::io_error, "syncing {}", path);
  disk_.commit_names(directory, mark);
  co_return {};
}

Task<Result<std::unique_ptr<runtime::FileLock>>> SimFileSystem::lock(std::string path) {
  const auto lock_now = [this, path]() -> Result<std::unique_ptr<runtime::FileLock>> {
    TRY(const InodeId inode, disk_.open(path, runtime::OpenOptions::read_write()));
    auto locked = disk_.lock(inode);
    if (!locked) return std::move(locked).error().within("locking " + path);
    return std::make_unique<SimFileLock>(disk_, inode);
  };
  return perform<std::unique_ptr<runtime::FileLock>>(path, Access::change, lock_now);
}

Task<Result<runtime::DiskSpace>> SimFileSystem::space(std::string path) {
  return perform<runtime::DiskSpace>(path, Access::look,
                                     [this, path] { return disk_.space(path); });
}

}  // namespace helenus::sim
