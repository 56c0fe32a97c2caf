#include "cql/plan/predicate.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "base/assert.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::DataType;
using model::Table;
using parser::Operator;

bool Predicate::is_upper() const {
  return comparison == Operator::less || comparison == Operator::less_or_equal;
}
bool Predicate::is_lower() const {
  return comparison == Operator::greater || comparison == Operator::greater_or_equal;
}

std::string_view name_of(Operator comparison) {
  switch (comparison) {
    case Operator::equal:
      return "=";
    case Operator::not_equal:
      return "!=";
    case Operator::less:
      return "<";
    case Operator::less_or_equal:
      return "<=";
    case Operator::greater:
      return ">";
    case Operator::greater_or_equal:
      return ">=";
    case Operator::in:
      return "IN";
    case Operator::contains:
      return "CONTAINS";
    case Operator::contains_key:
      return "CONTAINS KEY";
    case Operator::like:
      return "LIKE";
    case Operator::is_not_null:
      return "IS NOT NULL";
  }
  UNREACHABLE("an operator");
}

namespace {

QueryResult<Bytes> bytes_of(TermValue value, const std::string& column) {
  if (value.is_unset()) return invalid("Invalid unset value for column {}", column);
  if (value.is_null()) return invalid("Invalid null value in condition for column {}", column);
  return std::move(value.bytes);
}

QueryResult<KeyValues> split(const Table& table, const Predicate& predicate, const Bytes& value) {
  if (!predicate.is_tuple) return KeyValues{value};
  TRY(const auto parts, model::split_tuple(predicate.columns.size(), value));
  KeyValues values;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]) {
      return invalid("Invalid null value in condition for column {}",
                     table.columns[predicate.columns[i]].name);
    }
    values.push_back(Bytes::copy_of(*parts[i]));
  }
  return values;
}

}  // namespace

QueryResult<void> check_count(std::size_t count, const std::string& column) {
  if (count <= kKeysMax) return {};
  return invalid("{} values in the IN restriction of {}; at most {} are allowed", count, column,
                 kKeysMax);
}

QueryResult<Bytes> Predicate::evaluate_one(const Table& table, const Evaluation& evaluation) const {
  ASSERT(is_equal() && !is_tuple && !is_list);
  TRY(TermValue value, values.front().evaluate(evaluation));
  return bytes_of(std::move(value), table.columns[columns.front()].name);
}

QueryResult<std::vector<KeyValues>> Predicate::evaluate(const Table& table,
                                                        const Evaluation& evaluation) const {
  const std::string& name = table.columns[columns.front()].name;
  if (is_list) TRY_VOID(check_count(values.front().count_bound(evaluation), name));
  std::vector<Bytes> operands;
  for (const Term& term : values) {
    TRY(TermValue value, term.evaluate(evaluation));
    TRY(Bytes bytes, bytes_of(std::move(value), name));
    operands.push_back(std::move(bytes));
  }
  if (is_list) {
    const Bytes list = std::move(operands.front());
    operands.clear();
    TRY(const auto elements, model::split_collection(list, evaluation.pace));
    for (const ByteView part : elements) operands.push_back(Bytes::copy_of(part));
  }
  TRY_VOID(check_count(operands.size(), name));
  std::vector<KeyValues> all;
  all.reserve(operands.size());
  for (const Bytes& operand : operands) {
    TRY(KeyValues key, split(table, *this, operand));
    all.push_back(std::move(key));
  }
  return all;
}

QueryResult<BoundPredicate> BoundPredicate::bind(const Predicate& predicate, const Table& table,
                                                 const Evaluation& evaluation) {
  BoundPredicate bound;
  bound.columns_ = predicate.columns;
  bound.comparison_ = predicate.comparison;
  TRY(bound.values_, predicate.evaluate(table, evaluation));
  if (predicate.element) {
    TRY(TermValue element, predicate.element->evaluate(evaluation));
    TRY(bound.element_, bytes_of(std::move(element), table.columns[predicate.columns[0]].name));
  }
  return bound;
}

namespace {

bool holds(std::weak_ordering order, Operator comparison) {
  switch (comparison) {
    case Operator::equal:
    case Operator::in:
      return order == 0;
    case Operator::not_equal:
      return order != 0;
    case Operator::less:
      return order < 0;
    case Operator::less_or_equal:
      return order <= 0;
    case Operator::greater:
      return order > 0;
    case Operator::greater_or_equal:
      return order >= 0;
    default:
      return false;
  }
}

}  // namespace

bool BoundPredicate::matches_collection(const DataType& type, ByteView value) const {
  const Bytes& wanted = values_.front().front();
  if (type.kind() != model::TypeKind::map) {
    const auto elements = model::split_collection(value);
    return elements && std::ranges::any_of(*elements, [&](ByteView element) {
             return model::compare(type.element(), element, wanted) == 0;
           });
  }
  const bool by_key = comparison_ == Operator::contains_key;
  const auto entries = model::split_map(value);
  return entries && std::ranges::any_of(*entries, [&](const model::MapEntryView& entry) {
           return by_key ? model::compare(type.key(), entry.first, wanted) == 0
                         : model::compare(type.mapped(), entry.second, wanted) == 0;
         });
}

bool BoundPredicate::matches_element(const DataType& type, ByteView value) const {
  const auto entries = model::split_map(value);
  if (!entries) return false;
  return std::ranges::any_of(*entries, [&](const model::MapEntryView& entry) {
    return model::compare(type.key(), entry.first, *element_) == 0 &&
           holds(model::compare(type.mapped(), entry.second, values_.front().front()), comparison_);
  });
}

bool BoundPredicate::matches(const Table& table, const Row& row) const {
  for (const std::size_t column : columns_) {
    if (!row.cells[column].value) return false;
  }
  const DataType& type = table.columns[columns_.front()].type;
  const Bytes& first = *row.cells[columns_.front()].value;
  if (element_) return matches_element(type, first);
  if (comparison_ == Operator::contains || comparison_ == Operator::contains_key) {
    return matches_collection(type, first);
  }
  return std::ranges::any_of(values_, [&](const KeyValues& wanted) {
    std::weak_ordering order = std::weak_ordering::equivalent;
    for (std::size_t i = 0; i < columns_.size() && order == 0; ++i) {
      order =
          model::compare(table.columns[columns_[i]].type, *row.cells[columns_[i]].value, wanted[i]);
    }
    return holds(order, comparison_);
  });
}

}  // namespace helenus::cql
