#include "runtime/files.h"

#include "runtime/file_system.h"

namespace helenus::runtime {

using base::Errc;
using base::Error;
using base::Result;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Task<Result<void>> make_directories_durably(Runtime& runtime, std::string path) {
  CO_TRY_VOID(co_await runtime.files.make_directories(path));
  for (std::string above = directory_of(path); above != path; above = directory_of(path)) {
    auto synced = co_await runtime.files.sync_directory(above);
    if (!synced && !synced.failed_with(Errc::permission_denied)) co_return synced;
    path = std::move(above);
  }
  co_return {};
}

Task<Result<base::Bytes>> read_file(Runtime& runtime, std::string path, std::size_t size_max) {
  CO_TRY(auto file, co_await runtime.files.open(path, OpenOptions::read_only()));
  CO_TRY(const auto size, co_await file->size());
  if (size > size_max) {
    co_return Error(Errc::corrupt, "{}: {} bytes, expected at most {}", path, size, size_max);
  }
  base::Buffer content(size);
  const auto into = content.extend(size);
  if (size > 0) {
    CO_TRY(const auto got, co_await file->read_at(0, into, Until::forever()));
    content.truncate(got);
  }
  CO_TRY_VOID(co_await file->close());
  co_return std::move(content).freeze();
}

namespace {

Task<Result<void>> replace_with(Runtime& runtime, std::string path, base::Bytes content,
                                OpenOptions options) {
  const std::string fresh = path + ".new";
  CO_TRY(auto file, co_await runtime.files.open(fresh, options));
  if (!content.empty()) CO_TRY_VOID(co_await file->write_at(0, content, Until::forever()));
  CO_TRY_VOID(co_await file->sync(Until::forever()));
  CO_TRY_VOID(co_await file->close());
  CO_TRY_VOID(co_await runtime.files.rename(fresh, path));
  co_return co_await runtime.files.sync_directory(directory_of(path));
}

}  // namespace

Task<Result<void>> replace_file(Runtime& runtime, std::string path, base::Bytes content) {
  return replace_with(runtime, std::move(path), std::move(content),
                      {.write = true, .create = true, .truncate = true});
}

// What an earlier attempt left may be readable by others: it is not used again.
Task<Result<void>> replace_secret_file(Runtime& runtime, std::string path, base::Bytes content) {
  auto removed = co_await runtime.files.remove(path + ".new");
  if (!removed && !removed.failed_with(Errc::not_found)) co_return removed;
  co_return co_await replace_with(
      runtime, std::move(path), std::move(content),
      {.write = true, .create = true, .exclusive = true, .owner_only = true});
}

}  // namespace helenus::runtime
