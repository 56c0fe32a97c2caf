#include "cql/parser/lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::cql::parser {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_word_part(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_ignoring_case(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, {}, lower);
}

std::size_t digits_at(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  return static_cast<std::size_t>(end - text.begin());
}

std::size_t word_at(std::string_view text) {
  const auto end = std::ranges::find_if_not(text, is_word_part);
  return static_cast<std::size_t>(end - text.begin());
}

// Whether `text` begins with `pattern`, in which x stands for a hexadecimal digit, 0 for a decimal
// one, and everything else for itself.
bool begins_like(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return false;
  return std::ranges::equal(text.substr(0, pattern.size()), pattern, [](char c, char wanted) {
    if (wanted == 'x') return is_hex_digit(c);
    if (wanted == '0') return is_digit(c);
    return c == wanted;
  });
}

constexpr std::string_view kUuidPattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
constexpr std::string_view kIsoAlternativePattern = "P0000-00-00T00:00:00";

// The size of a unit of durations at the beginning of `text`, 0 if there is none. Longer units come
// before those they begin with.
std::size_t duration_unit_at(std::string_view text) {
  static constexpr std::string_view kUnits[] = {"mo", "ms", "us", "\xc2\xb5s", "ns", "y",
                                                "w",  "d",  "h",  "m",         "s"};
  for (const std::string_view unit : kUnits) {
    if (equal_ignoring_case(text.substr(0, unit.size()), unit)) return unit.size();
  }
  return 0;
}

// `1y2mo3d`, from its first digit; 0 if it is none.
std::size_t duration_at(std::string_view text) {
  std::size_t size = 0;
  while (true) {
    const std::size_t digits = digits_at(text.substr(size));
    if (digits == 0) return size;
    const std::size_t unit = duration_unit_at(text.substr(size + digits));
    if (unit == 0) return size;
    size += digits + unit;
  }
}

// As many of `designators` as there are, in their order, each behind digits: `1Y3D` of "YMD".
std::size_t iso_designators_at(std::string_view text, std::string_view designators) {
  std::size_t size = 0;
  for (const char designator : designators) {
    const std::size_t digits = digits_at(text.substr(size));
    if (digits > 0 && text.substr(size + digits).starts_with(designator)) size += digits + 1;
  }
  return size;
}

// `P1Y2M3DT4H5M6S`, `PT1H`, `P3W` or `P2024-01-02T03:04:05`, from its P; 0 if it is none, or goes
// on as a name.
std::size_t iso_duration_at(std::string_view text) {
  if (!text.starts_with('P')) return 0;
  std::size_t size = 0;
  if (begins_like(text, kIsoAlternativePattern)) {
    size = kIsoAlternativePattern.size();
  } else if (const std::size_t weeks = iso_designators_at(text.substr(1), "W"); weeks > 0) {
    size = 1 + weeks;
  } else {
    size = 1 + iso_designators_at(text.substr(1), "YMD");
    if (text.substr(size).starts_with('T')) {
      const std::size_t time = iso_designators_at(text.substr(size + 1), "HMS");
      if (time > 0) size += 1 + time;
    }
    if (size == 1) return 0;
  }
  return word_at(text.substr(size)) == 0 ? size : 0;
}

}  // namespace

Token Lexer::next() {
  skip_blank();
  Token token;
  token.position = {.line = line_, .column = static_cast<std::uint32_t>(offset_ - line_start_)};
  token.offset = offset_;
  const Lexer before = *this;
  token.kind = scan();
  if (token.kind == TokenKind::invalid) {
    *this = before;
    return token;
  }
  token.text = text_.substr(token.offset, offset_ - token.offset);
  if (token.kind == TokenKind::word) token.keyword = find_keyword(token.text);
  return token;
}

void Lexer::skip_blank() {
  while (offset_ < text_.size()) {
    const char c = peek();
    if (c == '\n') {
      ++offset_;
      ++line_;
      line_start_ = offset_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++offset_;
    } else if (!skip_comment()) {
      return;
    }
  }
}

// A comment that does not end is left to scan_symbol().
bool Lexer::skip_comment() {
  if (rest().starts_with("--") || rest().starts_with("//")) {
    offset_ = std::min(text_.find_first_of("\r\n", offset_), text_.size());
    return true;
  }
  if (!rest().starts_with("/*")) return false;
  const std::size_t end = text_.find("*/", offset_ + 2);
  if (end == std::string_view::npos) return false;
  for (; offset_ < end + 2; ++offset_) {
    if (peek() != '\n') continue;
    ++line_;
    line_start_ = offset_ + 1;
  }
  return true;
}

TokenKind Lexer::scan() {
  if (offset_ == text_.size()) return TokenKind::end;
  const char c = peek();
  if (c == '\'') return scan_quoted(c, TokenKind::string);
  if (c == '"') return scan_quoted(c, TokenKind::quoted);
  if (c == '$') return scan_dollar_quoted();
  if (begins_like(rest(), kUuidPattern)) {
    offset_ += kUuidPattern.size();
    return TokenKind::uuid;
  }
  const char after_sign = c == '-' ? peek(1) : c;
  if (is_digit(after_sign)) return scan_number();
  if (is_letter(after_sign)) return scan_word();
  return scan_symbol();
}

TokenKind Lexer::scan_quoted(char quote, TokenKind kind) {
  const std::size_t begin = offset_;
  for (++offset_; offset_ < text_.size(); ++offset_) {
    if (peek() == '\n') {
      ++line_;
      line_start_ = offset_ + 1;
    } else if (peek() == quote) {
      ++offset_;
      if (peek() == quote) continue;
      return kind == TokenKind::quoted && offset_ - begin == 2 ? TokenKind::empty_name : kind;
    }
  }
  return TokenKind::invalid;
}

TokenKind Lexer::scan_dollar_quoted() {
  const std::size_t end = peek(1) == '$' ? text_.find("$$", offset_ + 2) : std::string_view::npos;
  if (end == std::string_view::npos) return TokenKind::invalid;
  for (; offset_ < end + 2; ++offset_) {
    if (peek() != '\n') continue;
    ++line_;
    line_start_ = offset_ + 1;
  }
  return TokenKind::string;
}

TokenKind Lexer::scan_number() {
  const bool negative = peek() == '-';
  const std::size_t begin = offset_;
  if (negative) ++offset_;
  if (!negative && peek() == '0' && lower(peek(1)) == 'x') {
    offset_ += 2;
    while (is_hex_digit(peek())) ++offset_;
    return TokenKind::blob;
  }
  if (const std::size_t duration = duration_at(rest()); duration > 0) {
    offset_ += duration;
    return TokenKind::duration;
  }
  offset_ += digits_at(rest());
  const std::size_t digits_end = offset_;
  // In `1..2` the dots are a range; in `1...2` the first of them belongs to the number.
  if (peek() == '.' && (peek(1) != '.' || peek(2) == '.')) {
    ++offset_;
    offset_ += digits_at(rest());
  }
  if (lower(peek()) == 'e') {
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    const std::size_t digits = digits_at(text_.substr(std::min(offset_ + 1 + sign, text_.size())));
    if (digits > 0) offset_ += 1 + sign + digits;
  }
  ASSERT(offset_ > begin);
  return offset_ == digits_end ? TokenKind::integer : TokenKind::floating;
}

TokenKind Lexer::scan_word() {
  const std::size_t sign = peek() == '-' ? 1 : 0;
  if (const std::size_t duration = iso_duration_at(rest().substr(sign)); duration > 0) {
    offset_ += sign + duration;
    return TokenKind::duration;
  }
  const std::string_view word = rest().substr(sign, word_at(rest().substr(sign)));
  const Keyword keyword = find_keyword(word);
  const bool is_number = keyword == Keyword::k_nan || keyword == Keyword::k_infinity;
  if (sign > 0 && !is_number) return scan_symbol();
  offset_ += sign + word.size();
  if (is_number) return TokenKind::floating;
  return equal_ignoring_case(word, "true") || equal_ignoring_case(word, "false")
             ? TokenKind::boolean
             : TokenKind::word;
}

TokenKind Lexer::scan_symbol() {
  static constexpr std::pair<std::string_view, TokenKind> kSymbols[] = {
      {"/*", TokenKind::invalid},  // a comment without an end; the others were skipped
      {"..", TokenKind::range},
      {"+=", TokenKind::plus_equal},
      {"-=", TokenKind::minus_equal},
      {"!=", TokenKind::not_equal},
      {"<=", TokenKind::less_or_equal},
      {">=", TokenKind::greater_or_equal},
      {"(", TokenKind::left_parenthesis},
      {")", TokenKind::right_parenthesis},
      {"[", TokenKind::left_bracket},
      {"]", TokenKind::right_bracket},
      {"{", TokenKind::left_brace},
      {"}", TokenKind::right_brace},
      {",", TokenKind::comma},
      {";", TokenKind::semicolon},
      {":", TokenKind::colon},
      {".", TokenKind::dot},
      {"?", TokenKind::question_mark},
      {"+", TokenKind::plus},
      {"-", TokenKind::minus},
      {"*", TokenKind::star},
      {"/", TokenKind::slash},
      {"%", TokenKind::percent},
      {"=", TokenKind::equal},
      {"<", TokenKind::less},
      {">", TokenKind::greater},
  };
  for (const auto& [spelling, kind] : kSymbols) {
    if (!rest().starts_with(spelling)) continue;
    offset_ += spelling.size();
    return kind;
  }
  return TokenKind::invalid;
}

std::string describe_invalid(std::string_view text, const Token& token) {
  ASSERT(token.kind == TokenKind::invalid && token.offset < text.size());
  const std::string_view rest = text.substr(token.offset);
  if (rest.starts_with('\'')) return "mismatched character '<EOF>' expecting '''";
  if (rest.starts_with('"')) return "mismatched character '<EOF>' expecting '\"'";
  if (rest.starts_with("$$")) return "mismatched character '<EOF>' expecting '$'";
  if (rest.starts_with("/*")) return "mismatched character '<EOF>' expecting '*'";
  // The character, not its first byte.
  std::size_t size = 1;
  while (size < rest.size() && size < 4 &&
         (static_cast<unsigned char>(rest[size]) & 0xc0) == 0x80) {
    ++size;
  }
  if (static_cast<unsigned char>(rest[0]) < 0x80) size = 1;
  return fmt::format("no viable alternative at character '{}'", rest.substr(0, size));
}

std::string unquoted(const Token& token) {
  ASSERT(token.kind == TokenKind::string || token.kind == TokenKind::quoted ||
         token.kind == TokenKind::empty_name);
  if (token.text.starts_with('$')) {
    return std::string(token.text.substr(2, token.text.size() - 4));
  }
  const char quote = token.text.front();
  const std::string_view inner = token.text.substr(1, token.text.size() - 2);
  std::string result;
  result.reserve(inner.size());
  for (std::size_t at = 0; at < inner.size(); ++at) {
    result.push_back(inner[at]);
    if (inner[at] == quote) ++at;
  }
  return result;
}

std::string folded(std::string_view word) {
  std::string result(word);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

}  // namespace helenus::cql::parser
