// ByteRing: a queue of bytes with a place for each: what a socket buffer is made of. Grows by
// doubling up to what its user allows; keeps its memory when emptied.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"

namespace helenus::sim {

class ByteRing {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear() { begin_ = size_ = 0; }

  void append(base::ByteView bytes) {
    if (bytes.empty()) return;
    reserve(size_ + bytes.size());
    const std::size_t end = (begin_ + size_) & mask();
    const std::size_t first = std::min(bytes.size(), memory_.size() - end);
    std::memcpy(memory_.data() + end, bytes.data(), first);
    if (first < bytes.size()) {
      std::memcpy(memory_.data(), bytes.data() + first, bytes.size() - first);
    }
    size_ += bytes.size();
  }

  // Calls visit(ByteView) for the one or two stretches that make up [offset, offset + count).
  // Requires: offset + count <= size().
  template <class Visit>
  void visit(std::size_t offset, std::size_t count, Visit&& visit) const {
    ASSERT(offset <= size_ && count <= size_ - offset);
    if (count == 0) return;
    const std::size_t at = (begin_ + offset) & mask();
    const std::size_t first = std::min(count, memory_.size() - at);
    visit(base::ByteView(memory_.data() + at, first));
    if (first < count) visit(base::ByteView(memory_.data(), count - first));
  }

  // Takes the first bytes out. Requires: into.size() <= size().
  void take(base::MutableByteView into) {
    std::byte* to = into.data();
    visit(0, into.size(), [&](base::ByteView part) {
      std::memcpy(to, part.data(), part.size());
      to += part.size();
    });
    drop(into.size());
  }
  // Requires: count <= size().
  void drop(std::size_t count) {
    ASSERT(count <= size_);
    begin_ = memory_.empty() ? 0 : (begin_ + count) & mask();
    size_ -= count;
  }

 private:
  static constexpr std::size_t kCapacityMin = 256;

  std::size_t mask() const { return memory_.size() - 1; }

  void reserve(std::size_t wanted) {
    if (wanted <= memory_.size()) return;
    std::vector<std::byte> larger(std::bit_ceil(std::max(wanted, kCapacityMin)));
    std::byte* to = larger.data();
    visit(0, size_, [&](base::ByteView part) {
      std::memcpy(to, part.data(), part.size());
      to += part.size();
    });
    memory_ = std::move(larger);
    begin_ = 0;
  }

  std::vector<std::byte> memory_;  // its size is zero or a power of two
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace helenus::sim
