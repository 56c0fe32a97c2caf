// Which filters files get: what a node is told, and what a table is told instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace helenus::storage {

enum class FilterKind : std::uint8_t {
  none,
  cuckoo,  // keys can be taken out again
  bloom,   // blocked: one cache line a lookup, nothing can be taken out
  // Also as large as its keys when keys are taken out. 36 bits a hash and one absent key in 4000
  // let through, whatever the options say. A file's filter stays as written; a merge writes anew.
  consistent_cuckoo,
};
inline constexpr std::array kFilterKinds = {FilterKind::none, FilterKind::cuckoo, FilterKind::bloom,
                                            FilterKind::consistent_cuckoo};
std::string_view name_of(FilterKind kind);
std::optional<FilterKind> filter_kind_named(std::string_view name);

inline constexpr double kFilterRateMin = 1e-6;
inline constexpr double kFilterRateMax = 0.5;
inline constexpr double kFilterBitsMin = 4;
inline constexpr double kFilterBitsMax = 32;

struct FilterOptions {
  FilterKind kind = FilterKind::cuckoo;
  // The share of absent keys that may be let through; what is given is at least as good, but that a
  // cuckoo filter's is no better than kCuckooRateMin.
  double false_positive_rate = 0.01;
  // Instead of a rate, memory: bits a hash, 4 to 32. A cuckoo filter takes the widest fingerprints
  // (8, 12 or 16 bits, and 8 at least) that do not exceed it; its table takes a twentieth more.
  std::optional<double> bits_per_hash = std::nullopt;
  // A stretch ends with the data block in which it reaches this many hashes.
  std::size_t hashes_max = std::size_t{1} << 20;
};
// What fingerprints of 16 bits give in a full table.
inline constexpr double kCuckooRateMin = 0.00013;

// What a table is told about its files' filters, instead of the node's settings. A kind that has a
// size is given it by a rate or by bits a hash, or by neither: then the node's settings hold.
struct TableFilter {
  FilterKind kind = FilterKind::cuckoo;
  std::optional<double> false_positive_rate = std::nullopt;
  std::optional<double> bits_per_hash = std::nullopt;
  friend bool operator==(const TableFilter&, const TableFilter&) = default;
};

// Whether filters of this kind come in sizes.
constexpr bool has_size(FilterKind kind) {
  return kind == FilterKind::cuckoo || kind == FilterKind::bloom;
}
// The best rate that can be asked of this kind.
constexpr double rate_min(FilterKind kind) {
  return kind == FilterKind::cuckoo ? kCuckooRateMin : kFilterRateMin;
}
// Errors: invalid_argument for a rate or bits that the kind cannot have, or both.
base::Result<void> validate(const TableFilter& filter);

// The filters of a file: the table's word, where it has one, before the node's.
FilterOptions chosen(const FilterOptions& node, const std::optional<TableFilter>& table);

}  // namespace helenus::storage
