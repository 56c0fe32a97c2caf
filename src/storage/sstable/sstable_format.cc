#include "storage/sstable/sstable_format.h"

#include <algorithm>
#include <string_view>

#include "base/crc32c.h"

namespace helenus::storage {

using base::ByteView;
using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::string_view kHeaderMagic = "HLNSSST\n";
constexpr std::string_view kFooterMagic = "HLNSEND\n";
constexpr std::uint8_t kStatisticsVersion = 1;

FileId decode_id(Decoder& in) {
  FileId id;
  if (const ByteView bytes = in.raw(id.bytes.size()); !bytes.empty()) {
    std::ranges::copy(bytes, id.bytes.begin());
  }
  return id;
}

// Checks what header and footer share: the letters, the version, the checksum at the end.
Result<void> check_frame(ByteView bytes, ByteView magic, std::string_view wanted_magic,
                         std::uint32_t version) {
  if (base::as_text(magic) != wanted_magic) {
    return Error(Errc::corrupt, "does not have the letters of an sstable");
  }
  // Before the checksum: a later version may compute it over other bytes.
  if (version != kSstableVersion) {
    return Error(Errc::unsupported, "version {} of the format, this program knows {}", version,
                 kSstableVersion);
  }
  const std::size_t sealed = bytes.size() - 4;
  if (base::crc32c(bytes.first(sealed)) != base::load_le<std::uint32_t>(bytes.data() + sealed)) {
    return Error(Errc::corrupt, "checksum does not match");
  }
  return {};
}

void seal(base::Buffer& out, std::size_t begin) {
  const std::uint32_t checksum = base::crc32c(out.view().subspan(begin));
  Encoder(out).u32_le(checksum);
}

void put_handle(Encoder& out, const BlockHandle& handle) {
  out.u64_le(handle.offset);
  out.u32_le(handle.size);
}

BlockHandle get_handle(Decoder& in) {
  return {.offset = in.u64_le(), .size = in.u32_le()};
}

}  // namespace

// ---- header and footer

void SstableHeader::encode(base::Buffer& out) const {
  const std::size_t begin = out.size();
  Encoder encoder(out);
  encoder.raw(base::as_bytes(kHeaderMagic));
  encoder.u32_le(kSstableVersion);
  encoder.raw(id.bytes);
  seal(out, begin);
  ASSERT(out.size() - begin == kSize);
}

Result<SstableHeader> SstableHeader::decode(ByteView bytes) {
  if (bytes.size() != kSize) return Error(Errc::corrupt, "header of {} bytes", bytes.size());
  Decoder in(bytes);
  const ByteView magic = in.raw(kHeaderMagic.size());
  const std::uint32_t version = in.u32_le();
  const SstableHeader header{.id = decode_id(in)};
  TRY_VOID(in.status());
  TRY_VOID(check_frame(bytes, magic, kHeaderMagic, version));
  return header;
}

void SstableFooter::encode(base::Buffer& out) const {
  const std::size_t begin = out.size();
  Encoder encoder(out);
  for (const BlockHandle& handle : {root, filter_index, metadata, statistics}) {
    put_handle(encoder, handle);
  }
  encoder.u64_le(file_size);
  encoder.raw(id.bytes);
  encoder.u64_le(0);  // reserved
  encoder.u32_le(kSstableVersion);
  encoder.raw(base::as_bytes(kFooterMagic));
  seal(out, begin);
  ASSERT(out.size() - begin == kSize);
}

Result<SstableFooter> SstableFooter::decode(ByteView bytes) {
  if (bytes.size() != kSize) return Error(Errc::corrupt, "footer of {} bytes", bytes.size());
  Decoder in(bytes);
  SstableFooter footer;
  for (BlockHandle* handle :
       {&footer.root, &footer.filter_index, &footer.metadata, &footer.statistics}) {
    *handle = get_handle(in);
  }
  footer.file_size = in.u64_le();
  footer.id = decode_id(in);
  const std::uint64_t reserved = in.u64_le();
  const std::uint32_t version = in.u32_le();
  const ByteView magic = in.raw(kFooterMagic.size());
  TRY_VOID(in.status());
  TRY_VOID(check_frame(bytes, magic, kFooterMagic, version));
  if (reserved != 0) return Error(Errc::corrupt, "reserved bytes are {:#x}", reserved);
  if (footer.file_size < SstableHeader::kSize + kSize) {
    return Error(Errc::corrupt, "claims a file of {} bytes", footer.file_size);
  }
  const std::uint64_t blocks_end = footer.file_size - kSize;
  for (const BlockHandle& handle :
       {footer.root, footer.filter_index, footer.metadata, footer.statistics}) {
    if (handle.size == 0) continue;
    if (handle.offset < SstableHeader::kSize || handle.offset > blocks_end ||
        handle.size > blocks_end - handle.offset || handle.size <= kBlockFrameSize) {
      return Error(Errc::corrupt, "a block of {} bytes at {} lies outside the file", handle.size,
                   handle.offset);
    }
  }
  if (footer.statistics.size == 0) return Error(Errc::corrupt, "names no statistics");
  return footer;
}

// ---- index entries

std::array<std::byte, IndexEntry::kSize> IndexEntry::encode() const {
  std::array<std::byte, kSize> bytes;
  base::store_le(bytes.data(), handle.offset);
  base::store_le(bytes.data() + 8, first_ordinal);
  base::store_le(bytes.data() + 16, handle.size);
  return bytes;
}

// ---- statistics

namespace {

// The counters, in the order they are encoded.
template <class Statistics, class Visit>
void visit_counters(Statistics& statistics, Visit&& visit) {
  visit(statistics.key_count);
  visit(statistics.partition_count);
  visit(statistics.key_bytes);
  visit(statistics.value_bytes);
  visit(statistics.key_size_max);
  visit(statistics.value_size_max);
  visit(statistics.data_block_count);
  visit(statistics.data_payload_bytes);
  visit(statistics.data_stored_bytes);
  visit(statistics.index_block_count);
  visit(statistics.index_stored_bytes);
  visit(statistics.index_depth);
  visit(statistics.filter_block_count);
  visit(statistics.filter_stored_bytes);
  visit(statistics.filter_hash_count);
}

Result<void> check_histogram(ByteView bytes) {
  Decoder in(bytes);
  TRY_VOID(base::Histogram::decode(in));
  return in.finish();
}

}  // namespace

void SstableStatistics::encode(base::Buffer& out) const {
  Encoder encoder(out);
  encoder.u8(kStatisticsVersion);
  visit_counters(*this, [&](std::uint64_t counter) { encoder.varint(counter); });
  encoder.u8(static_cast<std::uint8_t>(compression));
  encoder.prefixed(first_key);
  encoder.prefixed(last_key);
  encoder.varint(wide_partitions.size());
  for (const WidePartition& partition : wide_partitions) {
    encoder.prefixed(partition.key);
    encoder.varint(partition.first_ordinal);
    encoder.varint(partition.row_count);
    encoder.varint(partition.bytes);
  }
  encoder.prefixed(partition_bytes_histogram);
  encoder.prefixed(partition_rows_histogram);
}

Result<SstableStatistics> SstableStatistics::decode(ByteView bytes) {
  Decoder in(bytes);
  if (const std::uint8_t version = in.u8(); in.ok() && version != kStatisticsVersion) {
    return Error(Errc::unsupported, "version {} of the statistics", version);
  }
  SstableStatistics statistics;
  visit_counters(statistics, [&](std::uint64_t& counter) { counter = in.varint(); });
  const std::uint8_t compression = in.u8();
  if (compression > static_cast<std::uint8_t>(Compression::zstd)) in.fail("unknown compression");
  statistics.compression = static_cast<Compression>(compression);
  statistics.first_key = base::Bytes::copy_of(in.prefixed());
  statistics.last_key = base::Bytes::copy_of(in.prefixed());
  const std::size_t wide = in.count(4);
  if (wide > kWidePartitionsMax) in.fail("too many wide partitions");
  for (std::size_t i = 0; i < wide && in.ok(); ++i) {
    statistics.wide_partitions.push_back({.key = base::Bytes::copy_of(in.prefixed()),
                                          .first_ordinal = in.varint(),
                                          .row_count = in.varint(),
                                          .bytes = in.varint()});
  }
  statistics.partition_bytes_histogram = base::Bytes::copy_of(in.prefixed());
  statistics.partition_rows_histogram = base::Bytes::copy_of(in.prefixed());
  TRY_VOID(in.finish());
  if (statistics.index_depth > kIndexDepthMax) {
    return Error(Errc::corrupt, "index of {} levels", statistics.index_depth);
  }
  TRY_VOID(check_histogram(statistics.partition_bytes_histogram));
  TRY_VOID(check_histogram(statistics.partition_rows_histogram));
  return statistics;
}

}  // namespace helenus::storage
