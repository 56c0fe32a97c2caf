// Fuzzes storage::BlockDecoder: the input is a frame without its checksum, which is added, so that
// what lies behind it is reached. What decodes must be the size that the head declares, and its
// payload must survive being framed again.
#include <cstddef>
#include <cstdint>

#include "base/codec.h"
#include "storage/sstable/block_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  using namespace helenus::storage;
  constexpr std::uint64_t kOffset = 4096;
  const BlockSeal seal{FileId{}};
  base::Buffer frame;
  frame.append(std::as_bytes(std::span(data, size)));
  base::Encoder(frame).u32_le(seal.of(kOffset, frame.view()));
  const base::Bytes bytes = std::move(frame).freeze();
  if (bytes.size() < kBlockFrameSize) return 0;
  const auto head = BlockHead::decode(bytes);
  BlockDecoder decoder;
  const BlockKind kind = head ? head->kind : BlockKind::data;
  const auto payload = decoder.decode(seal, kind, kOffset, bytes, BlockDecoder::Memory::share);
  if (!payload) return 0;
  ASSERT(head.has_value() && payload->size() == head->payload_size);
  BlockEncoder encoder(head->compression, 1);
  base::Buffer again;
  encoder.encode(seal, kind, kOffset, *payload, again);
  const auto decoded =
      decoder.decode(seal, kind, kOffset, std::move(again).freeze(), BlockDecoder::Memory::copy);
  ASSERT(decoded.has_value() && *decoded == *payload);
  return 0;
}
