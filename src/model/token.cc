#include "model/token.h"

#include <charconv>

#include <fmt/format.h>

namespace helenus::model {

std::string to_string(Token token) {
  return fmt::format("{}", token.value());
}

base::Result<Token> parse_token(std::string_view text) {
  constexpr std::size_t kDigitsMax = 20;
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) {
    return base::Error(base::Errc::invalid_argument, "'{}' is not a token",
                       text.substr(0, kDigitsMax));
  }
  return Token(value);
}

}  // namespace helenus::model
