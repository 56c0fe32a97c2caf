// Bloom: the classic filter (Bloom, CACM 1970), with any number of bits and of probes.
//
// A key sets `probes` bits of a table of `bits`; a key all of whose bits are set may be in, any
// other is not. The probes of a key are an arithmetic progression of 64-bit words, scaled to the
// table (double hashing: Kirsch and Mitzenmacher, 2006), so that one hash gives them all. Nothing
// can be erased. For the same memory it gives fewer false positives than BlockedBloom and costs one
// cache miss a probe instead of one.
//
// That probes lie in a line has a price (probes.h), which the declared rates include: a low rate
// for few keys takes more memory than independent probes would. At 1e-6 that is 2.3 times as much
// for a thousand keys, 1.05 for ten thousand, nothing for more; at 1 % nothing for any number.
//
// A filter refuses a key beyond its capacity: that is where the declared rate ends.
//
// Cost: `insert` writes `probes` bits; `contains` reads until the first one that is not set, two
// on average for an absent key, all of them for one that is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/filter.h"
#include "filters/key_hash.h"
#include "filters/probes.h"
#include "filters/table.h"

namespace helenus::filters {

class Bloom {
 public:
  static constexpr unsigned kProbesMax = filters::kProbesMax;
  static constexpr std::uint64_t kBitsMax = kTableBytesMax * 8;

  struct Shape {
    std::uint64_t bits = 0;
    unsigned probes = 0;
    std::uint64_t capacity = 0;  // keys
  };

  // Errors: invalid_argument for a shape without bits, probes or capacity, or beyond the limits;
  // overloaded when there is no memory for it.
  static base::Result<Bloom> with_shape(Shape shape);
  // The smallest filter that takes `capacity` keys at a rate of at most `false_positive_rate`,
  // between 1e-9 and 0.5.
  static base::Result<Bloom> for_rate(std::uint64_t capacity, double false_positive_rate);

  [[nodiscard]] bool insert(KeyHash key);

  bool contains(KeyHash key) const {
    Probes probes(key);
    for (unsigned i = 0; i < shape_.probes; ++i) {
      const std::uint64_t bit = probes.next(shape_.bits);
      if ((table_.data()[bit / 8] & mask_of(bit)) == std::byte{0}) return false;
    }
    return true;
  }

  void contains_batch(std::span<const KeyHash> keys, std::span<bool> answers) const;
  void prefetch(KeyHash key) const;

  // Takes out all keys. Writes the whole table.
  void clear();

  std::uint64_t size() const { return size_; }
  std::uint64_t capacity() const { return shape_.capacity; }
  const Shape& shape() const { return shape_; }
  double false_positive_rate() const { return rate_with(size_); }
  double false_positive_rate_max() const { return rate_with(shape_.capacity); }
  std::uint64_t memory_bytes() const { return table_.size(); }
  bool is_borrowed() const { return table_.is_borrowed(); }

  base::Bytes encode() const;
  // Errors: corrupt, unsupported, invalid_argument for another kind of filter.
  static base::Result<Bloom> decode(const base::Bytes& encoded);

 private:
  Bloom(Shape shape, std::uint64_t size, Table table)
      : shape_(shape), size_(size), table_(std::move(table)) {}

  static std::uint64_t table_bytes(std::uint64_t bits) { return (bits + 7) / 8; }
  static std::byte mask_of(std::uint64_t bit) { return std::byte{1} << (bit % 8); }
  static base::Result<void> check(const Shape& shape);
  double rate_with(std::uint64_t keys) const;

  Shape shape_;
  std::uint64_t size_;
  Table table_;
};

static_assert(Filter<Bloom>);

}  // namespace helenus::filters
