// Frames: nine bytes of header, then a body. What travels on a CQL connection, both ways.
//
//   version u8 (0x04 or 0x05 asks, 0x84 or 0x85 answers) | flags u8 | stream i16 | opcode u8 | body
//   size i32
//
// FrameReader cuts what a transport delivers, in whatever pieces, into frames; FrameWriter appends
// frames to a Buffer. Neither knows of sockets. All numbers are big-endian. Versions 4 and 5 are
// spoken; every other version is refused in the words by which drivers go on to ask for one of
// these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "cql/protocol/primitives.h"

namespace helenus::cql::protocol {

inline constexpr std::uint8_t kVersion = 4;
// Its frames are alike, and travel in segments (segment.h) once STARTUP was answered.
inline constexpr std::uint8_t kVersionOfSegments = 5;
inline constexpr std::size_t kHeaderSize = 9;
// The protocol's own limit for a body. A frame that declares more cannot be skipped in good faith.
inline constexpr std::size_t kBodySizeCap = std::size_t{256} << 20;
// The limit Cassandra has since 4.1.
inline constexpr std::size_t kBodySizeMaxDefault = std::size_t{16} << 20;
// The stream of events.
inline constexpr std::int16_t kEventStream = -1;

enum class Opcode : std::uint8_t {
  error = 0x00,
  startup = 0x01,
  ready = 0x02,
  authenticate = 0x03,
  options = 0x05,
  supported = 0x06,
  query = 0x07,
  result = 0x08,
  prepare = 0x09,
  execute = 0x0a,
  registration = 0x0b,
  event = 0x0c,
  batch = 0x0d,
  auth_challenge = 0x0e,
  auth_response = 0x0f,
  auth_success = 0x10,
};
inline constexpr std::size_t kOpcodesEnd = 0x11;
// As the protocol spells it: "QUERY".
std::string_view name_of(Opcode opcode);

enum class Direction : std::uint8_t { request, response };
// The direction of an opcode; none if there is no such opcode.
std::optional<Direction> direction_of(std::uint8_t opcode);

inline constexpr std::uint8_t kFlagCompressed = 0x01;
inline constexpr std::uint8_t kFlagTracing = 0x02;
inline constexpr std::uint8_t kFlagPayload = 0x04;
inline constexpr std::uint8_t kFlagWarnings = 0x08;

struct FrameHeader {
  Direction direction = Direction::request;
  std::uint8_t version = kVersion;
  std::uint8_t flags = 0;  // those unknown are kept and mean nothing
  std::int16_t stream = 0;
  Opcode opcode = Opcode::error;
  std::uint32_t body_size = 0;

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};
void encode_header(const FrameHeader& header, base::Encoder& out);

struct Frame {
  FrameHeader header;
  base::Bytes body;  // as it came: compressed if the header says so
  friend bool operator==(const Frame&, const Frame&) = default;
};

// A frame that is not taken, and the ERROR to answer it with.
struct FrameRefusal {
  std::int16_t stream = 0;
  ErrorCode code = ErrorCode::protocol_error;
  std::string message;
  // What follows cannot be understood: answer, then close. Otherwise the body is skipped and the
  // connection goes on.
  bool fatal = false;
  friend bool operator==(const FrameRefusal&, const FrameRefusal&) = default;
};

// The text by which drivers know that they must ask for another version.
std::string unsupported_version_message(std::uint8_t version);

// Cuts a stream of bytes into frames. Pure: the transport reads into `room()`, says how much came
// with `commit()`, and calls `next()` until that needs more:
//
//   for (;;) {
//     got = read(reader.room());  reader.commit(got);
//     for (auto step = reader.next(); !holds<NeedBytes>(step); step = reader.next()) ...
//   }
//
// A frame gives two steps: its FrameHeader as soon as that is there, so that limits can be asked
// before the body takes memory, and the Frame when it is complete. Between the two, at any time,
// `skip_body()` drops what has come of the body and what is still to come.
//
// Memory: an input buffer of kInputSizeMin to kInputSizeMax, by how much comes at once. A body that
// fits it is copied out into a block of its own size, so that what a request keeps alive is what it
// needs; a larger one is read in place, and grows with what has come, not with what was declared.
// Cost: one allocation and one copy a small frame.
class FrameReader {
 public:
  static constexpr std::size_t kInputSizeMin = std::size_t{4} << 10;
  static constexpr std::size_t kInputSizeMax = std::size_t{64} << 10;

  struct NeedBytes {
    friend bool operator==(const NeedBytes&, const NeedBytes&) = default;
  };
  using Step = std::variant<NeedBytes, FrameHeader, Frame, FrameRefusal>;

  // Reads frames of that direction. Requires: body_size_max <= kBodySizeCap.
  explicit FrameReader(Direction expected, std::size_t body_size_max = kBodySizeMaxDefault);

  // Where to read to next; never empty. Calling next() or room() ends the view.
  // Requires: the last step, if there was one, was NeedBytes.
  base::MutableByteView room() [[clang::lifetimebound]];
  // That many bytes were read into the last room(). Requires: no more than its size.
  void commit(std::size_t count);
  // Both at once, for bytes that lie elsewhere: says how many it took from the front, at least one.
  // Requires: as for room(); bytes are not empty.
  std::size_t feed(base::ByteView bytes);

  // What comes next. Refused are: other versions (fatal), a negative or impossible body size
  // (fatal), a body above body_size_max, an unknown opcode, an opcode or version of the other
  // direction. After a fatal refusal everything is dropped and only NeedBytes comes.
  Step next();
  // Requires: a frame was announced by its FrameHeader and is not complete.
  void skip_body();
  // Whether a frame was announced and is neither complete nor skipped.
  bool in_body() const { return phase_ == Phase::announced || phase_ == Phase::body; }

  // Bytes held that belong to no complete frame yet.
  std::size_t size_held() const { return (end_ - begin_) + body_filled_; }
  // Between two frames: nothing is lost if the stream ends here.
  bool at_boundary() const { return phase_ == Phase::header && size_held() == 0; }

 private:
  enum class Phase : std::uint8_t { header, announced, body, skipping, broken };

  Step next_header();
  Step next_body();
  Step refuse(FrameRefusal refusal);
  void begin_body();
  void adapt_input();

  const Direction expected_;
  const std::size_t body_size_max_;
  Phase phase_ = Phase::header;
  FrameHeader header_;
  base::Buffer input_;  // its size is its capacity; [begin_, end_) is filled
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  unsigned small_reads_ = 0;
  bool in_place_ = false;  // the body is larger than the input buffer and lies in body_
  base::Buffer body_;
  std::size_t body_filled_ = 0;
  std::size_t skip_left_ = 0;
};

// Appends one frame: the header first, its body size patched in by finish(). The Buffer outlives it
// and is written by nobody else meanwhile.
class FrameWriter {
 public:
  FrameWriter(base::Buffer& out, const FrameHeader& header);
  base::Encoder& body() [[clang::lifetimebound]] { return encoder_; }
  // `size_to_follow`: bytes of the body that the caller sends behind what is in the Buffer.
  // Requires: the body is no larger than kBodySizeCap. Once.
  void finish(std::size_t size_to_follow = 0);

 private:
  std::size_t header_at_;
  base::Encoder encoder_;
};

// LZ4 bodies: u32 size of the plain body, then one raw LZ4 block.
enum class Compression : std::uint8_t { none, lz4 };
// "" or "lz4", as STARTUP and SUPPORTED name it.
std::string_view name_of(Compression compression);
// In either case of letters; none if not supported.
std::optional<Compression> compression_named(std::string_view name);

// Bodies smaller than this are sent plain: compressing them saves no packet.
inline constexpr std::size_t kCompressSizeMin = 512;

// The body of the frame, plain. Errors: corrupt (malformed, or compressed though `negotiated` is
// none), invalid_argument (its declared size is above `size_max`). Memory is taken only for what a
// block of that size can hold.
base::Result<base::Bytes> plain_body(const Frame& frame, Compression negotiated,
                                     std::size_t size_max);
// How large the plain body says it is; of a frame that is not compressed, how large it is.
std::size_t plain_size(const Frame& frame);
// Appends the body compressed, if that makes it smaller, and says whether it did.
bool compress_body(base::ByteView plain, base::Buffer& out);
// Compresses the last frame of `frames`, which begins at `frame_at`, if it is large enough and gets
// smaller.
void compress_frame(base::Buffer& frames, std::size_t frame_at);

}  // namespace helenus::cql::protocol
