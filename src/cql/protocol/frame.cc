#include "cql/protocol/frame.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <lz4.h>

namespace helenus::cql::protocol {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;

namespace {

constexpr std::uint8_t kResponseBit = 0x80;
// Versions 1 and 2 had a stream of one byte, and so a shorter header.
constexpr std::uint8_t kVersionShortStreamMax = 2;
// The bytes of a header by which every version can be told and answered on its stream.
constexpr std::size_t kVersionAndStreamSize = 4;
constexpr std::size_t kBodySizeAt = 5;
// After so many reads in a row that a small input buffer would have held, it becomes one.
constexpr unsigned kSmallReadsToShrink = 64;
constexpr std::size_t kPlainSizeSize = sizeof(std::uint32_t);
// No LZ4 block gives more bytes than this for each of its own.
constexpr std::size_t kLz4RatioMax = 255;

struct OpcodeInfo {
  std::string_view name;
  Direction direction = Direction::request;
};

constexpr std::array<OpcodeInfo, kOpcodesEnd> kOpcodes = {{
    {"ERROR", Direction::response},
    {"STARTUP", Direction::request},
    {"READY", Direction::response},
    {"AUTHENTICATE", Direction::response},
    {},  // CREDENTIALS, of version 1 alone
    {"OPTIONS", Direction::request},
    {"SUPPORTED", Direction::response},
    {"QUERY", Direction::request},
    {"RESULT", Direction::response},
    {"PREPARE", Direction::request},
    {"EXECUTE", Direction::request},
    {"REGISTER", Direction::request},
    {"EVENT", Direction::response},
    {"BATCH", Direction::request},
    {"AUTH_CHALLENGE", Direction::response},
    {"AUTH_RESPONSE", Direction::request},
    {"AUTH_SUCCESS", Direction::response},
}};

std::string_view name_of(Direction direction) {
  return direction == Direction::request ? "REQUEST" : "RESPONSE";
}

std::int16_t stream_of(std::uint8_t version, const std::byte* header) {
  if (version <= kVersionShortStreamMax) {
    return static_cast<std::int8_t>(std::to_integer<std::uint8_t>(header[2]));
  }
  return static_cast<std::int16_t>(base::load_be<std::uint16_t>(header + 2));
}

std::string too_big_message(std::uint32_t size, std::size_t size_max) {
  return fmt::format("Request is too big: length {} exceeds maximum allowed length {}.", size,
                     size_max);
}

}  // namespace

std::string_view name_of(Opcode opcode) {
  const auto index = static_cast<std::size_t>(opcode);
  ASSERT(index < kOpcodes.size() && !kOpcodes[index].name.empty(), "opcode {}", index);
  return kOpcodes[index].name;
}

std::optional<Direction> direction_of(std::uint8_t opcode) {
  if (opcode >= kOpcodes.size() || kOpcodes[opcode].name.empty()) return std::nullopt;
  return kOpcodes[opcode].direction;
}

std::string unsupported_version_message(std::uint8_t version) {
  return fmt::format(
      "Invalid or unsupported protocol version ({}); supported versions are ({}/v{}, {}/v{})",
      version, kVersion, kVersion, kVersionOfSegments, kVersionOfSegments);
}

void encode_header(const FrameHeader& header, base::Encoder& out) {
  const unsigned bit = header.direction == Direction::request ? 0U : unsigned{kResponseBit};
  out.u8(static_cast<std::uint8_t>(header.version | bit));
  out.u8(header.flags);
  out.u16_be(static_cast<std::uint16_t>(header.stream));
  out.u8(static_cast<std::uint8_t>(header.opcode));
  out.u32_be(header.body_size);
}

FrameReader::FrameReader(Direction expected, std::size_t body_size_max)
    : expected_(expected), body_size_max_(body_size_max) {
  ASSERT(body_size_max <= kBodySizeCap);
}

base::MutableByteView FrameReader::room() {
  if (in_place_) {
    if (body_filled_ == body_.size()) {
      // At most as much again as has come: what is declared is not believed until it is here.
      const std::size_t growth = std::max(body_filled_, kInputSizeMax);
      body_.extend(std::min<std::size_t>(header_.body_size - body_filled_, growth));
    }
    return body_.mutable_view().subspan(body_filled_);
  }
  adapt_input();
  return input_.mutable_view().subspan(end_);
}

// Leaves room behind end_: a frame that is kept in the input buffer fits it, so that after moving
// what is there to the front there is room again.
void FrameReader::adapt_input() {
  if (begin_ == end_) begin_ = end_ = 0;
  // Not while a body is under way: that it fits was judged by the size of this buffer.
  const bool shrink = input_.size() > kInputSizeMin && end_ == 0 && phase_ == Phase::header &&
                      small_reads_ >= kSmallReadsToShrink;
  if (input_.empty() || shrink) {
    input_ = base::Buffer(kInputSizeMin);
    input_.extend(kInputSizeMin);
    small_reads_ = 0;
    return;
  }
  if (end_ < input_.size()) return;
  ASSERT(begin_ > 0, "a frame that fills the input buffer is complete");
  std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

void FrameReader::commit(std::size_t count) {
  if (in_place_) {
    ASSERT(count <= body_.size() - body_filled_);
    body_filled_ += count;
    return;
  }
  ASSERT(count <= input_.size() - end_);
  end_ += count;
  small_reads_ = count < kInputSizeMin ? small_reads_ + 1 : 0;
  // A read that filled the buffer: more is waiting, and a larger buffer takes it with fewer reads.
  if (count >= kInputSizeMin && end_ == input_.size() && input_.size() < kInputSizeMax) {
    input_.extend(input_.size());
  }
}

std::size_t FrameReader::feed(ByteView bytes) {
  ASSERT(!bytes.empty());
  const auto to = room();
  const std::size_t count = std::min(to.size(), bytes.size());
  std::memcpy(to.data(), bytes.data(), count);
  commit(count);
  return count;
}

FrameReader::Step FrameReader::next() {
  if (phase_ == Phase::announced) begin_body();
  if (phase_ == Phase::skipping) {
    const std::size_t count = std::min(skip_left_, end_ - begin_);
    begin_ += count;
    skip_left_ -= count;
    if (skip_left_ > 0) return NeedBytes();
    phase_ = Phase::header;
  }
  switch (phase_) {
    case Phase::header:
      return next_header();
    case Phase::body:
      return next_body();
    case Phase::broken:
      begin_ = end_ = 0;
      return NeedBytes();
    case Phase::announced:
    case Phase::skipping:
      break;
  }
  UNREACHABLE("phase {}", static_cast<int>(phase_));
}

FrameReader::Step FrameReader::next_header() {
  const std::size_t held = end_ - begin_;
  if (held < kVersionAndStreamSize) return NeedBytes();
  const std::byte* at = input_.data() + begin_;
  const auto version_byte = std::to_integer<std::uint8_t>(at[0]);
  const auto version = static_cast<std::uint8_t>(version_byte & ~kResponseBit);
  const std::int16_t stream = stream_of(version, at);
  if (version != kVersion && version != kVersionOfSegments) {
    return refuse(
        {.stream = stream, .message = unsupported_version_message(version), .fatal = true});
  }
  if (held < kHeaderSize) return NeedBytes();
  const auto opcode = std::to_integer<std::uint8_t>(at[4]);
  header_ = {
      .direction = (version_byte & kResponseBit) != 0 ? Direction::response : Direction::request,
      .version = version,
      .flags = std::to_integer<std::uint8_t>(at[1]),
      .stream = stream,
      .opcode = static_cast<Opcode>(opcode),
      .body_size = base::load_be<std::uint32_t>(at + kBodySizeAt)};
  begin_ += kHeaderSize;
  if (header_.body_size > kBodySizeCap) {
    return refuse({.stream = stream,
                   .message = fmt::format("Invalid frame body length: {}",
                                          static_cast<std::int32_t>(header_.body_size)),
                   .fatal = true});
  }
  if (header_.body_size > body_size_max_) {
    return refuse({.stream = stream,
                   .code = ErrorCode::invalid,
                   .message = too_big_message(header_.body_size, body_size_max_)});
  }
  const auto direction = direction_of(opcode);
  if (!direction) {
    return refuse({.stream = stream, .message = fmt::format("Unknown opcode {}", opcode)});
  }
  if (header_.direction != expected_ || *direction != expected_) {
    const Direction got = header_.direction != expected_ ? header_.direction : *direction;
    return refuse({.stream = stream,
                   .message = fmt::format(
                       "Wrong protocol direction (expected {}, got {}) for opcode {} ({})",
                       name_of(expected_), name_of(got), opcode, name_of(header_.opcode))});
  }
  phase_ = Phase::announced;
  return header_;
}

FrameReader::Step FrameReader::refuse(FrameRefusal refusal) {
  if (refusal.fatal) {
    phase_ = Phase::broken;
    begin_ = end_ = 0;
  } else {
    phase_ = Phase::skipping;
    skip_left_ = header_.body_size;
  }
  return refusal;
}

void FrameReader::skip_body() {
  ASSERT(in_body());
  phase_ = Phase::skipping;
  skip_left_ = header_.body_size - body_filled_;
  in_place_ = false;
  body_filled_ = 0;
  body_ = base::Buffer();
}

void FrameReader::begin_body() {
  phase_ = Phase::body;
  const std::size_t held = end_ - begin_;
  if (header_.body_size <= held || header_.body_size <= input_.size()) return;
  in_place_ = true;
  body_.append(input_.view().subspan(begin_, held));
  body_filled_ = held;
  begin_ = end_ = 0;
}

FrameReader::Step FrameReader::next_body() {
  if (in_place_) {
    if (body_filled_ < header_.body_size) return NeedBytes();
    in_place_ = false;
    body_filled_ = 0;
    phase_ = Phase::header;
    return Frame{.header = header_, .body = std::move(body_).freeze()};
  }
  if (end_ - begin_ < header_.body_size) return NeedBytes();
  Frame frame{.header = header_,
              .body = Bytes::copy_of(input_.view().subspan(begin_, header_.body_size))};
  begin_ += header_.body_size;
  phase_ = Phase::header;
  return frame;
}

FrameWriter::FrameWriter(base::Buffer& out, const FrameHeader& header)
    : header_at_(out.size()), encoder_(out) {
  encode_header(header, encoder_);
}

void FrameWriter::finish(std::size_t size_to_follow) {
  base::Buffer& out = encoder_.buffer();
  const std::size_t size = out.size() - header_at_ - kHeaderSize + size_to_follow;
  ASSERT(size <= kBodySizeCap, "a body of {} bytes", size);
  base::store_be(out.data() + header_at_ + kBodySizeAt, static_cast<std::uint32_t>(size));
}

std::string_view name_of(Compression compression) {
  return compression == Compression::lz4 ? "lz4" : "";
}

std::optional<Compression> compression_named(std::string_view name) {
  if (name.empty()) return Compression::none;
  if (equal_ignoring_case(name, name_of(Compression::lz4))) return Compression::lz4;
  return std::nullopt;
}

base::Result<Bytes> plain_body(const Frame& frame, Compression negotiated, std::size_t size_max) {
  // Some clients set the flag on every frame; there is nothing to compress in an empty body.
  if (!frame.header.has(kFlagCompressed) || frame.body.empty()) return frame.body;
  if (negotiated != Compression::lz4) {
    return Error(Errc::corrupt, "a body is compressed, but no compression was agreed upon");
  }
  if (frame.body.size() < kPlainSizeSize) {
    return Error(Errc::corrupt, "a compressed body ends inside its plain size");
  }
  const ByteView block = frame.body.view().subspan(kPlainSizeSize);
  const std::size_t size = plain_size(frame);
  if (size > size_max) {
    return Error(Errc::invalid_argument, "a body of {} bytes is compressed; {} are allowed", size,
                 size_max);
  }
  if (size > block.size() * kLz4RatioMax) {
    return Error(Errc::corrupt, "a compressed body of {} bytes cannot hold {}", block.size(), size);
  }
  // LZ4 wants a place to write to even when nothing is written.
  base::Buffer plain(std::max<std::size_t>(size, 1));
  plain.extend(size);
  const int got = LZ4_decompress_safe(reinterpret_cast<const char*>(block.data()),
                                      reinterpret_cast<char*>(plain.data()),
                                      static_cast<int>(block.size()), static_cast<int>(size));
  if (got < 0 || static_cast<std::size_t>(got) != size) {
    return Error(Errc::corrupt, "a compressed body is malformed");
  }
  return std::move(plain).freeze();
}

std::size_t plain_size(const Frame& frame) {
  const bool sized = frame.header.has(kFlagCompressed) && frame.body.size() >= kPlainSizeSize;
  return sized ? base::load_be<std::uint32_t>(frame.body.data()) : frame.body.size();
}

bool compress_body(ByteView plain, base::Buffer& out) {
  ASSERT(plain.size() <= kBodySizeCap);
  static_assert(kBodySizeCap <= LZ4_MAX_INPUT_SIZE);
  if (plain.size() <= kPlainSizeSize) return false;
  const std::size_t begin = out.size();
  base::Encoder(out).u32_be(static_cast<std::uint32_t>(plain.size()));
  // Room for less than the plain body: where that does not suffice, LZ4 gives up early.
  const auto room = out.extend(plain.size() - kPlainSizeSize - 1);
  const int size = room.empty() ? 0
                                : LZ4_compress_default(reinterpret_cast<const char*>(plain.data()),
                                                       reinterpret_cast<char*>(room.data()),
                                                       static_cast<int>(plain.size()),
                                                       static_cast<int>(room.size()));
  if (size <= 0) {
    out.truncate(begin);
    return false;
  }
  out.truncate(begin + kPlainSizeSize + static_cast<std::size_t>(size));
  return true;
}

void compress_frame(base::Buffer& frames, std::size_t frame_at) {
  const std::size_t body_at = frame_at + kHeaderSize;
  ASSERT(body_at <= frames.size());
  const ByteView body = frames.view().subspan(body_at);
  if (body.size() < kCompressSizeMin) return;
  base::Buffer compressed;
  if (!compress_body(body, compressed)) return;
  frames.truncate(body_at);
  frames.append(compressed.view());
  std::byte* header = frames.data() + frame_at;
  header[1] |= std::byte{kFlagCompressed};
  base::store_be(header + kBodySizeAt, static_cast<std::uint32_t>(compressed.size()));
}

}  // namespace helenus::cql::protocol
