#include "sim/scenarios/rows/shape.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"

namespace helenus::sim {

namespace {

using model::Consistency;

constexpr auto kCellsOfRow = static_cast<RowsHistory::Cell>(std::size(RowsShape::kColumnsOfRow));
constexpr RowsHistory::Cell kCellsOfPartition = 1 + kCellsOfRow * RowsShape::kRows;
// No more nodes than this are in one data centre only.
constexpr std::size_t kNodesOfOneDatacenter = 3;

std::string simple_strategy(std::uint64_t factor) {
  return fmt::format("{{'class': 'SimpleStrategy', 'replication_factor': {}}}", factor);
}

}  // namespace

RowsShape RowsShape::draw(base::Prng& dice, std::size_t nodes_min, std::size_t nodes_max) {
  RowsShape shape;
  // Few nodes more often than many, which take longer.
  std::size_t nodes = dice.between(nodes_min, nodes_max);
  nodes = std::min<std::size_t>(nodes, dice.between(nodes_min, nodes_max));
  for (std::size_t i = 0; i < nodes; ++i) {
    shape.cores.push_back(dice.chance(0.2) ? 2 : 1);
  }
  std::size_t datacenter_count = 1;
  if (nodes > kNodesOfOneDatacenter && dice.chance(0.5)) datacenter_count = dice.between(2, 3);
  for (std::size_t i = 0; i < nodes; ++i) {
    shape.datacenters.push_back(fmt::format("dc{}", i % datacenter_count));
  }
  const std::size_t rack_count = dice.between(1, 3);
  for (std::size_t i = 0; i < nodes; ++i) {
    shape.racks.push_back(fmt::format("r{}", (i / datacenter_count) % rack_count));
  }
  shape.draw_keyspaces(dice, datacenter_count);
  shape.clients = static_cast<std::uint32_t>(dice.between(4, 8));
  const std::size_t share = kPartitionsMax / shape.keyspaces.size();
  shape.partitions = static_cast<std::int32_t>(dice.between(2, share));
  shape.partitions_of_one = shape.partitions / 2;
  return shape;
}

void RowsShape::add_late(base::Prng& dice, std::size_t count) {
  const std::size_t before = nodes();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t like = dice.below(before);
    cores.push_back(dice.chance(0.2) ? 2 : 1);
    datacenters.push_back(datacenters[like]);
    racks.push_back(racks[like]);
  }
  late = count;
}

void RowsShape::draw_keyspaces(base::Prng& dice, std::size_t datacenter_count) {
  std::map<std::string, std::size_t> sizes;
  for (const std::string& datacenter : datacenters) ++sizes[datacenter];
  const std::size_t count = dice.between(1, 3);
  for (std::size_t i = 0; i < count; ++i) {
    RowsKeyspace keyspace{.name = fmt::format("ks{}", i), .replication = {}};
    const std::uint64_t factors[] = {3, 3, 5, 2};
    const std::uint64_t factor = i == 0 && dice.chance(0.75) ? 3 : factors[dice.below(4)];
    const bool by_datacenter = datacenter_count > 1 && dice.chance(0.75);
    if (by_datacenter) {
      std::vector<std::string> parts;
      for (const auto& [name, size] : sizes) {
        parts.push_back(fmt::format("'{}': {}", name, std::min<std::uint64_t>(size, 3)));
      }
      keyspace.replication =
          fmt::format("{{'class': 'NetworkTopologyStrategy', {}}}", fmt::join(parts, ", "));
    } else {
      keyspace.replication = simple_strategy(std::min<std::uint64_t>(factor, nodes()));
    }
    const std::uint64_t levels = dice.below(8);
    if (levels == 0) {
      keyspace.write_level = Consistency::all;
      keyspace.read_level = Consistency::one;
    } else if (levels <= 3 && by_datacenter) {
      keyspace.write_level = Consistency::each_quorum;
      keyspace.read_level = Consistency::local_quorum;
    }
    keyspaces.push_back(std::move(keyspace));
  }
}

void RowsShape::add_cells(RowsHistory& history) const {
  for (std::size_t keyspace = 0; keyspace < keyspaces.size(); ++keyspace) {
    for (std::int32_t k = 0; k < partitions; ++k) {
      const std::string partition = fmt::format("{} k={}", keyspaces[keyspace].table(), k);
      const auto first = history.add_cell(partition + " s");
      ASSERT(first == cell(keyspace, k, 0, Column::s));
      for (std::int32_t c = 0; c < kRows; ++c) {
        for (const Column column : kColumnsOfRow) {
          history.add_cell(fmt::format("{} c={} {}", partition, c, text_of(column)));
        }
      }
    }
  }
}

RowsHistory::Cell RowsShape::cell(std::size_t keyspace, std::int32_t partition, std::int32_t row,
                                  Column column) const {
  ASSERT(partition >= 0 && partition < partitions && row >= 0 && row < kRows);
  const auto number =
      static_cast<RowsHistory::Cell>(keyspace) * static_cast<RowsHistory::Cell>(partitions) +
      static_cast<RowsHistory::Cell>(partition);
  const RowsHistory::Cell first = number * kCellsOfPartition;
  if (column == Column::s) return first;
  return first + 1 + kCellsOfRow * static_cast<RowsHistory::Cell>(row) +
         (static_cast<RowsHistory::Cell>(column) - static_cast<RowsHistory::Cell>(Column::v));
}

std::string_view RowsShape::text_of(Column column) {
  switch (column) {
    case Column::s:
      return "s";
    case Column::v:
      return "v";
    case Column::w:
      return "w";
    case Column::m0:
      return "m[0]";
    case Column::m1:
      return "m[1]";
  }
  UNREACHABLE("a column");
}

std::string RowsShape::to_string() const {
  std::string text = fmt::format("{} nodes in {}, racks {}", nodes(), fmt::join(datacenters, " "),
                                 fmt::join(racks, " "));
  for (const RowsKeyspace& keyspace : keyspaces) {
    text += fmt::format("; {} {} {}/{}", keyspace.name, keyspace.replication,
                        model::name_of(keyspace.write_level), model::name_of(keyspace.read_level));
  }
  if (late > 0) text += fmt::format("; the last {} join later", late);
  return text + fmt::format("; {} partitions each, {} clients", partitions, clients);
}

}  // namespace helenus::sim
