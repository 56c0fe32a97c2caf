#include "replication/tablets/ring_cut.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"

namespace helenus::replication {

namespace {

base::Bytes border(std::uint32_t index, std::uint32_t count) {
  const auto first = static_cast<std::uint64_t>((static_cast<__uint128_t>(index) << 64) / count);
  base::Buffer bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<std::byte>(first >> shift & 0xff));
  }
  return std::move(bytes).freeze();
}

}  // namespace

storage::KeyRange cut(std::uint32_t index, std::uint32_t count) {
  ASSERT(index < count);
  storage::KeyRange range;
  if (index > 0) range.from = border(index, count);
  if (index + 1 < count) range.to = border(index + 1, count);
  return range;
}

std::size_t index_of(std::span<const storage::TabletInfo> tablets, base::ByteView partition) {
  const auto behind = std::ranges::upper_bound(
      tablets, partition,
      [](base::ByteView a, base::ByteView b) { return base::compare(a, b) < 0; },
      [](const storage::TabletInfo& tablet) { return tablet.range.from.view(); });
  ASSERT(behind != tablets.begin(), "the tablets do not cover the ring");
  return static_cast<std::size_t>(behind - tablets.begin()) - 1;
}

}  // namespace helenus::replication
