// Two decoded clocks, whatever they hold, keep the laws of join, meet, subtract and missing; two
// decoded cells those of sync, strip and fill. The first byte is the length of the first value.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "causality/codec.h"

namespace {

using namespace helenus;  // NOLINT: a main is nobody's header

void check_clocks(const causality::Clock& a, const causality::Clock& b) {
  const causality::Clock both = join(a, b);
  ASSERT(both == join(b, a) && both.covers(a) && both.covers(b));
  ASSERT(join(subtract(a, b), b) == both);
  ASSERT(meet(subtract(a, b), b).empty());
  causality::Clock filled = a;
  const causality::Missing lacked = missing(a, b);
  for (const causality::DotRange& range : lacked.dots) filled.add(range);
  for (const causality::ClosedActors& closed : lacked.closed) filled.close(closed);
  ASSERT(filled == both);
}

void check_cells(const causality::CellStore& a, const causality::CellStore& b) {
  for (const causality::Version& version : a.versions()) {
    const causality::Version* other = b.find(version.dot);
    // One dot, one version (I0): what an honest peer never sends is not ours to merge.
    if (other != nullptr && *other != version) return;
  }
  ASSERT(sync(a, b) == sync(b, a));
  const causality::Clock clock = join(a.context(), b.context());
  ASSERT(fill(strip(a, causality::base(clock)), clock) == fill(a, clock));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const base::Bytes bytes = base::Bytes::copy_of(std::as_bytes(std::span(data, size))).slice(1);
  const std::size_t first = data[0] < bytes.size() ? data[0] : bytes.size();
  const auto a = causality::decode_clock(bytes.slice(0, first));
  const auto b = causality::decode_clock(bytes.slice(first));
  if (a && b) check_clocks(*a, *b);
  const auto left = causality::decode_cell(bytes.slice(0, first));
  const auto right = causality::decode_cell(bytes.slice(first));
  if (left && right) check_cells(*left, *right);
  return 0;
}
