// BlockedBloom: a Bloom filter that touches one cache line a key (Putze, Sanders and Singler,
// "Cache-, Hash- and Space-Efficient Bloom Filters", 2007), laid out for vector units.
//
// A table of blocks of 64 bytes, eight words of 64 bits; a key belongs to one block and sets one
// bit in each of its words. The eight places come from eight products of the hash with odd
// constants, so that a lookup is eight lanes of the same three instructions and no branch. Nothing
// can be erased.
//
// Blocks fill unevenly, and eight probes are not best for every size, so that a rate costs more
// memory than Bloom needs for it. The rates at so many bits a key, when full:
//
//   bits a key       8        10        12        16         20
//   BlockedBloom     2.9 %    1.05 %    0.42 %    0.091 %    0.026 %
//   Bloom            2.2 %    0.82 %    0.31 %    0.046 %    0.0067 %
//
// A filter refuses a key beyond its capacity: that is where the declared rate ends.
//
// Cost: one cache line, for `insert` and `contains` alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/placement.h"
#include "filters/table.h"

namespace helenus::filters {

class BlockedBloom {
 public:
  static constexpr unsigned kProbes = 8;
  static constexpr std::size_t kBlockBytes = 64;
  static constexpr std::uint64_t kBlocksMax = kTableBytesMax / kBlockBytes;
  // A filter that would say yes to almost everything is refused.
  static constexpr std::uint64_t kKeysPerBlockMax = 256;

  // Errors: invalid_argument for no keys, no blocks, or beyond the limits; overloaded when there is
  // no memory for it.
  static base::Result<BlockedBloom> with_blocks(std::uint64_t block_count, std::uint64_t capacity);
  static base::Result<BlockedBloom> with_bits_per_key(std::uint64_t capacity, double bits_per_key);
  // The smallest filter that takes `capacity` keys at a rate of at most `false_positive_rate`,
  // between 1e-6 and 0.5.
  static base::Result<BlockedBloom> for_rate(std::uint64_t capacity, double false_positive_rate);

  [[nodiscard]] bool insert(KeyHash key) {
    if (size_ >= capacity_) return false;
    std::byte* block = table_.writable() + scale(key.value(), block_count_) * kBlockBytes;
    const Words bits = bits_of(key);
    for (unsigned i = 0; i < kProbes; ++i) {
      std::byte* word = block + i * sizeof bits[i];
      base::store_le(word, base::load_le<std::uint64_t>(word) | bits[i]);
    }
    ++size_;
    return true;
  }

  bool contains(KeyHash key) const { return has_all(block_of(key), bits_of(key)); }

  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const { __builtin_prefetch(block_of(key)); }

  std::uint64_t size() const { return size_; }
  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t block_count() const { return block_count_; }
  double false_positive_rate() const { return rate_with(size_); }
  double false_positive_rate_max() const { return rate_with(capacity_); }
  std::uint64_t memory_bytes() const { return table_.size(); }
  bool is_borrowed() const { return table_.is_borrowed(); }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<BlockedBloom> decode(const base::Bytes& encoded);

 private:
  using Words = std::array<std::uint64_t, kProbes>;

  // The high halves of mix64(1) to mix64(8), made odd. Part of the format.
  static constexpr std::array<std::uint32_t, kProbes> kMultipliers = {
      0x5692161d, 0xdbd23897, 0x1e535eed, 0xb7a4712d,
      0xb6bf613d, 0xd1770797, 0x12ae3023, 0xd56b1fbb};

  BlockedBloom(std::uint64_t block_count, std::uint64_t capacity, std::uint64_t size, Table table)
      : block_count_(block_count), capacity_(capacity), size_(size), table_(std::move(table)) {}

  // The bit of each word: the high six bits of a 32-bit product. The block comes from the high
  // bits of the hash, the products from the low 32.
  static Words bits_of(KeyHash key) {
    const auto low = static_cast<std::uint32_t>(key.value());
    Words bits;
    for (unsigned i = 0; i < kProbes; ++i) {
      bits[i] = std::uint64_t{1} << ((low * kMultipliers[i]) >> 26);
    }
    return bits;
  }

  static bool has_all(const std::byte* block, const Words& bits) {
    std::uint64_t missing = 0;
    for (unsigned i = 0; i < kProbes; ++i) {
      missing |= bits[i] & ~base::load_le<std::uint64_t>(block + i * sizeof bits[i]);
    }
    return missing == 0;
  }

  const std::byte* block_of(KeyHash key) const {
    return table_.data() + scale(key.value(), block_count_) * kBlockBytes;
  }
  double rate_with(std::uint64_t keys) const;

  std::uint64_t block_count_;
  std::uint64_t capacity_;
  std::uint64_t size_;
  Table table_;
};

static_assert(Filter<BlockedBloom>);

}  // namespace helenus::filters
