// Virtual tables: tables whose rows are made when they are asked for (system.local,
// system_schema.*, helenus.clients). They have a definition in the schema like any other and are
// read by the same plans; nothing of them is stored, and nothing can be written to them.
//
//   const VirtualTable* table = tables.find(definition->id);
//   CO_TRY(const auto rows, co_await table->rows(until));
//
// Core affinity: that of whoever made them. A table that tells about all cores asks them.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/schema.h"
#include "model/value.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::cql {

// A row with its keys as storage would have them, so that restrictions on keys are ranges of bytes
// here too.
struct VirtualRow {
  base::Bytes partition;   // model/partition_key.h
  base::Bytes clustering;  // model/clustering_key.h; empty in a table without clustering columns
  // One a column, in the order of Table::columns; none is null.
  std::vector<model::OptionalBytes> values;
};

// Where the maker of a virtual table puts its rows.
class VirtualRows {
 public:
  explicit VirtualRows(const model::Table& table [[clang::lifetimebound]]) : table_(table) {}

  // Begins a row whose columns are all null.
  void add();
  // Sets a column of the last row. Requires: a row, a column of that name, a value of its type.
  void set(std::string_view column, base::Bytes value);

  // The rows with their keys, ascending by them; of rows with the same key the one added last.
  // Requires: every row has its whole primary key, of a size that keys may have.
  std::vector<VirtualRow> take();

 private:
  const model::Table& table_;
  std::vector<VirtualRow> rows_;
};

class VirtualTable {
 public:
  using Maker = std::function<void(VirtualRows&)>;
  // One that waits for others. What it is given outlives its task.
  using WaitingMaker =
      std::function<runtime::Task<base::Result<void>>(VirtualRows&, runtime::Until)>;

  // Requires: no static columns, no counters.
  VirtualTable(model::TablePtr definition, Maker maker)
      : definition_(std::move(definition)), maker_(std::move(maker)) {}
  VirtualTable(model::TablePtr definition, WaitingMaker maker)
      : definition_(std::move(definition)), waiting_maker_(std::move(maker)) {}

  const model::TablePtr& definition() const { return definition_; }
  // Whether making its rows waits for others.
  bool waits() const { return !maker_; }
  // All rows as they are now, ascending by (partition, clustering). Costs as much as there is.
  // Errors: those of the maker.
  runtime::Task<base::Result<std::vector<VirtualRow>>> rows(runtime::Until until) const;

 private:
  model::TablePtr definition_;
  Maker maker_;  // or
  WaitingMaker waiting_maker_;
};

// The virtual tables of a node, by the ids of their definitions.
class VirtualTables {
 public:
  // Requires: no table of that id yet.
  void add(VirtualTable table);
  // Null for a table that is not virtual.
  const VirtualTable* find(const base::Uuid& table) const;

 private:
  std::map<base::Uuid, VirtualTable> tables_;
};

}  // namespace helenus::cql
