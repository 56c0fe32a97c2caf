#include "replication/merge/answer_digest.h"

#include "base/assert.h"
#include "base/codec.h"
#include "causality/counter.h"
#include "causality/resolve.h"

namespace helenus::replication {

using causality::CellStore;
using causality::PartitionStore;

namespace {

class Digester {
 public:
  explicit Digester(DigestOptions options) : options_(options) {}

  // False if the row holds a counter.
  bool add(const base::Bytes& partition, const base::Bytes& row, const PartitionStore& stored) {
    const auto found = stored.rows().find(row);
    if (found == stored.rows().end()) return true;
    bool is_named = false;
    for (const auto& [column, own] : found->second.cells()) {
      if (stored.range_deletes().empty()) {
        if (!add(partition, row, column, own, is_named)) return false;
      } else if (!add(partition, row, column, stored.cell(row, column), is_named)) {
        return false;
      }
    }
    return true;
  }
  void add_end(const base::Bytes& partition, const base::Bytes& row) {
    out_.u8(kEnd);
    out_.prefixed(partition.view());
    out_.prefixed(row.view());
  }
  void add_count(std::size_t count) { out_.varint(count); }
  base::Hash128 hash() const { return base::hash128(buffer_.view()); }

 private:
  static constexpr std::uint8_t kRow = 1;
  static constexpr std::uint8_t kCell = 2;
  static constexpr std::uint8_t kEnd = 3;

  // A row is named in front of the first of its cells that shows something.
  bool add(const base::Bytes& partition, const base::Bytes& row, causality::ColumnId column,
           const CellStore& cell, bool& is_named) {
    if (causality::is_counter(cell)) return false;
    const auto shown =
        causality::visible(cell, causality::Policy::lww, causality::WallTime::min());
    if (shown.empty()) return true;
    const causality::Version& winner = *shown.front();
    if (!is_named) {
      out_.u8(kRow);
      out_.prefixed(partition.view());
      out_.prefixed(row.view());
      is_named = true;
    }
    out_.u8(kCell);
    out_.varint(column.value());
    if (!options_.without_dots) {
      out_.varint(winner.dot.actor.node.value());
      out_.varint(winner.dot.actor.incarnation.value());
      out_.varint(winner.dot.counter);
    }
    out_.signed_varint(winner.timestamp.value());
    out_.u8(winner.expires ? 1 : 0);
    if (winner.expires) out_.signed_varint(winner.expires->value());
    return true;
  }

  const DigestOptions options_;
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
