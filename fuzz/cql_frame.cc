// Fuzzes cql::protocol::FrameReader and LZ4 bodies. The first byte chooses the direction and how
// large the pieces are, the others are what a transport delivers. However they are cut, the same
// frames and refusals must come; a frame must be what stood in the input; a body that decompresses
// must survive being compressed again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "cql/protocol/frame.h"

namespace helenus::cql::protocol {
namespace {

constexpr std::size_t kBodySizeMax = 2000;

std::vector<FrameReader::Step> steps_of(Direction direction, base::ByteView bytes,
                                        std::size_t piece_size) {
  FrameReader reader(direction, kBodySizeMax);
  std::vector<FrameReader::Step> steps;
  while (!bytes.empty()) {
    bytes = bytes.subspan(reader.feed(bytes.first(std::min(piece_size, bytes.size()))));
    ASSERT(reader.size_held() <= FrameReader::kInputSizeMax);
    for (auto step = reader.next(); !std::holds_alternative<FrameReader::NeedBytes>(step);
         step = reader.next()) {
      steps.push_back(std::move(step));
    }
  }
  return steps;
}

void check_frame(const Frame& frame, base::ByteView input) {
  ASSERT(frame.body.size() == frame.header.body_size && frame.body.size() <= kBodySizeMax);
  base::Buffer again;
  FrameWriter writer(again, frame.header);
  writer.body().raw(frame.body);
  writer.finish();
  ASSERT(base::as_text(input).contains(base::as_text(again.view())));
  const auto plain = plain_body(frame, Compression::lz4, kBodySizeMax);
  if (!plain) return;
  ASSERT(plain->size() <= kBodySizeMax &&
         (frame.body.empty() || plain->size() == plain_size(frame)));
  base::Buffer packed;
  if (!compress_body(*plain, packed)) return;
  Frame compressed{.header = frame.header, .body = std::move(packed).freeze()};
  compressed.header.flags |= kFlagCompressed;
  ASSERT(plain_body(compressed, Compression::lz4, kBodySizeMax) == *plain);
}

}  // namespace
}  // namespace helenus::cql::protocol

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::cql::protocol;
  if (size < 1) return 0;
  const helenus::base::ByteView input = std::as_bytes(std::span(data, size)).subspan(1);
  const Direction direction = data[0] % 2 == 0 ? Direction::request : Direction::response;
  const auto whole = steps_of(direction, input, SIZE_MAX);
  ASSERT(whole == steps_of(direction, input, 1 + std::size_t{data[0]} / 2));
  for (const auto& step : whole) {
    if (const auto* frame = std::get_if<Frame>(&step)) check_frame(*frame, input);
  }
  return 0;
}
