// Arena: memory that is given out piece by piece and given back all at once, with its owner.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"

namespace helenus::storage {

class Arena {
 public:
  static constexpr std::size_t kChunkMin = std::size_t{16} << 10;
  static constexpr std::size_t kChunkMax = std::size_t{1} << 20;

  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Uninitialised bytes, aligned to `alignment` (a power of two up to that of operator new).
  std::byte* allocate(std::size_t size, std::size_t alignment = 1) {
    std::size_t padding = -used_ & (alignment - 1);
    if (capacity_ - used_ < size + padding) [[unlikely]] {
      add_chunk(size);
      padding = 0;
    }
    used_ += padding + size;
    return chunk_ + used_ - size;
  }

  base::ByteView copy(base::ByteView bytes) {
    if (bytes.empty()) return {};
    std::byte* to = allocate(bytes.size());
    std::memcpy(to, bytes.data(), bytes.size());
    return {to, bytes.size()};
  }

  // Requires: T needs no destructor, for none is called.
  template <class T, class... Args>
  T* create(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
  }

  // What it holds of the system's memory.
  std::size_t reserved_bytes() const { return reserved_; }
  // What was asked of it, padding included, and the unused ends of full chunks.
  std::size_t used_bytes() const { return reserved_ - (capacity_ - used_); }

 private:
  void add_chunk(std::size_t size_wanted) {
    // Chunks grow with the arena, so that a small one stays small.
    std::size_t size = std::min(std::max(reserved_, kChunkMin), kChunkMax);
    size = std::max(size, size_wanted);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    chunk_ = chunks_.back().get();
    capacity_ = size;
    used_ = 0;
    reserved_ += size;
  }

  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* chunk_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t used_ = 0;
  std::size_t reserved_ = 0;
};

}  // namespace helenus::storage
