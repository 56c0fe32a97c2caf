#include "base/bytes.h"

#include <algorithm>
#include <bit>
#include <new>

namespace helenus::base {

namespace detail {

namespace {

// What every allocation is aligned to costs less than an alignment that is asked for.
bool is_usual(std::size_t alignment) {
  return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
}

}  // namespace

Block* Block::allocate(std::size_t capacity, std::size_t alignment) {
  ASSERT(std::has_single_bit(alignment) && alignment <= Buffer::kAlignmentMax, "alignment {}",
         alignment);
  ASSERT(capacity <= Buffer::kCapacityMax, "capacity {}", capacity);
  alignment = std::max(alignment, sizeof(Block));
  void* memory = is_usual(alignment)
                     ? ::operator new(alignment + capacity)
                     : ::operator new(alignment + capacity, std::align_val_t(alignment));
  return ::new (memory) Block(capacity, static_cast<std::uint32_t>(alignment));
}

void Block::release() {
  // Who is the only owner stays that: nobody else has a reference to copy.
  const bool last = references.load(std::memory_order_acquire) == 1 ||
                    references.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (!last) return;
  const std::size_t align = alignment;
  const std::size_t size = align + capacity;
  this->~Block();
  if (is_usual(align)) {
    ::operator delete(this, size);
  } else {
    ::operator delete(this, size, std::align_val_t(align));
  }
}

}  // namespace detail

std::strong_ordering compare(ByteView a, ByteView b) {
  const std::size_t common = std::min(a.size(), b.size());
  if (common > 0) {
    if (const int order = std::memcmp(a.data(), b.data(), common); order != 0) {
      return order < 0 ? std::strong_ordering::less : std::strong_ordering::greater;
    }
  }
  return a.size() <=> b.size();
}

std::string to_hex(ByteView bytes, std::size_t bytes_max) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  const std::size_t shown = std::min(bytes.size(), bytes_max);
  text.reserve(shown * 2 + 3);
  for (const std::byte byte : bytes.first(shown)) {
    text.push_back(kDigits[std::to_integer<unsigned>(byte) >> 4]);
    text.push_back(kDigits[std::to_integer<unsigned>(byte) & 15]);
  }
  if (shown < bytes.size()) text += "...";
  return text;
}

Bytes Bytes::copy_of(ByteView bytes) {
  if (bytes.empty()) return {};
  Buffer buffer(bytes.size());
  buffer.append(bytes);
  return std::move(buffer).freeze();
}

Bytes Bytes::slice(std::size_t offset, std::size_t count) const {
  ASSERT(offset <= size() && count <= size() - offset, "slice {}+{} of {}", offset, count, size());
  if (count == 0) return {};
  if (block_ != nullptr) block_->retain();
  return Bytes(block_, view_.subspan(offset, count));
}

Bytes Bytes::compact() const {
  if (block_ == nullptr || block_->capacity == size()) return *this;
  return copy_of(view_);
}

Buffer::Buffer(std::size_t capacity, std::size_t alignment)
    : block_(detail::Block::allocate(capacity, alignment)) {}

void Buffer::grow(std::size_t capacity_wanted) {
  constexpr std::size_t kCapacityMin = 64;
  const std::size_t alignment =
      block_ == nullptr ? alignof(std::max_align_t) : std::size_t{block_->alignment};
  const std::size_t doubled = std::min(std::max(capacity() * 2, kCapacityMin), kCapacityMax);
  detail::Block* block = detail::Block::allocate(std::max(doubled, capacity_wanted), alignment);
  if (block_ != nullptr) {
    std::memcpy(block->data(), block_->data(), size_);
    block_->release();
  }
  block_ = block;
}

Bytes Buffer::freeze() && {
  if (size_ == 0) return {};
  const ByteView view(block_->data(), size_);
  size_ = 0;
  return Bytes(std::exchange(block_, nullptr), view);
}

}  // namespace helenus::base
