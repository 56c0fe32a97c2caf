// Fuzzes cql::protocol::SegmentReader. The first byte chooses the compression and how large the
// pieces are, the others are what a transport delivers. However they are cut, the same payloads and
// the same error must come; a payload must survive being sent again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cql/protocol/segment.h"

namespace helenus::cql::protocol {
namespace {

struct Read {
  std::vector<base::Bytes> payloads;
  bool failed = false;
  friend bool operator==(const Read&, const Read&) = default;
};

Read read_all(base::ByteView bytes, Compression compression, std::size_t piece) {
  SegmentReader reader(compression);
  Read read;
  while (!bytes.empty()) {
    const auto room = reader.room();
    const std::size_t count = std::min({piece, room.size(), bytes.size()});
    std::memcpy(room.data(), bytes.data(), count);
    reader.commit(count);
    ASSERT(reader.size_held() <= kSegmentSizeMax + SegmentReader::kRoomSize);
    bytes = bytes.subspan(count);
    while (true) {
      auto payload = reader.next();
      if (!payload) {
        read.failed = true;
        return read;
      }
      if (!*payload) break;
      ASSERT((*payload)->size() <= kSegmentPayloadMax);
      read.payloads.push_back(**std::move(payload));
    }
  }
  return read;
}

}  // namespace
}  // namespace helenus::cql::protocol

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::cql::protocol;
  if (size < 1) return 0;
  const helenus::base::ByteView input = std::as_bytes(std::span(data, size)).subspan(1);
  const Compression compression = data[0] % 2 == 0 ? Compression::none : Compression::lz4;
  const Read whole = read_all(input, compression, SIZE_MAX);
  ASSERT(whole == read_all(input, compression, 1 + std::size_t{data[0]} / 2));
  for (const auto& payload : whole.payloads) {
    helenus::base::Buffer again;
    append_segments(payload.view(), compression, again);
    const Read same = read_all(again.view(), compression, SIZE_MAX);
    ASSERT(!same.failed && same.payloads.size() == 1 && same.payloads[0] == payload);
  }
  return 0;
}
