#include "runtime/native/native_file_system.h"

#include <limits>
#include <utility>

#include "base/assert.h"

namespace helenus::runtime::native {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint64_t kOffsetMax = std::numeric_limits<std::int64_t>::max();

bool in_line(std::uint64_t number) {
  return number % kDirectAlignment == 0;
}

class NativeFile final : public File {
 public:
  NativeFile(FileServices& services, std::string path, OpenedFile opened, OpenOptions options)
      : File(services.runtime, std::move(path)),
        services_(services),
        descriptor_(std::move(opened.descriptor)),
        writable_(options.write),
        direct_(options.direct) {
    append_position_ = opened.size;
  }
  ~NativeFile() override {
    if (descriptor_.valid()) services_.pool.close_later(std::move(descriptor_));
  }

  Task<Result<std::uint64_t>> size() override {
    CO_TRY_VOID(check_open());
    co_return co_await services_.blocking<std::uint64_t>(
        [number = descriptor_.number(), path = path()] { return size_of(number, path); });
  }
  Task<Result<void>> preallocate(std::uint64_t size) override {
    CO_TRY_VOID(check_change(size));
    co_return co_await services_.blocking<void>(
        [number = descriptor_.number(), size, path = path()] {
          return preallocate_file(number, size, path);
        });
  }
  Task<Result<void>> truncate(std::uint64_t size) override {
    CO_TRY_VOID(check_change(size));
    co_return co_await services_.blocking<void>(
        [number = descriptor_.number(), size, path = path()] {
          return truncate_file(number, size, path);
        });
  }
  Task<Result<void>> close() override {
    CO_TRY_VOID(check_open());
    co_return co_await services_.blocking<void>(
        [descriptor = std::move(descriptor_), path = path()]() mutable {
          return close_file(std::move(descriptor), path);
        });
  }

 private:
  void start_read(ReadAt& read) override {
    if (auto fit = check_transfer(read.offset, read.into); !fit) {
      read.complete(std::move(fit).error());
    } else if (read.into.empty()) {
      read.complete(0);
    } else {
      start(read);
    }
  }
  void start_write(Write& write) override {
    if (auto fit = check_write(write); !fit) {
      write.complete(std::move(fit).error());
    } else if (write.from.empty() && write.kind == Write::Kind::write) {
      write.complete({});
    } else {
      start(write);
    }
  }
  template <class Operation>
  void start(Operation& operation) {
    FileRequest* request = services_.requests.take();
    if (request == nullptr) {
      operation.complete(Error(Errc::overloaded, "{}: too many operations pending", path()));
      return;
    }
    operation.request = request;
    request->begin(operation, path(), descriptor_.number(), direct_);
    services_.queue.start(*request);
  }
  void cancel(ReadAt& read) override {
    services_.queue.cut(*static_cast<FileRequest*>(read.request));
  }
  void cancel(Write& write) override {
    services_.queue.cut(*static_cast<FileRequest*>(write.request));
  }

  Result<void> check_open() const {
    if (!descriptor_.valid()) return Error(Errc::closed, "{} is closed", path());
    return {};
  }
  Result<void> check_writable() const {
    TRY_VOID(check_open());
    if (!writable_) return Error(Errc::invalid_argument, "{} was opened for reading only", path());
    return {};
  }
  Result<void> check_change(std::uint64_t size) const {
    TRY_VOID(check_writable());
    if (size > kOffsetMax)
      return Error(Errc::invalid_argument, "{}: no file has {} bytes", path(), size);
    return {};
  }
  Result<void> check_write(const Write& write) const {
    if (write.kind == Write::Kind::sync) return check_open();
    TRY_VOID(check_writable());
    return check_transfer(write.offset, write.from);
  }
  Result<void> check_transfer(std::uint64_t offset, base::ByteView memory) const {
    TRY_VOID(check_open());
    if (memory.size() > kTransferMax) {
      return Error(Errc::invalid_argument, "{}: {} bytes at once, {} at most", path(),
                   memory.size(), kTransferMax);
    }
    if (offset > kOffsetMax - memory.size()) {
      return Error(Errc::invalid_argument, "{}: no file reaches to offset {}", path(), offset);
    }
    const bool lines_up = in_line(offset) && in_line(memory.size()) &&
                          in_line(reinterpret_cast<std::uintptr_t>(memory.data()));
    if (direct_ && !lines_up) {
      return Error(Errc::invalid_argument,
                   "{}: a direct transfer of {} bytes at offset {} is not aligned to {}", path(),
                   memory.size(), offset, kDirectAlignment);
    }
    return {};
  }

  FileServices& services_;
  Descriptor descriptor_;
  const bool writable_;
  const bool direct_;
};

class NativeFileLock final : public FileLock {
 public:
  explicit NativeFileLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  Descriptor descriptor_;
};

}  // namespace

Task<Result<std::unique_ptr<File>>> NativeFileSystem::open(std::string path, OpenOptions options) {
  CO_TRY_VOID(check_path(path));
  CO_TRY_VOID(check_options(path, options));
  CO_TRY(auto opened, co_await services_.blocking<OpenedFile>(
                          [path, options] { return open_file(path, options); }));
  co_return std::make_unique<NativeFile>(services_, std::move(path), std::move(opened), options);
}

Task<Result<void>> NativeFileSystem::make_directories(std::string path) {
  CO_TRY_VOID(check_path(path));
  co_return co_await services_.blocking<void>([path] { return make_directories_blocking(path); });
}

Task<Result<std::vector<DirectoryEntry>>> NativeFileSystem::list(std::string directory) {
  CO_TRY_VOID(check_path(directory));
  co_return co_await services_.blocking<std::vector<DirectoryEntry>>(
      [directory] { return list_directory(directory); });
}

Task<Result<FileInfo>> NativeFileSystem::info(std::string path) {
  CO_TRY_VOID(check_path(path));
  co_return co_await services_.blocking<FileInfo>([path] { return info_of(path); });
}

Task<Result<void>> NativeFileSystem::rename(std::string from, std::string to) {
  CO_TRY_VOID(check_path(from));
  CO_TRY_VOID(check_path(to));
  co_return co_await services_.blocking<void>([from, to] { return rename_file(from, to); });
}

Task<Result<void>> NativeFileSystem::remove(std::string path) {
  CO_TRY_VOID(check_path(path));
  co_return co_await services_.blocking<void>([path] { return remove_file(path); });
}

Task<Result<void>> NativeFileSystem::link(std::string from, std::string to) {
  CO_TRY_VOID(check_path(from));
  CO_TRY_VOID(check_path(to));
  co_return co_await services_.blocking<void>([from, to] { return link_file(from, to); });
}

Task<Result<void>> NativeFileSystem::sync_directory(std::string path) {
  CO_TRY_VOID(check_path(path));
  co_return co_await services_.blocking<void>([path] { return sync_directory_blocking(path); });
}

Task<Result<std::unique_ptr<FileLock>>> NativeFileSystem::lock(std::string path) {
  CO_TRY_VOID(check_path(path));
  CO_TRY(auto descriptor,
         co_await services_.blocking<Descriptor>([path] { return lock_file(path); }));
  co_return std::make_unique<NativeFileLock>(std::move(descriptor));
}

Task<Result<DiskSpace>> NativeFileSystem::space(std::string path) {
  CO_TRY_VOID(check_path(path));
  co_return co_await services_.blocking<DiskSpace>([path] { return space_at(path); });
}

}  // namespace helenus::runtime::native
