#include "storage/local/local_store.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "base/versioned_file.h"
#include "runtime/file_system.h"
#include "runtime/files.h"

namespace helenus::storage {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;

namespace {

constexpr base::FileFormat kLocalFormat{.magic = "HLNSLOCL", .version = 1};
// The frame and the sizes take less.
constexpr std::size_t kLocalFileSizeMax =
    LocalStore::kValueSizeMax + LocalStore::kNameSizeMax + std::size_t{4096};

bool is_letter_of_name(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-' ||
         letter == '_';
}

}  // namespace

Bytes encode_local_value(std::string_view name, base::ByteView value) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.prefixed(base::as_bytes(name));
  out.prefixed(value);
  return base::encode_file(kLocalFormat, buffer.view());
}

Result<Bytes> decode_local_value(std::string_view name, base::ByteView file) {
  TRY(const base::ByteView content, base::decode_file(kLocalFormat, file));
  base::Decoder in(content);
  const base::ByteView written_name = in.prefixed();
  const base::ByteView value = in.prefixed();
  TRY_VOID(in.finish());
  if (!base::equal(written_name, base::as_bytes(name))) {
    return Error(Errc::corrupt, "holds the value of {}", base::as_text(written_name));
  }
  return Bytes::copy_of(value);
}

Task<Result<std::unique_ptr<LocalStore>>> LocalStore::open(runtime::Runtime& runtime,
                                                           std::string directory) {
  CO_TRY_VOID(co_await runtime::make_directories_durably(runtime, directory));
  CO_TRY_VOID(co_await runtime.files.sync_directory(directory));
  co_return std::make_unique<LocalStore>(Private{}, runtime, std::move(directory));
}

std::string LocalStore::path_of(std::string_view name) const {
  ASSERT(!name.empty() && name.size() <= kNameSizeMax &&
         std::ranges::all_of(name, is_letter_of_name));
  return directory_ + "/" + std::string(name);
}

Task<Result<std::optional<Bytes>>> LocalStore::read(std::string name) {
  const std::string path = path_of(name);
  auto file = co_await runtime::read_file(runtime_, path, kLocalFileSizeMax);
  if (file.failed_with(Errc::not_found)) co_return std::nullopt;
  if (!file) co_return std::move(file).error().within(path);
  auto value = decode_local_value(name, file->view());
  if (!value) co_return std::move(value).error().within(path);
  co_return *std::move(value);
}

Task<Result<void>> LocalStore::write(std::string name, Bytes value) {
  const std::string path = path_of(name);
  if (value.size() > kValueSizeMax) {
    co_return Error(Errc::invalid_argument, "{}: {} bytes; there is room for {}", path,
                    value.size(), kValueSizeMax);
  }
  auto written =
      co_await runtime::replace_file(runtime_, path, encode_local_value(name, value.view()));
  if (!written) co_return std::move(written).error().within(path);
  co_return {};
}

}  // namespace helenus::storage
