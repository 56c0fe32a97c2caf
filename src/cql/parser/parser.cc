#include "cql/parser/parser.h"

#include "cql/parser/error_text.h"
#include "cql/parser/grammar.h"
#include "cql/parser/limits.h"

namespace helenus::cql::parser {

using base::Errc;
using base::Error;
using base::Result;

Result<Statement> parse(std::string_view text, base::Pace* pace) {
  if (text.size() > kStatementBytesMax) {
    return Error(Errc::invalid_argument, "a statement of {} bytes, of at most {}", text.size(),
                 kStatementBytesMax);
  }
  Result<Statement> statement = Grammar(text, pace).statement();
  if (statement) return statement;
  return Error(statement.error().code(), beginning_of(statement.error().context(), kErrorBytesMax));
}

Result<Statement> Grammar::statement() {
  Statement result;
  TRY(result.node, any_statement());
  while (tokens_.accept(TokenKind::semicolon)) {
  }
  TRY_VOID(tokens_.expect(TokenKind::end));
  result.markers = std::move(markers_);
  return result;
}

Result<Statement::Node> Grammar::any_statement() {
  switch (tokens_.current().keyword) {
    case Keyword::k_select:
      return select();
    case Keyword::k_insert:
      return insert();
    case Keyword::k_update:
      return update();
    case Keyword::k_delete:
      return deletion();
    case Keyword::k_begin:
      return batch();
    case Keyword::k_truncate:
      return truncate();
    case Keyword::k_use:
      return use();
    case Keyword::k_create:
      return create();
    case Keyword::k_alter:
      return alter();
    case Keyword::k_drop:
      return drop();
    case Keyword::k_grant:
      return grant();
    case Keyword::k_revoke:
      return revoke();
    case Keyword::k_list:
      return list();
    case Keyword::k_describe:
    case Keyword::k_desc:
      return describe();
    default:
      return tokens_.no_viable_alternative();
  }
}

Result<Use> Grammar::use() {
  Use result;
  tokens_.take();
  TRY(result.keyspace, keyspace_name());
  return result;
}

Result<Describe> Grammar::describe() {
  tokens_.take();
  TRY(Describe result, describe_target());
  if (tokens_.accept(Keyword::k_with)) {
    TRY_VOID(tokens_.expect(Keyword::k_internals));
    result.with_internals = true;
  }
  return result;
}

Result<Describe> Grammar::describe_target() {
  static constexpr std::pair<Keyword, DescribeKind> kWithoutName[] = {
      {Keyword::k_cluster, DescribeKind::cluster},
      {Keyword::k_keyspaces, DescribeKind::keyspaces},
      {Keyword::k_tables, DescribeKind::tables},
      {Keyword::k_columnfamilies, DescribeKind::tables},
      {Keyword::k_types, DescribeKind::types},
      {Keyword::k_functions, DescribeKind::functions},
      {Keyword::k_aggregates, DescribeKind::aggregates},
      {Keyword::k_schema, DescribeKind::schema},
  };
  Describe result;
  for (const auto& [keyword, kind] : kWithoutName) {
    if (!tokens_.accept(keyword)) continue;
    result.kind = kind;
    return result;
  }
  if (tokens_.accept(Keyword::k_full)) {
    TRY_VOID(tokens_.expect(Keyword::k_schema));
    result.kind = DescribeKind::full_schema;
    return result;
  }
  // A keyspace may be called only.
  const bool only = tokens_.at(Keyword::k_only) && tokens_.next_is(Keyword::k_keyspace);
  if (only) tokens_.take();
  if (tokens_.accept(Keyword::k_keyspace)) {
    result.kind = only ? DescribeKind::only_keyspace : DescribeKind::keyspace;
    if (is_name(tokens_.current()) || tokens_.at(TokenKind::question_mark)) {
      result.name.emplace();
      TRY(result.name->name, keyspace_name());
    }
    return result;
  }
  return describe_named();
}

Result<Describe> Grammar::describe_named() {
  Describe result;
  // Tables and others may be called type, function or aggregate: these are words of the language if
  // a name follows.
  const Token behind = tokens_.ahead(1);
  const bool name_follows = is_name(behind) || is_function_name(behind);
  if (accept_table()) {
    result.kind = DescribeKind::table;
    TRY(result.name, table_name());
  } else if (tokens_.accept(Keyword::k_index)) {
    result.kind = DescribeKind::index;
    TRY(result.name, qualified_name("table"));
  } else if (tokens_.accept(Keyword::k_materialized)) {
    TRY_VOID(tokens_.expect(Keyword::k_view));
    result.kind = DescribeKind::materialized_view;
    TRY(result.name, table_name());
  } else if (name_follows && tokens_.accept(Keyword::k_type)) {
    result.kind = DescribeKind::type;
    TRY(result.name, user_type_name());
  } else if (name_follows && tokens_.accept(Keyword::k_function)) {
    result.kind = DescribeKind::function;
    TRY(result.name, function_name());
  } else if (name_follows && tokens_.accept(Keyword::k_aggregate)) {
    result.kind = DescribeKind::aggregate;
    TRY(result.name, function_name());
  } else {
    result.kind = DescribeKind::anything;
    QualifiedName found;
    TRY(found.name, name());
    if (tokens_.accept(TokenKind::dot)) {
      found.keyspace = std::move(found.name);
      TRY(found.name, name());
    }
    result.name = std::move(found);
  }
  return result;
}

}  // namespace helenus::cql::parser
