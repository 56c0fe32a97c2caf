#include "base/codec.h"

namespace helenus::base {

std::uint64_t Decoder::varint_long() {
  std::uint64_t value = 0;
  const std::byte* at = at_;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at == end_) {
      fail("ends inside a varint");
      return 0;
    }
    const auto byte = std::to_integer<std::uint64_t>(*at++);
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (byte == 0) {
        fail("varint is not in its shortest form");
        return 0;
      }
      at_ = at;
      return value;
    }
  }
  fail("varint exceeds 64 bits");
  return 0;
}

std::size_t Decoder::count(std::size_t bytes_each_min) {
  ASSERT(bytes_each_min > 0);
  const std::uint64_t elements = varint();
  if (elements > remaining() / bytes_each_min) {
    fail("counts more elements than there are bytes for");
    return 0;
  }
  return static_cast<std::size_t>(elements);
}

ByteView Decoder::raw(std::size_t size) {
  if (remaining() < size) {
    fail("ends inside a byte string");
    return {};
  }
  const ByteView bytes(at_, size);
  at_ += size;
  return bytes;
}

ByteView Decoder::prefixed() {
  const std::uint64_t size = varint();
  if (size > remaining()) {
    fail("length exceeds what is left");
    return {};
  }
  return raw(static_cast<std::size_t>(size));
}

void Decoder::fail(const char* problem) {
  if (problem_ == nullptr) {
    problem_ = problem;
    problem_offset_ = offset();
  }
  at_ = end_;
}

Result<void> Decoder::status() const {
  if (problem_ == nullptr) return {};
  return Error(Errc::corrupt, "{} at byte {} of {}", problem_, problem_offset_, end_ - begin_);
}

Result<void> Decoder::finish() {
  if (problem_ == nullptr && at_ != end_) fail("has bytes left over");
  return status();
}

}  // namespace helenus::base
