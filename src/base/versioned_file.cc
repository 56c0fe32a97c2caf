#include "base/versioned_file.h"

#include <utility>

#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::base {

Bytes encode_file(FileFormat format, ByteView content) {
  Buffer buffer(format.frame_size() + content.size());
  Encoder out(buffer);
  out.raw(as_bytes(format.magic));
  out.u8(format.version);
  out.raw(content);
  out.u32_le(crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<ByteView> decode_file(FileFormat format, ByteView bytes) {
  const std::size_t head_size = format.magic.size() + 1;
  if (bytes.size() < head_size ||
      !equal(bytes.first(format.magic.size()), as_bytes(format.magic))) {
    return Error(Errc::corrupt, "at offset 0: does not begin with {}", format.magic);
  }
  const auto version = std::to_integer<std::uint8_t>(bytes[format.magic.size()]);
  if (version != format.version) return unsupported_version(version, format.version);
  if (bytes.size() < format.frame_size()) {
    return Error(Errc::corrupt, "ends at offset {}, before its checksum", bytes.size());
  }
  const std::size_t covered = bytes.size() - 4;
  if (load_le<std::uint32_t>(bytes.data() + covered) != crc32c(bytes.first(covered))) {
    return Error(Errc::corrupt, "at offset {}: checksum of all that is before does not match",
                 covered);
  }
  return bytes.subspan(head_size, covered - head_size);
}

std::uint8_t file_version(FileFormat format, ByteView bytes) {
  const std::size_t at = format.magic.size();
  return at < bytes.size() ? static_cast<std::uint8_t>(bytes[at]) : 0;
}

Error unsupported_version(std::uint64_t found, std::uint64_t known) {
  return Error(
      Errc::unsupported,
      "version {} of its format, and this release reads version {}: start the release that "
      "wrote it, or this one with an empty folder",
      found, known);
}

}  // namespace helenus::base
