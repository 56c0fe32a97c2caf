#include "storage/ids/row_key.h"

#include <algorithm>
#include <bit>

#include "base/codec.h"

namespace helenus::storage {

std::size_t common_prefix_size(base::ByteView a, base::ByteView b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t size = 0;
  for (; size + 8 <= limit; size += 8) {
    const auto difference = base::load_le<std::uint64_t>(a.data() + size) ^
                            base::load_le<std::uint64_t>(b.data() + size);
    if (difference != 0) return size + static_cast<std::size_t>(std::countr_zero(difference)) / 8;
  }
  while (size < limit && a[size] == b[size]) ++size;
  return size;
}

void separate(base::ByteView a, base::ByteView b, base::Buffer& out) {
  ASSERT_SLOW(base::compare(a, b) < 0);
  constexpr std::byte kLargest{0xff};
  const auto next = [](std::byte byte) { return std::byte(std::to_integer<unsigned>(byte) + 1); };
  out.clear();
  const std::size_t common = common_prefix_size(a, b);
  if (common == a.size()) {
    out.append(a);  // a is a prefix of b: nothing shorter is not below it.
    return;
  }
  // The two part at a[common] < b[common]: one byte behind the common ones tells them apart, unless
  // that byte of b is the very next one and its last.
  if (next(a[common]) < b[common] || b.size() > common + 1) {
    out.append(a.first(common));
    out.push_back(next(a[common]));
    return;
  }
  std::size_t at = common + 1;
  while (at < a.size() && a[at] == kLargest) ++at;
  if (at >= a.size()) {
    out.append(a);
    return;
  }
  out.append(a.first(at));
  out.push_back(next(a[at]));
}

}  // namespace helenus::storage
