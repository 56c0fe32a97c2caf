// FileSystem and File: storage as the engine sees it.
//
// What is durable when:
//   bytes of a file        after sync() (or append_and_sync) returned success
//   a name in a directory  (create, rename, remove) after sync_directory() of that directory
// Before that, a power loss may keep any subset of the unsynced sectors, and may undo the latest
// changes to a directory. A killed process alone loses nothing that was written.
//
// A failed sync is final for that file: what was written since the last good one is in doubt and
// a later success proves nothing. The owner stops using the file.
//
// Errors are errors: a read that cannot be served never looks like an end of file. Paths are
// UTF-8, separated by '/', at most kPathMax bytes.
//
// A file that is removed or replaced goes on serving those who hold it open.
//
// Core affinity: a File belongs to the core that opened it. Destroying one closes it; no
// operation may be pending on it then. A cut wait (deadline, stop) of a write or a sync leaves its
// outcome in doubt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::runtime {

struct OpenOptions {
  bool write = false;      // else reading only
  bool create = false;     // make the file if it is not there
  bool exclusive = false;  // with create: fail with already_exists if it is there
  bool truncate = false;   // with write: empty it
  // Past the page cache. Offsets, sizes and memory must be multiples of kDirectAlignment.
  // Opening fails with unsupported where the system cannot.
  bool direct = false;
  // Whoever reads says how much, and wants nothing read ahead. A hint: it changes no result.
  bool random_access = false;
  // With create: nobody but its owner may read a file that is made; else the group may, too.
  bool owner_only = false;

  static OpenOptions read_only() { return {}; }
  static OpenOptions create_new() { return {.write = true, .create = true, .exclusive = true}; }
  static OpenOptions read_write() { return {.write = true, .create = true}; }
};

inline constexpr std::size_t kDirectAlignment = 4096;
inline constexpr std::size_t kPathMax = 4095;
// One read, write or append moves at most this much; asking for more is an invalid_argument.
inline constexpr std::size_t kTransferMax = std::size_t{1} << 30;

// Errors of all operations: invalid_argument (a limit or an alignment is broken, or the file was
// not opened for writing), closed, io_error; each names the path.
class File {
 public:
  class ReadAt final : public Operation<std::size_t> {
   public:
    ReadAt(File& file, std::uint64_t offset_, base::MutableByteView into_, Until until)
        : Operation(file.runtime_, std::move(until)), offset(offset_), into(into_), file_(file) {}
    const std::uint64_t offset;
    const base::MutableByteView into;
    // For the file: its own record of this operation while it is under way.
    void* request = nullptr;

   private:
    void start() override { file_.start_read(*this); }
    void cancel() override { file_.cancel(*this); }
    File& file_;
  };

  // A write, a sync, or a write followed by a sync as one request.
  class Write final : public Operation<void> {
   public:
    enum class Kind : unsigned char { write, sync, write_and_sync };
    Write(File& file, Kind kind_, std::uint64_t offset_, base::ByteView from_, Until until)
        : Operation(file.runtime_, std::move(until)),
          kind(kind_),
          offset(offset_),
          from(from_),
          file_(file) {}
    const Kind kind;
    const std::uint64_t offset;
    const base::ByteView from;
    // For the file: its own record of this operation while it is under way.
    void* request = nullptr;

   private:
    void start() override { file_.start_write(*this); }
    void cancel() override { file_.cancel(*this); }
    File& file_;
  };

  explicit File(Runtime& runtime, std::string path) : runtime_(runtime), path_(std::move(path)) {}
  virtual ~File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }

  // Fills `into` from `offset` on; fewer bytes than asked for only at the end of the file.
  ReadAt read_at(std::uint64_t offset, base::MutableByteView into, Until until) {
    return {*this, offset, into, std::move(until)};
  }
  // Writes all of it. Errors: no_space, io_error (part of it may be there).
  Write write_at(std::uint64_t offset, base::ByteView from, Until until) {
    return {*this, Write::Kind::write, offset, from, std::move(until)};
  }
  // Makes everything written so far durable (data, and the size needed to read it back).
  Write sync(Until until) { return {*this, Write::Kind::sync, 0, {}, std::move(until)}; }

  // Writes at the append position and moves it. The position begins at the size the file had when
  // opened; preallocating does not move it. It moves with this call, even if the wait is cut before
  // it begins: after a failed append the owner knows from where on the file is in doubt.
  Write append(base::ByteView from, Until until) {
    return {*this, Write::Kind::write, take_append(from.size()), from, std::move(until)};
  }
  // The same with a sync behind it, as one request to the system where that is quicker.
  Write append_and_sync(base::ByteView from, Until until) {
    return {*this, Write::Kind::write_and_sync, take_append(from.size()), from, std::move(until)};
  }
  std::uint64_t append_position() const { return append_position_; }
  void set_append_position(std::uint64_t position) { append_position_ = position; }

  virtual Task<base::Result<std::uint64_t>> size() = 0;
  // Makes the file at least `size` bytes long, zeros beyond its old end, with the space reserved:
  // later writes inside it cannot fail for want of space. Errors: no_space.
  virtual Task<base::Result<void>> preallocate(std::uint64_t size) = 0;
  virtual Task<base::Result<void>> truncate(std::uint64_t size) = 0;
  // Closes; says so if the system reports an error only now. Requires: nothing is pending.
  virtual Task<base::Result<void>> close() = 0;

 protected:
  virtual void start_read(ReadAt& read) = 0;
  virtual void start_write(Write& write) = 0;
  virtual void cancel(ReadAt& read) = 0;
  virtual void cancel(Write& write) = 0;

  Runtime& runtime_;
  std::uint64_t append_position_ = 0;

 private:
  std::uint64_t take_append(std::size_t bytes) {
    const std::uint64_t position = append_position_;
    append_position_ += bytes;
    return position;
  }

  std::string path_;
};

// Held until destroyed, or until the process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

// Which file this is, whatever its name: a copy of a folder has other identities. A file system
// gives the inode of a removed file to the next one, so the time at which it was made belongs to
// it.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t born_ns = 0;  // since 1970; 0 where the file system does not keep it
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

struct FileInfo {
  std::uint64_t size = 0;
  bool is_directory = false;
  FileIdentity identity;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  friend auto operator<=>(const DirectoryEntry&, const DirectoryEntry&) = default;
};

struct DiskSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};

// Errors of all: not_found, already_exists, permission_denied, invalid_argument (path), no_space,
// io_error; each names the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  virtual Task<base::Result<std::unique_ptr<File>>> open(std::string path, OpenOptions options) = 0;
  // Creates the directory and its parents; it is no error if it is there already.
  virtual Task<base::Result<void>> make_directories(std::string path) = 0;
  // Sorted by name, without "." and "..".
  virtual Task<base::Result<std::vector<DirectoryEntry>>> list(std::string directory) = 0;
  virtual Task<base::Result<FileInfo>> info(std::string path) = 0;
  // Replaces `to` if it is there, in one step: a reader sees the old file or the new.
  virtual Task<base::Result<void>> rename(std::string from, std::string to) = 0;
  // A file or an empty directory; one that is not empty is an invalid_argument.
  virtual Task<base::Result<void>> remove(std::string path) = 0;
  // A second name for a file, for snapshots. Fails with already_exists if `to` is there.
  virtual Task<base::Result<void>> link(std::string from, std::string to) = 0;
  virtual Task<base::Result<void>> sync_directory(std::string path) = 0;
  // Creates the lock file if needed. Fails at once with Errc::locked if someone else, in this
  // process or another, holds it.
  virtual Task<base::Result<std::unique_ptr<FileLock>>> lock(std::string path) = 0;
  virtual Task<base::Result<DiskSpace>> space(std::string path) = 0;
};

}  // namespace helenus::runtime
