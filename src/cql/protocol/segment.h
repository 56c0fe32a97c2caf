// Segments: what frames of version 5 travel in, once STARTUP was answered. Several small frames may
// lie in one, a large frame in several.
//
//   plain      payload size: 17 bits | self-contained: 1 bit | 6 bits of zero | CRC24
//   with LZ4   compressed size: 17 bits | payload size: 17 bits | self-contained: 1 bit |
//              5 bits of zero | CRC24
//   payload | CRC32
//
// Numbers are little-endian. With LZ4, a payload size of zero says that it was not compressed, and
// the first number is its size. The checksums are of the header before them and of the payload as
// it is sent; both begin in states of the protocol's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/frame.h"

namespace helenus::cql::protocol {

inline constexpr std::size_t kSegmentPayloadMax = (std::size_t{1} << 17) - 1;
inline constexpr std::size_t kSegmentTrailerSize = sizeof(std::uint32_t);
inline constexpr std::size_t kSegmentSizeMax = 8 + kSegmentPayloadMax + kSegmentTrailerSize;

// Appends the frame, in as many segments as it takes, each compressed if that makes it smaller.
void append_segments(base::ByteView frame, Compression compression, base::Buffer& out);

// Cuts a stream of bytes into the payloads of its segments. Pure: the transport reads into
// `room()`, says how much came with `commit()`, and calls `next()` until that gives nothing.
//
// Memory: one segment and what was read behind it; kRoomSize while there is nothing.
class SegmentReader {
 public:
  static constexpr std::size_t kRoomSize = std::size_t{4} << 10;

  explicit SegmentReader(Compression compression) : compression_(compression) {}

  // Where to read to next; never empty. Calling next() or room() ends the view.
  base::MutableByteView room() [[clang::lifetimebound]];
  // Requires: no more than the size of the last room().
  void commit(std::size_t count);

  // The payload of the next segment, once it is there: it may be empty. Errors: corrupt, for a
  // checksum that is wrong and a payload that does not decompress; nothing is to be read after
  // that.
  base::Result<std::optional<base::Bytes>> next();

  std::size_t size_held() const { return end_ - begin_; }

 private:
  struct Header {
    std::size_t size = 0;        // as it is sent
    std::size_t plain_size = 0;  // 0: it is not compressed
  };
  std::size_t header_size() const { return compression_ == Compression::none ? 6 : 8; }
  base::Result<Header> read_header() const;

  const Compression compression_;
  base::Buffer input_;  // [begin_, end_) is filled
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// ---- The checksums, for tests ----

std::uint32_t crc24(std::uint64_t bytes, std::size_t count);
std::uint32_t segment_crc32(base::ByteView payload);

}  // namespace helenus::cql::protocol
