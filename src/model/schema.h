// Schema: all keyspaces, tables and user-defined types at one moment, as an immutable snapshot.
//
// Plain values under shared constant pointers: whoever changes the schema copies what changes and
// makes the next Schema from it; readers on any core keep the one they began with. What a DDL
// statement may change, and its errors, are the planner's; here is what a schema is, how it is
// encoded (schema_codec.h), and how it prints (describe.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong.h"
#include "base/uuid.h"
#include "causality/dot_store.h"
#include "model/clustering_key.h"
#include "model/data_type.h"
#include "model/table_options.h"

namespace helenus::model {

// Names of keyspaces and tables have at most this many characters, as in Cassandra.
inline constexpr std::size_t kNameSizeMax = 48;

// The column that is not declared: an INSERT writes it, so that a row can be there without any
// other column; an UPDATE does not.
inline constexpr causality::ColumnId kRowMarker{0};

enum class ColumnKind : std::uint8_t {
  partition_key = 0,
  clustering = 1,
  static_column = 2,
  regular = 3,
};
// partition_key, clustering, static, regular: as in system_schema.columns.
std::string_view name_of(ColumnKind kind);

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::regular;
  // The place among the partition key's or the clustering columns; 0 for others, of which
  // system_schema.columns says -1.
  std::uint32_t position = 0;
  DataType type;
  bool descending = false;  // of a clustering column only
  // What storage knows the column by; never given again within the table, not after a drop either.
  causality::ColumnId id;

  friend bool operator==(const Column&, const Column&) = default;
};

// A column that was dropped. What files still hold of it stays invisible because its id is not
// given again.
struct DroppedColumn {
  std::string name;
  ColumnKind kind = ColumnKind::regular;
  DataType type;
  std::int64_t dropped_at_us = 0;
  causality::ColumnId id;

  friend bool operator==(const DroppedColumn&, const DroppedColumn&) = default;
};

// What of a column an index is of. Of a collection that is not frozen its values, the keys of a
// map, or both together; of a frozen one all of it.
enum class IndexTarget : std::uint8_t { column = 0, values = 1, keys = 2, entries = 3, full = 4 };

struct Index {
  std::string name;
  base::Uuid id;
  causality::ColumnId column;
  IndexTarget target = IndexTarget::column;
  // CREATE CUSTOM INDEX, or USING 'sai'.
  bool is_custom = false;
  // Those of WITH OPTIONS, and class_name of a custom one.
  OptionMap options;

  friend bool operator==(const Index&, const Index&) = default;
};

// Invariants, checked by validate(): the columns are in the order partition key, clustering (each
// by position, from 0 without gaps), static, regular (each by name); names and ids are unique; the
// partition key is not empty; static columns only beside clustering ones; a table has counters only
// (beside its keys) or none; ids are between 1 and next_column_id - 1. Indexes are in the
// order of their names, of columns that are there, and of no table with counters.
struct Table {
  std::string keyspace;
  std::string name;
  base::Uuid id;
  std::vector<Column> columns;
  std::vector<DroppedColumn> dropped_columns;
  TableOptions options;
  std::uint32_t next_column_id = 1;
  std::vector<Index> indexes;

  // Null for a name that is no column's. The pointer lives as long as the table.
  const Column* find(std::string_view column) const;
  const Column* find(causality::ColumnId column) const;
  const Index* find_index(std::string_view index) const;

  std::span<const Column> partition_key() const;
  std::span<const Column> clustering() const;
  std::span<const Column> static_columns() const;
  std::span<const Column> regular_columns() const;
  bool is_counter() const;

  // What clustering_key.h wants to know. Allocates: keep it with a plan.
  std::vector<ClusteringColumn> clustering_columns() const;

  friend bool operator==(const Table&, const Table&) = default;
};

// As system_schema.indexes and CREATE INDEX have it: v, keys(m).
std::string target_text(const Table& table, const Index& index);

// Sorts `columns` as Table wants them. Requires: positions are set.
void sort_columns(std::vector<Column>& columns);

// Whether the invariants of a table hold. Errors: invalid_argument.
base::Result<void> validate(const Table& table);

using TablePtr = std::shared_ptr<const Table>;

struct Keyspace {
  std::string name;
  // As in system_schema.keyspaces: 'class' is the full name of the strategy, factors are texts.
  OptionMap replication;
  bool durable_writes = true;
  std::map<std::string, TablePtr, std::less<>> tables;
  // User-defined types, not frozen.
  std::map<std::string, DataType, std::less<>> types;

  // Null for a name that is no table's.
  TablePtr find_table(std::string_view table) const;
  std::optional<DataType> find_type(std::string_view type) const;
  // The table that has an index of this name; null if none has.
  TablePtr find_table_of_index(std::string_view index) const;

  // Deep: tables are compared, not pointers.
  friend bool operator==(const Keyspace& a, const Keyspace& b);
};

using KeyspacePtr = std::shared_ptr<const Keyspace>;

class Schema {
 public:
  using Keyspaces = std::map<std::string, KeyspacePtr, std::less<>>;

  Schema() = default;  // without keyspaces

  const Keyspaces& keyspaces() const { return keyspaces_; }
  // Null for names that are not there.
  KeyspacePtr find_keyspace(std::string_view keyspace) const;
  TablePtr find_table(std::string_view keyspace, std::string_view table) const;
  TablePtr find_table(const base::Uuid& id) const;  // looks at every table

  // The next schemas. with() adds a keyspace or replaces the one of its name.
  Schema with(Keyspace keyspace) const;
  Schema without(std::string_view keyspace) const;
  // Requires: the table's keyspace is there.
  Schema with(Table table) const;
  Schema without_table(std::string_view keyspace, std::string_view table) const;

  // Deep.
  friend bool operator==(const Schema& a, const Schema& b);

 private:
  Keyspaces keyspaces_;
};

// Types of a keyspace ordered so that each comes behind those it is made of.
std::vector<DataType> types_in_order_of_use(const Keyspace& keyspace);

}  // namespace helenus::model
