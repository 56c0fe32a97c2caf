#include "cql/parser/text_writer.h"

#include <algorithm>
#include <variant>

#include "base/assert.h"
#include "cql/parser/lexer.h"

namespace helenus::cql::parser {
namespace {

// The token that the name would be if it stood without quotes; no word if it cannot.
Token as_bare_word(std::string_view name) {
  const Token token = Lexer(name).next();
  const bool is_bare =
      token.kind == TokenKind::word && token.text.size() == name.size() && folded(name) == name;
  return is_bare ? token : Token{};
}

bool is_plain(const Token& token) {
  return token.kind == TokenKind::word && token.keyword == Keyword::none;
}

bool is_word_of(const Token& token, std::initializer_list<KeywordClass> classes) {
  return is_plain(token) || (token.kind == TokenKind::word &&
                             std::ranges::find(classes, class_of(token.keyword)) != classes.end());
}

std::string_view spelling_of(Operator comparison) {
  switch (comparison) {
    case Operator::equal:
      return " = ";
    case Operator::not_equal:
      return " != ";
    case Operator::less:
      return " < ";
    case Operator::less_or_equal:
      return " <= ";
    case Operator::greater:
      return " > ";
    case Operator::greater_or_equal:
      return " >= ";
    case Operator::in:
      return " IN ";
    case Operator::contains:
      return " CONTAINS ";
    case Operator::contains_key:
      return " CONTAINS KEY ";
    case Operator::like:
      return " LIKE ";
    case Operator::is_not_null:
      return " IS NOT NULL";
  }
  UNREACHABLE("no such operator");
}

std::string_view spelling_of(ArithmeticOperator operation) {
  switch (operation) {
    case ArithmeticOperator::add:
      return " + ";
    case ArithmeticOperator::subtract:
      return " - ";
    case ArithmeticOperator::multiply:
      return " * ";
    case ArithmeticOperator::divide:
      return " / ";
    case ArithmeticOperator::remainder:
      return " % ";
  }
  UNREACHABLE("no such operator");
}

}  // namespace

// --------------------------------------------------------------------------------------- names

TextWriter& TextWriter::word(std::string_view text, bool is_bare) {
  if (is_bare) return raw(text);
  text_.push_back('"');
  for (const char c : text) {
    if (c == '"') text_.push_back('"');
    text_.push_back(c);
  }
  text_.push_back('"');
  return *this;
}

TextWriter& TextWriter::name(const Name& name) {
  const Token token = as_bare_word(name.text);
  const bool is_bare =
      is_word_of(token, {KeywordClass::basic, KeywordClass::native, KeywordClass::special});
  return word(name.text, is_bare);
}

TextWriter& TextWriter::name(const QualifiedName& name) {
  if (name.keyspace) this->name(*name.keyspace).raw(".");
  return this->name(name.name);
}

TextWriter& TextWriter::function_name_part(const Name& name) {
  const Token token = as_bare_word(name.text);
  const bool is_bare = is_word_of(token, {KeywordClass::basic, KeywordClass::native}) ||
                       token.keyword == Keyword::k_token || token.keyword == Keyword::k_count;
  return word(name.text, is_bare);
}

TextWriter& TextWriter::function_name(const QualifiedName& name) {
  if (name.keyspace) this->name(*name.keyspace).raw(".");
  return function_name_part(name.name);
}

// Quotes more than it must: some plain words are no names of types, and the words of types are
// better not mistaken for them.
TextWriter& TextWriter::user_type_name(const std::optional<Name>& keyspace, std::string_view name) {
  if (keyspace) this->name(*keyspace).raw(".");
  return word(name, is_plain(as_bare_word(name)) && !is_reserved_type_name(name));
}

TextWriter& TextWriter::role_name(const Name& name) {
  return name.text.empty() ? string("") : this->name(name);
}

TextWriter& TextWriter::no_keyword(const Name& name) {
  return word(name.text, is_plain(as_bare_word(name.text)));
}

// --------------------------------------------------------------------------- literals and types

TextWriter& TextWriter::string(std::string_view text) {
  text_.push_back('\'');
  for (const char c : text) {
    if (c == '\'') text_.push_back('\'');
    text_.push_back(c);
  }
  text_.push_back('\'');
  return *this;
}

TextWriter& TextWriter::literal(const Literal& literal) {
  if (literal.kind == LiteralKind::null) return raw("null");
  return literal.kind == LiteralKind::string ? string(literal.text) : raw(literal.text);
}

TextWriter& TextWriter::type(const TypeName& type) {
  raw_if(type.frozen, "frozen<");
  switch (type.kind) {
    case TypeKind::native:
      raw(type.name);
      break;
    case TypeKind::custom:
      string(type.name);
      break;
    case TypeKind::user:
      user_type_name(type.keyspace, type.name);
      break;
    case TypeKind::list:
      raw("list");
      break;
    case TypeKind::set:
      raw("set");
      break;
    case TypeKind::map:
      raw("map");
      break;
    case TypeKind::tuple:
      raw("tuple");
      break;
    case TypeKind::vector:
      raw("vector");
      break;
  }
  if (!type.arguments.empty()) {
    raw("<");
    list(type.arguments, ", ", [this](const TypeName& argument) { this->type(argument); });
    if (type.kind == TypeKind::vector) raw(fmt::format(", {}", type.dimension));
    raw(">");
  }
  return raw_if(type.frozen, ">");
}

TextWriter& TextWriter::argument_types(const std::vector<TypeName>& types) {
  raw("(");
  list(types, ", ", [this](const TypeName& argument) { type(argument); });
  return raw(")");
}

// --------------------------------------------------------------------------------- expressions

TextWriter& TextWriter::expression(const Expression& expression) {
  std::visit([this](const auto& alternative) { node(alternative); }, expression.node);
  return *this;
}

void TextWriter::node(const Literal& node) {
  literal(node);
}

void TextWriter::node(const Marker& node) {
  const bool has_name = node.index < markers_->size() && (*markers_)[node.index].has_value();
  if (has_name) {
    raw(":").name(Name{.text = *(*markers_)[node.index], .position = {}});
  } else {
    raw("?");
  }
}

// Some words would be taken for something else at the beginning of selectors or behind them.
void TextWriter::node(const Column& node) {
  const Keyword keyword = as_bare_word(node.name.text).keyword;
  const bool is_mistakable =
      keyword == Keyword::k_json || keyword == Keyword::k_distinct || keyword == Keyword::k_as;
  is_mistakable ? word(node.name.text, false) : name(node.name);
}

void TextWriter::node(const ListLiteral& node) {
  raw("[").expressions(node.elements).raw("]");
}

void TextWriter::node(const SetLiteral& node) {
  raw("{").expressions(node.elements).raw("}");
}

void TextWriter::node(const MapLiteral& node) {
  raw("{");
  list(node.entries, ", ",
       [this](const MapEntry& entry) { expression(entry.key).raw(": ").expression(entry.value); });
  raw("}");
}

void TextWriter::node(const UserTypeLiteral& node) {
  raw("{");
  list(node.fields, ", ",
       [this](const UserTypeField& field) { name(field.name).raw(": ").expression(field.value); });
  raw("}");
}

void TextWriter::node(const TupleLiteral& node) {
  raw("(").expressions(node.elements).raw(")");
}

void TextWriter::node(const FunctionCall& node) {
  function_name(*node.function).raw("(").expressions(node.arguments).raw(")");
}

void TextWriter::node(const CountRows& /*node*/) {
  raw("count(*)");
}

void TextWriter::node(const CellProperty& node) {
  raw(node.kind == CellPropertyKind::ttl ? "ttl(" : "writetime(").expression(*node.of).raw(")");
}

void TextWriter::node(const Cast& node) {
  raw("cast(").expression(*node.operand).raw(" AS ").type(*node.type).raw(")");
}

void TextWriter::node(const TypeHint& node) {
  raw("(").type(*node.type).raw(") ").expression(*node.operand);
}

// The blank keeps the minus out of a literal and two of them from being a comment.
void TextWriter::node(const Negation& node) {
  raw("- ").expression(*node.operand);
}

void TextWriter::node(const Arithmetic& node) {
  ASSERT(node.operands.size() == node.operators.size() + 1);
  expression(node.operands.front());
  for (std::size_t at = 0; at < node.operators.size(); ++at) {
    raw(spelling_of(node.operators[at])).expression(node.operands[at + 1]);
  }
}

// The blank keeps the dot out of a number.
void TextWriter::node(const Selection& node) {
  expression(*node.from);
  raw_if(std::holds_alternative<Literal>(node.from->node), " ");
  for (const SelectionStep& taken : node.steps) step(taken);
}

void TextWriter::step(const SelectionStep& step) {
  if (const auto* field = std::get_if<FieldStep>(&step)) {
    raw(".").name(field->field);
  } else if (const auto* element = std::get_if<ElementStep>(&step)) {
    raw("[").expression(*element->key).raw("]");
  } else {
    const auto& slice = std::get<SliceStep>(step);
    raw("[");
    if (slice.from) expression(**slice.from).raw(" ");
    raw("..");
    if (slice.to) raw(" ").expression(**slice.to);
    raw("]");
  }
}

// ------------------------------------------------------------------------------ parts of
// statements

void TextWriter::operand(Operator comparison, const Operand& operand) {
  raw(spelling_of(comparison));
  const bool in_parentheses = comparison == Operator::in && !operand.is_list_marker;
  raw_if(in_parentheses, "(").expressions(operand.values).raw_if(in_parentheses, ")");
}

TextWriter& TextWriter::target(const ColumnTarget& target) {
  name(target.column);
  if (target.element) raw("[").expression(*target.element).raw("]");
  if (target.field) raw(".").name(*target.field);
  return *this;
}

TextWriter& TextWriter::relation(const Relation& relation) {
  switch (relation.kind) {
    case RelationKind::column:
      names(relation.columns);
      break;
    case RelationKind::element:
      ASSERT(relation.element.has_value());
      names(relation.columns).raw("[").expression(*relation.element).raw("]");
      break;
    case RelationKind::columns:
      raw("(").names(relation.columns).raw(")");
      break;
    case RelationKind::token:
      raw("token(").names(relation.columns).raw(")");
      break;
    case RelationKind::custom_index:
      raw("expr(").names(relation.columns).raw(", ").expressions(relation.operand.values);
      return raw(")");
  }
  operand(relation.comparison, relation.operand);
  return *this;
}

TextWriter& TextWriter::condition(const Condition& condition) {
  target(condition.target);
  operand(condition.comparison, condition.operand);
  return *this;
}

TextWriter& TextWriter::where(const std::vector<Relation>& relations) {
  if (relations.empty()) return *this;
  raw(" WHERE ");
  return list(relations, " AND ", [this](const Relation& item) { relation(item); });
}

TextWriter& TextWriter::selectors(const std::vector<Selector>& selectors) {
  if (selectors.empty()) return raw("*");
  return list(selectors, ", ", [this](const Selector& selector) {
    expression(selector.expression);
    if (selector.alias) raw(" AS ").name(*selector.alias);
  });
}

TextWriter& TextWriter::ordering(const Ordering& ordering) {
  return name(ordering.column).raw(ordering.descending ? " DESC" : " ASC");
}

TextWriter& TextWriter::attributes(const Attributes& attributes) {
  std::string_view joint = " USING ";
  const auto attribute = [&](std::string_view word, const std::optional<Expression>& value) {
    if (!value) return;
    raw(joint).raw(word).expression(*value);
    joint = " AND ";
  };
  attribute("TIMESTAMP ", attributes.timestamp);
  attribute("TTL ", attributes.time_to_live);
  attribute("OPERATION ", attributes.operation);
  return *this;
}

TextWriter& TextWriter::property_map(const PropertyMap& map) {
  raw("{");
  list(map, ", ",
       [this](const PropertyEntry& entry) { literal(entry.key).raw(": ").literal(entry.value); });
  return raw("}");
}

TextWriter& TextWriter::property(const Property& property) {
  name(property.name).raw(" = ");
  if (const auto* constant = std::get_if<Literal>(&property.value)) return literal(*constant);
  return property_map(std::get<PropertyMap>(property.value));
}

}  // namespace helenus::cql::parser
