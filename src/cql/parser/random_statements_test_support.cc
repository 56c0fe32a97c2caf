#include "cql/parser/random_statements_test_support.h"

#include <algorithm>
#include <set>

namespace helenus::cql::parser::testing {

namespace {

Expression expression_of(Expression::Node node) {
  return {.node = std::move(node), .position = {}};
}

Literal literal_of(LiteralKind kind, std::string text) {
  return {.kind = kind, .text = std::move(text), .position = {}};
}

}  // namespace

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
                        TypeKind::tuple, TypeKind::custom});
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
    case 1:
      return expression_of(
          CellProperty{one_of({CellPropertyKind::writetime, CellPropertyKind::ttl}), column()});
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

// ------------------------------------------------------------------------------ data statements

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

// ---------------------------------------------------------------------------- schema statements

PropertyMap RandomStatements::property_map() {
  PropertyMap result;
  std::set<std::string> keys;
  for (std::size_t left = count(0, 3); left > 0; --left) {
    PropertyEntry entry{constant(), constant()};
    if (keys.insert(entry.key.text).second) result.push_back(std::move(entry));
  }
  return result;
}

Properties RandomStatements::properties(std::size_t low) {
  Properties result;
  for (Name& property : different_columns(low, 3)) {
    if (chance(3)) {
      result.push_back({std::move(property), property_map()});
    } else {
      result.push_back({std::move(property), constant()});
    }
  }
  return result;
}

ColumnDefinition RandomStatements::column_definition() {
  ColumnDefinition result;
  result.name = column();
  result.type = type();
  result.is_static = chance(4);
  return result;
}

FieldDefinition RandomStatements::field_definition() {
  FieldDefinition result;
  result.name = name(words_.fields);
  result.type = type();
  return result;
}

PrimaryKey RandomStatements::primary_key() {
  PrimaryKey result;
  result.partition = several(1, 3, [this] { return column(); });
  result.clustering = several(0, 3, [this] { return column(); });
  return result;
}

CreateTable RandomStatements::create_table() {
  CreateTable result;
  result.if_not_exists = chance(2);
  result.table = table();
  result.columns = several(1, 4, [this] { return column_definition(); });
  result.primary_keys = several(0, 2, [this] { return primary_key(); });
  result.clustering_order = several(0, 2, [this] { return ordering(); });
  result.compact_storage = chance(8);
  result.properties = properties(0);
  return result;
}

AlterTable RandomStatements::alter_table() {
  AlterTable result;
  result.if_exists = chance(2);
  result.table = table();
  const auto columns = [this] { return several(1, 2, [this] { return column(); }); };
  switch (below_(6)) {
    case 0:
      result.change = AddColumns{chance(2), several(1, 3, [this] { return column_definition(); })};
      break;
    case 1: {
      DropColumns drop{chance(2), columns(), std::nullopt};
      if (chance(2)) drop.timestamp = literal_of(LiteralKind::integer, "42");
      result.change = std::move(drop);
      break;
    }
    case 2:
      result.change =
          RenameColumns{chance(2), several(1, 2, [this] { return Renaming{column(), column()}; })};
      break;
    case 3:
      result.change = AlterColumnType{column(), type()};
      break;
    case 4:
      result.change = DropCompactStorage{};
      break;
    default:
      result.change = properties(1);
  }
  return result;
}

AlterType RandomStatements::alter_type() {
  AlterType result;
  result.if_exists = chance(2);
  result.type = qualified(words_.user_types);
  const auto field = [this] { return name(words_.fields); };
  switch (below_(3)) {
    case 0:
      result.change = AddField{chance(2), field_definition()};
      break;
    case 1:
      result.change =
          RenameFields{chance(2), several(1, 2, [&] { return Renaming{field(), field()}; })};
      break;
    default:
      result.change = AlterFieldType{field_definition()};
  }
  return result;
}

CreateIndex RandomStatements::create_index() {
  CreateIndex result;
  result.custom = chance(3);
  result.if_not_exists = chance(2);
  result.index = maybe([this] { return name(words_.tables); });
  result.table = table();
  result.targets = several(0, 2, [this] {
    return IndexTarget{
        one_of({IndexTargetKind::column, IndexTargetKind::values, IndexTargetKind::keys,
                IndexTargetKind::entries, IndexTargetKind::full}),
        column()};
  });
  result.custom_class = maybe([this] { return word(words_.strings); });
  result.properties = properties(0);
  return result;
}

CreateMaterializedView RandomStatements::create_materialized_view() {
  CreateMaterializedView result;
  result.if_not_exists = chance(2);
  result.view = table();
  result.selectors = several(0, 2, [this] { return selector(); });
  result.table = table();
  result.where = several(0, 2, [this] { return relation(); });
  result.primary_key = primary_key();
  result.clustering_order = several(0, 2, [this] { return ordering(); });
  result.properties = properties(0);
  return result;
}

CreateFunction RandomStatements::create_function() {
  CreateFunction result;
  result.or_replace = chance(2);
  result.if_not_exists = chance(2);
  result.function = qualified(words_.functions);
  result.arguments = several(0, 2, [this] { return field_definition(); });
  result.called_on_null_input = chance(2);
  result.returns = type();
  result.language = one_of<const char*>({"java", "lua"});
  result.body = word(words_.strings);
  return result;
}

CreateAggregate RandomStatements::create_aggregate() {
  CreateAggregate result;
  result.or_replace = chance(2);
  result.if_not_exists = chance(2);
  result.aggregate = qualified(words_.functions);
  result.arguments = several(0, 2, [this] { return type(); });
  result.state_function = name(words_.functions);
  result.state_type = type();
  result.final_function = maybe([this] { return name(words_.functions); });
  result.initial_condition = maybe([this] { return term(); });
  return result;
}

// ------------------------------------------------------------------------------ roles and rights

RoleOptions RandomStatements::role_options() {
  RoleOptions result;
  const auto string = [this] { return word(words_.strings); };
  result.password = maybe(string);
  if (!result.password) result.hashed_password = maybe(string);
  result.superuser = maybe([this] { return chance(2); });
  result.login = maybe([this] { return chance(2); });
  result.options = maybe([this] { return property_map(); });
  result.access =
      maybe([&] { return DatacenterAccess{maybe([&] { return several(1, 2, string); })}; });
  return result;
}

Permissions RandomStatements::permissions() {
  Permissions result;
  for (std::size_t permission = 0; permission <= static_cast<std::size_t>(Permission::execute);
       ++permission) {
    if (chance(2)) result.push_back(static_cast<Permission>(permission));
  }
  if (result.empty()) result.push_back(Permission::create);
  return result;
}

Resource RandomStatements::resource() {
  Resource result;
  result.kind =
      static_cast<ResourceKind>(below_(static_cast<std::size_t>(ResourceKind::mbeans) + 1));
  switch (result.kind) {
    case ResourceKind::keyspace:
    case ResourceKind::all_tables_in_keyspace:
    case ResourceKind::all_functions_in_keyspace:
      result.name.name = name(words_.keyspaces);
      break;
    case ResourceKind::table:
      result.name = table();
      break;
    case ResourceKind::role:
      result.name.name = name(words_.roles);
      break;
    case ResourceKind::function:
      result.name = qualified(words_.functions);
      result.arguments = several(0, 2, [this] { return type(); });
      break;
    case ResourceKind::mbean:
    case ResourceKind::mbeans:
      result.pattern = word(words_.strings);
      break;
    case ResourceKind::all_keyspaces:
    case ResourceKind::all_roles:
    case ResourceKind::all_functions:
    case ResourceKind::all_mbeans:
      break;
  }
  return result;
}

Describe RandomStatements::describe() {
  Describe result;
  result.kind =
      static_cast<DescribeKind>(below_(static_cast<std::size_t>(DescribeKind::anything) + 1));
  switch (result.kind) {
    case DescribeKind::keyspace:
    case DescribeKind::only_keyspace:
      if (chance(2)) result.name = QualifiedName{std::nullopt, name(words_.keyspaces)};
      break;
    case DescribeKind::table:
    case DescribeKind::index:
    case DescribeKind::materialized_view:
    case DescribeKind::anything:
      result.name = table();
      break;
    case DescribeKind::type:
      result.name = qualified(words_.user_types);
      break;
    case DescribeKind::function:
    case DescribeKind::aggregate:
      result.name = qualified(words_.functions);
      break;
    case DescribeKind::cluster:
    case DescribeKind::schema:
    case DescribeKind::full_schema:
    case DescribeKind::keyspaces:
    case DescribeKind::tables:
    case DescribeKind::types:
    case DescribeKind::functions:
    case DescribeKind::aggregates:
      break;
  }
  result.with_internals = chance(3);
  return result;
}

}  // namespace helenus::cql::parser::testing
