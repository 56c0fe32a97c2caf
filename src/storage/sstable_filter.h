// The filters of an sstable: which keys are surely not in it.
//
// A file has one filter for every stretch of up to a million hashes, not one for all: so a filter
// is built for the exact number of its hashes, in bounded memory, whatever the size of the file. A
// filter index (a Block like an index node) says where each stretch ends.
//
// What is added: the hash of every row's whole key, and, once in each stretch, the hash of every
// partition's part. So both "is this row here?" and "is any row of this partition here?" can be
// answered. Where a key is its partition's part, the two are one.
//
// This is all that the sstable knows of src/filters: another kind is a line in the enumeration and
// one in each of three functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/blocked_bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"

namespace helenus::storage {

enum class FilterKind : std::uint8_t {
  none,
  cuckoo,  // keys can be taken out again
  bloom,   // blocked: one cache line a lookup, nothing can be taken out
  // Made for keys to be taken out again, whose memory it gives back; nothing here does so yet. 36
  // bits a hash and one absent key in 4000 let through, whatever the options say.
  consistent_cuckoo,
};
inline constexpr std::array kFilterKinds = {FilterKind::none, FilterKind::cuckoo, FilterKind::bloom,
                                            FilterKind::consistent_cuckoo};
std::string_view name_of(FilterKind kind);
std::optional<FilterKind> filter_kind_named(std::string_view name);

struct FilterOptions {
  FilterKind kind = FilterKind::cuckoo;
  // The share of absent keys that may be let through; what is given is at least as good.
  double false_positive_rate = 0.01;
  // Instead of a rate, memory: bits a hash, 4 to 32. A cuckoo filter takes the widest fingerprints
  // (8, 12 or 16 bits, and 8 at least) that do not exceed it; its table takes a twentieth more.
  std::optional<double> bits_per_hash = std::nullopt;
  // A stretch ends with the data block in which it reaches this many hashes.
  std::size_t hashes_max = std::size_t{1} << 20;
};

// Gathers the hashes of one stretch. Reusable: finish() empties it.
class FilterBuilder {
 public:
  // Requires: a rate between 1e-6 and 0.5, bits in their limits.
  explicit FilterBuilder(FilterOptions options);

  bool enabled() const { return options_.kind != FilterKind::none; }
  void add(std::uint64_t hash) {
    if (enabled()) hashes_.push_back(hash);
  }
  std::size_t hash_count() const { return hashes_.size(); }
  bool full() const { return hashes_.size() >= options_.hashes_max; }
  // The encoded filter. Requires: hash_count() > 0.
  base::Bytes finish();

 private:
  // Of a cuckoo filter's fingerprints.
  unsigned fingerprint_bits() const;
  base::Bytes build_cuckoo() const;
  base::Bytes build_bloom() const;
  base::Bytes build_consistent_cuckoo() const;

  const FilterOptions options_;
  std::vector<std::uint64_t> hashes_;
};

// A filter read back. Keeps its bytes alive.
class SstableFilter {
 public:
  // Errors: corrupt, unsupported.
  static base::Result<SstableFilter> decode(base::ByteView encoded);

  bool may_contain(std::uint64_t hash) const {
    const filters::KeyHash key(hash);
    return std::visit([&](const auto& filter) { return filter.contains(key); }, filter_);
  }
  std::uint64_t hash_count() const {
    return std::visit([](const auto& filter) { return filter.size(); }, filter_);
  }
  std::size_t memory_bytes() const {
    return std::visit([](const auto& filter) { return filter.memory_bytes(); }, filter_);
  }

 private:
  using Any = std::variant<filters::Cuckoo12, filters::Cuckoo8, filters::Cuckoo16,
                           filters::BlockedBloom, filters::ConsistentCuckoo>;
  explicit SstableFilter(Any filter) : filter_(std::move(filter)) {}

  Any filter_;
};

}  // namespace helenus::storage
