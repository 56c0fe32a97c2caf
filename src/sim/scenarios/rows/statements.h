// Random statements of the scenario `rows`, and which cells they are about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "client/result_set.h"
#include "client/statement.h"
#include "sim/checkers/rows_history.h"
#include "sim/scenarios/rows/shape.h"

namespace helenus::sim {

// A statement with markers. What is written is known only when it is sent.
struct RowsPart {
  static constexpr std::int64_t kValue = -1;

  std::string text;
  std::vector<std::int64_t> values =
      {};  // one a marker; kValue is the value of the write, a bigint

  std::vector<client::BoundValue> bound(RowsHistory::Value value) const;
  // With literals.
  std::string literally(RowsHistory::Value value) const;
};

struct RowsWrite {
  std::vector<RowsPart> parts;  // several are a batch
  std::vector<RowsHistory::Cell> puts = {};
  std::vector<RowsHistory::Cell> deletes = {};
  std::optional<std::int64_t> ttl_seconds = std::nullopt;

  std::string to_string(RowsHistory::Value value) const;
};

struct RowsRead {
  RowsPart part;
  std::size_t keyspace = 0;
  std::vector<std::int32_t> partitions;
  std::vector<std::int32_t> rows;
  bool is_of_whole_partitions = true;  // so that a static cell is seen even where there is no row
  std::optional<std::int32_t> page_size = std::nullopt;
};

class RowsStatements {
 public:
  static constexpr std::int64_t kTtlSecondsMax = 10;

  RowsStatements(const RowsShape& shape, std::uint32_t client, base::Prng dice)
      : shape_(shape), client_(client), dice_(dice) {}

  base::Prng& dice() { return dice_; }
  std::size_t draw_keyspace() { return dice_.below(shape_.keyspaces.size()); }
  RowsWrite draw_write(std::size_t keyspace);
  RowsRead draw_read(std::size_t keyspace);

 private:
  std::int32_t draw_partition_to_write();
  std::int32_t draw_row() { return static_cast<std::int32_t>(dice_.below(RowsShape::kRows)); }
  std::vector<std::int32_t> draw_some(std::int32_t bound);

  const RowsShape& shape_;
  const std::uint32_t client_;
  base::Prng dice_;
};

// Reads one partition, with the times of its cells.
RowsRead read_of_partition(const RowsShape& shape, std::size_t keyspace, std::int32_t partition);

// What pages of a read say of the cells it is about. It keeps to what it needs of them.
class RowsSeen {
 public:
  RowsSeen(const RowsShape& shape, RowsRead read) : shape_(shape), read_(std::move(read)) {}

  // What is wrong with the page, if something is.
  std::optional<std::string> add(const client::ResultSet& page);
  // After the last page.
  std::vector<RowsHistory::Seen> take() &&;

 private:
  std::optional<std::string> add(const client::Row& row);
  void note(std::int32_t partition, std::int32_t row, RowsShape::Column column,
            std::optional<std::int64_t> value);

  const RowsShape& shape_;
  const RowsRead read_;
  std::vector<RowsHistory::Seen> seen_;
  std::vector<std::pair<std::int32_t, std::int32_t>> rows_;
  std::vector<std::int32_t> partitions_;  // of which there was a row
};

}  // namespace helenus::sim
