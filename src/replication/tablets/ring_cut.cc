#include "replication/tablets/ring_cut.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"
#include "model/partition_key.h"

namespace helenus::replication {

namespace {

base::Bytes border(std::uint32_t index, std::uint32_t count) {
  const auto first = static_cast<std::uint64_t>((static_cast<__uint128_t>(index) << 64) / count);
  constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
  return model::first_key_of(model::KeyspaceNumber(),
                             model::Token(static_cast<std::int64_t>(first ^ kSignBit)));
}

}  // namespace

storage::KeyRange cut(std::uint32_t index, std::uint32_t count) {
  ASSERT(index < count);
  storage::KeyRange range;
  if (index > 0) range.from = border(index, count);
  range.to =
      index + 1 < count ? border(index + 1, count) : model::first_key_of(model::KeyspaceNumber(1));
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
