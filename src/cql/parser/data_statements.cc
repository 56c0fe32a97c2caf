// SELECT, INSERT, UPDATE, DELETE, BATCH and TRUNCATE.
#include <set>

#include "cql/parser/grammar.h"

namespace helenus::cql::parser {

using base::Errc;
using base::Error;

namespace {

bool is_whole_column(const ColumnTarget& target) {
  return !target.element && !target.field;
}

// Setting a column agrees with nothing else about it, setting a field only with other fields.
base::Result<void> check_compatible(const std::vector<Assignment>& assignments) {
  std::set<std::string_view> changed;
  std::set<std::string_view> set_whole;
  std::set<std::pair<std::string_view, std::string_view>> set_fields;
  for (const Assignment& assignment : assignments) {
    const ColumnTarget& target = assignment.target;
    const std::string_view column = target.column.text;
    const bool sets_whole = is_whole_column(target) && assignment.kind == AssignmentKind::set;
    const bool first = changed.insert(column).second;
    const bool repeats_field =
        target.field && !set_fields.emplace(column, target.field->text).second;
    if ((sets_whole && !first) || set_whole.contains(column) || repeats_field) {
      return Error(Errc::invalid_argument, "Multiple incompatible setting of column {}", column);
    }
    if (sets_whole) set_whole.insert(column);
  }
  return {};
}

}  // namespace

// ------------------------------------------------------------------- relations and conditions

base::Result<std::vector<Relation>> Grammar::where_clause() {
  return list_of(Keyword::k_and, [this] { return relation(); });
}

base::Result<Relation> Grammar::relation() {
  const Token token = tokens_.current();
  const bool has_parenthesis = tokens_.next_is(TokenKind::left_parenthesis);
  const auto parse = [&]() -> Result<Relation> {
    if (token.kind == TokenKind::left_parenthesis) return relation_in_parentheses();
    if (token.keyword == Keyword::k_token) return token_relation();
    if (has_parenthesis && token.kind == TokenKind::word && folded(token.text) == "expr") {
      return custom_index_relation();
    }
    return tokens_.next_is(TokenKind::left_bracket) ? element_relation() : column_relation();
  };
  TRY(Relation result, parse());
  result.position = token.position;
  return result;
}

// `(a, b) > (1, 2)` or `(a > 1)`.
base::Result<Relation> Grammar::relation_in_parentheses() {
  const TokenKind behind_name = tokens_.ahead(2).kind;
  if (is_column_name(tokens_.ahead(1)) &&
      (behind_name == TokenKind::comma || behind_name == TokenKind::right_parenthesis)) {
    return columns_relation();
  }
  TRY(const Level level, descend());
  tokens_.take();
  TRY(Relation result, relation());
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  return result;
}

base::Result<Relation> Grammar::column_relation() {
  Relation result;
  TRY(Name column, column_name());
  result.columns.push_back(std::move(column));
  if (tokens_.accept(Keyword::k_is)) {
    TRY_VOID(tokens_.expect(Keyword::k_not));
    TRY_VOID(tokens_.expect(Keyword::k_null));
    result.comparison = Operator::is_not_null;
    return result;
  }
  if (tokens_.accept(Keyword::k_in)) {
    result.comparison = Operator::in;
    TRY(result.operand, in_values());
    return result;
  }
  if (tokens_.accept(Keyword::k_contains)) {
    const bool of_keys = tokens_.accept(Keyword::k_key);
    result.comparison = of_keys ? Operator::contains_key : Operator::contains;
  } else if (tokens_.accept(Keyword::k_like)) {
    result.comparison = Operator::like;
  } else {
    TRY(result.comparison, comparison());
  }
  TRY(result.operand, one_value());
  return result;
}

base::Result<Relation> Grammar::element_relation() {
  Relation result;
  result.kind = RelationKind::element;
  TRY(Name column, column_name());
  result.columns.push_back(std::move(column));
  tokens_.take();
  TRY(result.element, term());
  TRY_VOID(tokens_.expect(TokenKind::right_bracket));
  TRY(result.comparison, comparison());
  TRY(result.operand, one_value());
  return result;
}

base::Result<Relation> Grammar::columns_relation() {
  Relation result;
  result.kind = RelationKind::columns;
  TRY(result.columns, in_parentheses([this] { return column_name(); }));
  if (tokens_.accept(Keyword::k_in)) {
    result.comparison = Operator::in;
    TRY(result.operand, in_tuples());
    return result;
  }
  TRY(result.comparison, comparison());
  TRY(Expression value, tuple_or_marker());
  result.operand.values.push_back(std::move(value));
  return result;
}

base::Result<Relation> Grammar::token_relation() {
  Relation result;
  result.kind = RelationKind::token;
  tokens_.take();
  TRY(result.columns, in_parentheses([this] { return column_name(); }));
  TRY(result.comparison, comparison());
  TRY(result.operand, one_value());
  return result;
}

base::Result<Relation> Grammar::custom_index_relation() {
  Relation result;
  result.kind = RelationKind::custom_index;
  tokens_.take();
  tokens_.take();
  TRY(Name index, name_or_refuse_marker("index"));
  result.columns.push_back(std::move(index));
  TRY_VOID(tokens_.expect(TokenKind::comma));
  TRY(result.operand, one_value());
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  return result;
}

base::Result<Operator> Grammar::comparison() {
  const auto found = [&]() -> std::optional<Operator> {
    switch (tokens_.current().kind) {
      case TokenKind::equal:
        return Operator::equal;
      case TokenKind::not_equal:
        return Operator::not_equal;
      case TokenKind::less:
        return Operator::less;
      case TokenKind::less_or_equal:
        return Operator::less_or_equal;
      case TokenKind::greater:
        return Operator::greater;
      case TokenKind::greater_or_equal:
        return Operator::greater_or_equal;
      default:
        return std::nullopt;
    }
  }();
  if (!found) return tokens_.no_viable_alternative();
  tokens_.take();
  return *found;
}

base::Result<Operand> Grammar::one_value() {
  Operand result;
  TRY(Expression value, term());
  result.values.push_back(std::move(value));
  return result;
}

base::Result<Operand> Grammar::in_values() {
  Operand result;
  if (tokens_.at(TokenKind::left_parenthesis)) {
    TRY(result.values, in_parentheses([this] { return term(); }, true));
    return result;
  }
  TRY(Expression list, marker());
  result.values.push_back(std::move(list));
  result.is_list_marker = true;
  return result;
}

// `()`, `?`, `((1, 2), (3, 4))` or `(?, ?)`: tuples and markers do not mix.
base::Result<Operand> Grammar::in_tuples() {
  if (!tokens_.at(TokenKind::left_parenthesis)) return in_values();
  Operand result;
  const bool are_tuples = tokens_.next_is(TokenKind::left_parenthesis);
  const auto element = [&]() -> Result<Expression> {
    if (!are_tuples) return marker();
    TRY(const Level level, descend());
    return tuple_literal(Context::term);
  };
  TRY(result.values, in_parentheses(element, true));
  return result;
}

base::Result<Expression> Grammar::tuple_or_marker() {
  if (!tokens_.at(TokenKind::left_parenthesis)) return marker();
  return tuple_literal(Context::term);
}

base::Result<ColumnTarget> Grammar::column_target() {
  ColumnTarget target;
  TRY(target.column, column_name());
  if (tokens_.accept(TokenKind::left_bracket)) {
    TRY(target.element, term());
    TRY_VOID(tokens_.expect(TokenKind::right_bracket));
  } else if (tokens_.accept(TokenKind::dot)) {
    TRY(target.field, name());
  }
  return target;
}

base::Result<Condition> Grammar::condition() {
  Condition result;
  TRY(result.target, column_target());
  if (tokens_.accept(Keyword::k_in)) {
    result.comparison = Operator::in;
    TRY(result.operand, in_values());
    return result;
  }
  if (is_whole_column(result.target) && tokens_.accept(Keyword::k_contains)) {
    const bool of_keys = tokens_.accept(Keyword::k_key);
    result.comparison = of_keys ? Operator::contains_key : Operator::contains;
  } else {
    TRY(result.comparison, comparison());
  }
  TRY(result.operand, one_value());
  return result;
}

// Behind WHERE. A column may be called exists, so `IF exists = 1` is a condition.
template <class Modification>
base::Result<void> Grammar::conditions_of(Modification& statement) {
  if (!tokens_.accept(Keyword::k_if)) return {};
  if (tokens_.at(Keyword::k_exists)) {
    TokenCursor copy = tokens_;
    copy.take();
    const TokenKind behind = copy.current().kind;
    const bool is_column = copy.at(Keyword::k_in) || copy.at(Keyword::k_contains) ||
                           behind == TokenKind::left_bracket || behind == TokenKind::dot ||
                           (behind >= TokenKind::equal && behind <= TokenKind::greater_or_equal);
    if (!is_column) {
      tokens_.take();
      statement.if_exists = true;
      return {};
    }
  }
  TRY(statement.conditions, list_of(Keyword::k_and, [this] { return condition(); }));
  return {};
}

// ------------------------------------------------------------------------------------- using

base::Result<Attributes> Grammar::attributes(bool with_time_to_live) {
  Attributes result;
  if (!tokens_.accept(Keyword::k_using)) return result;
  do {
    if (tokens_.accept(Keyword::k_timestamp)) {
      TRY(result.timestamp, integer_or_marker());
    } else if (with_time_to_live && tokens_.accept(Keyword::k_ttl)) {
      TRY(result.time_to_live, integer_or_marker());
    } else if (tokens_.at(TokenKind::word) && folded(tokens_.current().text) == "operation") {
      tokens_.take();
      TRY(result.operation, operation_id());
    } else {
      return tokens_.no_viable_alternative();
    }
  } while (tokens_.accept(Keyword::k_and));
  return result;
}

base::Result<Expression> Grammar::operation_id() {
  const Token token = tokens_.current();
  if (token.kind != TokenKind::string && token.kind != TokenKind::uuid &&
      token.kind != TokenKind::blob) {
    return marker();
  }
  tokens_.take();
  return Expression{.node = literal_from(token), .position = token.position};
}

// ------------------------------------------------------------------------------------- select

// JSON and DISTINCT may be names of columns too: they are words of the language where a selector
// can follow. `SELECT json FROM t` and `SELECT json AS a FROM t` are about a column.
bool Grammar::selects_modifier(Keyword keyword) {
  if (!tokens_.at(keyword)) return false;
  const Token& behind = tokens_.ahead(1);
  if (behind.keyword == Keyword::k_as) return false;
  const bool begins_selector = is_name(behind) || can_begin_term(behind) ||
                               behind.keyword == Keyword::k_token ||
                               behind.kind == TokenKind::colon || behind.kind == TokenKind::star ||
                               behind.kind == TokenKind::minus;
  if (!begins_selector) return false;
  tokens_.take();
  return true;
}

base::Result<Select> Grammar::select() {
  TRY_VOID(tokens_.expect(Keyword::k_select));
  Select result;
  result.json = selects_modifier(Keyword::k_json);
  result.distinct = selects_modifier(Keyword::k_distinct);
  TRY(result.selectors, selectors());
  TRY_VOID(tokens_.expect(Keyword::k_from));
  TRY(result.table, table_name());
  if (tokens_.accept(Keyword::k_where)) {
    TRY(result.where, where_clause());
  }
  if (tokens_.accept(Keyword::k_group)) {
    TRY_VOID(tokens_.expect(Keyword::k_by));
    TRY(result.group_by,
        list_of(TokenKind::comma, [this] { return expression(Context::selector); }));
  }
  if (tokens_.accept(Keyword::k_order)) {
    TRY_VOID(tokens_.expect(Keyword::k_by));
    TRY(result.order_by, list_of(TokenKind::comma, [this] { return ordering(); }));
  }
  TRY_VOID(select_limits(result));
  return result;
}

base::Result<void> Grammar::select_limits(Select& select) {
  if (tokens_.accept(Keyword::k_per)) {
    TRY_VOID(tokens_.expect(Keyword::k_partition));
    TRY_VOID(tokens_.expect(Keyword::k_limit));
    TRY(select.per_partition_limit, integer_or_marker());
  }
  if (tokens_.accept(Keyword::k_limit)) {
    TRY(select.limit, integer_or_marker());
  }
  if (tokens_.accept(Keyword::k_allow)) {
    TRY_VOID(tokens_.expect(Keyword::k_filtering));
    select.allow_filtering = true;
  }
  return {};
}

base::Result<std::vector<Selector>> Grammar::selectors() {
  if (tokens_.accept(TokenKind::star)) return std::vector<Selector>();
  return list_of(TokenKind::comma, [this] { return selector(); });
}

base::Result<Selector> Grammar::selector() {
  Selector result;
  TRY(result.expression, expression(Context::selector));
  if (tokens_.accept(Keyword::k_as)) {
    TRY(result.alias, name());
  }
  return result;
}

base::Result<Ordering> Grammar::ordering() {
  Ordering result;
  TRY(result.column, column_name());
  result.descending = tokens_.accept(Keyword::k_desc);
  if (!result.descending) tokens_.accept(Keyword::k_asc);
  return result;
}

// ------------------------------------------------------------------------------ modifications

base::Result<Statement::Node> Grammar::insert() {
  TRY_VOID(tokens_.expect(Keyword::k_insert));
  TRY_VOID(tokens_.expect(Keyword::k_into));
  TRY(QualifiedName table, table_name());
  if (tokens_.accept(Keyword::k_json)) return insert_json(std::move(table));
  return insert_values(std::move(table));
}

base::Result<Insert> Grammar::insert_values(QualifiedName table) {
  Insert result;
  result.table = std::move(table);
  if (!tokens_.at(TokenKind::left_parenthesis)) return tokens_.no_viable_alternative();
  TRY(result.columns, in_parentheses([this] { return column_name(); }));
  TRY_VOID(tokens_.expect(Keyword::k_values));
  TRY(result.values, in_parentheses([this] { return term(); }));
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.attributes, attributes(true));
  return result;
}

base::Result<InsertJson> Grammar::insert_json(QualifiedName table) {
  InsertJson result;
  result.table = std::move(table);
  if (tokens_.at(TokenKind::string)) {
    const Token token = tokens_.take();
    result.json = {.node = literal_from(token), .position = token.position};
  } else {
    TRY(result.json, marker());
  }
  if (tokens_.accept(Keyword::k_default)) {
    result.default_unset = tokens_.accept(Keyword::k_unset);
    if (!result.default_unset) TRY_VOID(tokens_.expect(Keyword::k_null));
  }
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.attributes, attributes(true));
  return result;
}

base::Result<Update> Grammar::update() {
  Update result;
  TRY_VOID(tokens_.expect(Keyword::k_update));
  TRY(result.table, table_name());
  TRY(result.attributes, attributes(true));
  TRY_VOID(tokens_.expect(Keyword::k_set));
  TRY(result.assignments, list_of(TokenKind::comma, [this] { return assignment(); }));
  TRY_VOID(check_compatible(result.assignments));
  TRY_VOID(tokens_.expect(Keyword::k_where));
  TRY(result.where, where_clause());
  TRY_VOID(conditions_of(result));
  return result;
}

base::Result<Assignment> Grammar::assignment() {
  Assignment result;
  TRY(result.target, column_target());
  if (!is_whole_column(result.target)) {
    TRY_VOID(tokens_.expect(TokenKind::equal));
    TRY(result.value, term());
    return result;
  }
  if (tokens_.accept(TokenKind::equal)) {
    return whole_column_assignment(std::move(result.target.column));
  }
  if (tokens_.accept(TokenKind::plus_equal)) {
    result.kind = AssignmentKind::add;
  } else if (tokens_.accept(TokenKind::minus_equal)) {
    result.kind = AssignmentKind::subtract;
  } else {
    return tokens_.no_viable_alternative();
  }
  TRY(result.value, term());
  return result;
}

// Behind `c =`: `v`, `v + c`, `c + v`, `c - v`, or `c -3`, whose minus the lexer took for a sign.
base::Result<Assignment> Grammar::whole_column_assignment(Name column) {
  Assignment result;
  result.target.column = std::move(column);
  if (!is_column_name(tokens_.current()) || call_ahead(0)) {
    TRY(result.value, expression(Context::assigned_term));
    if (!tokens_.accept(TokenKind::plus)) return result;
    TRY(const Name again, column_name());
    result.kind = AssignmentKind::prepend;
    if (again.text == result.target.column.text) return result;
    return Error(Errc::invalid_argument,
                 "Only expressions of the form X = <value> + X are supported.");
  }
  TRY(const Name again, column_name());
  std::string_view sign = "+ ";
  if (tokens_.accept(TokenKind::plus)) {
    sign = "+";
    result.kind = AssignmentKind::add;
    TRY(result.value, term());
  } else if (tokens_.accept(TokenKind::minus)) {
    sign = "-";
    result.kind = AssignmentKind::subtract;
    TRY(result.value, term());
  } else if (tokens_.at(TokenKind::integer)) {
    const Token token = tokens_.take();
    if (token.text.starts_with('-')) sign = "- ";
    result.kind = AssignmentKind::add;
    result.value = {.node = literal_from(token), .position = token.position};
  } else {
    return tokens_.no_viable_alternative();
  }
  if (again.text == result.target.column.text) return result;
  return Error(Errc::invalid_argument,
               "Only expressions of the form X = X {}<value> are supported.", sign);
}

base::Result<Delete> Grammar::deletion() {
  Delete result;
  TRY_VOID(tokens_.expect(Keyword::k_delete));
  if (!tokens_.at(Keyword::k_from)) {
    TRY(result.targets, list_of(TokenKind::comma, [this] { return column_target(); }));
  }
  TRY_VOID(tokens_.expect(Keyword::k_from));
  TRY(result.table, table_name());
  TRY(result.attributes, attributes(false));
  TRY_VOID(tokens_.expect(Keyword::k_where));
  TRY(result.where, where_clause());
  TRY_VOID(conditions_of(result));
  return result;
}

base::Result<Batch> Grammar::batch() {
  Batch result;
  TRY_VOID(tokens_.expect(Keyword::k_begin));
  if (tokens_.accept(Keyword::k_unlogged)) {
    result.kind = BatchKind::unlogged;
  } else if (tokens_.accept(Keyword::k_counter)) {
    result.kind = BatchKind::counter;
  }
  TRY_VOID(tokens_.expect(Keyword::k_batch));
  TRY(result.attributes, attributes(true));
  while (!tokens_.at(Keyword::k_apply)) {
    TRY(Batch::Modification statement, batched_statement());
    result.statements.push_back(std::move(statement));
    tokens_.accept(TokenKind::semicolon);
  }
  tokens_.take();
  TRY_VOID(tokens_.expect(Keyword::k_batch));
  return result;
}

base::Result<Batch::Modification> Grammar::batched_statement() {
  switch (tokens_.current().keyword) {
    case Keyword::k_insert: {
      TRY(Statement::Node node, insert());
      if (auto* json = std::get_if<InsertJson>(&node)) return std::move(*json);
      return std::get<Insert>(std::move(node));
    }
    case Keyword::k_update:
      return update();
    case Keyword::k_delete:
      return deletion();
    default:
      return tokens_.mismatched("K_APPLY");
  }
}

base::Result<Truncate> Grammar::truncate() {
  Truncate result;
  TRY_VOID(tokens_.expect(Keyword::k_truncate));
  accept_table();
  TRY(result.table, table_name());
  return result;
}

}  // namespace helenus::cql::parser
