// CQL text to tokens, one at a time and without allocating: a token is a view of the text.
//
// Where Cassandra's lexer surprises, so does this one: `-1` is one token wherever it stands, `1..2`
// is 1, `..` and 2, `P1Y` in capitals is a duration and `p1y` is a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cql/parser/expression.h"
#include "cql/parser/keywords.h"

namespace helenus::cql::parser {

enum class TokenKind : std::uint8_t {
  end,         // of the text, again and again
  invalid,     // the text from here is no token; describe_invalid() says why
  word,        // an identifier or keyword
  quoted,      // "name"
  empty_name,  // ""
  string,      // 'text' or $$text$$
  integer,
  floating,
  boolean,
  duration,
  uuid,
  blob,
  left_parenthesis,
  right_parenthesis,
  left_bracket,
  right_bracket,
  left_brace,
  right_brace,
  comma,
  semicolon,
  colon,
  dot,
  range,  // ..
  question_mark,
  plus,
  minus,
  star,
  slash,
  percent,
  plus_equal,
  minus_equal,
  equal,
  not_equal,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
};

struct Token {
  TokenKind kind = TokenKind::end;
  Keyword keyword = Keyword::none;  // of words only
  Position position;
  std::size_t offset = 0;  // into the text
  std::string_view text;   // as it stands there, with quotes

  friend bool operator==(const Token&, const Token&) = default;
};

class Lexer {
 public:
  // The text must outlive the lexer and its tokens. A copy of a lexer goes on where the original
  // stands: that is how the parser looks ahead.
  explicit Lexer(std::string_view text) : text_(text) {}

  // Skips white space and comments. Total work is linear in the text. After an invalid token it
  // stands still.
  Token next();

 private:
  void skip_blank();
  bool skip_comment();
  TokenKind scan();
  TokenKind scan_quoted(char quote, TokenKind kind);
  TokenKind scan_dollar_quoted();
  TokenKind scan_number();
  TokenKind scan_word();
  TokenKind scan_symbol();

  char peek(std::size_t ahead = 0) const {
    return offset_ + ahead < text_.size() ? text_[offset_ + ahead] : '\0';
  }
  std::string_view rest() const { return text_.substr(offset_); }

  std::string_view text_;
  std::size_t offset_ = 0;
  std::size_t line_start_ = 0;
  std::uint32_t line_ = 1;
};

// Why there is no token at `token`, in Cassandra's words and without the position. Requires: the
// token is invalid and came from a lexer of `text`.
std::string describe_invalid(std::string_view text, const Token& token);

// What a string or a quoted name says: without its quotes, doubled ones made single.
std::string unquoted(const Token& token);

// The name that a word is: in lower case.
std::string folded(std::string_view word);

}  // namespace helenus::cql::parser
