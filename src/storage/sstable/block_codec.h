// How a block lies in a file: compressed, framed, and sealed with a checksum that only fits this
// file and this place in it. docs/formats/sstable.md has the bytes.
//
// A checksum over the bytes alone would accept the right block of the wrong file, or an older write
// that landed at the wrong offset. So it is continued from one over the file's id and the offset.
// A CRC maps different beginnings of the same bytes to different results, so a block that was moved
// never passes where the beginnings differ: always inside a file below 4 GiB, and between other
// places but for one in 2^32.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

enum class Compression : std::uint8_t { none = 0, lz4 = 1, zstd = 2 };
std::string_view name_of(Compression compression);
std::optional<Compression> compression_named(std::string_view name);

enum class BlockKind : std::uint8_t {
  data = 1,
  index = 2,
  filter = 3,
  filter_index = 4,
  metadata = 5,
  statistics = 6,
};
std::string_view name_of(BlockKind kind);

// Random, one for each file ever written.
struct FileId {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const FileId&, const FileId&) = default;
};

// Where a stored block lies, frame included.
struct BlockHandle {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  friend bool operator==(const BlockHandle&, const BlockHandle&) = default;
};

// kind, compression, stored size, payload size; and behind the payload the checksum.
inline constexpr std::size_t kBlockHeadSize = 1 + 1 + 4 + 4;
inline constexpr std::size_t kBlockFrameSize = kBlockHeadSize + 4;
// The largest payload: a value of the largest size with its key, or an index node of long keys.
inline constexpr std::size_t kBlockPayloadMax = kValueSizeMax + (std::size_t{4} << 20);
static_assert(kBlockPayloadMax + kBlockPayloadMax / 128 < UINT32_MAX);

// The beginning of every checksum in one file.
class BlockSeal {
 public:
  BlockSeal() = default;
  explicit BlockSeal(const FileId& id);
  // Of a frame without its last four bytes.
  std::uint32_t of(std::uint64_t offset, base::ByteView frame) const;

 private:
  std::uint32_t of_file_ = 0;
};

// The first bytes of a frame.
struct BlockHead {
  BlockKind kind = BlockKind::data;
  Compression compression = Compression::none;
  std::uint32_t stored_size = 0;  // of the payload as stored
  std::uint32_t payload_size = 0;

  // Requires: at least kBlockHeadSize bytes. Errors: corrupt (unknown kind, impossible sizes),
  // unsupported (unknown compression).
  static base::Result<BlockHead> decode(base::ByteView bytes);
};

// Compresses and frames. Owns the compressor's working memory: one for each writer.
class BlockEncoder {
 public:
  // A level means something for zstd only.
  BlockEncoder(Compression compression, int level);
  ~BlockEncoder();
  BlockEncoder(const BlockEncoder&) = delete;
  BlockEncoder& operator=(const BlockEncoder&) = delete;

  // Appends the framed block that will lie at `offset`; returns its handle. A payload that does not
  // shrink by an eighth is stored as it is. Requires: 0 < payload.size() <= kBlockPayloadMax.
  BlockHandle encode(const BlockSeal& seal, BlockKind kind, std::uint64_t offset,
                     base::ByteView payload, base::Buffer& out);

 private:
  struct Contexts;
  // Bytes written to `to`, or zero if the payload does not fit there.
  std::size_t compress(base::ByteView payload, base::MutableByteView to);

  const Compression compression_;
  const int level_;
  std::unique_ptr<Contexts> contexts_;
};

// Unframes and decompresses. Owns the decompressor's working memory: one for each core.
class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();
  BlockDecoder(const BlockDecoder&) = delete;
  BlockDecoder& operator=(const BlockDecoder&) = delete;

  // What an uncompressed payload may do with the memory it was read into.
  enum class Memory : unsigned char { share, copy };

  // The payload of the frame that was read from `offset`. Everything is checked before a byte of it
  // is believed. Errors: corrupt, unsupported (a compression of a later version).
  base::Result<base::Bytes> decode(const BlockSeal& seal, BlockKind kind, std::uint64_t offset,
                                   const base::Bytes& frame, Memory memory);

 private:
  struct Contexts;
  base::Result<base::Bytes> decompress(const BlockHead& head, base::ByteView stored);

  std::unique_ptr<Contexts> contexts_;
};

}  // namespace helenus::storage
