// The file that makes a folder an engine's: how many shards it has. docs/formats/engine.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::storage {

inline constexpr std::size_t kFolderFileSize = 8 + 1 + 4 + 4;

// Requires: between 1 and kShardsMax of them.
base::Bytes encode_folder_file(std::uint32_t shards);
// How many shards the folder has. Errors: corrupt; unsupported (another version).
base::Result<std::uint32_t> decode_folder_file(base::ByteView bytes);

}  // namespace helenus::storage
