// The grammar of CQL, a function a rule: each takes the tokens of its rule, or fails where the text
// departs from it. Private to this folder; others call parse() of parser.h.
//
// terms.cc: names, types, expressions    data_statements.cc: SELECT, INSERT, UPDATE, DELETE, BATCH
// schema_statements.cc: tables, types, indexes    role_statements.cc: roles, rights
// parser.cc: the first word of a statement, DESCRIBE
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/pace.h"
#include "base/result.h"
#include "cql/parser/ast.h"
#include "cql/parser/token_cursor.h"

namespace helenus::cql::parser {

class Grammar {
 public:
  // The text must outlive the grammar, and so must the pace, if there is one.
  Grammar(std::string_view text, base::Pace* pace) : tokens_(text), pace_(pace) {}

  // The whole text. Call it once.
  base::Result<Statement> statement();

 private:
  template <class T>
  using Result = base::Result<T>;

  enum class Context : std::uint8_t {
    term,
    assigned_term,  // the right side of `c =`, which ends before `+ c`
    selector,
  };

  // One level of nesting, for as long as it lives.
  class Level {
   public:
    explicit Level(std::size_t& depth) : depth_(&depth) { ++depth; }
    Level(Level&& other) noexcept : depth_(std::exchange(other.depth_, nullptr)) {}
    Level& operator=(Level&&) = delete;
    ~Level() {
      if (depth_ != nullptr) --*depth_;
    }

   private:
    std::size_t* depth_;
  };
  // Every rule that can contain itself begins with this.
  Result<Level> descend();
  // After every item of what may have many. Errors: of the pace.
  Result<void> turn() { return pace_ == nullptr ? Result<void>() : pace_->turn(); }

  // `rule` once or more, with `separator` between.
  template <class Separator, class Rule>
  auto list_of(Separator separator, Rule rule)
      -> Result<std::vector<typename decltype(rule())::value_type>> {
    std::vector<typename decltype(rule())::value_type> items;
    do {
      TRY(auto item, rule());
      items.push_back(std::move(item));
      TRY_VOID(turn());
    } while (tokens_.accept(separator));
    return items;
  }
  // `(a, b)`; what is between the parentheses may be nothing if `may_be_empty`.
  template <class Rule>
  auto in_parentheses(Rule rule, bool may_be_empty = false)
      -> Result<std::vector<typename decltype(rule())::value_type>> {
    TRY_VOID(tokens_.expect(TokenKind::left_parenthesis));
    std::vector<typename decltype(rule())::value_type> items;
    if (!may_be_empty || !tokens_.at(TokenKind::right_parenthesis)) {
      TRY(items, list_of(TokenKind::comma, rule));
    }
    TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
    return items;
  }

  // Names: terms.cc.
  static bool is_name(const Token& token);
  static bool is_column_name(const Token& token);
  static bool is_function_name(const Token& token);
  Result<Name> name();
  Result<Name> column_name();
  Result<Name> function_name_part();
  Result<Name> user_type_name_part();
  Result<Name> name_or_refuse_marker(std::string_view of_what);
  Result<Name> keyspace_name();
  Result<QualifiedName> qualified_name(std::string_view of_what);
  Result<QualifiedName> table_name() { return qualified_name("table"); }
  Result<QualifiedName> function_name();
  Result<QualifiedName> user_type_name();
  Name take_name();

  // Types: terms.cc.
  Result<TypeName> type();
  Result<TypeName> native_type();
  Result<TypeName> type_with_arguments();
  Result<TypeName> vector_type();
  Result<TypeName> frozen_type();
  Result<std::vector<TypeName>> argument_types();

  // Expressions: terms.cc.
  bool call_ahead(std::size_t distance);
  bool type_hint_ahead(Context context);
  static bool can_begin_term(const Token& token);
  static Literal literal_from(const Token& token);
  Result<Expression> expression(Context context);
  Result<Expression> term() { return expression(Context::term); }
  Result<Expression> product(Context context);
  Result<Expression> signed_operand(Context context);
  Result<Expression> selection();
  // With what stands behind it: .field, [key], [from..to].
  Result<Expression> steps_behind(Expression from);
  Result<SelectionStep> subscript();
  Result<Expression> operand(Context context);
  Result<Expression> word_operand(Context context);
  Result<Expression> marker();
  Result<Expression> list_literal(Context context);
  Result<Expression> brace_literal(Context context);
  Result<Expression> user_type_literal();
  Result<Expression> tuple_literal(Context context);
  Result<Expression> type_hint(Context context);
  Result<Expression> cast(Context context);
  Result<Expression> cell_property();
  Result<Expression> function_call(Context context);
  Result<Expression> integer_or_marker();

  // Relations and conditions: data_statements.cc.
  Result<std::vector<Relation>> where_clause();
  Result<Relation> relation();
  Result<Relation> relation_in_parentheses();
  Result<Relation> column_relation();
  Result<Relation> element_relation();
  Result<Relation> columns_relation();
  Result<Relation> token_relation();
  Result<Relation> custom_index_relation();
  Result<Operator> comparison();
  Result<Operand> one_value();
  Result<Operand> in_values();
  Result<Operand> in_tuples();
  Result<Expression> tuple_or_marker();
  Result<ColumnTarget> column_target();
  Result<Condition> condition();

  // Statements: data_statements.cc.
  template <class Modification>
  Result<void> conditions_of(Modification& statement);
  Result<Attributes> attributes(bool with_time_to_live);
  Result<Expression> operation_id();
  Result<Select> select();
  bool selects_modifier(Keyword keyword);
  Result<std::vector<Selector>> selectors();
  Result<Selector> selector();
  Result<void> select_limits(Select& select);
  Result<Ordering> ordering();
  Result<Statement::Node> insert();
  Result<Insert> insert_values(QualifiedName table);
  Result<InsertJson> insert_json(QualifiedName table);
  Result<Update> update();
  Result<Assignment> assignment();
  Result<Assignment> whole_column_assignment(Name column);
  Result<Delete> deletion();
  Result<Batch> batch();
  Result<Batch::Modification> batched_statement();
  Result<Truncate> truncate();

  // Statements: schema_statements.cc.
  Result<bool> if_exists();
  Result<bool> if_not_exists();
  bool accept_table();
  bool accept_keyspace();
  Result<Properties> properties();
  static Result<void> check_properties(const Properties& properties);
  Result<Property> property();
  Result<PropertyMap> property_map();
  Result<PropertyEntry> property_entry();
  Result<Statement::Node> create();
  Result<Statement::Node> alter();
  Result<Statement::Node> drop();
  Result<CreateKeyspace> create_keyspace();
  Result<AlterKeyspace> alter_keyspace();
  Result<CreateTable> create_table();
  Result<void> table_element(CreateTable& table);
  Result<void> table_property(CreateTable& table);
  Result<PrimaryKey> primary_key();
  Result<std::vector<Ordering>> clustering_order();
  Result<ColumnDefinition> column_definition();
  Result<AlterTable> alter_table();
  Result<AlterTable::Change> table_change();
  Result<AddColumns> add_columns();
  Result<DropColumns> drop_columns();
  Result<Renaming> renaming();
  Result<FieldDefinition> field_definition();
  Result<CreateType> create_type();
  Result<AlterType> alter_type();
  Result<CreateIndex> create_index();
  Result<IndexTarget> index_target();
  Result<CreateMaterializedView> create_materialized_view();
  Result<AlterMaterializedView> alter_materialized_view();
  Result<CreateTrigger> create_trigger();
  Result<CreateFunction> create_function(bool or_replace);
  Result<CreateAggregate> create_aggregate(bool or_replace);
  template <class Dropped, class Part, class Rule>
  Result<Dropped> dropped(Part Dropped::* part, Rule rule);
  template <class Dropped>
  Result<Dropped> drop_callable(QualifiedName Dropped::* part);
  Result<DropTrigger> drop_trigger();
  Result<std::string> string_literal();

  // Statements: role_statements.cc.
  Result<Name> role_name();
  Result<Name> user_name();
  Result<CreateRole> create_role();
  Result<CreateRole> create_user();
  Result<AlterRole> alter_role();
  Result<AlterRole> alter_user();
  Result<RoleOptions> role_options();
  Result<void> role_option(RoleOptions& options);
  Result<DatacenterAccess> datacenter_access();
  Result<RoleOptions> user_options();
  Result<bool> boolean_option();
  bool permissions_ahead();
  Result<Permissions> permissions();
  Result<Permission> permission();
  Result<Resource> resource();
  Result<Resource> resource_of_all();
  Result<Statement::Node> grant();
  Result<Statement::Node> revoke();
  Result<Statement::Node> list();

  // parser.cc.
  Result<Statement::Node> any_statement();
  Result<Use> use();
  Result<Describe> describe();
  Result<Describe> describe_target();
  Result<Describe> describe_named();

  TokenCursor tokens_;
  base::Pace* const pace_;
  std::size_t depth_ = 0;
  std::vector<std::optional<std::string>> markers_;
};

}  // namespace helenus::cql::parser
