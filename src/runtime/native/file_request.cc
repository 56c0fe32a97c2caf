#include "runtime/native/file_request.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

bool try_again(std::int64_t result) {
  return result == -EINTR || result == -EAGAIN;
}

std::string_view verb(FileRequest::Kind kind) {
  switch (kind) {
    case FileRequest::Kind::read:
      return "read";
    case FileRequest::Kind::write:
      return "write";
    case FileRequest::Kind::sync:
      return "sync";
    case FileRequest::Kind::write_and_sync:
      return "write and sync";
  }
  UNREACHABLE();
}

FileRequest::Kind kind_of(File::Write::Kind kind) {
  switch (kind) {
    case File::Write::Kind::write:
      return FileRequest::Kind::write;
    case File::Write::Kind::sync:
      return FileRequest::Kind::sync;
    case File::Write::Kind::write_and_sync:
      return FileRequest::Kind::write_and_sync;
  }
  UNREACHABLE();
}

}  // namespace

void FileRequest::begin(File::ReadAt& read, std::string_view path, int descriptor_, bool direct_) {
  read_ = &read;
  write_ = nullptr;
  kind = Kind::read;
  data = read.into.data();
  size = read.into.size();
  offset = read.offset;
  begin(path, descriptor_, direct_);
}

void FileRequest::begin(File::Write& write, std::string_view path, int descriptor_, bool direct_) {
  read_ = nullptr;
  write_ = &write;
  kind = kind_of(write.kind);
  data = const_cast<std::byte*>(write.from.data());
  size = write.from.size();
  offset = write.offset;
  begin(path, descriptor_, direct_);
}

void FileRequest::begin(std::string_view path, int descriptor_, bool direct_) {
  ++generation;
  path_ = path;
  descriptor = descriptor_;
  direct = direct_;
  done = 0;
  parts = 0;
  error_number_ = 0;
  cut.store(false, std::memory_order_relaxed);
}

Step FileRequest::fail(int error_number) {
  give_up(error_number);
  return Step::finished;
}

Step FileRequest::after_transfer(std::int64_t result) {
  const bool was_cut = cut.load(std::memory_order_relaxed);
  if (try_again(result)) return was_cut ? fail(ECANCELED) : Step::transfer;
  if (result < 0) return fail(static_cast<int>(-result));
  ASSERT(static_cast<std::size_t>(result) <= left());
  done += static_cast<std::size_t>(result);
  if (kind == Kind::read) {
    const bool at_end = result == 0 || (direct && done % kDirectAlignment != 0);
    if (left() == 0 || at_end) return Step::finished;
  } else if (left() > 0) {
    // A device that takes nothing without saying why would keep us here for ever.
    if (result == 0) return fail(EIO);
    // What is left must stay in line, so the block that was cut in two is written again.
    if (direct) done -= done % kDirectAlignment;
  } else {
    return kind == Kind::write_and_sync ? Step::sync : Step::finished;
  }
  return was_cut ? fail(ECANCELED) : Step::transfer;
}

Step FileRequest::after_sync(std::int64_t result) {
  if (result == 0) return Step::finished;
  // Cancelled without a cut: the link to a write that was short broke.
  const bool again = result == -EINTR || result == -ECANCELED;
  if (again) return cut.load(std::memory_order_relaxed) ? fail(ECANCELED) : Step::sync;
  return fail(static_cast<int>(-result));
}

void FileRequest::work() {
  Step next = transfers() ? Step::transfer : Step::sync;
  while (next != Step::finished) {
    if (cut.load(std::memory_order_relaxed)) {
      give_up(ECANCELED);
      return;
    }
    if (next == Step::sync) {
      next = after_sync(::fdatasync(descriptor) == 0 ? 0 : -errno);
      continue;
    }
    const auto at = static_cast<off_t>(position());
    const ssize_t count = kind == Kind::read ? ::pread(descriptor, data + done, left(), at)
                                             : ::pwrite(descriptor, data + done, left(), at);
    next = after_transfer(count >= 0 ? count : -errno);
  }
}

void FileRequest::finish() {
  File::ReadAt* const read = read_;
  File::Write* const write = write_;
  const int error_number = error_number_;
  const std::size_t count = done;
  const std::string_view path = path_;
  const Kind what = kind;
  owner_.give_back(*this);
  if (error_number != 0) {
    auto error = system_error(error_number, fmt::format("{} {}", verb(what), path));
    read != nullptr ? read->complete(std::move(error)) : write->complete(std::move(error));
  } else if (read != nullptr) {
    read->complete(count);
  } else {
    write->complete({});
  }
}

FileRequest* FileRequests::take() {
  if (!free_.empty()) {
    FileRequest* request = free_.back();
    free_.pop_back();
    return request;
  }
  if (records_.size() >= kPendingMax) return nullptr;
  const auto slot = static_cast<std::uint32_t>(records_.size());
  return &records_.emplace_back(home_, *this, slot);
}

}  // namespace helenus::runtime::native
