// Fuzzes the bodies of CQL messages, both directions. The first byte is the opcode, the second the
// flags of the frame, the others are its body. What decodes must survive being encoded and decoded
// again.
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"

namespace helenus::cql::protocol {
namespace {

Frame only_frame(Direction direction, base::ByteView bytes) {
  FrameReader reader(direction, kBodySizeCap);
  for (;;) {
    auto step = reader.next();
    if (auto* frame = std::get_if<Frame>(&step)) return std::move(*frame);
    ASSERT(!std::holds_alternative<FrameRefusal>(step));
    if (!std::holds_alternative<FrameReader::NeedBytes>(step)) continue;
    ASSERT(!bytes.empty());
    bytes = bytes.subspan(reader.feed(bytes));
  }
}

void check_request(const FrameHeader& header, base::Bytes body) {
  const auto request = decode_request(header, std::move(body));
  if (!request) return;
  ASSERT(opcode_of(request->message) == header.opcode);
  base::Buffer out;
  encode_request(*request, out);
  Frame frame = only_frame(Direction::request, out.view());
  ASSERT(decode_request(frame.header, std::move(frame.body)) == *request);
}

void check_response(const FrameHeader& header, const base::Bytes& body) {
  const auto decoded = decode_response(header, body);
  if (!decoded) return;
  ASSERT(opcode_of(decoded->message) == header.opcode);
  if (const auto* rows = std::get_if<RowsResult>(&decoded->message)) {
    std::size_t size = 0;
    for (CellCursor cells(*rows); !cells.done();) {
      const auto cell = cells.next();
      size += sizeof(std::int32_t) + (cell ? cell->size() : 0);
    }
    ASSERT(size == rows->rows.size());
  }
  Response response = Response::of(decoded->message);
  response.prefix = decoded->prefix;
  base::Buffer out;
  encode_frame(response, header.stream, Compression::none, out);
  const Frame frame = only_frame(Direction::response, out.view());
  ASSERT(decode_response(frame.header, frame.body) == *decoded);
}

}  // namespace
}  // namespace helenus::cql::protocol

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::cql::protocol;
  if (size < 2) return 0;
  const auto direction = direction_of(data[0]);
  if (!direction) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(2);
  const FrameHeader header{.direction = *direction,
                           .flags = data[1],
                           .stream = 1,
                           .opcode = static_cast<Opcode>(data[0])};
  if (*direction == Direction::request) {
    check_request(header, helenus::base::Bytes::copy_of(input));
  } else {
    check_response(header, helenus::base::Bytes::copy_of(input));
  }
  return 0;
}
