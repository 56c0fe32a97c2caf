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
// This is all that the sstable knows of src/filters: another kind is a line in the enumeration
// (filter_options.h) and one in each of three functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/blocked_bloom.h"
#include "filters/consistent_cuckoo.h"
#include "filters/cuckoo.h"
#include "storage/sstable/filter_options.h"

namespace helenus::storage {

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
  FilterKind kind() const;
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
