// The frame of a small file that is read and written whole:
//
//   file := magic version:u8 content crc32c:u32
//
// The checksum, little-endian, covers everything before it. Every version keeps the magic and the
// version where they are; what follows may differ, so the version is looked at before the checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::base {

struct FileFormat {
  std::string_view magic;
  std::uint8_t version = 0;

  // What the frame takes beside the content.
  constexpr std::size_t frame_size() const { return magic.size() + 1 + 4; }
};

Bytes encode_file(FileFormat format, ByteView content);
// The content, which borrows from `bytes`. Errors: corrupt; unsupported for any other version,
// saying what to do about it.
Result<ByteView> decode_file(FileFormat format, ByteView bytes);

// Which version the bytes say they are of, where several are read; 0 for what is too short.
std::uint8_t file_version(FileFormat format, ByteView bytes);

// What a file of another version is refused with.
Error unsupported_version(std::uint64_t found, std::uint64_t known);

}  // namespace helenus::base
