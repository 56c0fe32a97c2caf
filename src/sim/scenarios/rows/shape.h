// RowsShape: what a run of the scenario `rows` is made of: nodes and their data centres, keyspaces
// with their factors and levels, and a table in each of few partitions, so that clients meet.
//
//   CREATE TABLE t (k int, c int, s bigint static, v bigint, w bigint, m map<int, bigint>,
//                   PRIMARY KEY (k, c))
//
// Of the map two elements are written, each a cell like the other columns.
// Some partitions are written by one client only, the others by all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "model/consistency.h"
#include "sim/checkers/rows_history.h"

namespace helenus::sim {

struct RowsKeyspace {
  std::string name;
  std::string replication;  // as in CREATE KEYSPACE
  // What is read at the one sees what was written at the other.
  model::Consistency write_level = model::Consistency::quorum;
  model::Consistency read_level = model::Consistency::quorum;

  std::string table() const { return name + ".t"; }
};

class RowsShape {
 public:
  static constexpr std::size_t kPartitionsMax = 12;  // of all keyspaces
  static constexpr std::int32_t kRows = 3;           // of a partition
  enum class Column : std::uint8_t { s, v, w, m0, m1 };
  static constexpr Column kColumnsOfRow[] = {Column::v, Column::w, Column::m0, Column::m1};
  // As statements name it: "m[0]".
  static std::string_view text_of(Column column);

  // So many more nodes, which join later.
  void add_late(base::Prng& dice, std::size_t count);

  static RowsShape draw(base::Prng& dice, std::size_t nodes_min, std::size_t nodes_max);

  std::vector<std::uint16_t> cores;      // of each node
  std::vector<std::string> datacenters;  // of each node
  std::vector<std::string> racks;        // of each node
  std::vector<RowsKeyspace> keyspaces;
  std::int32_t partitions = 0;         // of each keyspace
  std::int32_t partitions_of_one = 0;  // the first ones: each is written by one client
  std::uint32_t clients = 0;
  std::size_t late = 0;  // of the nodes the last ones: they join while clients write

  std::size_t nodes() const { return cores.size(); }
  bool is_late(std::size_t node) const { return node + late >= nodes(); }
  // The only client that writes that partition; all do if it is none.
  bool may_write(std::uint32_t client, std::int32_t partition) const {
    return partition >= partitions_of_one ||
           static_cast<std::uint32_t>(partition) % clients == client;
  }

  // One after the other, as `cell` numbers them.
  void add_cells(RowsHistory& history) const;
  // The row means nothing if the column is static.
  RowsHistory::Cell cell(std::size_t keyspace, std::int32_t partition, std::int32_t row,
                         Column column) const;
  // "4 nodes in 2 data centres; ks0 {...} QUORUM/QUORUM; ..."
  std::string to_string() const;

 private:
  void draw_keyspaces(base::Prng& dice, std::size_t datacenter_count);
};

}  // namespace helenus::sim
