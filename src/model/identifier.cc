#include "model/identifier.h"

#include <algorithm>
#include <array>

namespace helenus::model {

namespace {

constexpr auto kReserved = std::to_array<std::string_view>(
    {"add",      "allow",    "alter",        "and",          "apply",  "asc",         "authorize",
     "batch",    "begin",    "by",           "columnfamily", "create", "delete",      "desc",
     "describe", "drop",     "entries",      "execute",      "from",   "full",        "grant",
     "if",       "in",       "index",        "infinity",     "insert", "into",        "is",
     "keyspace", "limit",    "materialized", "modify",       "nan",    "norecursive", "not",
     "null",     "of",       "on",           "or",           "order",  "primary",     "rename",
     "revoke",   "schema",   "select",       "set",          "table",  "to",          "token",
     "truncate", "unlogged", "update",       "use",          "using",  "view",        "where",
     "with"});
static_assert(std::ranges::is_sorted(kReserved));

bool is_lower(char letter) {
  return letter >= 'a' && letter <= 'z';
}
bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

std::string quoted(std::string_view text, char quote) {
  std::string all(1, quote);
  for (const char letter : text) {
    if (letter == quote) all.push_back(quote);
    all.push_back(letter);
  }
  all.push_back(quote);
  return all;
}

}  // namespace

bool is_reserved_word(std::string_view word) {
  return std::ranges::binary_search(kReserved, word);
}

std::string to_cql_identifier(std::string_view name) {
  const bool bare =
      !name.empty() && is_lower(name[0]) && std::ranges::all_of(name, [](char letter) {
        return is_lower(letter) || is_digit(letter) || letter == '_';
      });
  return bare && !is_reserved_word(name) ? std::string(name) : quoted(name, '"');
}

std::string to_cql_string(std::string_view text) {
  return quoted(text, '\'');
}

}  // namespace helenus::model
