#include "cql/parser/keywords.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "base/assert.h"

namespace helenus::cql::parser {
namespace {

struct Entry {
  std::string_view spelling;
  Keyword keyword;
  KeywordClass keyword_class;
};

constexpr std::array kByEnumerator = {
#define HELENUS_CQL_KEYWORD(word, keyword_class) \
  Entry{#word, Keyword::k_##word, KeywordClass::keyword_class},
    HELENUS_CQL_KEYWORDS(HELENUS_CQL_KEYWORD)
#undef HELENUS_CQL_KEYWORD
};

constexpr auto kBySpelling = [] {
  auto entries = kByEnumerator;
  std::ranges::sort(entries, {}, &Entry::spelling);
  return entries;
}();

constexpr std::size_t kSpellingSizeMax =
    std::ranges::max(kByEnumerator, {}, [](const Entry& entry) {
      return entry.spelling.size();
    }).spelling.size();

const Entry& entry_of(Keyword keyword) {
  ASSERT(keyword != Keyword::none);
  return kByEnumerator[static_cast<std::size_t>(keyword) - 1];
}

}  // namespace

Keyword find_keyword(std::string_view word) {
  if (word.size() > kSpellingSizeMax) return Keyword::none;
  std::array<char, kSpellingSizeMax> folded;
  std::ranges::transform(word, folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string_view spelling(folded.data(), word.size());
  const auto found = std::ranges::lower_bound(kBySpelling, spelling, {}, &Entry::spelling);
  return found != kBySpelling.end() && found->spelling == spelling ? found->keyword : Keyword::none;
}

std::string_view spelling_of(Keyword keyword) {
  return entry_of(keyword).spelling;
}

KeywordClass class_of(Keyword keyword) {
  return entry_of(keyword).keyword_class;
}

bool is_reserved_type_name(std::string_view name) {
  static constexpr std::string_view kReserved[] = {"bitstring", "byte",     "complex",
                                                   "enum",      "interval", "macaddr"};
  return std::ranges::find(kReserved, name) != std::end(kReserved);
}

}  // namespace helenus::cql::parser
