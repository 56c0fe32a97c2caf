#include "cql/parser/random_statements_test_support.h"

#include <algorithm>

namespace helenus::cql::parser::testing {

Statement RandomStatements::any() {
  switch (below_(4)) {
    case 0:
      return finished(data_node());
    case 1:
      return finished(schema_node());
    case 2:
      return finished(alter_node());
    default:
      return finished(role_node());
  }
}

Statement RandomStatements::data() {
  return finished(data_node());
}

Statement RandomStatements::finished(Statement::Node node) {
  return {.node = std::move(node), .markers = std::exchange(markers_, {})};
}

Statement::Node RandomStatements::data_node() {
  switch (below_(6)) {
    case 0:
      return select();
    case 1:
      return insert();
    case 2:
      return update();
    case 3:
      return deletion();
    case 4:
      return batch();
    default:
      return insert_json();
  }
}

Statement::Node RandomStatements::schema_node() {
  switch (below_(8)) {
    case 0:
      return Use{name(words_.keyspaces)};
    case 1:
      return Truncate{table()};
    case 2:
      return create_table();
    case 3:
      return create_index();
    case 4:
      return CreateKeyspace{chance(2), name(words_.keyspaces), properties(1)};
    case 5:
      return CreateType{chance(2), qualified(words_.user_types),
                        several(1, 3, [this] { return field_definition(); })};
    case 6:
      return create_materialized_view();
    default:
      return callable_node();
  }
}

Statement::Node RandomStatements::callable_node() {
  switch (below_(3)) {
    case 0:
      return CreateTrigger{chance(2), column(), table(), word(words_.strings)};
    case 1:
      return create_function();
    default:
      return create_aggregate();
  }
}

Statement::Node RandomStatements::alter_node() {
  switch (below_(6)) {
    case 0:
      return alter_table();
    case 1:
      return AlterKeyspace{chance(2), name(words_.keyspaces), properties(1)};
    case 2:
      return alter_type();
    case 3:
      return AlterMaterializedView{chance(2), table(), properties(1)};
    case 4:
      return describe();
    default:
      return drop_node();
  }
}

Statement::Node RandomStatements::drop_node() {
  const auto arguments = [this] {
    return maybe([this] { return several(0, 2, [this] { return type(); }); });
  };
  switch (below_(8)) {
    case 0:
      return DropTable{chance(2), table()};
    case 1:
      return DropKeyspace{chance(2), name(words_.keyspaces)};
    case 2:
      return DropType{chance(2), qualified(words_.user_types)};
    case 3:
      return DropIndex{chance(2), table()};
    case 4:
      return DropMaterializedView{chance(2), table()};
    case 5:
      return DropFunction{chance(2), qualified(words_.functions), arguments()};
    case 6:
      return DropAggregate{chance(2), qualified(words_.functions), arguments()};
    default:
      return DropTrigger{chance(2), column(), table()};
  }
}

Statement::Node RandomStatements::role_node() {
  const auto role = [this] { return name(words_.roles); };
  switch (below_(10)) {
    case 0:
      return ListUsers{};
    case 1:
      return ListRoles{maybe(role), chance(2)};
    case 2:
      return GrantRole{role(), role()};
    case 3:
      return RevokeRole{role(), role()};
    case 4:
      return DropRole{chance(2), role()};
    case 5:
      return CreateRole{chance(2), role(), role_options()};
    case 6:
      return AlterRole{chance(2), role(), role_options()};
    case 7:
      return GrantPermissions{permissions(), resource(), role()};
    case 8:
      return RevokePermissions{permissions(), resource(), role()};
    default:
      return ListPermissions{permissions(), maybe([this] { return resource(); }), maybe(role),
                             chance(2)};
  }
}

// ------------------------------------------------------------------------------ names and types

QualifiedName RandomStatements::qualified(const Words& words) {
  QualifiedName result;
  if (chance(3)) result.keyspace = name(words_.keyspaces);
  result.name = name(words);
  return result;
}

std::vector<Name> RandomStatements::different_columns(std::size_t low, std::size_t high) {
  std::vector<Name> result;
  for (Name& drawn : several(low, high, [this] { return column(); })) {
    if (std::ranges::find(result, drawn) == result.end()) result.push_back(std::move(drawn));
  }
  return result;
}

TypeName RandomStatements::native_type() {
  TypeName result;
  result.name = one_of<const char*>(
      {"int",  "text",      "ascii",    "bigint",   "blob",  "boolean", "counter",
       "date", "decimal",   "double",   "duration", "float", "inet",    "smallint",
       "time", "timestamp", "timeuuid", "tinyint",  "uuid",  "varchar", "varint"});
  return result;
}

TypeName RandomStatements::type(std::size_t nesting) {
  if (nesting == 0 || !chance(3)) return native_type();
  TypeName result;
  result.kind = one_of({TypeKind::user, TypeKind::list, TypeKind::set, TypeKind::map,
                        TypeKind::tuple, TypeKind::vector, TypeKind::custom});
  const auto arguments = [&](std::size_t low, std::size_t high) {
    result.arguments = several(low, high, [&] { return type(nesting - 1); });
  };
  switch (result.kind) {
    case TypeKind::user:
      if (chance(3)) result.keyspace = name(words_.keyspaces);
      result.name = word(words_.user_types);
      break;
    case TypeKind::map:
      arguments(2, 2);
      break;
    case TypeKind::tuple:
      arguments(1, 3);
      break;
    case TypeKind::vector:
      arguments(1, 1);
      result.dimension = one_of({std::uint32_t{1}, std::uint32_t{3}, std::uint32_t{1536}});
      break;
    case TypeKind::custom:
      result.name = word(words_.strings);
      return result;
    default:
      arguments(1, 1);
  }
  result.frozen = chance(2);
  return result;
}

// --------------------------------------------------------------------------------- expressions

Literal RandomStatements::constant() {
  switch (below_(7)) {
    case 0:
      return literal_of(LiteralKind::integer,
                        one_of<const char*>({"1", "0", "-1", "007", "123456789012345678901"}));
    case 1:
      return literal_of(LiteralKind::string, word(words_.strings));
    case 2:
      return literal_of(LiteralKind::floating, one_of<const char*>({"1.5", "1.", "-2e-3", "NaN",
                                                                    "Infinity", "-Infinity"}));
    case 3:
      return literal_of(LiteralKind::boolean, one_of<const char*>({"true", "false"}));
    case 4:
      return literal_of(LiteralKind::duration,
                        one_of<const char*>({"1y2mo", "-3h4m", "5us", "P1Y2M3DT4H5M6S", "P3W",
                                             "-PT1S", "P2024-01-02T03:04:05"}));
    case 5:
      return literal_of(LiteralKind::uuid, "2b5f4e80-0Bad-4ce1-9c1a-52caa7a1c0de");
    default:
      return literal_of(LiteralKind::blob, one_of<const char*>({"0x", "0xCafe", "0x1"}));
  }
}

Expression RandomStatements::literal() {
  if (chance(8)) return expression_of(Literal{});
  return expression_of(constant());
}

Expression RandomStatements::marker() {
  if (!words_.with_markers) return expression_of(literal_of(LiteralKind::integer, "1"));
  const auto index = static_cast<std::uint16_t>(markers_.size());
  markers_.push_back(maybe([this] { return word(words_.columns); }));
  return expression_of(Marker{.index = index, .position = {}});
}

Expression RandomStatements::integer_or_marker() {
  if (chance(2)) return marker();
  return expression_of(literal_of(LiteralKind::integer, one_of<const char*>({"10", "0", "-1"})));
}

Expression RandomStatements::expression(Context context, std::size_t nesting) {
  if (nesting == 0 || !chance(6)) return product(context, nesting);
  Arithmetic sum;
  sum.operands = several(2, 4, [&] { return product(context, nesting - 1); });
  for (std::size_t left = sum.operands.size() - 1; left > 0; --left) {
    sum.operators.push_back(one_of({ArithmeticOperator::add, ArithmeticOperator::subtract}));
  }
  return expression_of(std::move(sum));
}

Expression RandomStatements::product(Context context, std::size_t nesting) {
  if (nesting == 0 || !chance(6)) return signed_operand(context, nesting);
  Arithmetic product;
  product.operands = several(2, 3, [&] { return signed_operand(context, nesting - 1); });
  for (std::size_t left = product.operands.size() - 1; left > 0; --left) {
    product.operators.push_back(one_of(
        {ArithmeticOperator::multiply, ArithmeticOperator::divide, ArithmeticOperator::remainder}));
  }
  return expression_of(std::move(product));
}

Expression RandomStatements::signed_operand(Context context, std::size_t nesting) {
  const bool is_selector = context == Context::selector;
  if (nesting == 0 || !chance(8)) {
    return is_selector && chance(4) ? selection(nesting) : operand(context, nesting);
  }
  return expression_of(
      Negation{is_selector ? signed_operand(context, nesting - 1) : operand(context, nesting - 1)});
}

Expression RandomStatements::leaf(Context context) {
  if (chance(4)) return marker();
  if (context == Context::term || chance(2)) return literal();
  switch (below_(5)) {
    case 0:
      return expression_of(CountRows{});
    case 1: {
      Expression of = expression_of(Column{column()});
      if (chance(3)) of = expression_of(Selection{std::move(of), {FieldStep{column()}}});
      if (chance(3))
        of = expression_of(Selection{expression_of(Column{column()}), {ElementStep{literal()}}});
      return expression_of(CellProperty{
          one_of({CellPropertyKind::writetime, CellPropertyKind::ttl}), std::move(of)});
    }
    default:
      return expression_of(Column{column()});
  }
}

Expression RandomStatements::operand(Context context, std::size_t nesting) {
  if (nesting == 0 || !chance(3)) return leaf(context);
  switch (below_(5)) {
    case 0:
      return function_call(context, nesting - 1);
    case 1:
      return tuple(context, 1, nesting - 1);
    case 2: {
      TypeName hinted = type(nesting - 1);
      return expression_of(TypeHint{std::move(hinted), operand(context, nesting - 1)});
    }
    case 3: {
      Expression of = context == Context::selector ? expression(context, nesting - 1)
                                                   : operand(context, nesting - 1);
      return expression_of(Cast{std::move(of), native_type()});
    }
    default:
      return collection(context, nesting - 1);
  }
}

Expression RandomStatements::tuple(Context context, std::size_t low, std::size_t nesting) {
  return expression_of(TupleLiteral{several(low, 3, [&] { return expression(context, nesting); })});
}

Expression RandomStatements::function_call(Context context, std::size_t nesting) {
  FunctionCall call;
  *call.function = qualified(words_.functions);
  call.arguments = several(0, 2, [&] { return expression(context, nesting); });
  return expression_of(std::move(call));
}

Expression RandomStatements::collection(Context context, std::size_t nesting) {
  const auto elements = [&] { return several(0, 3, [&] { return expression(context, nesting); }); };
  switch (below_(4)) {
    case 0:
      return expression_of(ListLiteral{elements()});
    case 1:
      return expression_of(SetLiteral{elements()});
    case 2:
      return map_literal(context, nesting);
    default:
      break;
  }
  if (context == Context::selector) return map_literal(context, nesting);
  UserTypeLiteral user;
  for (std::size_t left = count(1, 3); left > 0; --left) {
    Name field = name(words_.fields);
    user.fields.push_back({std::move(field), term()});
  }
  return expression_of(std::move(user));
}

// Keys in parentheses could be taken for types in front of what follows the colon.
Expression RandomStatements::map_literal(Context context, std::size_t nesting) {
  MapLiteral map;
  for (std::size_t left = count(1, 3); left > 0; --left) {
    Expression key = chance(4) ? function_call(context, nesting) : leaf(context);
    map.entries.push_back({std::move(key), expression(context, nesting)});
  }
  return expression_of(std::move(map));
}

Expression RandomStatements::selection(std::size_t nesting) {
  Selection result;
  *result.from = leaf(Context::selector);
  const auto bound = [&] { return Box<Expression>(expression(Context::term, nesting)); };
  for (std::size_t left = count(1, 3); left > 0; --left) {
    switch (below_(3)) {
      case 0:
        result.steps.emplace_back(FieldStep{name(words_.fields)});
        break;
      case 1:
        result.steps.emplace_back(ElementStep{bound()});
        break;
      default: {
        SliceStep slice;
        if (chance(2)) slice.from = bound();
        if (!slice.from || chance(2)) slice.to = bound();
        result.steps.emplace_back(std::move(slice));
      }
    }
  }
  return expression_of(std::move(result));
}

}  // namespace helenus::cql::parser::testing
