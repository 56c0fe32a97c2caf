#include "replication/merge/answer_digest.h"

#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "base/codec.h"
#include "causality/counter.h"
#include "causality/resolve.h"

namespace helenus::replication {

using causality::CellStore;
using causality::PartitionStore;
using causality::Version;

namespace {

class Digester {
 public:
  explicit Digester(DigestOptions options) : options_(options) {}

  // False if the row holds a counter.
  bool add(const base::Bytes& partition, const base::Bytes& row, const PartitionStore& stored) {
    is_named_ = false;
    const Version* newest = nullptr;
    for (const causality::RangeDelete& range_delete : stored.range_deletes()) {
      if (causality::is_counter(range_delete.store)) return false;
      if (!range_delete.range.contains(row)) continue;
      newest = newer(newest, winner_of(range_delete.store));
    }
    if (newest != nullptr) add(partition, row, kRange, *newest);
    const auto found = stored.rows().find(row);
    if (found == stored.rows().end()) return true;
    for (const auto& [column, own] : found->second.cells()) {
      const CellStore cell = stored.range_deletes().empty() ? own : stored.cell(row, column);
      if (causality::is_counter(cell)) return false;
      const Version* const winner = winner_of(cell);
      // One that is a range's is named already.
      if (winner == nullptr || (newest != nullptr && winner->dot == newest->dot)) continue;
      add(partition, row, kFirstColumn + column.value(), *winner);
    }
    return true;
  }
  void add_end(const base::Bytes& partition, const base::Bytes& row) {
    out_.varint(kEnd);
    out_.prefixed(partition.view());
    out_.prefixed(row.view());
  }
  void add_count(std::size_t count) { out_.varint(count); }
  base::Hash128 hash() const { return base::hash128(buffer_.view()); }

 private:
  static constexpr std::uint64_t kRow = 1;
  static constexpr std::uint64_t kEnd = 2;
  static constexpr std::uint64_t kRange = 3;
  static constexpr std::uint64_t kFirstColumn = 4;

  static const Version* newer(const Version* a, const Version* b) {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return causality::defeats(*a, *b) < 0 ? b : a;
  }
  static const Version* winner_of(const CellStore& cell) {
    const Version* winner = nullptr;
    for (const Version& version : cell.versions()) winner = newer(winner, &version);
    return winner;
  }

  // A row is named in front of the first of what it has.
  void add(const base::Bytes& partition, const base::Bytes& row, std::uint64_t what,
           const Version& winner) {
    if (options_.without_deletes && winner.kind == causality::VersionKind::deletion) return;
    if (!std::exchange(is_named_, true)) {
      out_.varint(kRow);
      out_.prefixed(partition.view());
      out_.prefixed(row.view());
    }
    out_.varint(what);
    if (!options_.without_dots) {
      out_.varint(winner.dot.actor.node.value());
      out_.varint(winner.dot.actor.incarnation.value());
      out_.varint(winner.dot.counter);
    }
    out_.signed_varint(winner.timestamp.value());
    out_.u8(winner.expires ? 1 : 0);
    if (winner.expires) out_.signed_varint(winner.expires->value());
  }

  const DigestOptions options_;
  bool is_named_ = false;  // the row
  base::Buffer buffer_;
  base::Encoder out_{buffer_};
};

}  // namespace

std::optional<base::Hash128> digest_of(std::span<const RowName> names,
                                       std::span<const storage::RowRead> reads,
                                       DigestOptions options) {
  ASSERT(reads.size() <= names.size());
  Digester digester(options);
  digester.add_count(reads.size());
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (!digester.add(names[i].partition, names[i].row, reads[i].partition)) return std::nullopt;
  }
  return digester.hash();
}

std::optional<base::Hash128> digest_of(const RowsAnswer& answer, DigestOptions options) {
  Digester digester(options);
  for (const RowsAnswer::Row& row : answer.rows) {
    if (!digester.add(row.partition, row.row, row.stored)) return std::nullopt;
  }
  if (answer.more && answer.rows.empty()) return std::nullopt;
  if (answer.more) digester.add_end(answer.rows.back().partition, answer.rows.back().row);
  return digester.hash();
}

}  // namespace helenus::replication
