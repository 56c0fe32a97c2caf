// Statements about the schema, about roles and rights, and DESCRIBE.
#include <set>
#include <utility>

#include "cql/parser/random_statements_test_support.h"

namespace helenus::cql::parser::testing {

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
