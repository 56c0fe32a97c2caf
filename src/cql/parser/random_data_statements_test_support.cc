// SELECT, INSERT, UPDATE, DELETE and BATCH.
#include <utility>

#include "cql/parser/random_statements_test_support.h"

namespace helenus::cql::parser::testing {

Operator RandomStatements::comparison() {
  return one_of({Operator::equal, Operator::less, Operator::less_or_equal, Operator::greater,
                 Operator::greater_or_equal, Operator::not_equal});
}

Operand RandomStatements::one_value() {
  Operand result;
  result.values.push_back(term());
  return result;
}

Operand RandomStatements::in_values() {
  Operand result;
  if (words_.with_markers && chance(3)) {
    result.values.push_back(marker());
    result.is_list_marker = true;
  } else {
    result.values = several(0, 3, [this] { return term(); });
  }
  return result;
}

Relation RandomStatements::relation() {
  Relation result;
  result.columns.push_back(column());
  switch (below_(9)) {
    case 0:
    case 1:
      result.comparison = comparison();
      result.operand = one_value();
      break;
    case 2:
      result.comparison = Operator::in;
      result.operand = in_values();
      break;
    case 3:
      result.comparison = one_of({Operator::contains, Operator::contains_key, Operator::like});
      result.operand = one_value();
      break;
    case 4:
      result.comparison = Operator::is_not_null;
      break;
    case 5:
      result.kind = RelationKind::element;
      result.element = term();
      result.comparison = comparison();
      result.operand = one_value();
      break;
    case 6:
      result.kind = RelationKind::token;
      result.columns = several(1, 2, [this] { return column(); });
      result.comparison = comparison();
      result.operand = one_value();
      break;
    case 7:
      result.kind = RelationKind::custom_index;
      result.operand = one_value();
      break;
    default:
      return columns_relation();
  }
  return result;
}

Relation RandomStatements::columns_relation() {
  Relation result;
  result.kind = RelationKind::columns;
  result.columns = several(1, 3, [this] { return column(); });
  const auto one = [this] { return tuple(Context::term, 1, 1); };
  const bool as_markers = words_.with_markers && chance(3);
  if (chance(2)) {
    result.comparison = Operator::in;
    result.operand.is_list_marker = as_markers && chance(2);
    if (result.operand.is_list_marker) {
      result.operand.values.push_back(marker());
    } else {
      result.operand.values = several(0, 3, [&] { return as_markers ? marker() : one(); });
    }
    return result;
  }
  result.comparison = comparison();
  result.operand.values.push_back(as_markers ? marker() : one());
  return result;
}

ColumnTarget RandomStatements::target(Name column) {
  ColumnTarget result;
  result.column = std::move(column);
  switch (below_(4)) {
    case 2:
      result.field = name(words_.fields);
      break;
    case 3:
      result.element = term();
      break;
    default:
      break;
  }
  return result;
}

Condition RandomStatements::condition() {
  Condition result;
  result.target = target(column());
  if (chance(4)) {
    result.comparison = Operator::in;
    result.operand = in_values();
    return result;
  }
  const bool is_whole = !result.target.element && !result.target.field;
  result.comparison =
      is_whole && chance(4) ? one_of({Operator::contains, Operator::contains_key}) : comparison();
  result.operand = one_value();
  return result;
}

void RandomStatements::conditions(bool& if_exists, std::vector<Condition>& conditions) {
  if_exists = chance(4);
  if (!if_exists && chance(3)) conditions = several(1, 3, [this] { return condition(); });
}

Attributes RandomStatements::attributes(bool with_time_to_live) {
  Attributes result;
  const auto value = [this] { return integer_or_marker(); };
  result.timestamp = maybe(value);
  if (with_time_to_live) result.time_to_live = maybe(value);
  result.operation = maybe([this] {
    if (words_.with_markers && chance(2)) return marker();
    return expression_of(literal_of(LiteralKind::string, word(words_.strings)));
  });
  return result;
}

Selector RandomStatements::selector() {
  Selector result;
  result.expression = selected();
  result.alias = maybe([this] { return alias(); });
  return result;
}

Ordering RandomStatements::ordering() {
  return {.column = column(), .descending = chance(2)};
}

Select RandomStatements::select() {
  Select result;
  result.json = chance(5);
  result.distinct = chance(5);
  result.selectors = several(0, 3, [this] { return selector(); });
  result.table = table();
  result.where = several(0, 3, [this] { return relation(); });
  if (chance(5)) result.group_by = several(1, 2, [this] { return selected(); });
  if (chance(3)) result.order_by = several(1, 2, [this] { return ordering(); });
  result.per_partition_limit = maybe([this] { return integer_or_marker(); });
  result.limit = maybe([this] { return integer_or_marker(); });
  result.allow_filtering = chance(3);
  return result;
}

Insert RandomStatements::insert() {
  Insert result;
  result.table = table();
  result.columns = several(1, 4, [this] { return column(); });
  for (std::size_t left = result.columns.size(); left > 0; --left) {
    result.values.push_back(term());
  }
  result.if_not_exists = chance(3);
  result.attributes = attributes(true);
  return result;
}

InsertJson RandomStatements::insert_json() {
  InsertJson result;
  result.table = table();
  result.json = words_.with_markers && chance(2)
                    ? marker()
                    : expression_of(literal_of(LiteralKind::string, word(words_.strings)));
  result.default_unset = chance(2);
  result.if_not_exists = chance(3);
  result.attributes = attributes(true);
  return result;
}

Update RandomStatements::update() {
  Update result;
  result.table = table();
  result.attributes = attributes(true);
  for (Name& changed : different_columns(1, 3)) {
    Assignment assignment;
    assignment.target = target(std::move(changed));
    if (!assignment.target.element && !assignment.target.field) {
      assignment.kind = one_of({AssignmentKind::set, AssignmentKind::add, AssignmentKind::subtract,
                                AssignmentKind::prepend});
    }
    assignment.value = term();
    result.assignments.push_back(std::move(assignment));
  }
  result.where = several(1, 3, [this] { return relation(); });
  conditions(result.if_exists, result.conditions);
  return result;
}

Delete RandomStatements::deletion() {
  Delete result;
  result.targets = several(0, 3, [this] { return target(column()); });
  result.table = table();
  result.attributes = attributes(false);
  result.where = several(1, 3, [this] { return relation(); });
  conditions(result.if_exists, result.conditions);
  return result;
}

Batch RandomStatements::batch() {
  Batch result;
  result.kind = one_of({BatchKind::logged, BatchKind::unlogged, BatchKind::counter});
  result.attributes = attributes(true);
  for (std::size_t left = count(0, 3); left > 0; --left) {
    switch (below_(4)) {
      case 0:
        result.statements.emplace_back(insert());
        break;
      case 1:
        result.statements.emplace_back(update());
        break;
      case 2:
        result.statements.emplace_back(deletion());
        break;
      default:
        result.statements.emplace_back(insert_json());
    }
  }
  return result;
}

}  // namespace helenus::cql::parser::testing
