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

// The shared block: this header, padded to `alignment`, then `capacity` bytes. The alignment is a
// power of two and no less than the header, so the bytes begin that far behind it.
struct Block {
  std::atomic<std::uint32_t> references{1};
  std::uint32_t alignment;
  std::size_t capacity;

  static Block* allocate(std::size_t capacity, std::size_t alignment);
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + alignment; }
  void retain() { references.fetch_add(1, std::memory_order_relaxed); }
  void release();

  Block(std::size_t capacity_, std::uint32_t alignment_)
      : alignment(alignment_), capacity(capacity_) {}
};
static_assert(sizeof(Block) == 16);

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
  ByteView view() const [[clang::lifetimebound]] { return view_; }
  // NOLINTNEXTLINE: a Bytes is a view with an owner.
  operator ByteView() const [[clang::lifetimebound]] { return view_; }
  std::string_view text() const [[clang::lifetimebound]] { return as_text(view_); }
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

  // The same bytes, keeping alive no more memory than they need: in a block of their own, unless
  // they fill theirs already or are static.
  Bytes compact() const;

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

// Growable memory with one owner. `freeze()` turns it into Bytes without copying. Growing doubles
// the capacity and moves the bytes: pointers and views into the buffer end there.
class Buffer {
 public:
  static constexpr std::size_t kCapacityMax = std::size_t{1} << 40;
  static constexpr std::size_t kAlignmentMax = std::size_t{1} << 21;

  Buffer() = default;
  // Requires: alignment is a power of two (4096 for direct I/O) up to kAlignmentMax.
  explicit Buffer(std::size_t capacity, std::size_t alignment = alignof(std::max_align_t));
  Buffer(const Buffer&) = delete;
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
  ByteView view() const [[clang::lifetimebound]] { return {data(), size_}; }
  MutableByteView mutable_view() [[clang::lifetimebound]] { return {data(), size_}; }

  // Requires: the bytes are not this buffer's own.
  void append(ByteView bytes) {
    if (bytes.empty()) return;
    std::memcpy(extend(bytes.size()).data(), bytes.data(), bytes.size());
  }
  void append(std::string_view text) { append(as_bytes(text)); }
  void push_back(std::byte byte) { extend(1)[0] = byte; }

  // Makes the buffer `count` bytes longer and returns the new, uninitialised end of it.
  // Requires: size() + count <= kCapacityMax.
  MutableByteView extend(std::size_t count) [[clang::lifetimebound]] {
    if (capacity() - size_ < count) [[unlikely]] {
      ASSERT(count <= kCapacityMax - size_, "{} bytes more than {}", count, size_);
      grow(size_ + count);
    }
    size_ += count;
    return {data() + size_ - count, count};
  }
  // Gives up the last bytes. Requires: size <= size().
  void truncate(std::size_t size) {
    ASSERT(size <= size_);
    size_ = size;
  }
  void clear() { size_ = 0; }
  // Requires: capacity_wanted <= kCapacityMax.
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

// Hexadecimal, cut to what fits a log line; to_hex() gives all of it.
template <>
struct fmt::formatter<helenus::base::Bytes> : fmt::formatter<std::string> {
  static constexpr std::size_t kBytesShownMax = 32;
  auto format(const helenus::base::Bytes& bytes, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(helenus::base::to_hex(bytes, kBytesShownMax), ctx);
  }
};
