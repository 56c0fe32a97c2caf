// Bytes: an immutable, reference-counted slice of memory; ByteView and MutableByteView: borrowed
// spans; Buffer: the growable memory that becomes Bytes without a copy.
//
// Ownership: Bytes shares its block; copying or slicing costs one atomic increment and never
// copies memory, so a value read from a socket can travel to the log, the memtable and the peers.
// A slice keeps its whole block alive: `compact()` copies when a small slice of a large block is
// to be kept. A view never outlives what it looks at, and never lives across a co_await unless its
// owner sits in the same frame.
// Threads: Bytes may be handed to another core; its memory never changes.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::base {

using ByteView = std::span<const std::byte>;
using MutableByteView = std::span<std::byte>;

inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::strong_ordering compare(ByteView a, ByteView b);
inline bool equal(ByteView a, ByteView b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// Lower-case hexadecimal, for people; at most `bytes_max` bytes and then an ellipsis.
std::string to_hex(ByteView bytes, std::size_t bytes_max = SIZE_MAX);

namespace detail {

// The shared block: this header, then `capacity` bytes. `alignment` is that of the bytes.
struct Block {
  std::atomic<std::uint32_t> references{1};
  std::uint32_t alignment;
  std::size_t capacity;

  static Block* allocate(std::size_t capacity, std::size_t alignment);
  std::byte* data();
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();

  Block(std::size_t capacity_, std::uint32_t alignment_)
      : alignment(alignment_), capacity(capacity_) {}
};

}  // namespace detail

class Bytes {
 public:
  Bytes() = default;
  static Bytes copy_of(ByteView bytes);
  static Bytes copy_of(std::string_view text) { return copy_of(as_bytes(text)); }
  // Memory that lives as long as the program: string literals, tables.
  static Bytes of_static(std::string_view text) { return Bytes(nullptr, as_bytes(text)); }

  Bytes(const Bytes& other) : block_(other.block_), view_(other.view_) {
    if (block_ != nullptr) block_->retain();
  }
  Bytes(Bytes&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), view_(std::exchange(other.view_, {})) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    std::swap(view_, other.view_);
    return *this;
  }
  ~Bytes() {
    if (block_ != nullptr) block_->release();
  }

  const std::byte* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  ByteView view() const { return view_; }
  operator ByteView() const { return view_; }  // NOLINT: a Bytes is a view with an owner
  std::string_view text() const { return as_text(view_); }
  std::byte operator[](std::size_t index) const {
    ASSERT(index < size());
    return view_[index];
  }

  // Requires: offset + count <= size().
  Bytes slice(std::size_t offset, std::size_t count) const;
  Bytes slice(std::size_t offset) const {
    ASSERT(offset <= size());
    return slice(offset, size() - offset);
  }

  // These bytes in a block of their own, without the block they were cut from.
  Bytes compact() const { return copy_of(view_); }

  friend bool operator==(const Bytes& a, const Bytes& b) { return equal(a, b); }
  friend std::strong_ordering operator<=>(const Bytes& a, const Bytes& b) { return compare(a, b); }
  template <class H>
  friend H AbslHashValue(H state, const Bytes& bytes) {
    return H::combine(std::move(state), bytes.text());
  }

 private:
  friend class Buffer;
  Bytes(detail::Block* block, ByteView view) : block_(block), view_(view) {}

  detail::Block* block_ = nullptr;
  ByteView view_;
};

// Growable memory with one owner. `freeze()` turns it into Bytes without copying.
class Buffer {
 public:
  Buffer() = default;
  // `alignment` is a power of two: 4096 for direct I/O.
  explicit Buffer(std::size_t capacity, std::size_t alignment = alignof(std::max_align_t));
  Buffer(Buffer&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (block_ != nullptr) block_->release();
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return block_ == nullptr ? 0 : block_->capacity; }
  std::byte* data() { return block_ == nullptr ? nullptr : block_->data(); }
  const std::byte* data() const { return block_ == nullptr ? nullptr : block_->data(); }
  ByteView view() const { return {data(), size_}; }
  MutableByteView mutable_view() { return {data(), size_}; }

  void append(ByteView bytes) {
    if (bytes.empty()) return;
    std::memcpy(extend(bytes.size()).data(), bytes.data(), bytes.size());
  }
  void append(std::string_view text) { append(as_bytes(text)); }
  void push_back(std::byte byte) { extend(1)[0] = byte; }

  // Makes the buffer `count` bytes longer and returns the new, uninitialised end of it.
  MutableByteView extend(std::size_t count) {
    if (capacity() - size_ < count) [[unlikely]]
      grow(size_ + count);
    size_ += count;
    return {data() + size_ - count, count};
  }
  // Gives up the last bytes. Requires: size <= size().
  void truncate(std::size_t size) {
    ASSERT(size <= size_);
    size_ = size;
  }
  void clear() { size_ = 0; }
  void reserve(std::size_t capacity_wanted) {
    if (capacity() < capacity_wanted) grow(capacity_wanted);
  }

  // The bytes so far; the buffer is empty afterwards.
  Bytes freeze() &&;

 private:
  void grow(std::size_t capacity_wanted);

  detail::Block* block_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace helenus::base
