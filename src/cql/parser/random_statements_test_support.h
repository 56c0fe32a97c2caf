// Random statements from the whole grammar, as syntax trees: every tree is one that the parser
// could have given, so that parse(to_text(s)) == s must hold.
//
// Choices come from a function: a Prng where many statements are wanted fast, rapidcheck where a
// failure should shrink. The simplest choice is always number 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rapidcheck.h>

#include "cql/parser/ast.h"

namespace helenus::cql::parser::testing {

// What names and literals are drawn from. The default is meant to trip a parser; an executor under
// test wants the names of its own tables.
struct Vocabulary {
  std::vector<std::string> keyspaces = {"ks", "Key Space", "system", "values", "only"};
  std::vector<std::string> tables = {"t", "Table", "type", "function", "all", "role", "cluster"};
  std::vector<std::string> columns = {"a",    "b",      "C",     "json", "distinct", "as",
                                      "key",  "select", "count", "ttl",  "int",      "exists",
                                      "cast", "token",  "expr",  "per",  "true",     "writetime",
                                      "nan",  "a\"b",   "a b",   "1a",   "ä"};
  std::vector<std::string> functions = {"f", "token", "count", "Max", "ttl", "cast", "int", "json"};
  std::vector<std::string> user_types = {"address", "Type", "byte", "int", "key", "list"};
  std::vector<std::string> fields = {"street", "Zip", "from", "key", "ttl"};
  std::vector<std::string> roles = {"admin", "Bob", "all", "", "o'hara"};
  std::vector<std::string> strings = {"", "x", "it's", "a\nb", "$$", "--", "ä\xff", "/*"};
  bool with_markers = true;
  std::size_t nesting_max = 3;
};

inline Expression expression_of(Expression::Node node) {
  return {.node = std::move(node), .position = {}};
}
inline Literal literal_of(LiteralKind kind, std::string text) {
  return {.kind = kind, .text = std::move(text), .position = {}};
}

class RandomStatements {
 public:
  // A number below the bound, which is not 0.
  using Below = std::function<std::size_t(std::size_t bound)>;

  explicit RandomStatements(Below below, Vocabulary vocabulary = {})
      : below_(std::move(below)), words_(std::move(vocabulary)) {}

  Statement any();
  // SELECT, INSERT, UPDATE, DELETE or BATCH.
  Statement data();

 private:
  enum class Context : std::uint8_t { term, selector };
  using Words = std::vector<std::string>;

  bool chance(std::size_t in) { return below_(in) == in - 1; }
  std::size_t count(std::size_t low, std::size_t high) { return low + below_(high - low + 1); }
  template <class T>
  T one_of(std::initializer_list<T> items) {
    return items.begin()[below_(items.size())];
  }
  // `low` to `high` of what `make` gives.
  template <class Make>
  auto several(std::size_t low, std::size_t high, Make make) {
    std::vector<decltype(make())> items;
    for (std::size_t left = count(low, high); left > 0; --left) items.push_back(make());
    return items;
  }
  template <class Make>
  auto maybe(Make make) -> std::optional<decltype(make())> {
    if (!chance(3)) return std::nullopt;
    return make();
  }

  Statement finished(Statement::Node node);
  Statement::Node data_node();
  Statement::Node schema_node();
  Statement::Node alter_node();
  Statement::Node drop_node();
  Statement::Node callable_node();
  Statement::Node role_node();

  std::string word(const Words& words) { return words[below_(words.size())]; }
  Name name(const Words& words) { return {.text = word(words), .position = {}}; }
  Name column() { return name(words_.columns); }
  Name alias() { return name(words_.columns); }
  QualifiedName qualified(const Words& words);
  QualifiedName table() { return qualified(words_.tables); }
  std::vector<Name> different_columns(std::size_t low, std::size_t high);

  TypeName type(std::size_t nesting);
  TypeName type() { return type(words_.nesting_max); }
  TypeName native_type();

  Expression literal();
  Expression marker();
  Expression integer_or_marker();
  Expression expression(Context context, std::size_t nesting);
  Expression term() { return expression(Context::term, words_.nesting_max); }
  Expression selected() { return expression(Context::selector, words_.nesting_max); }
  Expression product(Context context, std::size_t nesting);
  Expression signed_operand(Context context, std::size_t nesting);
  Expression operand(Context context, std::size_t nesting);
  Expression leaf(Context context);
  Expression collection(Context context, std::size_t nesting);
  Expression map_literal(Context context, std::size_t nesting);
  Expression selection(std::size_t nesting);
  Expression function_call(Context context, std::size_t nesting);
  Expression tuple(Context context, std::size_t low, std::size_t nesting);

  Operator comparison();
  Operand one_value();
  Operand in_values();
  Relation relation();
  Relation columns_relation();
  ColumnTarget target(Name column);
  Condition condition();
  void conditions(bool& if_exists, std::vector<Condition>& conditions);
  Attributes attributes(bool with_time_to_live);
  Selector selector();
  Ordering ordering();

  Select select();
  Insert insert();
  InsertJson insert_json();
  Update update();
  Delete deletion();
  Batch batch();

  Literal constant();
  PropertyMap property_map();
  Properties properties(std::size_t low);
  ColumnDefinition column_definition();
  FieldDefinition field_definition();
  PrimaryKey primary_key();
  CreateTable create_table();
  AlterTable alter_table();
  AlterType alter_type();
  CreateIndex create_index();
  CreateMaterializedView create_materialized_view();
  CreateFunction create_function();
  CreateAggregate create_aggregate();
  RoleOptions role_options();
  Permissions permissions();
  Resource resource();
  Describe describe();

  Below below_;
  Vocabulary words_;
  std::vector<std::optional<std::string>> markers_;
};

// Any statement, for property tests.
inline rc::Gen<Statement> any_statement(const Vocabulary& vocabulary = {}) {
  return rc::gen::exec([vocabulary] {
    return RandomStatements(
               [](std::size_t bound) { return *rc::gen::inRange<std::size_t>(0, bound); },
               vocabulary)
        .any();
  });
}

}  // namespace helenus::cql::parser::testing
