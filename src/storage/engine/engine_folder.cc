#include "storage/engine/engine_folder.h"

#include "base/codec.h"
#include "base/versioned_file.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr base::FileFormat kFormat{.magic = "HLNSENGN", .version = 1};
static_assert(kFolderFileSize == kFormat.frame_size() + 4);

}  // namespace

base::Bytes encode_folder_file(std::uint32_t shards) {
  ASSERT(shards > 0 && shards <= kShardsMax);
  base::Buffer content;
  base::Encoder(content).u32_le(shards);
  return base::encode_file(kFormat, content.view());
}

Result<std::uint32_t> decode_folder_file(base::ByteView bytes) {
  TRY(const auto content, base::decode_file(kFormat, bytes));
  base::Decoder in(content);
  const std::uint32_t shards = in.u32_le();
  TRY_VOID(in.finish());
  if (shards == 0 || shards > kShardsMax) return Error(Errc::corrupt, "{} shards", shards);
  return shards;
}

}  // namespace helenus::storage
