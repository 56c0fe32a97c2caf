// Rows of virtual tables: all of them are made, then the same restrictions apply as to stored ones.
#include <algorithm>
#include <utility>

#include "cql/execute/row_stream.h"

namespace helenus::cql {

using base::Result;
using runtime::Task;

namespace {

// Of a table whose rows come from other cores: traces, the largest of them, are about as large.
constexpr std::size_t kBytesExpected = std::size_t{4} << 20;

}  // namespace

bool VirtualTableRows::matches(const VirtualRow& row) const {
  const BoundRestrictions& where = request_.where;
  if (where.by_key ? !std::ranges::binary_search(where.partitions, row.partition)
                   : !where.range.contains(row.partition.view())) {
    return false;
  }
  return std::ranges::any_of(where.rows, [&](const model::ClusteringRange& range) {
    return row.clustering >= range.from && (!range.to || row.clustering < *range.to);
  });
}

void VirtualTableRows::choose(std::vector<VirtualRow> made) {
  if (request_.reversed) {
    std::ranges::sort(made, [](const VirtualRow& a, const VirtualRow& b) {
      return a.partition != b.partition ? a.partition < b.partition : a.clustering > b.clustering;
    });
  }
  std::uint64_t in_partition = 0;
  const base::Bytes* partition = nullptr;
  bool before = request_.after.has_value();
  for (VirtualRow& source : made) {
    if (partition == nullptr || *partition != source.partition) {
      partition = &source.partition;
      in_partition = 0;
    }
    if (!matches(source)) continue;
    Row row;
    row.partition = source.partition;
    row.clustering = source.clustering;
    for (model::OptionalBytes& value : source.values) {
      row.cells.push_back({.value = std::move(value), .timestamp_us = 0, .expires_seconds = {}});
    }
    const auto fails = [&](const BoundPredicate& filter) {
      return !filter.matches(*request_.table, row);
    };
    if (std::ranges::any_of(request_.where.filters, fails)) continue;
    if (request_.distinct && in_partition > 0) continue;
    if (request_.per_partition_limit && in_partition >= *request_.per_partition_limit) continue;
    row.number_in_partition = ++in_partition;
    if (before) {
      const RowPosition& after = *request_.after;
      before = row.partition < after.partition ||
               (row.partition == after.partition &&
                (request_.reversed ? row.clustering >= after.clustering
                                   : row.clustering <= after.clustering));
      if (before) continue;
    }
    rows_.push_back(std::move(row));
  }
}

Task<Result<void>> VirtualTableRows::fill(std::vector<Row>& rows, Amount amount) {
  if (!std::exchange(made_, true)) {
    // Others may be made meanwhile: what this one may come to is set aside before.
    const base::Error too_many(base::Errc::overloaded, "{}", text_of(Refusal::result_bytes));
    if (table_.waits() && !charge_.grow_to(kBytesExpected)) co_return too_many;
    CO_TRY(auto made, co_await table_.rows(request_.until));
    choose(std::move(made));
    std::size_t bytes = 0;
    for (const Row& row : rows_) bytes += size_of(row);
    if (!charge_.grow_to(bytes)) co_return too_many;
  }
  while (amount.rows > 0 && amount.bytes > 0 && next_ < rows_.size()) {
    rows.push_back(std::move(rows_[next_++]));
    --amount.rows;
    amount.bytes -= std::min(amount.bytes, size_of(rows.back()));
  }
  co_return {};
}

}  // namespace helenus::cql
