// Selectors: what stands between SELECT and FROM, made of the rows that are found.
//
// A Selection turns rows into the cells of a result. Without aggregates a row gives a row; with
// them all rows of a group give one, in which a column that is not aggregated has the value of the
// group's first row, as in Cassandra.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "cql/plan/functions.h"
#include "cql/plan/moment.h"
#include "cql/plan/row.h"
#include "cql/plan/terms.h"
#include "cql/plan/total.h"
#include "cql/protocol/metadata.h"
#include "model/schema.h"

namespace helenus::cql {

class Selector {
 public:
  enum class Kind : std::uint8_t {
    column,
    writetime,
    max_writetime,
    ttl,
    token,
    term,      // a literal or a marker with a type
    function,  // of other selectors; casts too
    element,   // parts[0][parts[1]] of a map or set
    slice,     // parts[0][parts[1]..parts[2]]; an open end is null
    field,     // parts[0].field
    json,      // all parts as one text
    count_rows,
    count,
    minimum,
    maximum,
    sum,
    average,
  };

  static Selector of_column(std::size_t column, model::DataType type);
  // A JSON object of these, each under its name.
  static Selector json_of(std::vector<Selector> parts,
                          const std::vector<protocol::ColumnSpec>& columns);
  Selector(Kind kind, model::DataType type) : kind_(kind), type_(std::move(type)) {}

  const model::DataType& type() const { return type_; }
  Kind kind() const { return kind_; }
  // Of a writetime or ttl: what it is told of.
  enum class Extent : std::uint8_t {
    cell,     // all of the column
    all,      // each element
    element,  // the one that parts[0] names, or the field
    slice,    // those between parts[0] and parts[1]
  };
  // Of a column, writetime or ttl: its index.
  std::size_t column() const { return column_; }
  bool is_aggregate() const { return kind_ >= Kind::count_rows; }
  // Here or within.
  bool has_aggregate() const;
  const std::vector<Selector>& parts() const { return parts_; }
  // Marks the columns it reads.
  void mark(std::vector<bool>& columns) const;

  // What it is of one row. Requires: !has_aggregate(). Errors: invalid.
  QueryResult<model::OptionalBytes> of_row(const Row& row, const Evaluation& evaluation) const;
  // The same with its parts known already. Requires: it has parts and is no aggregate.
  QueryResult<model::OptionalBytes> combine(std::vector<model::OptionalBytes> values,
                                            const Evaluation& evaluation) const;

 private:
  friend class SelectorCompiler;

  base::Bytes json_text(const std::vector<model::OptionalBytes>& values) const;
  QueryResult<model::OptionalBytes> property_of(const Row& row, const Evaluation& evaluation) const;
  QueryResult<model::OptionalBytes> property_of_elements(const Cell& cell,
                                                         const Evaluation& evaluation) const;

  Kind kind_;
  model::DataType type_;
  std::size_t column_ = 0;  // of column, writetime and ttl; of a field its number
  Extent extent_ = Extent::cell;
  std::optional<std::size_t> field_;                // of an extent that is a field
  std::shared_ptr<const model::DataType> of_type_;  // the column's, of a property of elements
  std::vector<Selector> parts_;
  std::vector<std::string> names_;  // of the parts, as JSON has them
  std::optional<Term> term_;
  std::shared_ptr<const Function> function_;
};

class Selection {
 public:
  // `*`: every column.
  static Selection all_columns(const model::Table& table);
  // Errors: invalid.
  static QueryResult<Selection> plan(const std::vector<parser::Selector>& selectors,
                                     const model::Table& table, PlanScope& scope);

  // The same as one column, of JSON.
  Selection as_json(const model::Table& table) const;

  const std::vector<Selector>& selectors() const { return selectors_; }
  // Names and types of the result's columns.
  const std::vector<protocol::ColumnSpec>& columns() const { return columns_; }
  bool has_aggregate() const { return has_aggregate_; }
  void mark(std::vector<bool>& columns) const;

 private:
  std::vector<Selector> selectors_;
  std::vector<protocol::ColumnSpec> columns_;
  bool has_aggregate_ = false;
};

// The state of a selection while rows of one group go by.
//
//   Grouping grouping(selection, table);
//   for (row : group) grouping.add(row, evaluation);
//   grouping.result(evaluation)
class Grouping {
 public:
  // The selection outlives it.
  Grouping(const Selection& selection, const model::Table& table);

  // Errors: invalid (a function that refuses its argument).
  QueryResult<void> add(const Row& row, const Evaluation& evaluation);
  // The cells of the result. Of no row at all: what aggregates say of nothing, and nulls.
  QueryResult<std::vector<model::OptionalBytes>> result(const Evaluation& evaluation) const;
  bool empty() const { return rows_ == 0; }
  // Ready for the next group.
  void clear();

 private:
  struct Accumulator {
    std::uint64_t count = 0;
    model::OptionalBytes best;
    Total total;
  };

  QueryResult<void> accumulate(const Selector& selector, const Row& row,
                               const Evaluation& evaluation, std::size_t& next);
  QueryResult<model::OptionalBytes> finish(const Selector& selector, const Evaluation& evaluation,
                                           std::size_t& next) const;
  static QueryResult<model::OptionalBytes> total(const Selector& selector,
                                                 const Accumulator& state);

  const Selection& selection_;
  const std::size_t columns_;
  std::vector<Accumulator> states_;  // one an aggregate, in the order in which they are met
  std::uint64_t rows_ = 0;
  Row first_;
};

}  // namespace helenus::cql
