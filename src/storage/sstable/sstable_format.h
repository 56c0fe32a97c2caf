// The parts of an sstable file that are no blocks, and what its special blocks hold.
// docs/formats/sstable.md describes the file as a whole; this is its encoding.
//
//   header | data, index and filter blocks | index root | filter index | metadata | statistics |
//   footer
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/histogram.h"
#include "base/result.h"
#include "storage/ids/row_key.h"
#include "storage/sstable/block_codec.h"

namespace helenus::storage {

inline constexpr std::uint32_t kSstableVersion = 1;

// The limits of a data block: what is added after either is reached goes to the next block. A value
// larger than the target lies in a block of its own.
inline constexpr std::size_t kDataBlockEntriesMax = 128;
inline constexpr std::size_t kDataBlockBytesDefault = std::size_t{16} << 10;
inline constexpr std::size_t kMetadataSizeMax = std::size_t{16} << 20;
// Levels of index nodes above the data blocks. Every node but the root has at least sixteen
// children, so eight levels reach 2^32 blocks of even the longest keys.
inline constexpr std::size_t kIndexDepthMax = 8;
inline constexpr std::size_t kIndexNodeEntriesMin = 16;

// The first bytes of a file: what it is and which one, so that even a file without its end can be
// told and its blocks checked.
struct SstableHeader {
  static constexpr std::size_t kSize = 32;

  FileId id;

  void encode(base::Buffer& out) const;
  // Errors: corrupt, unsupported (a later version).
  static base::Result<SstableHeader> decode(base::ByteView bytes);
};

// The last bytes of a file, from which everything is found.
struct SstableFooter {
  static constexpr std::size_t kSize = 96;

  FileId id;
  std::uint64_t file_size = 0;  // footer included
  // size == 0: not there. An empty file has no root, a file without filters no filter index.
  BlockHandle root;
  BlockHandle filter_index;
  BlockHandle metadata;
  BlockHandle statistics;

  void encode(base::Buffer& out) const;
  // Errors: corrupt, unsupported (a later version).
  static base::Result<SstableFooter> decode(base::ByteView bytes);
};

// What an index node says about a child: a data block, or another node.
struct IndexEntry {
  static constexpr std::size_t kSize = 8 + 8 + 4;

  BlockHandle handle;
  std::uint64_t first_ordinal = 0;  // of the first key below the child

  std::array<std::byte, kSize> encode() const;
  // Requires: kSize bytes.
  static IndexEntry decode(const std::byte* bytes) {
    return {.handle = {.offset = base::load_le<std::uint64_t>(bytes),
                       .size = base::load_le<std::uint32_t>(bytes + 16)},
            .first_ordinal = base::load_le<std::uint64_t>(bytes + 8)};
  }
};

// A partition too large to be read at once.
struct WidePartition {
  base::Bytes key;
  std::uint64_t first_ordinal = 0;
  std::uint64_t row_count = 0;
  std::uint64_t bytes = 0;  // keys and values, before compression
  friend bool operator==(const WidePartition&, const WidePartition&) = default;
};

// What was counted while the file was written. Keys and values are counted before compression,
// `stored` means bytes of the file.
struct SstableStatistics {
  // Partitions from this size on are remembered one by one: the largest kWidePartitionsMax of them.
  static constexpr std::uint64_t kWidePartitionBytesMin = std::uint64_t{256} << 10;
  static constexpr std::size_t kWidePartitionsMax = 32;

  std::uint64_t key_count = 0;
  std::uint64_t partition_count = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t key_size_max = 0;
  std::uint64_t value_size_max = 0;
  std::uint64_t data_block_count = 0;
  std::uint64_t data_payload_bytes = 0;
  std::uint64_t data_stored_bytes = 0;
  std::uint64_t index_block_count = 0;
  std::uint64_t index_stored_bytes = 0;
  std::uint64_t index_depth = 0;  // levels of nodes, root included; zero in an empty file
  std::uint64_t filter_block_count = 0;
  std::uint64_t filter_stored_bytes = 0;
  std::uint64_t filter_hash_count = 0;  // hashes added to the filters
  Compression compression = Compression::none;
  // Empty in an empty file.
  base::Bytes first_key;
  base::Bytes last_key;
  std::vector<WidePartition> wide_partitions;  // the largest first
  base::Bytes partition_bytes_histogram;       // base::Histogram, encoded
  base::Bytes partition_rows_histogram;

  void encode(base::Buffer& out) const;
  // Errors: corrupt, unsupported.
  static base::Result<SstableStatistics> decode(base::ByteView bytes);

  friend bool operator==(const SstableStatistics&, const SstableStatistics&) = default;
};

}  // namespace helenus::storage
