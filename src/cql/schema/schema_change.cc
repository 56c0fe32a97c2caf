#include "cql/schema/schema_change.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/parser/to_text.h"
#include "cql/schema/index_change.h"
#include "cql/schema/keyspace_change.h"
#include "cql/schema/table_change.h"
#include "cql/schema/type_names.h"

namespace helenus::cql {

using model::DataType;
using model::Keyspace;
using model::KeyspacePtr;
using model::Schema;
using protocol::SchemaChange;
using protocol::SchemaChangeKind;
using protocol::SchemaTarget;

namespace {

using Transition = QueryResult<SchemaTransition>;

struct Input {
  const Schema& users;
  const SchemaChangeContext& context;
};

Transition unchanged(const Input& in) {
  return SchemaTransition{.next = in.users, .change = std::nullopt};
}

Transition changed(Schema next, SchemaChangeKind kind, SchemaTarget target, std::string keyspace,
                   std::string name = {}) {
  return SchemaTransition{.next = std::move(next),
                          .change = SchemaChange{.kind = kind,
                                                 .target = target,
                                                 .keyspace = std::move(keyspace),
                                                 .name = std::move(name),
                                                 .argument_types = {}}};
}

bool is_word(std::string_view name) {
  const auto is_word_letter = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_';
  };
  return !name.empty() && name.size() <= model::kNameSizeMax &&
         std::ranges::all_of(name, is_word_letter);
}

QueryResult<void> check_modifiable(const Input& in, const std::string& keyspace) {
  if (in.context.system.find_keyspace(keyspace) != nullptr) {
    return QueryError(protocol::ErrorCode::unauthorized,
                      fmt::format("{} keyspace is not user-modifiable.", keyspace));
  }
  if (!is_word(keyspace)) {
    return invalid(
        "Keyspace name must not be empty, more than {} characters long, or contain "
        "non-alphanumeric-underscore characters (got '{}')",
        model::kNameSizeMax, keyspace);
  }
  return {};
}

// The keyspace that a name is in, which a statement may change.
QueryResult<std::string> modifiable_keyspace_of(const Input& in,
                                                const parser::QualifiedName& name) {
  TRY(std::string keyspace, keyspace_of(name, in.context.session_keyspace));
  TRY_VOID(check_modifiable(in, keyspace));
  return keyspace;
}

// ---- Keyspaces ----

Transition apply(const Input& in, const parser::CreateKeyspace& statement) {
  const std::string& name = statement.keyspace.text;
  TRY_VOID(check_modifiable(in, name));
  if (in.users.find_keyspace(name) != nullptr) {
    if (statement.if_not_exists) return unchanged(in);
    return already_exists(name, "");
  }
  TRY(Keyspace keyspace, make_keyspace(statement, in.context.data_centers));
  return changed(in.users.with(std::move(keyspace)), SchemaChangeKind::created,
                 SchemaTarget::keyspace, name);
}

Transition apply(const Input& in, const parser::AlterKeyspace& statement) {
  const std::string& name = statement.keyspace.text;
  TRY_VOID(check_modifiable(in, name));
  const KeyspacePtr before = in.users.find_keyspace(name);
  if (before == nullptr) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Keyspace '{}' doesn't exist", name);
  }
  TRY(Keyspace keyspace, alter_keyspace(statement, *before, in.context.data_centers));
  if (keyspace == *before) return unchanged(in);
  return changed(in.users.with(std::move(keyspace)), SchemaChangeKind::updated,
                 SchemaTarget::keyspace, name);
}

Transition apply(const Input& in, const parser::DropKeyspace& statement) {
  const std::string& name = statement.keyspace.text;
  TRY_VOID(check_modifiable(in, name));
  if (in.users.find_keyspace(name) == nullptr) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Keyspace '{}' doesn't exist", name);
  }
  return changed(in.users.without(name), SchemaChangeKind::dropped, SchemaTarget::keyspace, name);
}

// ---- Tables ----

Transition apply(const Input& in, const parser::CreateTable& statement) {
  TRY(const std::string keyspace_name, modifiable_keyspace_of(in, statement.table));
  const std::string& name = statement.table.name.text;
  const KeyspacePtr keyspace = in.users.find_keyspace(keyspace_name);
  if (keyspace == nullptr) return invalid("Keyspace '{}' doesn't exist", keyspace_name);
  if (keyspace->find_table(name) != nullptr) {
    if (statement.if_not_exists) return unchanged(in);
    return already_exists(keyspace_name, name);
  }
  TRY(model::Table table, make_table(statement, *keyspace, in.context.new_table_id));
  if (!is_word(name)) {
    return config_error(
        fmt::format("{}.{}: Table name must not be empty, more than {} characters long, or contain "
                    "non-alphanumeric-underscore characters (got \"{}\")",
                    keyspace_name, name, model::kNameSizeMax, name));
  }
  if (in.users.find_table(table.id) != nullptr ||
      in.context.system.find_table(table.id) != nullptr) {
    return config_error(fmt::format("A table with id {} exists already", table.id));
  }
  return changed(in.users.with(std::move(table)), SchemaChangeKind::created, SchemaTarget::table,
                 keyspace_name, name);
}

Transition apply(const Input& in, const parser::AlterTable& statement) {
  TRY(const std::string keyspace_name, modifiable_keyspace_of(in, statement.table));
  const std::string& name = statement.table.name.text;
  const KeyspacePtr keyspace = in.users.find_keyspace(keyspace_name);
  const model::TablePtr before = keyspace == nullptr ? nullptr : keyspace->find_table(name);
  if (before == nullptr) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Table '{}.{}' doesn't exist", keyspace_name, name);
  }
  TRY(model::Table table, alter_table(statement, *keyspace, *before, in.context.now_us));
  if (table == *before) return unchanged(in);
  return changed(in.users.with(std::move(table)), SchemaChangeKind::updated, SchemaTarget::table,
                 keyspace_name, name);
}

Transition apply(const Input& in, const parser::DropTable& statement) {
  TRY(const std::string keyspace, modifiable_keyspace_of(in, statement.table));
  const std::string& name = statement.table.name.text;
  if (in.users.find_table(keyspace, name) == nullptr) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Table '{}.{}' doesn't exist", keyspace, name);
  }
  return changed(in.users.without_table(keyspace, name), SchemaChangeKind::dropped,
                 SchemaTarget::table, keyspace, name);
}

// ---- Types ----

QueryResult<DataType> resolve_field(const parser::TypeName& type, const Keyspace& keyspace) {
  if (type.kind == parser::TypeKind::native && type.name == "counter") {
    return invalid("A user type cannot contain counters");
  }
  if (type.kind == parser::TypeKind::user && !type.frozen) {
    return invalid("A user type cannot contain non-frozen UDTs");
  }
  return resolve_type(type, keyspace);
}

// The fields of a user-defined type.
std::vector<model::UserTypeField> fields_of(const DataType& type) {
  std::vector<model::UserTypeField> fields;
  for (std::size_t i = 0; i < type.parts().size(); ++i) {
    fields.push_back({.name = type.field_names()[i], .type = type.parts()[i]});
  }
  return fields;
}

Transition apply(const Input& in, const parser::CreateType& statement) {
  TRY(const std::string keyspace_name, modifiable_keyspace_of(in, statement.type));
  const std::string& name = statement.type.name.text;
  const KeyspacePtr before = in.users.find_keyspace(keyspace_name);
  if (before == nullptr) return invalid("Keyspace '{}' doesn't exist", keyspace_name);
  if (before->find_type(name)) {
    if (statement.if_not_exists) return unchanged(in);
    return invalid("A user type with name '{}' already exists", name);
  }
  TRY_VOID(check_name_size(name));
  std::vector<model::UserTypeField> fields;
  std::set<std::string> names;
  for (const parser::FieldDefinition& definition : statement.fields) {
    TRY_VOID(check_name_size(definition.name.text));
    if (!names.insert(definition.name.text).second) {
      return invalid("Duplicate field name '{}' in type '{}'", definition.name.text, name);
    }
    TRY(DataType type, resolve_field(definition.type, *before));
    fields.push_back({.name = definition.name.text, .type = std::move(type)});
  }
  TRY(DataType type, DataType::user_type(keyspace_name, name, std::move(fields)));
  Keyspace keyspace = *before;
  keyspace.types.emplace(name, std::move(type));
  return changed(in.users.with(std::move(keyspace)), SchemaChangeKind::created, SchemaTarget::type,
                 keyspace_name, name);
}

QueryResult<DataType> alter_type(const parser::AddField& change, const Keyspace& keyspace,
                                 const DataType& before) {
  const std::string& field = change.field.name.text;
  TRY_VOID(check_name_size(field));
  TRY(DataType type, resolve_field(change.field.type, keyspace));
  if (before.field_index(field)) {
    if (change.if_not_exists) return before;
    return invalid("Cannot add field {} to type {}.{}: a field with name {} already exists", field,
                   keyspace.name, before.name(), field);
  }
  if (type.mentions_user_type(keyspace.name, before.name())) {
    return invalid(
        "Cannot add new field {} of type {} to user type {}.{} as it would create a circular "
        "reference",
        field, parser::to_text(change.field.type), keyspace.name, before.name());
  }
  for (const auto& [name, table] : keyspace.tables) {
    for (const model::Column& column : table->partition_key()) {
      if (!column.type.mentions_user_type(keyspace.name, before.name())) continue;
      return invalid(
          "Cannot add new field {} of type {} to user type {}.{} as the type is being used in "
          "partition key by the following tables: {}.{}",
          field, parser::to_text(change.field.type), keyspace.name, before.name(), keyspace.name,
          name);
    }
  }
  std::vector<model::UserTypeField> fields = fields_of(before);
  fields.push_back({.name = field, .type = std::move(type)});
  TRY(DataType after, DataType::user_type(keyspace.name, before.name(), std::move(fields)));
  return after;
}

QueryResult<DataType> alter_type(const parser::RenameFields& change, const Keyspace& keyspace,
                                 const DataType& before) {
  std::vector<model::UserTypeField> fields = fields_of(before);
  for (const parser::Renaming& renaming : change.fields) {
    const std::optional<std::size_t> index = before.field_index(renaming.from.text);
    if (!index) {
      if (change.if_exists) continue;
      return invalid("Unkown field {} in user type {}.{}", renaming.from.text, keyspace.name,
                     before.name());
    }
    TRY_VOID(check_name_size(renaming.to.text));
    fields[*index].name = renaming.to.text;
  }
  std::set<std::string> names;
  for (const model::UserTypeField& field : fields) {
    if (!names.insert(field.name).second) {
      return invalid("Duplicate field name {} in type {}", field.name, keyspace.name);
    }
  }
  TRY(DataType after, DataType::user_type(keyspace.name, before.name(), std::move(fields)));
  return after;
}

QueryResult<DataType> alter_type(const parser::AlterFieldType& /*change*/,
                                 const Keyspace& /*keyspace*/, const DataType& /*before*/) {
  return invalid("Altering field types is no longer supported");
}

// A keyspace in which every mention of a type is of the type as it is now.
QueryResult<Keyspace> with_altered_type(const Keyspace& before, const DataType& altered) {
  Keyspace keyspace = before;
  for (auto& [name, type] : keyspace.types) {
    if (name == altered.name()) {
      type = altered;
    } else {
      TRY(type, type.with_user_type(altered));
    }
  }
  for (auto& [name, pointer] : keyspace.tables) {
    model::Table table = *pointer;
    for (model::Column& column : table.columns) {
      TRY(column.type, column.type.with_user_type(altered));
    }
    for (model::DroppedColumn& dropped : table.dropped_columns) {
      TRY(dropped.type, dropped.type.with_user_type(altered));
    }
    if (table != *pointer) pointer = std::make_shared<const model::Table>(std::move(table));
  }
  return keyspace;
}

Transition apply(const Input& in, const parser::AlterType& statement) {
  TRY(const std::string keyspace_name, modifiable_keyspace_of(in, statement.type));
  const std::string& name = statement.type.name.text;
  const KeyspacePtr before = in.users.find_keyspace(keyspace_name);
  const std::optional<DataType> type = before == nullptr ? std::nullopt : before->find_type(name);
  if (!type) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Type {}.{} doesn't exist", keyspace_name, name);
  }
  TRY(const DataType altered,
      std::visit([&](const auto& change) { return alter_type(change, *before, *type); },
                 statement.change));
  if (altered == *type) return unchanged(in);
  TRY(Keyspace keyspace, with_altered_type(*before, altered));
  return changed(in.users.with(std::move(keyspace)), SchemaChangeKind::updated, SchemaTarget::type,
                 keyspace_name, name);
}

// Names of what uses a type, joined by commas; empty when nothing does.
template <class Elements, class Uses>
std::string users_of_type(const Elements& elements, Uses uses) {
  std::vector<std::string> names;
  for (const auto& [name, element] : elements) {
    if (uses(element)) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Transition apply(const Input& in, const parser::DropType& statement) {
  TRY(const std::string keyspace_name, modifiable_keyspace_of(in, statement.type));
  const std::string& name = statement.type.name.text;
  const KeyspacePtr before = in.users.find_keyspace(keyspace_name);
  if (before == nullptr || !before->find_type(name)) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Type '{}.{}' doesn't exist", keyspace_name, name);
  }
  const auto mentions = [&](const DataType& type) {
    return type.mentions_user_type(keyspace_name, name);
  };
  const std::string types = users_of_type(
      before->types, [&](const DataType& type) { return type.name() != name && mentions(type); });
  if (!types.empty()) {
    return invalid("Cannot drop user type '{}.{}' as it is still used by user types {}",
                   keyspace_name, name, types);
  }
  const std::string tables = users_of_type(before->tables, [&](const model::TablePtr& table) {
    return std::ranges::any_of(table->columns, mentions, &model::Column::type) ||
           std::ranges::any_of(table->dropped_columns, mentions, &model::DroppedColumn::type);
  });
  if (!tables.empty()) {
    return invalid("Cannot drop user type '{}.{}' as it is still used by tables {}", keyspace_name,
                   name, tables);
  }
  Keyspace keyspace = *before;
  keyspace.types.erase(name);
  return changed(in.users.with(std::move(keyspace)), SchemaChangeKind::dropped, SchemaTarget::type,
                 keyspace_name, name);
}

// ---- Indexes ----

Transition apply(const Input& in, const parser::CreateIndex& statement) {
  TRY(const std::string keyspace_name, modifiable_keyspace_of(in, statement.table));
  const std::string& name = statement.table.name.text;
  const KeyspacePtr keyspace = in.users.find_keyspace(keyspace_name);
  if (keyspace == nullptr) return invalid("Keyspace '{}' doesn't exist", keyspace_name);
  const model::TablePtr before = keyspace->find_table(name);
  if (before == nullptr) return invalid("Table '{}' doesn't exist", name);
  TRY(model::Table table, make_index(statement, *keyspace, *before, in.context.new_table_id));
  if (table == *before) return unchanged(in);
  TRY_VOID(model::validate(table));
  return changed(in.users.with(std::move(table)), SchemaChangeKind::updated, SchemaTarget::table,
                 keyspace_name, name);
}

Transition apply(const Input& in, const parser::DropIndex& statement) {
  TRY(const std::string keyspace_name, keyspace_of(statement.index, in.context.session_keyspace));
  const std::string& index = statement.index.name.text;
  const KeyspacePtr keyspace = in.users.find_keyspace(keyspace_name);
  const model::TablePtr before =
      keyspace == nullptr ? nullptr : keyspace->find_table_of_index(index);
  if (before == nullptr) {
    if (statement.if_exists) return unchanged(in);
    return invalid("Index '{}.{}' doesn't exist'", keyspace_name, index);
  }
  return changed(in.users.with(drop_index(*before, index)), SchemaChangeKind::updated,
                 SchemaTarget::table, keyspace_name, before->name);
}

// ---- What is not built ----

Transition refuse(std::string message) {
  return invalid(std::move(message));
}

// DROP ... IF EXISTS of what cannot exist.
Transition absent(const Input& in, bool if_exists, std::string message) {
  if (if_exists) return unchanged(in);
  return invalid(std::move(message));
}

Transition apply(const Input& /*in*/, const parser::CreateMaterializedView& /*statement*/) {
  return refuse("Materialized views are not supported.");
}
Transition apply(const Input& in, const parser::AlterMaterializedView& statement) {
  TRY(const std::string keyspace, keyspace_of(statement.view, in.context.session_keyspace));
  return absent(
      in, statement.if_exists,
      fmt::format("Materialized view '{}.{}' doesn't exist", keyspace, statement.view.name.text));
}
Transition apply(const Input& in, const parser::DropMaterializedView& statement) {
  TRY(const std::string keyspace, keyspace_of(statement.view, in.context.session_keyspace));
  return absent(
      in, statement.if_exists,
      fmt::format("Materialized view '{}.{}' doesn't exist", keyspace, statement.view.name.text));
}
Transition apply(const Input& /*in*/, const parser::CreateFunction& /*statement*/) {
  return refuse("User-defined functions are not supported.");
}
Transition apply(const Input& in, const parser::DropFunction& statement) {
  TRY(const std::string keyspace, keyspace_of(statement.function, in.context.session_keyspace));
  return absent(
      in, statement.if_exists,
      fmt::format("Function '{}.{}' doesn't exist", keyspace, statement.function.name.text));
}
Transition apply(const Input& /*in*/, const parser::CreateAggregate& /*statement*/) {
  return refuse("User-defined functions are not supported.");
}
Transition apply(const Input& in, const parser::DropAggregate& statement) {
  TRY(const std::string keyspace, keyspace_of(statement.aggregate, in.context.session_keyspace));
  return absent(
      in, statement.if_exists,
      fmt::format("Aggregate '{}.{}' doesn't exist", keyspace, statement.aggregate.name.text));
}
Transition apply(const Input& /*in*/, const parser::CreateTrigger& /*statement*/) {
  return refuse("Triggers are not supported");
}
Transition apply(const Input& in, const parser::DropTrigger& statement) {
  return absent(in, statement.if_exists,
                fmt::format("Trigger '{}' on table '{}' doesn't exist", statement.trigger.text,
                            statement.table.name.text));
}

// Every other statement.
template <class Statement>
constexpr bool kIsSchemaChange = requires(const Input& in, const Statement& statement) {
  { apply(in, statement) } -> std::same_as<Transition>;
};

}  // namespace

bool is_schema_change(const parser::Statement& statement) {
  return std::visit([](const auto& node) { return kIsSchemaChange<std::decay_t<decltype(node)>>; },
                    statement.node);
}

QueryResult<SchemaTransition> apply_schema_change(const Schema& users,
                                                  const parser::Statement& statement,
                                                  const SchemaChangeContext& context) {
  ASSERT(is_schema_change(statement));
  const Input in{.users = users, .context = context};
  return std::visit(
      [&](const auto& node) -> Transition {
        if constexpr (kIsSchemaChange<std::decay_t<decltype(node)>>) {
          return apply(in, node);
        } else {
          return refuse("not a change of the schema");
        }
      },
      statement.node);
}

QueryResult<std::string> keyspace_of(const parser::QualifiedName& name,
                                     std::string_view session_keyspace) {
  if (name.keyspace) return name.keyspace->text;
  if (session_keyspace.empty()) {
    return invalid(
        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename");
  }
  return std::string(session_keyspace);
}

}  // namespace helenus::cql
