// Predicates: the relations of a WHERE clause with their terms compiled, and the same with their
// values, to be asked of rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "cql/errors/query_error.h"
#include "cql/parser/expression.h"
#include "cql/plan/row.h"
#include "cql/plan/terms.h"
#include "model/schema.h"

namespace helenus::cql {

// The values of one tuple of columns.
using KeyValues = std::vector<base::Bytes>;

// How many values an IN may have, and how many keys the INs of a statement may make together.
inline constexpr std::size_t kKeysMax = 10'000;
// Of the values of an IN of that column. Errors: invalid.
QueryResult<void> check_count(std::size_t count, const std::string& column);

struct Predicate {
  std::vector<std::size_t>
      columns;  // indexes in Table::columns; several of a multi-column relation
  parser::Operator comparison = parser::Operator::equal;
  // The operand: of the column's type, or a tuple of the columns' types if `is_tuple`. With IN any
  // number of them, or one list of them if `is_list`.
  std::vector<Term> values;
  bool is_list = false;
  bool is_tuple = false;
  std::optional<Term> element;  // m[element] = value

  bool is_equal() const { return comparison == parser::Operator::equal && !element; }
  bool is_in() const { return comparison == parser::Operator::in; }
  // < and <=; > and >=.
  bool is_upper() const;
  bool is_lower() const;
  bool is_slice() const { return is_upper() || is_lower(); }
  bool is_inclusive() const {
    return comparison == parser::Operator::less_or_equal ||
           comparison == parser::Operator::greater_or_equal;
  }

  // The values compared with: exactly one unless is_in(). Each has one value a column; none is
  // null. Errors: invalid for null and unset ones, and for more than kKeysMax.
  QueryResult<std::vector<KeyValues>> evaluate(const model::Table& table,
                                               const Evaluation& evaluation) const;
  // The same for the one value of one column. Requires: is_equal(), neither a tuple nor a list.
  QueryResult<base::Bytes> evaluate_one(const model::Table& table,
                                        const Evaluation& evaluation) const;
};

// A predicate with its values.
class BoundPredicate {
 public:
  static QueryResult<BoundPredicate> bind(const Predicate& predicate, const model::Table& table,
                                          const Evaluation& evaluation);
  // The first value, of the first column; that of m[element].
  const base::Bytes& value() const { return values_.front().front(); }
  const model::OptionalBytes& element() const { return element_; }
  // False where a column compared is null.
  bool matches(const model::Table& table, const Row& row) const;

 private:
  bool matches_collection(const model::DataType& type, base::ByteView value) const;
  bool matches_element(const model::DataType& type, base::ByteView value) const;

  std::vector<std::size_t> columns_;
  parser::Operator comparison_ = parser::Operator::equal;
  std::vector<KeyValues> values_;
  model::OptionalBytes element_;
};

// As CQL spells it: "<=".
std::string_view name_of(parser::Operator comparison);

}  // namespace helenus::cql
