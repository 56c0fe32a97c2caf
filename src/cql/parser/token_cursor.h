// A place in the tokens of a statement, with a few tokens of sight ahead, and the errors of a
// parser that stands there.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cql/parser/lexer.h"

namespace helenus::cql::parser {

// Copies are cheap and independent: the way to look further ahead than kAheadMax.
class TokenCursor {
 public:
  static constexpr std::size_t kAheadMax = 3;

  // The text must outlive the cursor and the tokens it gives.
  explicit TokenCursor(std::string_view text) : text_(text), lexer_(text) { load(1); }

  const Token& current() const { return tokens_[0]; }
  // The token `distance` behind the current one. Requires: distance <= kAheadMax.
  const Token& ahead(std::size_t distance);
  // Takes the current token.
  Token take();

  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at(Keyword keyword) const { return current().keyword == keyword; }
  bool next_is(TokenKind kind) { return ahead(1).kind == kind; }
  bool next_is(Keyword keyword) { return ahead(1).keyword == keyword; }

  // Takes the current token if it is that one.
  bool accept(TokenKind kind);
  bool accept(Keyword keyword);
  base::Result<Token> expect(TokenKind kind);
  base::Result<void> expect(Keyword keyword);

  // "line 1:7 no viable alternative at input 'x' (SELECT [x]...)": nothing can begin with the
  // current token here.
  base::Error no_viable_alternative() const;
  // "line 1:7 mismatched input 'x' expecting K_FROM": just that can stand here.
  base::Error mismatched(std::string_view expected) const;
  // What is wrong in our own words, at a position.
  base::Error error_at(Position position, std::string_view message) const;

 private:
  void load(std::size_t count);
  base::Error unexpected(std::string_view message) const;
  std::string current_in_context() const;

  std::string_view text_;
  Lexer lexer_;
  std::array<Token, kAheadMax + 1> tokens_;
  std::size_t loaded_ = 0;
};

}  // namespace helenus::cql::parser
