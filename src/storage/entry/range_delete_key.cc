#include "storage/entry/range_delete_key.h"

#include <algorithm>

#include "base/assert.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

namespace {

constexpr std::byte kHighDigit{0xf0};

}  // namespace

RangeDepth depth_of(const causality::RowRange& row_range, std::size_t partition_size) {
  if (!row_range.from || !row_range.to) return 0;
  const base::ByteView from = *row_range.from;
  const base::ByteView to = *row_range.to;
  const std::size_t bytes = common_prefix_size(from, to);
  std::size_t digits = bytes * 2;
  if (bytes < from.size() && bytes < to.size() &&
      (from[bytes] & kHighDigit) == (to[bytes] & kHighDigit)) {
    ++digits;
  }
  // The kind, and the byte in which a path ends.
  const std::size_t beside = partition_size + 2;
  const std::size_t room = beside < kRowKeySizeMax ? kRowKeySizeMax - beside : 0;
  return static_cast<RangeDepth>(std::min(digits, room * 2));
}

bool same_digits(base::ByteView a, base::ByteView b, RangeDepth depth) {
  ASSERT_SLOW(has_digits(a, depth) && has_digits(b, depth));
  const std::size_t bytes = depth / 2;
  if (!base::equal(a.first(bytes), b.first(bytes))) return false;
  return depth % 2 == 0 || (a[bytes] & kHighDigit) == (b[bytes] & kHighDigit);
}

// The digits, then the digit 8, filled up with a zero: the last byte tells where they end.
std::string range_path(base::ByteView key, RangeDepth depth) {
  ASSERT(has_digits(key, depth));
  if (depth == 0) return {};
  std::string path(base::as_text(key.first(depth / 2)));
  constexpr std::byte kEnd{0x08};
  const std::byte last = depth % 2 == 0 ? (kEnd << 4) : ((key[depth / 2] & kHighDigit) | kEnd);
  path += static_cast<char>(last);
  return path;
}

}  // namespace helenus::storage
