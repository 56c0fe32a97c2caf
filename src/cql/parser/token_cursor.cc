#include "cql/parser/token_cursor.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/assert.h"
#include "cql/parser/error_text.h"

namespace helenus::cql::parser {
namespace {

using base::Errc;
using base::Error;
using base::Result;

// Bytes of the statement that an error quotes: of the token itself, and of what stands before it.
constexpr std::size_t kQuotedBytesMax = 160;

// Cassandra's errors show ten tokens before the one at fault, and blanks between words are tokens.
constexpr std::size_t kContextTokens = 10;

std::string expected_name(Keyword keyword) {
  std::string name = "K_";
  for (const char c : spelling_of(keyword)) name.push_back(static_cast<char>(c - 'a' + 'A'));
  return name;
}

std::string_view expected_name(TokenKind kind) {
  switch (kind) {
    case TokenKind::end:
      return "EOF";
    case TokenKind::string:
      return "STRING_LITERAL";
    case TokenKind::integer:
      return "INTEGER";
    case TokenKind::boolean:
      return "BOOLEAN";
    case TokenKind::word:
      return "IDENT";
    case TokenKind::left_parenthesis:
      return "'('";
    case TokenKind::right_parenthesis:
      return "')'";
    case TokenKind::right_bracket:
      return "']'";
    case TokenKind::left_brace:
      return "'{'";
    case TokenKind::right_brace:
      return "'}'";
    case TokenKind::comma:
      return "','";
    case TokenKind::colon:
      return "':'";
    case TokenKind::equal:
      return "'='";
    case TokenKind::greater:
      return "'>'";
    default:
      UNREACHABLE("the grammar insists on no such token");
  }
}

std::string display(const Token& token) {
  if (token.kind == TokenKind::end) return "<EOF>";
  const bool quoted = token.kind == TokenKind::string || token.kind == TokenKind::quoted;
  return quoted ? beginning_of(unquoted(token), kQuotedBytesMax)
                : beginning_of(token.text, kQuotedBytesMax);
}

// Where the context of `token` begins.
std::size_t context_begin(std::string_view text, const Token& token) {
  std::deque<std::size_t> begins;
  const auto remember = [&](std::size_t offset) {
    begins.push_back(offset);
    if (begins.size() > kContextTokens) begins.pop_front();
  };
  Lexer lexer(text);
  std::size_t end = 0;
  while (true) {
    const Token before = lexer.next();
    if (before.offset > end) remember(end);
    if (before.offset >= token.offset) break;
    remember(before.offset);
    end = before.offset + before.text.size();
  }
  return begins.empty() ? token.offset : begins.front();
}

}  // namespace

const Token& TokenCursor::ahead(std::size_t distance) {
  ASSERT(distance <= kAheadMax);
  load(distance + 1);
  return tokens_[distance];
}

Token TokenCursor::take() {
  const Token token = current();
  std::shift_left(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(loaded_), 1);
  --loaded_;
  load(1);
  return token;
}

bool TokenCursor::accept(TokenKind kind) {
  if (!at(kind)) return false;
  take();
  return true;
}

bool TokenCursor::accept(Keyword keyword) {
  if (!at(keyword)) return false;
  take();
  return true;
}

Result<Token> TokenCursor::expect(TokenKind kind) {
  if (!at(kind)) return mismatched(expected_name(kind));
  return take();
}

Result<void> TokenCursor::expect(Keyword keyword) {
  if (!at(keyword)) return mismatched(expected_name(keyword));
  take();
  return {};
}

Error TokenCursor::no_viable_alternative() const {
  return unexpected(fmt::format("no viable alternative at input '{}'", display(current())));
}

Error TokenCursor::mismatched(std::string_view expected) const {
  return unexpected(
      fmt::format("mismatched input '{}' expecting {}", display(current()), expected));
}

Error TokenCursor::error_at(Position position, std::string_view message) const {
  return Error(Errc::invalid_argument, "line {}:{} {}", position.line, position.column, message);
}

void TokenCursor::load(std::size_t count) {
  while (loaded_ < count) tokens_[loaded_++] = lexer_.next();
}

Error TokenCursor::unexpected(std::string_view message) const {
  if (at(TokenKind::invalid)) {
    return error_at(current().position, presentable(describe_invalid(text_, current())));
  }
  // The end has no place in Cassandra.
  if (at(TokenKind::end)) return Error(Errc::invalid_argument, "line 0:-1 {}", message);
  return error_at(current().position, fmt::format("{} {}", message, current_in_context()));
}

// "(SELECT * FROM [where]...)".
std::string TokenCursor::current_in_context() const {
  const Token& token = current();
  const std::size_t begin = context_begin(text_, token);
  const std::size_t end = token.offset + token.text.size();
  return fmt::format("({}{}[{}]{})", begin == 0 ? "" : "...",
                     end_of(text_.substr(begin, token.offset - begin), kQuotedBytesMax),
                     beginning_of(token.text, kQuotedBytesMax), end == text_.size() ? "" : "...");
}

}  // namespace helenus::cql::parser
