// Slices of a partition as ranges of clustering keys.
//
// (a, b) > (1, 2) is a > 1, or a = 1 and b > 2. Each of these is one range: its columns but the
// last are fixed, and the last is on one side of a value, which in a descending column is the
// other side of its bytes. A slice is the ranges of its lower bound cut with those of its upper.
#include <algorithm>

#include "base/assert.h"
#include "model/clustering_key.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Result;

namespace {

bool is_empty(const ClusteringRange& range) {
  return range.to.has_value() && *range.to <= range.from;
}

// The smaller of two ends, of which an absent one is the largest.
std::optional<Bytes> earlier(const std::optional<Bytes>& a, const std::optional<Bytes>& b) {
  if (!a) return b;
  if (!b) return a;
  return *b < *a ? b : a;
}

// Sorts, drops the empty ones, and makes one of neighbours that touch.
std::vector<ClusteringRange> tidied(std::vector<ClusteringRange> ranges) {
  std::erase_if(ranges, is_empty);
  std::ranges::sort(ranges, {}, &ClusteringRange::from);
  std::vector<ClusteringRange> joined;
  for (ClusteringRange& range : ranges) {
    if (!joined.empty() && joined.back().to == range.from) {
      joined.back().to = std::move(range.to);
    } else {
      joined.push_back(std::move(range));
    }
  }
  return joined;
}

std::vector<ClusteringRange> cut(const std::vector<ClusteringRange>& a,
                                 const std::vector<ClusteringRange>& b) {
  std::vector<ClusteringRange> both;
  for (const ClusteringRange& x : a) {
    for (const ClusteringRange& y : b) {
      both.push_back({.from = std::max(x.from, y.from), .to = earlier(x.to, y.to)});
    }
  }
  return tidied(std::move(both));
}

ClusteringRange rows_below(const Bytes& prefix) {
  return prefix.empty() ? all_clustered_rows() : rows_with_prefix(prefix);
}

Bytes joined(const Bytes& prefix, ByteView more) {
  Buffer out(prefix.size() + more.size());
  out.append(prefix.view());
  out.append(more);
  return std::move(out).freeze();
}

// The rows on one side of a bound; `columns` begin with the bound's first.
Result<std::vector<ClusteringRange>> side(std::span<const ClusteringColumn> columns,
                                          const Bytes& equal, const ClusteringBound& bound,
                                          bool greater) {
  std::vector<ClusteringRange> ranges;
  Bytes prefix = equal;
  for (std::size_t index = 0; index < bound.values.size(); ++index) {
    const ClusteringColumn& column = columns[index];
    TRY(const Bytes encoded, encode_clustering({&column, 1}, bound.values.subspan(index, 1)));
    const Bytes upto = joined(prefix, encoded);
    const ClusteringRange whole = rows_below(prefix);
    const ClusteringRange same = rows_with_prefix(upto);
    if (greater != column.descending) {
      ASSERT(same.to.has_value());
      ranges.push_back({.from = *same.to, .to = whole.to});
    } else {
      ranges.push_back({.from = whole.from, .to = same.from});
    }
    prefix = upto;
  }
  if (bound.inclusive) ranges.push_back(rows_with_prefix(prefix));
  return tidied(std::move(ranges));
}

}  // namespace

std::optional<Bytes> successor_of_prefix(ByteView prefix) {
  while (!prefix.empty() && prefix.back() == std::byte{0xff}) {
    prefix = prefix.first(prefix.size() - 1);
  }
  if (prefix.empty()) return std::nullopt;
  Buffer out(prefix.size());
  out.append(prefix);
  std::byte& last = out.mutable_view().back();
  last = std::byte(std::to_integer<unsigned>(last) + 1);
  return std::move(out).freeze();
}

ClusteringRange all_clustered_rows() {
  // No lesser key than this but the static row's, and those of its elements (element_key.h).
  return {.from = Bytes::of_static(std::string_view("\0\1", 2)), .to = std::nullopt};
}

ClusteringRange rows_with_prefix(const Bytes& prefix) {
  return {.from = prefix, .to = successor_of_prefix(prefix)};
}

Result<std::vector<ClusteringRange>> slice(std::span<const ClusteringColumn> columns,
                                           std::span<const ByteView> equal,
                                           const std::optional<ClusteringBound>& lower,
                                           const std::optional<ClusteringBound>& upper) {
  TRY(const Bytes prefix, encode_clustering(columns, equal));
  const auto rest = columns.subspan(equal.size());
  std::vector<ClusteringRange> ranges = {rows_below(prefix)};
  for (const auto* bound : {&lower, &upper}) {
    if (!*bound) continue;
    ASSERT(!(*bound)->values.empty() && (*bound)->values.size() <= rest.size());
    TRY(const auto rows, side(rest, prefix, **bound, /*greater=*/bound == &lower));
    ranges = cut(ranges, rows);
  }
  return ranges;
}

}  // namespace helenus::model
