#include "runtime/native/blocking_files.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kSecretFileMode = 0600;
constexpr mode_t kDirectoryMode = 0750;

// Repeats a call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result != -1 || errno != EINTR) return result;
  }
}

// The error of the call that has just failed.
Error failure(std::string_view doing, std::string_view path) {
  const int error_number = errno;
  return system_error(error_number, fmt::format("{} {}", doing, path));
}

Error failure(std::string_view doing, std::string_view from, std::string_view to) {
  const int error_number = errno;
  return system_error(error_number, fmt::format("{} {} to {}", doing, from, to));
}

Result<Descriptor> open_descriptor(const std::string& path, int flags, std::string_view doing,
                                   mode_t mode = kFileMode) {
  Descriptor descriptor(
      uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
  if (!descriptor.valid()) return failure(doing, path);
  return descriptor;
}

Result<struct stat> status_of(int descriptor, std::string_view path) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return failure("look at", path);
  return status;
}

// Regular files only: a pipe could block for ever, and a directory has no bytes.
Result<struct stat> check_regular(int descriptor, std::string_view path) {
  TRY(const struct stat status, status_of(descriptor, path));
  if (S_ISREG(status.st_mode)) return status;
  return Error(Errc::invalid_argument, "open {}: not a regular file", path);
}

int flags_of(const OpenOptions& options) {
  int flags = options.write ? O_RDWR : O_RDONLY;
  if (options.create) flags |= O_CREAT;
  if (options.exclusive) flags |= O_EXCL;
  if (options.truncate) flags |= O_TRUNC;
  if (options.direct) flags |= O_DIRECT;
  return flags;
}

std::uint64_t born_ns(const struct statx& status) {
  if ((status.stx_mask & STATX_BTIME) == 0) return 0;
  return static_cast<std::uint64_t>(status.stx_btime.tv_sec) * 1'000'000'000 +
         status.stx_btime.tv_nsec;
}

}  // namespace

Result<void> check_path(const std::string& path) {
  if (path.empty()) return Error(Errc::invalid_argument, "the path is empty");
  if (path.size() > kPathMax) {
    return Error(Errc::invalid_argument, "the path '{:.40}...' has {} bytes, {} at most", path,
                 path.size(), kPathMax);
  }
  if (path.contains('\0')) {
    return Error(Errc::invalid_argument, "the path '{}' has a NUL inside", path.c_str());
  }
  return {};
}

Result<void> check_options(const std::string& path, const OpenOptions& options) {
  if (options.exclusive && !options.create) {
    return Error(Errc::invalid_argument, "open {}: exclusive goes with create", path);
  }
  if (options.truncate && !options.write) {
    return Error(Errc::invalid_argument, "open {}: truncate goes with write", path);
  }
  return {};
}

Result<OpenedFile> open_file(const std::string& path, const OpenOptions& options) {
  // O_NONBLOCK so that opening a pipe does not wait for its other end. On regular files it would
  // make io_uring give up instead of waiting, so it goes again.
  auto opened = open_descriptor(path, flags_of(options) | O_NONBLOCK, "open",
                                options.owner_only ? kSecretFileMode : kFileMode);
  if (!opened) {
    if (options.direct && opened.failed_with(Errc::invalid_argument)) {
      return Error(Errc::unsupported, "open {}: no direct transfers here", path);
    }
    return std::move(opened).error();
  }
  Descriptor descriptor = *std::move(opened);
  TRY(const struct stat status, check_regular(descriptor.number(), path));
  if (::fcntl(descriptor.number(), F_SETFL, options.direct ? O_DIRECT : 0) != 0) {
    return failure("open", path);
  }
  // Only a hint: a file system that does not know it reads all the same.
  if (options.random_access) {
    (void)::posix_fadvise(descriptor.number(), 0, 0, POSIX_FADV_RANDOM);
  }
  return OpenedFile{std::move(descriptor), static_cast<std::uint64_t>(status.st_size)};
}

Result<void> make_directories_blocking(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string prefix = path.substr(0, end);
    if (::mkdir(prefix.c_str(), kDirectoryMode) != 0) {
      const int error_number = errno;
      struct stat status{};
      const bool is_there = ::stat(prefix.c_str(), &status) == 0;
      const bool whole = end == std::string::npos;
      if (!is_there) return system_error(error_number, fmt::format("make directory {}", path));
      if (!S_ISDIR(status.st_mode)) {
        return Error(whole ? Errc::already_exists : Errc::invalid_argument,
                     "make directory {}: {} is not a directory", path, prefix);
      }
    }
    if (end == std::string::npos) return {};
  }
}

Result<std::vector<DirectoryEntry>> list_directory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (directory == nullptr) return failure("list", path);
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) {
      if (errno != 0) return failure("list", path);
      break;
    }
    const std::string name = static_cast<const char*>(entry->d_name);
    if (name == "." || name == "..") continue;
    bool is_directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) {
      struct stat status{};
      is_directory = ::fstatat(::dirfd(directory.get()), name.c_str(), &status, 0) == 0 &&
                     S_ISDIR(status.st_mode);
    }
    entries.push_back({name, is_directory});
  }
  std::ranges::sort(entries);
  return entries;
}

Result<FileInfo> info_of(const std::string& path) {
  struct statx status{};
  const unsigned wanted = STATX_TYPE | STATX_SIZE | STATX_INO | STATX_BTIME;
  if (::statx(AT_FDCWD, path.c_str(), 0, wanted, &status) != 0) return failure("look at", path);
  return FileInfo{.size = status.stx_size,
                  .is_directory = S_ISDIR(status.stx_mode),
                  .identity = {.device = ::makedev(status.stx_dev_major, status.stx_dev_minor),
                               .inode = status.stx_ino,
                               .born_ns = born_ns(status)}};
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  // A directory that is not empty stands in the way: EEXIST on some file systems.
  if (errno == EEXIST) errno = ENOTEMPTY;
  return failure("rename", from, to);
}

Result<void> remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0) return {};
  const bool is_directory = errno == EISDIR || errno == EPERM;
  if (!is_directory) return failure("remove", path);
  if (::rmdir(path.c_str()) == 0) return {};
  if (errno == EEXIST) errno = ENOTEMPTY;
  // It was no directory after all, but something that may not be removed.
  if (errno == ENOTDIR) errno = EPERM;
  return failure("remove", path);
}

Result<void> link_file(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) != 0) return failure("link", from, to);
  return {};
}

Result<void> sync_directory_blocking(const std::string& path) {
  TRY(const auto descriptor, open_descriptor(path, O_RDONLY | O_DIRECTORY, "sync directory"));
  if (uninterrupted([&] { return ::fsync(descriptor.number()); }) != 0) {
    return failure("sync directory", path);
  }
  return {};
}

Result<Descriptor> lock_file(const std::string& path) {
  TRY(auto descriptor, open_descriptor(path, O_RDWR | O_CREAT | O_NONBLOCK, "lock"));
  TRY(const struct stat status, check_regular(descriptor.number(), path));
  // flock belongs to the open file, not to the process: a second attempt from this process meets
  // the first one's lock like anybody else's.
  if (uninterrupted([&] { return ::flock(descriptor.number(), LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) return failure("lock", path);
    return Error(Errc::locked, "lock {}: someone else holds it", path);
  }
  // Whoever removed the name meanwhile has made room for a second lock beside this one.
  TRY(const FileInfo info, info_of(path));
  if (info.identity.device != status.st_dev || info.identity.inode != status.st_ino) {
    return Error(Errc::locked, "lock {}: the file was replaced", path);
  }
  return descriptor;
}

Result<DiskSpace> space_at(const std::string& path) {
  struct statvfs status{};
  if (uninterrupted([&] { return ::statvfs(path.c_str(), &status); }) != 0) {
    return failure("ask for the space at", path);
  }
  return DiskSpace{.total_bytes = status.f_blocks * status.f_frsize,
                   .free_bytes = status.f_bavail * status.f_frsize};
}

Result<std::uint64_t> size_of(int descriptor, const std::string& path) {
  TRY(const struct stat status, status_of(descriptor, path));
  return static_cast<std::uint64_t>(status.st_size);
}

Result<void> preallocate_file(int descriptor, std::uint64_t size, const std::string& path) {
  if (size == 0) return {};
  const auto length = static_cast<off_t>(size);
  if (uninterrupted([&] { return ::fallocate(descriptor, 0, 0, length); }) == 0) return {};
  if (errno != EOPNOTSUPP) return failure("preallocate", path);
  // The C library's own way: touches every block.
  errno = ::posix_fallocate(descriptor, 0, length);
  if (errno != 0) return failure("preallocate", path);
  return {};
}

Result<void> truncate_file(int descriptor, std::uint64_t size, const std::string& path) {
  const auto length = static_cast<off_t>(size);
  if (uninterrupted([&] { return ::ftruncate(descriptor, length); }) != 0) {
    return failure("truncate", path);
  }
  return {};
}

Result<void> close_file(Descriptor descriptor, const std::string& path) {
  // An interrupted close has closed: trying again could close somebody else's descriptor.
  if (::close(descriptor.release()) != 0 && errno != EINTR) return failure("close", path);
  return {};
}

}  // namespace helenus::runtime::native
