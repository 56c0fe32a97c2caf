// Names, types and expressions.
#include <charconv>
#include <limits>

#include "base/assert.h"
#include "cql/parser/grammar.h"
#include "cql/parser/limits.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {

using base::Errc;
using base::Error;

namespace {

TypeName simple_type(TypeKind kind, std::string name, Position position) {
  TypeName type;
  type.kind = kind;
  type.name = std::move(name);
  type.position = position;
  return type;
}

}  // namespace

namespace {

// No keyword: it may be any name.
bool is_vector(const Token& token) {
  return token.kind == TokenKind::word && folded(token.text) == "vector";
}

}  // namespace

base::Result<Grammar::Level> Grammar::descend() {
  TRY_VOID(turn());
  if (depth_ == kNestingDepthMax) {
    return tokens_.error_at(tokens_.current().position,
                            fmt::format("nested more than {} levels deep", kNestingDepthMax));
  }
  return Level(depth_);
}

// ------------------------------------------------------------------------------------- names

bool Grammar::is_name(const Token& token) {
  if (token.kind == TokenKind::quoted) return true;
  if (token.kind != TokenKind::word) return false;
  return token.keyword == Keyword::none || class_of(token.keyword) != KeywordClass::reserved;
}

bool Grammar::is_column_name(const Token& token) {
  return is_name(token) || token.kind == TokenKind::empty_name;
}

bool Grammar::is_function_name(const Token& token) {
  if (token.keyword == Keyword::k_token || token.keyword == Keyword::k_count) return true;
  if (!is_name(token)) return false;
  return token.keyword == Keyword::none || class_of(token.keyword) != KeywordClass::special;
}

Name Grammar::take_name() {
  const Token token = tokens_.take();
  const bool is_word = token.kind == TokenKind::word;
  return {.text = is_word ? folded(token.text) : unquoted(token), .position = token.position};
}

base::Result<Name> Grammar::name() {
  if (!is_name(tokens_.current())) return tokens_.no_viable_alternative();
  return take_name();
}

base::Result<Name> Grammar::column_name() {
  if (!is_column_name(tokens_.current())) return tokens_.no_viable_alternative();
  return take_name();
}

base::Result<Name> Grammar::function_name_part() {
  if (!is_function_name(tokens_.current())) return tokens_.no_viable_alternative();
  return take_name();
}

base::Result<Name> Grammar::user_type_name_part() {
  const Token& token = tokens_.current();
  const bool may_be_type = token.keyword == Keyword::none || token.keyword == Keyword::k_key ||
                           class_of(token.keyword) == KeywordClass::basic;
  if (!is_name(token) || !may_be_type) return tokens_.no_viable_alternative();
  const bool is_word = token.kind == TokenKind::word;
  Name name = take_name();
  if (is_word && is_reserved_type_name(name.text)) {
    return Error(Errc::invalid_argument, "Invalid (reserved) user type name {}", name.text);
  }
  return name;
}

base::Result<Name> Grammar::name_or_refuse_marker(std::string_view of_what) {
  if (tokens_.at(TokenKind::question_mark)) {
    return Error(Errc::invalid_argument, "Bind variables cannot be used for {} names", of_what);
  }
  return name();
}

base::Result<Name> Grammar::keyspace_name() {
  return name_or_refuse_marker("keyspace");
}

base::Result<QualifiedName> Grammar::qualified_name(std::string_view of_what) {
  QualifiedName result;
  TRY(result.name, name_or_refuse_marker(of_what));
  if (tokens_.accept(TokenKind::dot)) {
    result.keyspace = std::move(result.name);
    TRY(result.name, name_or_refuse_marker(of_what));
  }
  return result;
}

base::Result<QualifiedName> Grammar::function_name() {
  QualifiedName result;
  if (tokens_.next_is(TokenKind::dot)) {
    TRY(result.keyspace, keyspace_name());
    tokens_.take();
  }
  TRY(result.name, function_name_part());
  return result;
}

base::Result<QualifiedName> Grammar::user_type_name() {
  QualifiedName result;
  if (tokens_.next_is(TokenKind::dot)) {
    TRY(result.keyspace, name());
    tokens_.take();
  }
  TRY(result.name, user_type_name_part());
  return result;
}

// ------------------------------------------------------------------------------------- types

base::Result<TypeName> Grammar::type() {
  TRY(const Level level, descend());
  const Token token = tokens_.current();
  if (token.kind == TokenKind::string) {
    tokens_.take();
    return simple_type(TypeKind::custom, unquoted(token), token.position);
  }
  const bool qualified = tokens_.next_is(TokenKind::dot);
  if (!qualified && token.keyword != Keyword::none &&
      class_of(token.keyword) == KeywordClass::native) {
    return native_type();
  }
  if (tokens_.next_is(TokenKind::less)) {
    if (tokens_.at(Keyword::k_frozen)) return frozen_type();
    return is_vector(tokens_.current()) ? vector_type() : type_with_arguments();
  }
  TRY(QualifiedName user, user_type_name());
  TypeName result = simple_type(TypeKind::user, std::move(user.name.text), token.position);
  result.keyspace = std::move(user.keyspace);
  return result;
}

base::Result<TypeName> Grammar::native_type() {
  const Token token = tokens_.current();
  if (token.keyword == Keyword::none || class_of(token.keyword) != KeywordClass::native) {
    return tokens_.no_viable_alternative();
  }
  tokens_.take();
  return simple_type(TypeKind::native, std::string(spelling_of(token.keyword)), token.position);
}

// `vector<float, 3>`. Requires: `vector` and `<` are next.
base::Result<TypeName> Grammar::vector_type() {
  TypeName result;
  result.position = tokens_.current().position;
  result.kind = TypeKind::vector;
  tokens_.take();
  tokens_.take();
  TRY(TypeName element, type());
  result.arguments.push_back(std::move(element));
  TRY_VOID(tokens_.expect(TokenKind::comma));
  const Token token = tokens_.current();
  if (token.kind != TokenKind::integer) return tokens_.no_viable_alternative();
  const auto read =
      std::from_chars(token.text.data(), token.text.data() + token.text.size(), result.dimension);
  if (read.ec != std::errc() || result.dimension == 0) {
    return Error(Errc::invalid_argument, "vectors may only have positive dimensions; given {}",
                 token.text);
  }
  tokens_.take();
  TRY_VOID(tokens_.expect(TokenKind::greater));
  return result;
}

// Requires: a word and `<` are next.
base::Result<TypeName> Grammar::type_with_arguments() {
  TypeName result;
  result.position = tokens_.current().position;
  std::size_t arguments_max = 1;
  switch (tokens_.current().keyword) {
    case Keyword::k_list:
      result.kind = TypeKind::list;
      break;
    case Keyword::k_set:
      result.kind = TypeKind::set;
      break;
    case Keyword::k_map:
      result.kind = TypeKind::map;
      arguments_max = 2;
      break;
    case Keyword::k_tuple:
      result.kind = TypeKind::tuple;
      arguments_max = std::numeric_limits<std::size_t>::max();
      break;
    default:
      return tokens_.no_viable_alternative();
  }
  tokens_.take();
  tokens_.take();
  do {
    TRY(TypeName argument, type());
    result.arguments.push_back(std::move(argument));
  } while (result.arguments.size() < arguments_max && tokens_.accept(TokenKind::comma));
  if (result.kind == TypeKind::map && result.arguments.size() == 1) {
    return tokens_.mismatched("','");
  }
  TRY_VOID(tokens_.expect(TokenKind::greater));
  return result;
}

// Requires: FROZEN and `<` are next.
base::Result<TypeName> Grammar::frozen_type() {
  tokens_.take();
  tokens_.take();
  TRY(TypeName result, type());
  TRY_VOID(tokens_.expect(TokenKind::greater));
  if (result.kind == TypeKind::native || result.kind == TypeKind::custom) {
    return Error(Errc::invalid_argument,
                 "frozen<> is only allowed on collections, tuples, and user-defined types (got {})",
                 to_text(result));
  }
  result.frozen = true;
  return result;
}

base::Result<std::vector<TypeName>> Grammar::argument_types() {
  return in_parentheses([this] { return type(); }, true);
}

// ------------------------------------------------------------------------------- expressions

// `f(`, `ks.f(` or `cast(`.
bool Grammar::call_ahead(std::size_t distance) {
  const Token& first = tokens_.ahead(distance);
  const TokenKind behind = tokens_.ahead(distance + 1).kind;
  if (behind == TokenKind::left_parenthesis) {
    return is_function_name(first) || first.keyword == Keyword::k_cast;
  }
  if (behind != TokenKind::dot || !is_name(first)) return false;
  // From one token on, the parenthesis is out of sight.
  TokenCursor copy = tokens_;
  for (std::size_t taken = 0; taken < distance; ++taken) copy.take();
  return is_function_name(copy.ahead(2)) && copy.ahead(3).kind == TokenKind::left_parenthesis;
}

bool Grammar::can_begin_term(const Token& token) {
  switch (token.kind) {
    case TokenKind::string:
    case TokenKind::integer:
    case TokenKind::floating:
    case TokenKind::boolean:
    case TokenKind::duration:
    case TokenKind::uuid:
    case TokenKind::blob:
    case TokenKind::question_mark:
    case TokenKind::left_parenthesis:
    case TokenKind::left_bracket:
    case TokenKind::left_brace:
      return true;
    default:
      return token.keyword == Keyword::k_null;
  }
}

// At a parenthesis: whether it holds a type, and something of that type follows. `(a)` is a type in
// `(a) 1`, and a tuple or a selector in `(a) + 1`. What is between the parentheses is seen at most
// twice, for a type has no parentheses in it.
bool Grammar::type_hint_ahead(Context context) {
  TokenCursor copy = tokens_;
  copy.take();
  std::size_t angles = 0;
  std::size_t seen = 0;
  for (; !copy.at(TokenKind::right_parenthesis); ++seen) {
    const Token token = copy.take();
    const bool is_part = token.kind == TokenKind::word || token.kind == TokenKind::quoted ||
                         token.kind == TokenKind::string || token.kind == TokenKind::dot ||
                         token.kind == TokenKind::less ||
                         (token.kind == TokenKind::greater && angles > 0) ||
                         (token.kind == TokenKind::integer && angles > 0) ||
                         (token.kind == TokenKind::comma && angles > 0);
    if (!is_part) return false;
    if (token.kind == TokenKind::less) ++angles;
    if (token.kind == TokenKind::greater) --angles;
  }
  if (seen == 0 || angles > 0) return false;
  copy.take();
  if (can_begin_term(copy.current())) return true;
  // A colon may also be the one of a map, behind its key.
  if (copy.at(TokenKind::colon)) return is_name(copy.ahead(1));
  const Token& first = copy.current();
  const TokenKind second = copy.ahead(1).kind;
  const bool is_call = (second == TokenKind::left_parenthesis && is_function_name(first)) ||
                       (second == TokenKind::dot && is_name(first)) ||
                       (second == TokenKind::left_parenthesis && first.keyword == Keyword::k_cast);
  if (context != Context::selector) return is_call;
  if (first.keyword == Keyword::k_as) return false;
  if (first.keyword == Keyword::k_per && copy.ahead(1).keyword == Keyword::k_partition)
    return false;
  return is_call || is_name(first);
}

Literal Grammar::literal_from(const Token& token) {
  Literal literal{.text = std::string(token.text), .position = token.position};
  switch (token.kind) {
    case TokenKind::string:
      literal.kind = LiteralKind::string;
      literal.text = unquoted(token);
      break;
    case TokenKind::integer:
      literal.kind = LiteralKind::integer;
      break;
    case TokenKind::floating: {
      literal.kind = LiteralKind::floating;
      const bool negative = token.text.starts_with('-');
      const Keyword word = find_keyword(token.text.substr(negative ? 1 : 0));
      if (word == Keyword::k_nan) literal.text = "NaN";
      if (word == Keyword::k_infinity) literal.text = negative ? "-Infinity" : "Infinity";
      break;
    }
    case TokenKind::boolean:
      literal.kind = LiteralKind::boolean;
      literal.text = folded(token.text);
      break;
    case TokenKind::duration:
      literal.kind = LiteralKind::duration;
      break;
    case TokenKind::uuid:
      literal.kind = LiteralKind::uuid;
      break;
    case TokenKind::blob:
      literal.kind = LiteralKind::blob;
      break;
    default:
      ASSERT(token.keyword == Keyword::k_null);
      literal.text.clear();
  }
  return literal;
}

base::Result<Expression> Grammar::expression(Context context) {
  TRY(const Level level, descend());
  TRY(Expression first, product(context));
  const Position position = first.position;
  Arithmetic sum;
  sum.operands.push_back(std::move(first));
  while (tokens_.at(TokenKind::plus) || tokens_.at(TokenKind::minus)) {
    if (context == Context::assigned_term && tokens_.at(TokenKind::plus) &&
        is_column_name(tokens_.ahead(1)) && !call_ahead(1)) {
      break;
    }
    const bool is_plus = tokens_.take().kind == TokenKind::plus;
    sum.operators.push_back(is_plus ? ArithmeticOperator::add : ArithmeticOperator::subtract);
    TRY(Expression next, product(context));
    sum.operands.push_back(std::move(next));
  }
  if (sum.operators.empty()) return std::move(sum.operands.front());
  return Expression{.node = std::move(sum), .position = position};
}

base::Result<Expression> Grammar::product(Context context) {
  TRY(Expression first, signed_operand(context));
  const Position position = first.position;
  Arithmetic product;
  product.operands.push_back(std::move(first));
  while (true) {
    if (tokens_.accept(TokenKind::star)) {
      product.operators.push_back(ArithmeticOperator::multiply);
    } else if (tokens_.accept(TokenKind::slash)) {
      product.operators.push_back(ArithmeticOperator::divide);
    } else if (tokens_.accept(TokenKind::percent)) {
      product.operators.push_back(ArithmeticOperator::remainder);
    } else {
      break;
    }
    TRY(Expression next, signed_operand(context));
    product.operands.push_back(std::move(next));
  }
  if (product.operators.empty()) return std::move(product.operands.front());
  return Expression{.node = std::move(product), .position = position};
}

// A term may have one minus, a selector any number.
base::Result<Expression> Grammar::signed_operand(Context context) {
  const Position position = tokens_.current().position;
  const bool is_selector = context == Context::selector;
  if (!tokens_.accept(TokenKind::minus)) return is_selector ? selection() : operand(context);
  TRY(const Level level, descend());
  TRY(Expression negated, is_selector ? signed_operand(context) : operand(context));
  return Expression{.node = Negation{std::move(negated)}, .position = position};
}

base::Result<Expression> Grammar::selection() {
  TRY(Expression from, operand(Context::selector));
  return steps_behind(std::move(from));
}

base::Result<Expression> Grammar::steps_behind(Expression from) {
  const Position position = from.position;
  std::vector<SelectionStep> steps;
  while (true) {
    if (tokens_.accept(TokenKind::dot)) {
      TRY(Name field, name());
      steps.emplace_back(FieldStep{std::move(field)});
    } else if (tokens_.accept(TokenKind::left_bracket)) {
      TRY(SelectionStep step, subscript());
      steps.push_back(std::move(step));
    } else {
      break;
    }
  }
  if (steps.empty()) return from;
  return Expression{.node = Selection{std::move(from), std::move(steps)}, .position = position};
}

base::Result<SelectionStep> Grammar::subscript() {
  std::optional<Box<Expression>> from;
  std::optional<Box<Expression>> to;
  if (!tokens_.at(TokenKind::range)) {
    TRY(from, term());
  }
  const bool is_slice = tokens_.accept(TokenKind::range);
  if (is_slice && (!from || !tokens_.at(TokenKind::right_bracket))) {
    TRY(to, term());
  }
  TRY_VOID(tokens_.expect(TokenKind::right_bracket));
  if (is_slice) return SliceStep{std::move(from), std::move(to)};
  return ElementStep{*std::move(from)};
}

base::Result<Expression> Grammar::operand(Context context) {
  const Context inner = context == Context::selector ? Context::selector : Context::term;
  switch (tokens_.current().kind) {
    case TokenKind::word:
    case TokenKind::quoted:
      return word_operand(inner);
    case TokenKind::question_mark:
    case TokenKind::colon:
      return marker();
    case TokenKind::left_bracket:
      return list_literal(inner);
    case TokenKind::left_brace:
      return brace_literal(inner);
    case TokenKind::left_parenthesis:
      return type_hint_ahead(inner) ? type_hint(inner) : tuple_literal(inner);
    default: {
      if (!can_begin_term(tokens_.current())) return tokens_.no_viable_alternative();
      const Token token = tokens_.take();
      return Expression{.node = literal_from(token), .position = token.position};
    }
  }
}

base::Result<Expression> Grammar::word_operand(Context context) {
  const Token token = tokens_.current();
  if (token.keyword == Keyword::k_null) {
    tokens_.take();
    return Expression{.node = literal_from(token), .position = token.position};
  }
  const bool has_parenthesis = tokens_.next_is(TokenKind::left_parenthesis);
  if (has_parenthesis && token.keyword == Keyword::k_cast) return cast(context);
  if (context == Context::selector && has_parenthesis) {
    if (token.keyword == Keyword::k_writetime || token.keyword == Keyword::k_ttl) {
      return cell_property();
    }
    if (token.keyword == Keyword::k_count && tokens_.ahead(2).kind == TokenKind::star) {
      for (int words = 0; words < 3; ++words) tokens_.take();
      TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
      return Expression{.node = CountRows{}, .position = token.position};
    }
  }
  if (call_ahead(0)) return function_call(context);
  if (context != Context::selector) return tokens_.no_viable_alternative();
  TRY(Name column, name());
  return Expression{.node = Column{std::move(column)}, .position = token.position};
}

base::Result<Expression> Grammar::marker() {
  const Position position = tokens_.current().position;
  std::optional<std::string> bound;
  if (tokens_.accept(TokenKind::colon)) {
    TRY(Name given, name());
    bound = std::move(given.text);
  } else if (!tokens_.accept(TokenKind::question_mark)) {
    return tokens_.no_viable_alternative();
  }
  if (markers_.size() == kMarkersMax) {
    return tokens_.error_at(position, fmt::format("more than {} bind markers", kMarkersMax));
  }
  markers_.push_back(std::move(bound));
  const auto index = static_cast<std::uint16_t>(markers_.size() - 1);
  return Expression{.node = Marker{.index = index, .position = position}, .position = position};
}

base::Result<Expression> Grammar::list_literal(Context context) {
  const Position position = tokens_.take().position;
  ListLiteral list;
  if (!tokens_.at(TokenKind::right_bracket)) {
    TRY(list.elements, list_of(TokenKind::comma, [&] { return expression(context); }));
  }
  TRY_VOID(tokens_.expect(TokenKind::right_bracket));
  return Expression{.node = std::move(list), .position = position};
}

base::Result<Expression> Grammar::brace_literal(Context context) {
  if (context == Context::term && is_name(tokens_.ahead(1)) &&
      tokens_.ahead(2).kind == TokenKind::colon) {
    return user_type_literal();
  }
  const Position position = tokens_.take().position;
  if (tokens_.accept(TokenKind::right_brace)) {
    return Expression{.node = SetLiteral{}, .position = position};
  }
  TRY(Expression first, expression(context));
  if (!tokens_.accept(TokenKind::colon)) {
    SetLiteral set;
    set.elements.push_back(std::move(first));
    while (tokens_.accept(TokenKind::comma)) {
      TRY(Expression element, expression(context));
      set.elements.push_back(std::move(element));
    }
    TRY_VOID(tokens_.expect(TokenKind::right_brace));
    return Expression{.node = std::move(set), .position = position};
  }
  MapLiteral map;
  TRY(Expression value, expression(context));
  map.entries.push_back({std::move(first), std::move(value)});
  while (tokens_.accept(TokenKind::comma)) {
    TRY(Expression key, expression(context));
    TRY_VOID(tokens_.expect(TokenKind::colon));
    TRY(Expression mapped, expression(context));
    map.entries.push_back({std::move(key), std::move(mapped)});
  }
  TRY_VOID(tokens_.expect(TokenKind::right_brace));
  return Expression{.node = std::move(map), .position = position};
}

base::Result<Expression> Grammar::user_type_literal() {
  const Position position = tokens_.take().position;
  const auto field = [this]() -> Result<UserTypeField> {
    TRY(Name field_name, name());
    TRY_VOID(tokens_.expect(TokenKind::colon));
    TRY(Expression value, term());
    return UserTypeField{std::move(field_name), std::move(value)};
  };
  UserTypeLiteral literal;
  TRY(literal.fields, list_of(TokenKind::comma, field));
  TRY_VOID(tokens_.expect(TokenKind::right_brace));
  return Expression{.node = std::move(literal), .position = position};
}

base::Result<Expression> Grammar::tuple_literal(Context context) {
  const Position position = tokens_.current().position;
  TupleLiteral tuple;
  TRY(tuple.elements, in_parentheses([&] { return expression(context); }));
  return Expression{.node = std::move(tuple), .position = position};
}

base::Result<Expression> Grammar::type_hint(Context context) {
  TRY(const Level level, descend());
  const Position position = tokens_.take().position;
  TRY(TypeName hinted, type());
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  TRY(Expression of, operand(context));
  return Expression{.node = TypeHint{std::move(hinted), std::move(of)}, .position = position};
}

base::Result<Expression> Grammar::cast(Context context) {
  TRY(const Level level, descend());
  const Position position = tokens_.take().position;
  TRY_VOID(tokens_.expect(TokenKind::left_parenthesis));
  const bool is_selector = context == Context::selector;
  TRY(Expression of, is_selector ? expression(context) : operand(context));
  TRY_VOID(tokens_.expect(Keyword::k_as));
  TRY(TypeName to, native_type());
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  return Expression{.node = Cast{std::move(of), std::move(to)}, .position = position};
}

base::Result<Expression> Grammar::cell_property() {
  const Token token = tokens_.take();
  TRY_VOID(tokens_.expect(TokenKind::left_parenthesis));
  CellProperty property;
  if (token.keyword == Keyword::k_ttl) property.kind = CellPropertyKind::ttl;
  const Position position = tokens_.current().position;
  TRY(Name column, name());
  TRY(property.of,
      steps_behind(Expression{.node = Column{std::move(column)}, .position = position}));
  TRY_VOID(tokens_.expect(TokenKind::right_parenthesis));
  return Expression{.node = std::move(property), .position = token.position};
}

base::Result<Expression> Grammar::function_call(Context context) {
  const Position position = tokens_.current().position;
  FunctionCall call;
  TRY(*call.function, function_name());
  TRY(call.arguments, in_parentheses([&] { return expression(context); }, true));
  return Expression{.node = std::move(call), .position = position};
}

base::Result<Expression> Grammar::integer_or_marker() {
  if (!tokens_.at(TokenKind::integer)) return marker();
  const Token token = tokens_.take();
  return Expression{.node = literal_from(token), .position = token.position};
}

}  // namespace helenus::cql::parser
