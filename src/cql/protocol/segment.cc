#include "cql/protocol/segment.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <isa-l/crc.h>
#include <lz4.h>

namespace helenus::cql::protocol {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;

namespace {

constexpr std::uint32_t kCrc24Start = 0x875060;
constexpr std::uint32_t kCrc24Polynomial = 0x1974F0B;
constexpr unsigned kSizeBits = 17;
constexpr std::uint64_t kSizeMask = (std::uint64_t{1} << kSizeBits) - 1;
constexpr std::size_t kCrc24Size = 3;

std::uint64_t load_little(const std::byte* from, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

void append_little(base::Buffer& out, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(static_cast<std::byte>(value & 0xff));
    value >>= 8;
  }
}

void append_header(base::Buffer& out, std::uint64_t header, std::size_t size) {
  append_little(out, header, size);
  append_little(out, crc24(header, size), kCrc24Size);
}

// Nothing if that would not be smaller.
std::optional<base::Buffer> compressed(ByteView payload) {
  if (payload.size() < kCompressSizeMin) return std::nullopt;
  base::Buffer packed;
  const auto room = packed.extend(payload.size() - 1);
  const int size = LZ4_compress_default(
      reinterpret_cast<const char*>(payload.data()), reinterpret_cast<char*>(room.data()),
      static_cast<int>(payload.size()), static_cast<int>(room.size()));
  if (size <= 0) return std::nullopt;
  packed.truncate(static_cast<std::size_t>(size));
  return packed;
}

void append_segment(ByteView payload, bool self_contained, Compression compression,
                    base::Buffer& out) {
  ASSERT(payload.size() <= kSegmentPayloadMax);
  const std::uint64_t flag = self_contained ? 1 : 0;
  std::optional<base::Buffer> packed;
  if (compression == Compression::none) {
    append_header(out, payload.size() | flag << kSizeBits, 3);
  } else {
    packed = compressed(payload);
    const std::uint64_t size = packed ? packed->size() : payload.size();
    const std::uint64_t plain = packed ? payload.size() : 0;
    append_header(out, size | plain << kSizeBits | flag << (2 * kSizeBits), 5);
  }
  const ByteView sent = packed ? packed->view() : payload;
  out.append(sent);
  append_little(out, segment_crc32(sent), kSegmentTrailerSize);
}

}  // namespace

std::uint32_t crc24(std::uint64_t bytes, std::size_t count) {
  std::uint32_t crc = kCrc24Start;
  for (std::size_t i = 0; i < count; ++i) {
    crc ^= static_cast<std::uint32_t>(bytes & 0xff) << 16;
    bytes >>= 8;
    for (int bit = 0; bit < 8; ++bit) {
      crc <<= 1;
      if ((crc & 0x1000000) != 0) crc ^= kCrc24Polynomial;
    }
  }
  return crc;
}

std::uint32_t segment_crc32(ByteView payload) {
  constexpr std::array<unsigned char, 4> kStart = {0xfa, 0x2d, 0x55, 0xca};
  const std::uint32_t start = crc32_gzip_refl(0, kStart.data(), kStart.size());
  return crc32_gzip_refl(start, reinterpret_cast<const unsigned char*>(payload.data()),
                         payload.size());
}

void append_segments(ByteView frame, Compression compression, base::Buffer& out) {
  const bool self_contained = frame.size() <= kSegmentPayloadMax;
  do {
    const std::size_t size = std::min(frame.size(), kSegmentPayloadMax);
    append_segment(frame.first(size), self_contained, compression, out);
    frame = frame.subspan(size);
  } while (!frame.empty());
}

base::MutableByteView SegmentReader::room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (begin_ > 0) {
    std::memmove(input_.data(), input_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // At most a segment is held before it is given, so this does not grow for ever.
  std::size_t wanted = kRoomSize;
  if (end_ >= header_size()) {
    const auto header = read_header();
    const std::size_t size =
        header ? header_size() + header->size + kSegmentTrailerSize : std::size_t{0};
    // What is declared is not believed until it is here: at most as much again as has come.
    if (size > end_) wanted = std::max(wanted, std::min(size - end_, end_));
  }
  if (input_.size() < end_ + wanted) input_.extend(end_ + wanted - input_.size());
  return input_.mutable_view().subspan(end_);
}

void SegmentReader::commit(std::size_t count) {
  ASSERT(count <= input_.size() - end_);
  end_ += count;
}

base::Result<SegmentReader::Header> SegmentReader::read_header() const {
  const std::byte* at = input_.data() + begin_;
  const std::size_t size = header_size() - kCrc24Size;
  const std::uint64_t header = load_little(at, size);
  if (load_little(at + size, kCrc24Size) != crc24(header, size)) {
    return Error(Errc::corrupt, "the header of a segment has a wrong checksum");
  }
  if (compression_ == Compression::none) return Header{.size = header & kSizeMask};
  return Header{.size = header & kSizeMask, .plain_size = header >> kSizeBits & kSizeMask};
}

base::Result<std::optional<Bytes>> SegmentReader::next() {
  const std::size_t held = end_ - begin_;
  if (held == 0 && input_.size() > kRoomSize) {
    input_ = base::Buffer();
    begin_ = end_ = 0;
  }
  if (held < header_size()) return std::optional<Bytes>();
  TRY(const Header header, read_header());
  if (held < header_size() + header.size + kSegmentTrailerSize) return std::optional<Bytes>();
  const ByteView sent = input_.view().subspan(begin_ + header_size(), header.size);
  const std::byte* const trailer = sent.data() + sent.size();
  if (load_little(trailer, kSegmentTrailerSize) != segment_crc32(sent)) {
    return Error(Errc::corrupt, "the payload of a segment has a wrong checksum");
  }
  begin_ += header_size() + header.size + kSegmentTrailerSize;
  if (header.plain_size == 0) return std::optional(Bytes::copy_of(sent));
  base::Buffer plain(header.plain_size);
  plain.extend(header.plain_size);
  const int got = LZ4_decompress_safe(
      reinterpret_cast<const char*>(sent.data()), reinterpret_cast<char*>(plain.data()),
      static_cast<int>(sent.size()), static_cast<int>(header.plain_size));
  if (got < 0 || static_cast<std::size_t>(got) != header.plain_size) {
    return Error(Errc::corrupt, "the payload of a segment is malformed");
  }
  return std::optional(std::move(plain).freeze());
}

}  // namespace helenus::cql::protocol
