#include "storage/engine/engine_folder.h"

#include <string_view>

#include "base/codec.h"
#include "base/crc32c.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::string_view kMagic = "HLNSENGN";
constexpr std::uint8_t kVersion = 1;
static_assert(kFolderFileSize == kMagic.size() + 1 + 4 + 4);

}  // namespace

base::Bytes encode_folder_file(std::uint32_t shards) {
  ASSERT(shards > 0 && shards <= kShardsMax);
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.raw(base::as_bytes(kMagic));
  out.u8(kVersion);
  out.u32_le(shards);
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<std::uint32_t> decode_folder_file(base::ByteView bytes) {
  if (bytes.size() < kMagic.size() + 1 ||
      !base::equal(bytes.first(kMagic.size()), base::as_bytes(kMagic))) {
    return Error(Errc::corrupt, "at offset 0: does not begin with {}", kMagic);
  }
  const auto version = std::to_integer<std::uint8_t>(bytes[kMagic.size()]);
  if (version != kVersion) {
    return Error(Errc::unsupported, "at offset {}: version {}, this program reads version {}",
                 kMagic.size(), version, kVersion);
  }
  if (bytes.size() != kFolderFileSize ||
      base::load_le<std::uint32_t>(bytes.data() + kFolderFileSize - 4) !=
          base::crc32c(bytes.first(kFolderFileSize - 4))) {
    return Error(Errc::corrupt, "at offset {}: checksum of all that is before does not match",
                 kFolderFileSize - 4);
  }
  const auto shards = base::load_le<std::uint32_t>(bytes.data() + kMagic.size() + 1);
  if (shards == 0 || shards > kShardsMax) {
    return Error(Errc::corrupt, "at offset {}: {} shards", kMagic.size() + 1, shards);
  }
  return shards;
}

}  // namespace helenus::storage
