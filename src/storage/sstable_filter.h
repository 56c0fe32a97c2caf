// The filters of an sstable: which keys are surely not in it.
//
// A file has one filter for every stretch of about a million hashes, not one for all: so a filter
// is built with the exact number of its hashes, in bounded memory, and whatever the size of the
// file. A filter index (a Block like an index node) says where each stretch ends.
//
// What is added: the hash of every row's whole key, and, once in each stretch, the hash of every
// partition's part. So both "is this row here?" and "is any row of this partition here?" can be
// answered. Where a key is its partition's part, the two are one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::storage {

enum class FilterKind : std::uint8_t { none = 0 };

struct FilterOptions {
  FilterKind kind = FilterKind::none;
};

// Gathers the hashes of one stretch. Reusable: finish() empties it.
class FilterBuilder {
 public:
  static constexpr std::size_t kHashesMax = std::size_t{1} << 20;

  explicit FilterBuilder(FilterOptions options) : options_(options) {}

  bool enabled() const { return options_.kind != FilterKind::none; }
  void add(std::uint64_t hash) {
    if (enabled()) hashes_.push_back(hash);
  }
  std::size_t hash_count() const { return hashes_.size(); }
  bool full() const { return hashes_.size() >= kHashesMax; }
  // Appends the encoded filter to `out`.
  void finish(base::Buffer& out);

 private:
  const FilterOptions options_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace helenus::storage
