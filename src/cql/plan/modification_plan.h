// ModificationPlan: an INSERT, UPDATE or DELETE that was understood; BatchPlan: several of them.
// Immutable; one plan serves any number of executions at once.
//
// What a modification does to storage:
//
//   INSERT            cells, and the row marker, so that the row is there without any other cell
//   UPDATE            cells
//   a null value      deletes the cell; one that is UNSET leaves it alone
//   DELETE c FROM     deletes cells
//   DELETE FROM       deletes a range: a row, a range of rows, or the partition
//   c = c + n         an increment, in a table of counters
//
// A collection or user-defined type that is not frozen has a cell for each element or field, under
// a key of its own behind the row's (model/element_key.h). Writing the whole of it deletes the
// range of its elements, one tick older than what it writes, all under one dot (causality/delta.h).
// An empty one is null, as in Cassandra.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "causality/delta.h"
#include "cql/catalog/catalog_snapshot.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/plan/restrictions.h"
#include "cql/plan/terms.h"
#include "model/schema.h"
#include "replication/request/partition_write.h"

namespace helenus::cql {

struct ModificationPlan {
  enum class Change : std::uint8_t {
    set,       // the cell, or all of what is in elements
    add,       // of a counter
    subtract,  // of a counter
    remove,    // as set
    // What is in elements:
    put,          // c = c + v: elements more, those of a list at its end
    prepend,      // c = v + c
    take,         // c = c - v: the elements of a set or list, the keys of a map
    set_element,  // c[e] = v, c.f = v
    remove_element,
  };
  struct Assignment {
    std::size_t column = 0;
    Change change = Change::set;
    std::optional<Term> value = {};    // unless it removes; of map - set its keys
    std::optional<Term> element = {};  // a key, an element of a set, an index of a list
    std::size_t field = 0;             // of a user-defined type
  };

  StatementKind kind = StatementKind::insert;
  model::TablePtr table;
  storage::TableId storage;
  causality::Policy policy = causality::Policy::lww;
  Restrictions where;
  std::vector<Assignment> assignments;
  bool whole_rows = false;   // a DELETE without columns
  bool only_static = false;  // no row is named, or none is meant
  std::optional<Term> timestamp;
  std::optional<Term> time_to_live;
  std::optional<Term> operation;  // USING OPERATION

  // INSERT JSON: the columns' values are those of indexes behind the statement's markers, in their
  // order, which are taken from this text when it is executed.
  struct Json {
    Term text;
    std::size_t first_value = 0;
    bool default_unset = false;
  };
  std::optional<Json> json;

  bool is_counter() const { return policy == causality::Policy::counter; }
  // Whether what is in a list decides what is written.
  bool reads() const;
};

// An element of a list as it was found.
struct ListElement {
  base::Bytes name;
  base::Bytes value;
};
using ListElements = std::vector<ListElement>;

struct BatchPlan {
  parser::BatchKind kind = parser::BatchKind::logged;
  std::vector<ModificationPlan> modifications;
  std::optional<Term> timestamp;
  std::optional<Term> operation;
};

// Errors of all: invalid.
QueryResult<ModificationPlan> plan_insert(const parser::Insert& insert,
                                          const CatalogSnapshot& catalog,
                                          const std::string& session_keyspace,
                                          MarkerTypes& markers);
QueryResult<ModificationPlan> plan_insert_json(const parser::InsertJson& insert,
                                               const CatalogSnapshot& catalog,
                                               const std::string& session_keyspace,
                                               MarkerTypes& markers);
QueryResult<ModificationPlan> plan_update(const parser::Update& update,
                                          const CatalogSnapshot& catalog,
                                          const std::string& session_keyspace,
                                          MarkerTypes& markers);
QueryResult<ModificationPlan> plan_delete(const parser::Delete& remove,
                                          const CatalogSnapshot& catalog,
                                          const std::string& session_keyspace,
                                          MarkerTypes& markers);
QueryResult<BatchPlan> plan_batch(const parser::Batch& batch, const CatalogSnapshot& catalog,
                                  const std::string& session_keyspace, MarkerTypes& markers);
// Whether such statements may stand in one batch of that kind.
QueryResult<void> check_batch(parser::BatchKind kind, std::size_t counters, std::size_t others);

// A delete with a timestamp of its own is remembered so long at the least, whatever the table's
// `delete_memory`: it is there to be compared with others of its kind, which come when they come.
inline constexpr std::int32_t kExplicitDeleteMemorySeconds = 3600;

// How many cells and ranges one request may change.
inline constexpr std::size_t kChangesMax = 200'000;

// The mutations of one request, put together by partition: what statements of one timestamp do to
// one partition is one mutation, and so atomic. Where two of them meet in a cell the rules of equal
// timestamps hold: a delete beats a value, and of two values the larger one stays.
class WriteCollector {
 public:
  struct Stamp {
    std::int64_t timestamp_us = 0;
    bool is_explicit = false;
    friend auto operator<=>(const Stamp&, const Stamp&) = default;
  };

  void add(const ModificationPlan& plan, const base::Bytes& partition, Stamp stamp,
           causality::CellChange cell);
  // A delete of the range's rows, remembered for so long.
  void add(const ModificationPlan& plan, const base::Bytes& partition, Stamp stamp,
           causality::RowRange row_range, std::optional<causality::WallTime> remembered_until);
  // Elements of the row's column are deleted, as a range of keys behind the row's.
  void add_elements(const ModificationPlan& plan, const base::Bytes& partition, Stamp stamp,
                    const base::Bytes& row, causality::ColumnId column, bool replaces,
                    std::optional<causality::WallTime> remembered_until);
  // How many changes were added.
  std::size_t size() const { return size_; }
  // In the order of tables and partitions. At that pace, if there is one. Errors: of the pace.
  QueryResult<std::vector<replication::PartitionWrite>> take(base::Pace* pace = nullptr) &&;

 private:
  // Increments stand apart: a mutation has nothing else beside them.
  struct Key {
    storage::TableId table;
    base::Bytes partition;
    Stamp stamp;
    bool increments = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Changes {
    std::map<std::pair<causality::RowKey, causality::ColumnId>, causality::CellChange> cells;
    std::set<causality::RowRange> deleted_ranges;
    // The same of collections that are written anew: they are older than what is written.
    std::set<causality::RowRange> replaced_ranges;
    bool deletes_rows = false;                            // some of the ranges are of rows
    std::optional<causality::WallTime> remembered_until;  // of the ranges: they are of one table
    replication::RowColumns columns;                      // if they have a timestamp of their own
    bool unites_clocks = false;
  };

  Changes& changes_of(const ModificationPlan& plan, const base::Bytes& partition, Stamp stamp,
                      bool increments);

  std::size_t size_ = 0;
  std::map<Key, Changes> changes_;
};

// What a statement found in the lists that it must know.
using FoundLists = std::map<std::tuple<base::Bytes, base::Bytes, std::size_t>, ListElements>;

// The one mutation of a plan that names one row, made without a collector; none if it changes
// nothing. Requires: plan.where.is_row_key(), !plan.reads(). Errors: as collect().
QueryResult<std::optional<replication::PartitionWrite>> row_write(const ModificationPlan& plan,
                                                                  const Evaluation& evaluation,
                                                                  WriteCollector::Stamp stamp);
// Adds what the plan does with these values. `stamp` holds unless the statement has its own.
// `lists`: by partition, row and column, those of a plan that reads(). Errors: invalid.
QueryResult<void> collect(const ModificationPlan& plan, const Evaluation& evaluation,
                          WriteCollector::Stamp stamp, WriteCollector& into,
                          const FoundLists& lists = {});
// The values of an INSERT JSON: those that were bound, and behind them those of its columns.
// Requires: plan.json. Errors: invalid.
QueryResult<BoundValues> values_of_json(const ModificationPlan& plan, const Evaluation& evaluation);
// The operation id that USING OPERATION says, if it says one. Errors: invalid, for what is no id.
QueryResult<std::optional<causality::OperationId>> operation_of(const std::optional<Term>& term,
                                                                const Evaluation& evaluation);
// Names what a request does to each partition after the operation that the request is.
void name_operations(std::vector<replication::PartitionWrite>& writes,
                     const causality::OperationId& request);
// The timestamp that USING says, if it says one.
QueryResult<std::optional<std::int64_t>> timestamp_of(const std::optional<Term>& term,
                                                      const Evaluation& evaluation);

}  // namespace helenus::cql
