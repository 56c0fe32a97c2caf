#include "keyvalue/url_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace helenus::keyvalue {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned kBitsOfLetter = 6;

std::optional<unsigned> bits_of(char letter) {
  const std::size_t at = kLetters.find(letter);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

}  // namespace

Result<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    if (text.front() != '%') {
      decoded += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(1, 2);
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (problem != std::errc() || digits.size() != 2 || end != digits.data() + 2) {
      return Error(Errc::invalid_argument, "a percent sign without two hexadecimal digits");
    }
    decoded += static_cast<char>(byte);
    text.remove_prefix(3);
  }
  return decoded;
}

Result<std::optional<std::string>> parameter(std::string_view query, std::string_view name) {
  std::optional<std::string> found;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    if (found) return Error(Errc::invalid_argument, "the parameter {} is there twice", name);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    TRY(found, percent_decoded(value));
  }
  return found;
}

std::string to_base64url(base::ByteView bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const std::byte byte : bytes) {
    bits = (bits << 8) | std::to_integer<std::uint32_t>(byte);
    for (count += 8; count >= kBitsOfLetter;) {
      count -= kBitsOfLetter;
      text += kLetters[(bits >> count) & 0x3f];
    }
    bits &= (1U << count) - 1;
  }
  if (count > 0) text += kLetters[(bits << (kBitsOfLetter - count)) & 0x3f];
  return text;
}

Result<base::Bytes> from_base64url(std::string_view text) {
  base::Buffer bytes(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char letter : text) {
    const auto more = bits_of(letter);
    if (!more) return Error(Errc::invalid_argument, "letters that are not of base64url");
    bits = (bits << kBitsOfLetter) | *more;
    count += kBitsOfLetter;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(std::byte((bits >> count) & 0xff));
    bits &= (1U << count) - 1;
  }
  if (count >= kBitsOfLetter || bits != 0) {
    return Error(Errc::invalid_argument, "base64url that was cut");
  }
  return std::move(bytes).freeze();
}

}  // namespace helenus::keyvalue
