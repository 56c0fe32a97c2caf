// Hostile bytes against the protocol between nodes: however a stream is cut, the same frames come
// out of it and the same error ends it; a frame that decodes encodes to the bytes it came from,
// except that a handshake may have more behind what we know.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "base/codec.h"
#include "base/crc32c.h"
#include "rpc/frame.h"
#include "rpc/handshake.h"

namespace {

using namespace helenus;  // NOLINT: a main is nobody's header
using rpc::Frame;

struct Outcome {
  std::vector<base::Bytes> bodies;
  std::string error;
  bool at_boundary = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read(base::ByteView bytes, std::size_t piece) {
  rpc::FrameReader reader(4096);
  Outcome outcome;
  for (;;) {
    auto body = reader.next();
    if (!body) {
      outcome.error = body.error().to_string();
      return outcome;
    }
    if (*body) {
      outcome.bodies.push_back(**body);
      continue;
    }
    if (bytes.empty()) break;
    const base::MutableByteView room = reader.room();
    ASSERT(!room.empty());
    const std::size_t size = std::min({piece, bytes.size(), room.size()});
    std::ranges::copy(bytes.first(size), room.begin());
    reader.commit(size);
    bytes = bytes.subspan(size);
  }
  outcome.at_boundary = reader.at_boundary();
  return outcome;
}

base::Bytes encode(const Frame& frame) {
  rpc::FrameBatch batch;
  batch.add(frame);
  base::Buffer all;
  for (const base::Bytes& piece : batch.take()) all.append(piece);
  return std::move(all).freeze();
}

void check_hello(const rpc::Hello& hello) {
  const rpc::Options options{.cluster = "troy", .node = model::NodeId()};
  const auto verdict = rpc::judge({.options = options, .life = 1}, hello);
  const auto* welcome = std::get_if<rpc::Welcome>(&verdict);
  if (welcome == nullptr) {
    ASSERT(std::get<rpc::Refusal>(verdict).text.size() <= rpc::kTextSizeMax);
    return;
  }
  ASSERT(options.versions.contains(welcome->version) && hello.versions.contains(welcome->version));
  ASSERT(hello.cluster == "troy" && hello.from != options.node);
}

void check_body(const base::Bytes& body) {
  const auto frame = rpc::decode_body(body);
  if (!frame) return;
  const base::Bytes again = encode(*frame);
  const base::Bytes plain = again.slice(rpc::kFrameHeadSize);
  const bool is_handshake = frame->index() <= 2 || frame->index() >= 11;
  if (is_handshake) {
    ASSERT(plain.size() <= body.size() && base::equal(plain, body.view().first(plain.size())));
  } else if (!std::holds_alternative<rpc::Failure>(*frame)) {
    ASSERT(plain == body);
  }
  ASSERT(rpc::decode_body(plain) == frame);
  ASSERT(plain.size() <= rpc::kHandshakeBodySizeMax || !is_handshake);
  const Outcome alone = read(again, SIZE_MAX);
  ASSERT(body.size() > 4096 || (alone.bodies == std::vector<base::Bytes>{plain}));
  if (const auto* hello = std::get_if<rpc::Hello>(&*frame)) check_hello(*hello);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::ByteView bytes = std::as_bytes(std::span(data, size));
  const Outcome whole = read(bytes, SIZE_MAX);
  ASSERT(whole == read(bytes, 1) && whole == read(bytes, 13));
  for (const base::Bytes& body : whole.bodies) check_body(body);
  // Checksums are hard to guess: the same bytes as a body.
  check_body(base::Bytes::copy_of(bytes));
  return 0;
}
