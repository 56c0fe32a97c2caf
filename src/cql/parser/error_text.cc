#include "cql/parser/error_text.h"

#include <algorithm>

namespace helenus::cql::parser {
namespace {

std::size_t character_size_by_lead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

// The number of bytes of the well-formed UTF-8 character that `text` begins with, 0 if it is none.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  const std::size_t size = character_size_by_lead(lead);
  if (size > text.size()) return 0;
  for (std::size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, surrogates, beyond the last character.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return size;
}

}  // namespace

std::string presentable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = character_at(text);
    const char c = text.front();
    if (size > 1) {
      result += text.substr(0, size);
    } else if (c != '\n' && c != '\r') {
      const bool printable = size == 1 && c >= 0x20 && c != 0x7f;
      result.push_back(printable ? c : c == '\t' ? ' ' : '?');
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

std::string beginning_of(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return presentable(text);
  return presentable(text.substr(0, bytes_max)) + "...";
}

std::string end_of(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return presentable(text);
  return "..." + presentable(text.substr(text.size() - bytes_max));
}

}  // namespace helenus::cql::parser
