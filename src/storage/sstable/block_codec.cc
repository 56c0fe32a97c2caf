#include "storage/sstable/block_codec.h"

#include <lz4.h>
#include <zstd.h>

#include "base/assert.h"
#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::lz4:
      return "lz4";
    case Compression::zstd:
      return "zstd";
  }
  UNREACHABLE("compression {}", static_cast<int>(compression));
}

std::optional<Compression> compression_named(std::string_view name) {
  for (const auto compression : {Compression::none, Compression::lz4, Compression::zstd}) {
    if (name == name_of(compression)) return compression;
  }
  return std::nullopt;
}

std::string_view name_of(BlockKind kind) {
  switch (kind) {
    case BlockKind::data:
      return "data block";
    case BlockKind::index:
      return "index block";
    case BlockKind::filter:
      return "filter block";
    case BlockKind::filter_index:
      return "filter index block";
    case BlockKind::metadata:
      return "metadata block";
    case BlockKind::statistics:
      return "statistics block";
  }
  UNREACHABLE("block kind {}", static_cast<int>(kind));
}

BlockSeal::BlockSeal(const FileId& id) : of_file_(base::crc32c(id.bytes)) {}

std::uint32_t BlockSeal::of(std::uint64_t offset, ByteView frame) const {
  std::array<std::byte, 8> place;
  base::store_le(place.data(), offset);
  return base::crc32c(frame, base::crc32c(place, of_file_));
}

Result<BlockHead> BlockHead::decode(ByteView bytes) {
  base::Decoder in(bytes.first(kBlockHeadSize));
  const std::uint8_t kind = in.u8();
  const std::uint8_t compression = in.u8();
  const BlockHead head{.kind = static_cast<BlockKind>(kind),
                       .compression = static_cast<Compression>(compression),
                       .stored_size = in.u32_le(),
                       .payload_size = in.u32_le()};
  TRY_VOID(in.finish());
  if (head.kind < BlockKind::data || head.kind > BlockKind::statistics) {
    return Error(Errc::corrupt, "unknown kind of block {}", kind);
  }
  if (head.compression > Compression::zstd) {
    return Error(Errc::unsupported, "unknown compression {}", compression);
  }
  if (head.payload_size == 0 || head.payload_size > kBlockPayloadMax) {
    return Error(Errc::corrupt, "payload of {} bytes", head.payload_size);
  }
  const bool fits = head.compression == Compression::none
                        ? head.stored_size == head.payload_size
                        : head.stored_size > 0 && head.stored_size < head.payload_size;
  if (!fits) {
    return Error(Errc::corrupt, "{} bytes stored for a payload of {}", head.stored_size,
                 head.payload_size);
  }
  return head;
}

// ---- encoding

struct BlockEncoder::Contexts {
  std::unique_ptr<std::byte[]> lz4;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd{nullptr, &ZSTD_freeCCtx};
};

BlockEncoder::BlockEncoder(Compression compression, int level)
    : compression_(compression), level_(level), contexts_(std::make_unique<Contexts>()) {
  if (compression == Compression::lz4) {
    contexts_->lz4 = std::make_unique<std::byte[]>(static_cast<std::size_t>(LZ4_sizeofState()));
  } else if (compression == Compression::zstd) {
    contexts_->zstd.reset(ZSTD_createCCtx());
    ASSERT(contexts_->zstd != nullptr);
  }
}

BlockEncoder::~BlockEncoder() = default;

std::size_t BlockEncoder::compress(ByteView payload, base::MutableByteView to) {
  switch (compression_) {
    case Compression::none:
      return 0;
    case Compression::lz4: {
      const int size = LZ4_compress_fast_extState(
          contexts_->lz4.get(), reinterpret_cast<const char*>(payload.data()),
          reinterpret_cast<char*>(to.data()), static_cast<int>(payload.size()),
          static_cast<int>(to.size()), 1);
      return size > 0 ? static_cast<std::size_t>(size) : 0;
    }
    case Compression::zstd: {
      const std::size_t size = ZSTD_compressCCtx(contexts_->zstd.get(), to.data(), to.size(),
                                                 payload.data(), payload.size(), level_);
      return ZSTD_isError(size) != 0 ? 0 : size;
    }
  }
  UNREACHABLE();
}

BlockHandle BlockEncoder::encode(const BlockSeal& seal, BlockKind kind, std::uint64_t offset,
                                 ByteView payload, base::Buffer& out) {
  ASSERT(!payload.empty() && payload.size() <= kBlockPayloadMax);
  const std::size_t begin = out.size();
  const std::size_t worth_storing = payload.size() - payload.size() / 8;
  out.reserve(begin + kBlockFrameSize + payload.size());
  out.extend(kBlockHeadSize);
  // A filter looks like noise: trying costs time and gives nothing.
  const base::MutableByteView into = out.extend(payload.size());
  const std::size_t compressed = kind == BlockKind::filter ? 0 : compress(payload, into);
  Compression used = compression_;
  std::size_t stored = compressed;
  if (compressed == 0 || compressed >= worth_storing) {
    used = Compression::none;
    stored = payload.size();
    std::memcpy(out.data() + begin + kBlockHeadSize, payload.data(), payload.size());
  }
  out.truncate(begin + kBlockHeadSize + stored);
  std::byte* head = out.data() + begin;
  base::store_le(head, static_cast<std::uint8_t>(kind));
  base::store_le(head + 1, static_cast<std::uint8_t>(used));
  base::store_le(head + 2, static_cast<std::uint32_t>(stored));
  base::store_le(head + 6, static_cast<std::uint32_t>(payload.size()));
  const std::uint32_t checksum = seal.of(offset, out.view().subspan(begin));
  base::Encoder(out).u32_le(checksum);
  return {.offset = offset, .size = static_cast<std::uint32_t>(out.size() - begin)};
}

// ---- decoding

struct BlockDecoder::Contexts {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> zstd{nullptr, &ZSTD_freeDCtx};
};

BlockDecoder::BlockDecoder() : contexts_(std::make_unique<Contexts>()) {}
BlockDecoder::~BlockDecoder() = default;

Result<base::Bytes> BlockDecoder::decode(const BlockSeal& seal, BlockKind kind,
                                         std::uint64_t offset, const base::Bytes& frame,
                                         Memory memory) {
  if (frame.size() < kBlockFrameSize) {
    return Error(Errc::corrupt, "{} bytes are no block", frame.size());
  }
  const std::size_t sealed = frame.size() - 4;
  const auto checksum = base::load_le<std::uint32_t>(frame.data() + sealed);
  const std::uint32_t computed = seal.of(offset, frame.view().first(sealed));
  if (checksum != computed) {
    return Error(Errc::corrupt, "checksum is {:08x}, bytes give {:08x}", checksum, computed);
  }
  TRY(const BlockHead head, BlockHead::decode(frame));
  if (head.kind != kind) return Error(Errc::corrupt, "is a {}", name_of(head.kind));
  if (head.stored_size + kBlockFrameSize != frame.size()) {
    return Error(Errc::corrupt, "frame of {} bytes claims {}", frame.size(),
                 head.stored_size + kBlockFrameSize);
  }
  if (head.compression == Compression::none) {
    base::Bytes payload = frame.slice(kBlockHeadSize, head.stored_size);
    return memory == Memory::share ? payload : base::Bytes::copy_of(payload);
  }
  return decompress(head, frame.view().subspan(kBlockHeadSize, head.stored_size));
}

Result<base::Bytes> BlockDecoder::decompress(const BlockHead& head, ByteView stored) {
  // A byte of LZ4 gives at most 255; zstd states its size, and both must agree before any memory
  // is taken for it.
  const bool plausible =
      head.compression == Compression::lz4
          ? head.payload_size / 255 <= stored.size()
          : ZSTD_getFrameContentSize(stored.data(), stored.size()) == head.payload_size;
  if (!plausible) {
    return Error(Errc::corrupt, "{} bytes cannot hold a payload of {}", stored.size(),
                 head.payload_size);
  }
  base::Buffer payload(head.payload_size);
  const base::MutableByteView into = payload.extend(head.payload_size);
  std::size_t size = 0;
  if (head.compression == Compression::lz4) {
    const int got = LZ4_decompress_safe(
        reinterpret_cast<const char*>(stored.data()), reinterpret_cast<char*>(into.data()),
        static_cast<int>(stored.size()), static_cast<int>(into.size()));
    size = got < 0 ? 0 : static_cast<std::size_t>(got);
  } else {
    if (contexts_->zstd == nullptr) contexts_->zstd.reset(ZSTD_createDCtx());
    ASSERT(contexts_->zstd != nullptr);
    const std::size_t got = ZSTD_decompressDCtx(contexts_->zstd.get(), into.data(), into.size(),
                                                stored.data(), stored.size());
    size = ZSTD_isError(got) != 0 ? 0 : got;
  }
  if (size != head.payload_size) {
    return Error(Errc::corrupt, "payload of {} bytes does not decompress", head.payload_size);
  }
  return std::move(payload).freeze();
}

}  // namespace helenus::storage
