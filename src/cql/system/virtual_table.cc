#include "cql/system/virtual_table.h"

#include <map>
#include <span>
#include <utility>

#include "base/assert.h"
#include "model/clustering_key.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"

namespace helenus::cql {

namespace {

std::vector<base::ByteView> key_values(const VirtualRow& row, std::size_t from, std::size_t count) {
  std::vector<base::ByteView> values;
  for (std::size_t i = from; i < from + count; ++i) {
    ASSERT(row.values[i].has_value(), "a row without its whole key");
    values.push_back(row.values[i]->view());
  }
  return values;
}

}  // namespace

void VirtualRows::add() {
  rows_.emplace_back().values.resize(table_.columns.size());
}

void VirtualRows::set(std::string_view column, base::Bytes value) {
  const model::Column* found = table_.find(column);
  ASSERT(found != nullptr, "table {} has no column {}", table_.name, column);
  rows_.back().values[static_cast<std::size_t>(found - table_.columns.data())] = std::move(value);
}

std::vector<VirtualRow> VirtualRows::take() {
  const std::size_t partition_size = table_.partition_key().size();
  const std::vector<model::ClusteringColumn> clustering = table_.clustering_columns();
  for (VirtualRow& row : rows_) {
    const auto partition = key_values(row, 0, partition_size);
    const auto routing_key = model::make_routing_key(partition);
    ASSERT(routing_key.has_value(), "table {}: {}", table_.name, routing_key.error().to_string());
    row.partition =
        model::make_partition(model::KeyspaceNumber(), ring::token_of(*routing_key), *routing_key);
    const auto values = key_values(row, partition_size, clustering.size());
    const auto key = model::encode_clustering(clustering, values);
    ASSERT(key.has_value(), "table {}: {}", table_.name, key.error().to_string());
    row.clustering = *key;
  }
  std::map<std::pair<base::Bytes, base::Bytes>, VirtualRow> by_key;
  for (VirtualRow& row : std::exchange(rows_, {})) {
    by_key.insert_or_assign(std::pair(row.partition, row.clustering), std::move(row));
  }
  std::vector<VirtualRow> rows;
  rows.reserve(by_key.size());
  for (auto& [key, row] : by_key) rows.push_back(std::move(row));
  return rows;
}

runtime::Task<base::Result<std::vector<VirtualRow>>> VirtualTable::rows(
    runtime::Until until) const {
  VirtualRows rows(*definition_);
  if (maker_) {
    maker_(rows);
  } else {
    CO_TRY_VOID(co_await waiting_maker_(rows, std::move(until)));
  }
  co_return rows.take();
}

void VirtualTables::add(VirtualTable table) {
  const base::Uuid id = table.definition()->id;
  const bool is_new = tables_.emplace(id, std::move(table)).second;
  ASSERT(is_new, "two virtual tables of one id");
}

const VirtualTable* VirtualTables::find(const base::Uuid& table) const {
  const auto found = tables_.find(table);
  return found == tables_.end() ? nullptr : &found->second;
}

}  // namespace helenus::cql
