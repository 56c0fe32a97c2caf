// CREATE, ALTER and DROP of everything but roles.
#include <algorithm>
#include <iterator>
#include <set>

#include "cql/parser/grammar.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {

using base::Errc;
using base::Error;

// -------------------------------------------------------------------------------- small rules

base::Result<bool> Grammar::if_exists() {
  if (!tokens_.accept(Keyword::k_if)) return false;
  TRY_VOID(tokens_.expect(Keyword::k_exists));
  return true;
}

base::Result<bool> Grammar::if_not_exists() {
  if (!tokens_.accept(Keyword::k_if)) return false;
  TRY_VOID(tokens_.expect(Keyword::k_not));
  TRY_VOID(tokens_.expect(Keyword::k_exists));
  return true;
}

bool Grammar::accept_table() {
  return tokens_.accept(Keyword::k_table) || tokens_.accept(Keyword::k_columnfamily);
}

bool Grammar::accept_keyspace() {
  return tokens_.accept(Keyword::k_keyspace) || tokens_.accept(Keyword::k_schema);
}

base::Result<std::string> Grammar::string_literal() {
  TRY(const Token token, tokens_.expect(TokenKind::string));
  return unquoted(token);
}

base::Result<FieldDefinition> Grammar::field_definition() {
  FieldDefinition result;
  TRY(result.name, name());
  TRY(result.type, type());
  return result;
}

base::Result<ColumnDefinition> Grammar::column_definition() {
  ColumnDefinition result;
  TRY(result.name, name());
  TRY(result.type, type());
  result.is_static = tokens_.accept(Keyword::k_static);
  return result;
}

base::Result<Renaming> Grammar::renaming() {
  Renaming result;
  TRY(result.from, name());
  TRY_VOID(tokens_.expect(Keyword::k_to));
  TRY(result.to, name());
  return result;
}

// --------------------------------------------------------------------------------- properties

// Behind WITH.
base::Result<Properties> Grammar::properties() {
  Properties result;
  do {
    TRY(Property next, property());
    result.push_back(std::move(next));
  } while (tokens_.accept(Keyword::k_and));
  TRY_VOID(check_properties(result));
  return result;
}

base::Result<void> Grammar::check_properties(const Properties& properties) {
  std::set<std::string_view> names;
  for (const Property& property : properties) {
    if (names.insert(property.name.text).second) continue;
    return Error(Errc::invalid_argument, "Multiple definition for property '{}'",
                 property.name.text);
  }
  return {};
}

base::Result<Property> Grammar::property() {
  Property result;
  TRY(result.name, name());
  TRY_VOID(tokens_.expect(TokenKind::equal));
  const Token token = tokens_.current();
  if (token.kind == TokenKind::left_brace) {
    TRY(result.value, property_map());
    return result;
  }
  const bool is_keyword = token.keyword != Keyword::none && is_name(token);
  const bool is_constant = token.kind >= TokenKind::string && token.kind <= TokenKind::blob;
  if (!is_keyword && !is_constant) return tokens_.no_viable_alternative();
  tokens_.take();
  if (is_constant) {
    result.value = literal_from(token);
  } else {
    result.value = Literal{
        .kind = LiteralKind::string, .text = std::string(token.text), .position = token.position};
  }
  return result;
}

base::Result<PropertyMap> Grammar::property_map() {
  PropertyMap result;
  TRY_VOID(tokens_.expect(TokenKind::left_brace));
  if (!tokens_.at(TokenKind::right_brace)) {
    TRY(result, list_of(TokenKind::comma, [this] { return property_entry(); }));
  }
  TRY_VOID(tokens_.expect(TokenKind::right_brace));
  std::set<std::string_view> keys;
  for (const PropertyEntry& entry : result) {
    if (keys.insert(entry.key.text).second) continue;
    return Error(Errc::invalid_argument, "Multiple definition for property {}", entry.key.text);
  }
  return result;
}

// Any two terms by the grammar, two constants by the rules.
base::Result<PropertyEntry> Grammar::property_entry() {
  static constexpr std::string_view kNoMarkers =
      " (bind variables are not supported in DDL queries)";
  const auto constant_in = [](const Expression& expression) -> const Literal* {
    const auto* literal = std::get_if<Literal>(&expression.node);
    return literal != nullptr && literal->kind != LiteralKind::null ? literal : nullptr;
  };
  const auto note_for = [](const Expression& expression) {
    return std::holds_alternative<Marker>(expression.node) ? kNoMarkers : "";
  };
  TRY(const Expression key, term());
  TRY_VOID(tokens_.expect(TokenKind::colon));
  TRY(const Expression value, term());
  const Literal* key_constant = constant_in(key);
  if (key_constant == nullptr) {
    return Error(Errc::invalid_argument, "Invalid property name: {}{}", to_text(key, markers_),
                 note_for(key));
  }
  const Literal* value_constant = constant_in(value);
  if (value_constant == nullptr) {
    return Error(Errc::invalid_argument, "Invalid property value: {} for property: {}{}",
                 to_text(value, markers_), to_text(key, markers_), note_for(value));
  }
  return PropertyEntry{*key_constant, *value_constant};
}

// -------------------------------------------------------------------------------------- create

base::Result<Statement::Node> Grammar::create() {
  TRY_VOID(tokens_.expect(Keyword::k_create));
  if (tokens_.accept(Keyword::k_or)) {
    TRY_VOID(tokens_.expect(Keyword::k_replace));
    if (tokens_.accept(Keyword::k_function)) return create_function(true);
    if (tokens_.accept(Keyword::k_aggregate)) return create_aggregate(true);
    return tokens_.no_viable_alternative();
  }
  if (accept_keyspace()) return create_keyspace();
  if (accept_table()) return create_table();
  if (tokens_.at(Keyword::k_custom) || tokens_.at(Keyword::k_index)) return create_index();
  if (tokens_.accept(Keyword::k_type)) return create_type();
  if (tokens_.accept(Keyword::k_materialized)) return create_materialized_view();
  if (tokens_.accept(Keyword::k_trigger)) return create_trigger();
  if (tokens_.accept(Keyword::k_function)) return create_function(false);
  if (tokens_.accept(Keyword::k_aggregate)) return create_aggregate(false);
  if (tokens_.accept(Keyword::k_role)) return create_role();
  if (tokens_.accept(Keyword::k_user)) return create_user();
  return tokens_.no_viable_alternative();
}

base::Result<CreateKeyspace> Grammar::create_keyspace() {
  CreateKeyspace result;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.keyspace, keyspace_name());
  TRY_VOID(tokens_.expect(Keyword::k_with));
  TRY(result.properties, properties());
  return result;
}

base::Result<CreateTable> Grammar::create_table() {
  CreateTable result;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.table, table_name());
  TRY_VOID(tokens_.expect(TokenKind::left_parenthesis));
  TRY_VOID(table_element(result));
  while (tokens_.accept(TokenKind::comma)) {
    // A comma may be followed by nothing, in the middle too.
    if (tokens_.at(TokenKind::comma) || tokens_.at(TokenKind::right_parenthesis)) continue;
    TRY_VOID(table_element(result));
  }
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  if (!tokens_.accept(Keyword::k_with)) return result;
  do {
    TRY_VOID(table_property(result));
  } while (tokens_.accept(Keyword::k_and));
  TRY_VOID(check_properties(result.properties));
  return result;
}

// `c int`, `c int STATIC`, `c int PRIMARY KEY` or `PRIMARY KEY (...)`.
base::Result<void> Grammar::table_element(CreateTable& table) {
  if (tokens_.at(Keyword::k_primary)) {
    TRY(PrimaryKey key, primary_key());
    table.primary_keys.push_back(std::move(key));
    return {};
  }
  TRY(ColumnDefinition column, column_definition());
  table.columns.push_back(std::move(column));
  if (tokens_.accept(Keyword::k_primary)) {
    TRY_VOID(tokens_.expect(Keyword::k_key));
    PrimaryKey key;
    key.partition.push_back(table.columns.back().name);
    table.primary_keys.push_back(std::move(key));
  }
  return {};
}

base::Result<PrimaryKey> Grammar::primary_key() {
  PrimaryKey result;
  TRY_VOID(tokens_.expect(Keyword::k_primary));
  TRY_VOID(tokens_.expect(Keyword::k_key));
  TRY_VOID(tokens_.expect(TokenKind::left_parenthesis));
  if (tokens_.at(TokenKind::left_parenthesis)) {
    TRY(result.partition, in_parentheses([this] { return name(); }));
  } else {
    TRY(Name column, name());
    result.partition.push_back(std::move(column));
  }
  if (tokens_.accept(TokenKind::comma)) {
    TRY(result.clustering, list_of(TokenKind::comma, [this] { return name(); }));
  }
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  return result;
}

// COMPACT and CLUSTERING may begin a property's name as well.
base::Result<void> Grammar::table_property(CreateTable& table) {
  if (tokens_.at(Keyword::k_compact) && tokens_.next_is(Keyword::k_storage)) {
    tokens_.take();
    tokens_.take();
    table.compact_storage = true;
    return {};
  }
  if (tokens_.at(Keyword::k_clustering) && tokens_.next_is(Keyword::k_order)) {
    TRY(std::vector<Ordering> order, clustering_order());
    std::ranges::move(order, std::back_inserter(table.clustering_order));
    return {};
  }
  TRY(Property next, property());
  table.properties.push_back(std::move(next));
  return {};
}

base::Result<std::vector<Ordering>> Grammar::clustering_order() {
  TRY_VOID(tokens_.expect(Keyword::k_clustering));
  TRY_VOID(tokens_.expect(Keyword::k_order));
  TRY_VOID(tokens_.expect(Keyword::k_by));
  return in_parentheses([this]() -> Result<Ordering> {
    Ordering result;
    TRY(result.column, name());
    result.descending = tokens_.accept(Keyword::k_desc);
    if (!result.descending && !tokens_.accept(Keyword::k_asc)) {
      return tokens_.no_viable_alternative();
    }
    return result;
  });
}

base::Result<CreateType> Grammar::create_type() {
  CreateType result;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.type, user_type_name());
  TRY_VOID(tokens_.expect(TokenKind::left_parenthesis));
  do {
    const bool may_be_missing = !result.fields.empty();
    if (may_be_missing &&
        (tokens_.at(TokenKind::comma) || tokens_.at(TokenKind::right_parenthesis))) {
      continue;
    }
    TRY(FieldDefinition field, field_definition());
    result.fields.push_back(std::move(field));
  } while (tokens_.accept(TokenKind::comma));
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  return result;
}

base::Result<CreateIndex> Grammar::create_index() {
  CreateIndex result;
  result.custom = tokens_.accept(Keyword::k_custom);
  TRY_VOID(tokens_.expect(Keyword::k_index));
  TRY(result.if_not_exists, if_not_exists());
  if (!tokens_.at(Keyword::k_on)) {
    TRY(result.index, name_or_refuse_marker("index"));
  }
  TRY_VOID(tokens_.expect(Keyword::k_on));
  TRY(result.table, table_name());
  TRY(result.targets, in_parentheses([this] { return index_target(); }, true));
  if (tokens_.accept(Keyword::k_using)) {
    TRY(result.custom_class, string_literal());
  }
  if (tokens_.accept(Keyword::k_with)) {
    TRY(result.properties, properties());
  }
  return result;
}

base::Result<IndexTarget> Grammar::index_target() {
  static constexpr std::pair<Keyword, IndexTargetKind> kKinds[] = {
      {Keyword::k_values, IndexTargetKind::values},
      {Keyword::k_keys, IndexTargetKind::keys},
      {Keyword::k_entries, IndexTargetKind::entries},
      {Keyword::k_full, IndexTargetKind::full},
  };
  IndexTarget result;
  for (const auto& [keyword, kind] : kKinds) {
    if (!tokens_.at(keyword) || !tokens_.next_is(TokenKind::left_parenthesis)) continue;
    tokens_.take();
    tokens_.take();
    result.kind = kind;
    TRY(result.column, column_name());
    TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
    return result;
  }
  TRY(result.column, column_name());
  return result;
}

base::Result<CreateMaterializedView> Grammar::create_materialized_view() {
  CreateMaterializedView result;
  TRY_VOID(tokens_.expect(Keyword::k_view));
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.view, table_name());
  TRY_VOID(tokens_.expect(Keyword::k_as));
  TRY_VOID(tokens_.expect(Keyword::k_select));
  TRY(result.selectors, selectors());
  TRY_VOID(tokens_.expect(Keyword::k_from));
  TRY(result.table, table_name());
  if (tokens_.accept(Keyword::k_where)) {
    TRY(result.where, where_clause());
  }
  TRY(result.primary_key, primary_key());
  if (!tokens_.accept(Keyword::k_with)) return result;
  do {
    if (tokens_.at(Keyword::k_clustering) && tokens_.next_is(Keyword::k_order)) {
      TRY(std::vector<Ordering> order, clustering_order());
      std::ranges::move(order, std::back_inserter(result.clustering_order));
    } else if (tokens_.at(Keyword::k_compact) && tokens_.next_is(Keyword::k_storage)) {
      return Error(Errc::invalid_argument,
                   "COMPACT STORAGE tables are not allowed starting with version 4.0");
    } else {
      TRY(Property next, property());
      result.properties.push_back(std::move(next));
    }
  } while (tokens_.accept(Keyword::k_and));
  TRY_VOID(check_properties(result.properties));
  return result;
}

base::Result<CreateTrigger> Grammar::create_trigger() {
  CreateTrigger result;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.trigger, name());
  TRY_VOID(tokens_.expect(Keyword::k_on));
  TRY(result.table, table_name());
  TRY_VOID(tokens_.expect(Keyword::k_using));
  TRY(result.trigger_class, string_literal());
  return result;
}

base::Result<CreateFunction> Grammar::create_function(bool or_replace) {
  CreateFunction result;
  result.or_replace = or_replace;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.function, function_name());
  TRY(result.arguments, in_parentheses([this] { return field_definition(); }, true));
  if (tokens_.accept(Keyword::k_returns)) {
    TRY_VOID(tokens_.expect(Keyword::k_null));
  } else {
    TRY_VOID(tokens_.expect(Keyword::k_called));
    result.called_on_null_input = true;
  }
  TRY_VOID(tokens_.expect(Keyword::k_on));
  TRY_VOID(tokens_.expect(Keyword::k_null));
  TRY_VOID(tokens_.expect(Keyword::k_input));
  TRY_VOID(tokens_.expect(Keyword::k_returns));
  TRY(result.returns, type());
  TRY_VOID(tokens_.expect(Keyword::k_language));
  if (!tokens_.at(Keyword::none)) return tokens_.mismatched("IDENT");
  TRY(const Token language, tokens_.expect(TokenKind::word));
  result.language = folded(language.text);
  TRY_VOID(tokens_.expect(Keyword::k_as));
  TRY(result.body, string_literal());
  return result;
}

base::Result<CreateAggregate> Grammar::create_aggregate(bool or_replace) {
  CreateAggregate result;
  result.or_replace = or_replace;
  TRY(result.if_not_exists, if_not_exists());
  TRY(result.aggregate, function_name());
  TRY(result.arguments, argument_types());
  TRY_VOID(tokens_.expect(Keyword::k_sfunc));
  TRY(result.state_function, function_name_part());
  TRY_VOID(tokens_.expect(Keyword::k_stype));
  TRY(result.state_type, type());
  if (tokens_.accept(Keyword::k_finalfunc)) {
    TRY(result.final_function, function_name_part());
  }
  if (tokens_.accept(Keyword::k_initcond)) {
    TRY(result.initial_condition, term());
  }
  return result;
}

// --------------------------------------------------------------------------------------- alter

base::Result<Statement::Node> Grammar::alter() {
  TRY_VOID(tokens_.expect(Keyword::k_alter));
  if (accept_keyspace()) return alter_keyspace();
  if (accept_table()) return alter_table();
  if (tokens_.accept(Keyword::k_type)) return alter_type();
  if (tokens_.accept(Keyword::k_materialized)) return alter_materialized_view();
  if (tokens_.accept(Keyword::k_role)) return alter_role();
  if (tokens_.accept(Keyword::k_user)) return alter_user();
  return tokens_.no_viable_alternative();
}

base::Result<AlterKeyspace> Grammar::alter_keyspace() {
  AlterKeyspace result;
  TRY(result.if_exists, if_exists());
  TRY(result.keyspace, keyspace_name());
  TRY_VOID(tokens_.expect(Keyword::k_with));
  TRY(result.properties, properties());
  return result;
}

base::Result<AlterMaterializedView> Grammar::alter_materialized_view() {
  AlterMaterializedView result;
  TRY_VOID(tokens_.expect(Keyword::k_view));
  TRY(result.if_exists, if_exists());
  TRY(result.view, table_name());
  TRY_VOID(tokens_.expect(Keyword::k_with));
  TRY(result.properties, properties());
  return result;
}

base::Result<AlterTable> Grammar::alter_table() {
  AlterTable result;
  TRY(result.if_exists, if_exists());
  TRY(result.table, table_name());
  TRY(result.change, table_change());
  return result;
}

base::Result<AlterTable::Change> Grammar::table_change() {
  if (tokens_.accept(Keyword::k_alter)) {
    AlterColumnType change;
    TRY(change.column, column_name());
    TRY_VOID(tokens_.expect(Keyword::k_type));
    TRY(change.type, type());
    return change;
  }
  if (tokens_.accept(Keyword::k_add)) return add_columns();
  if (tokens_.accept(Keyword::k_rename)) {
    RenameColumns change;
    TRY(change.if_exists, if_exists());
    TRY(change.columns, list_of(Keyword::k_and, [this] { return renaming(); }));
    return change;
  }
  if (tokens_.accept(Keyword::k_with)) return properties();
  if (!tokens_.accept(Keyword::k_drop)) return tokens_.no_viable_alternative();
  if (tokens_.at(Keyword::k_compact) && tokens_.next_is(Keyword::k_storage)) {
    tokens_.take();
    tokens_.take();
    return DropCompactStorage{};
  }
  return drop_columns();
}

base::Result<AddColumns> Grammar::add_columns() {
  AddColumns result;
  TRY(result.if_not_exists, if_not_exists());
  if (tokens_.at(TokenKind::left_parenthesis)) {
    TRY(result.columns, in_parentheses([this] { return column_definition(); }));
    return result;
  }
  TRY(ColumnDefinition column, column_definition());
  result.columns.push_back(std::move(column));
  return result;
}

base::Result<DropColumns> Grammar::drop_columns() {
  DropColumns result;
  TRY(result.if_exists, if_exists());
  if (tokens_.at(TokenKind::left_parenthesis)) {
    TRY(result.columns, in_parentheses([this] { return name(); }));
  } else {
    TRY(Name column, name());
    result.columns.push_back(std::move(column));
  }
  if (tokens_.accept(Keyword::k_using)) {
    TRY_VOID(tokens_.expect(Keyword::k_timestamp));
    TRY(const Token token, tokens_.expect(TokenKind::integer));
    result.timestamp = literal_from(token);
  }
  return result;
}

base::Result<AlterType> Grammar::alter_type() {
  AlterType result;
  TRY(result.if_exists, if_exists());
  TRY(result.type, user_type_name());
  if (tokens_.accept(Keyword::k_add)) {
    AddField change;
    TRY(change.if_not_exists, if_not_exists());
    TRY(change.field, field_definition());
    result.change = std::move(change);
  } else if (tokens_.accept(Keyword::k_rename)) {
    RenameFields change;
    TRY(change.if_exists, if_exists());
    TRY(change.fields, list_of(Keyword::k_and, [this] { return renaming(); }));
    result.change = std::move(change);
  } else if (tokens_.accept(Keyword::k_alter)) {
    AlterFieldType change;
    TRY(change.field.name, name());
    TRY_VOID(tokens_.expect(Keyword::k_type));
    TRY(change.field.type, type());
    result.change = std::move(change);
  } else {
    return tokens_.no_viable_alternative();
  }
  return result;
}

// ---------------------------------------------------------------------------------------- drop

template <class Dropped, class Part, class Rule>
base::Result<Dropped> Grammar::dropped(Part Dropped::* part, Rule rule) {
  Dropped result;
  TRY(result.if_exists, if_exists());
  TRY(result.*part, rule());
  return result;
}

base::Result<Statement::Node> Grammar::drop() {
  TRY_VOID(tokens_.expect(Keyword::k_drop));
  const auto table = [this] { return table_name(); };
  if (accept_keyspace()) {
    return dropped(&DropKeyspace::keyspace, [this] { return keyspace_name(); });
  }
  if (accept_table()) return dropped(&DropTable::table, table);
  if (tokens_.accept(Keyword::k_index)) {
    return dropped(&DropIndex::index, [this] { return qualified_name("index"); });
  }
  if (tokens_.accept(Keyword::k_type)) {
    return dropped(&DropType::type, [this] { return user_type_name(); });
  }
  if (tokens_.accept(Keyword::k_materialized)) {
    TRY_VOID(tokens_.expect(Keyword::k_view));
    return dropped(&DropMaterializedView::view, table);
  }
  if (tokens_.accept(Keyword::k_function)) return drop_callable(&DropFunction::function);
  if (tokens_.accept(Keyword::k_aggregate)) return drop_callable(&DropAggregate::aggregate);
  if (tokens_.accept(Keyword::k_trigger)) return drop_trigger();
  if (tokens_.accept(Keyword::k_role)) {
    return dropped(&DropRole::role, [this] { return role_name(); });
  }
  if (tokens_.accept(Keyword::k_user)) {
    return dropped(&DropRole::role, [this] { return user_name(); });
  }
  return tokens_.no_viable_alternative();
}

template <class Dropped>
base::Result<Dropped> Grammar::drop_callable(QualifiedName Dropped::* part) {
  TRY(Dropped result, dropped(part, [this] { return function_name(); }));
  if (tokens_.at(TokenKind::left_parenthesis)) {
    TRY(result.arguments, argument_types());
  }
  return result;
}

base::Result<DropTrigger> Grammar::drop_trigger() {
  TRY(DropTrigger result, dropped(&DropTrigger::trigger, [this] { return name(); }));
  TRY_VOID(tokens_.expect(Keyword::k_on));
  TRY(result.table, table_name());
  return result;
}

}  // namespace helenus::cql::parser
