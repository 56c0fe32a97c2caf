#include "base/uuid.h"

#include <algorithm>

#include "base/codec.h"

namespace helenus::base {

namespace {

constexpr std::size_t kTextSize = 36;

bool is_dash_place(std::size_t index) {
  return index == 8 || index == 13 || index == 18 || index == 23;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

Uuid Uuid::from_random(Octets random) {
  random[6] = (random[6] & std::byte{0x0f}) | std::byte{0x40};
  random[8] = (random[8] & std::byte{0x3f}) | std::byte{0x80};
  return Uuid(random);
}

Uuid Uuid::from_random(std::uint64_t high, std::uint64_t low) {
  Octets octets{};
  store_be(octets.data(), high);
  store_be(octets.data() + sizeof high, low);
  return from_random(octets);
}

Result<Uuid> Uuid::parse(std::string_view text) {
  // The text is a stranger's: no more of it than a UUID has comes back in the error.
  const auto bad = [&] {
    return Error(Errc::invalid_argument, "'{}' of {} bytes is not a UUID",
                 text.substr(0, kTextSize), text.size());
  };
  if (text.size() != kTextSize) return bad();
  Octets octets{};
  std::size_t nibble = 0;
  for (std::size_t index = 0; index < kTextSize; ++index) {
    if (is_dash_place(index)) {
      if (text[index] != '-') return bad();
      continue;
    }
    const int value = hex_value(text[index]);
    if (value < 0) return bad();
    octets[nibble / 2] = (octets[nibble / 2] << 4) | std::byte(value);
    ++nibble;
  }
  return Uuid(octets);
}

std::string Uuid::to_string() const {
  std::string text = to_hex(octets_);
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) text.insert(dash, 1, '-');
  return text;
}

Uuid decode_uuid(Decoder& in) {
  Uuid::Octets octets{};
  std::ranges::copy(in.raw(Uuid::kSize), octets.begin());
  return Uuid(octets);
}

}  // namespace helenus::base
