// What the stories about files share: memory to read into, files written and read at one go, and
// errors that name their path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/contract.h"
#include "runtime/file_system.h"

namespace helenus::runtime::contract {

inline const Until kForever = Until::forever();

inline Until expired() {
  return {.deadline = MonotonicTime()};
}

inline base::Buffer zeroed(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  base::Buffer buffer(size, alignment);
  std::ranges::fill(buffer.extend(size), std::byte{0});
  return buffer;
}

inline base::Buffer noise(std::size_t size, std::uint64_t seed) {
  base::Buffer buffer(size, kDirectAlignment);
  fill_with_noise(buffer.extend(size), seed);
  return buffer;
}

inline Task<base::Result<std::string>> read_text(File& file, std::uint64_t offset,
                                                 std::size_t size) {
  std::string text(size, '?');
  CO_TRY(const std::size_t count,
         co_await file.read_at(offset, std::as_writable_bytes(std::span(text)), kForever));
  text.resize(count);
  co_return text;
}

inline Task<base::Result<std::string>> content_of(Runtime& runtime, std::string path) {
  CO_TRY(const auto file, co_await runtime.files.open(path, OpenOptions::read_only()));
  CO_TRY(const std::uint64_t size, co_await file->size());
  co_return co_await read_text(*file, 0, size);
}

inline Task<base::Result<void>> put(Runtime& runtime, std::string path, std::string text) {
  OpenOptions options = OpenOptions::read_write();
  options.truncate = true;
  CO_TRY(const auto file, co_await runtime.files.open(path, options));
  co_return co_await file->write_at(0, base::as_bytes(text), kForever);
}

// The error has the code, and says which path it is about.
template <class T>
void expect_error(const base::Result<T>& result, base::Errc code, std::string_view path) {
  ASSERT_FALSE(result.has_value()) << path;
  EXPECT_EQ(result.error().code(), code) << result.error().to_string();
  EXPECT_THAT(std::string(result.error().context()), testing::HasSubstr(std::string(path)));
}

}  // namespace helenus::runtime::contract
