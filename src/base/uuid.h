// Uuid: sixteen bytes that name one thing for ever (RFC 9562).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::base {

class Decoder;

class Uuid {
 public:
  static constexpr std::size_t kSize = 16;
  using Octets = std::array<std::byte, kSize>;

  constexpr Uuid() = default;  // the nil UUID
  constexpr explicit Uuid(Octets octets) : octets_(octets) {}

  // Version 4 from sixteen random bytes.
  static Uuid from_random(Octets random);
  // The same from two random words, the first one in front.
  static Uuid from_random(std::uint64_t high, std::uint64_t low);
  // "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", in either case. Errors: invalid_argument.
  static Result<Uuid> parse(std::string_view text);

  ByteView bytes() const { return octets_; }
  bool is_nil() const { return *this == Uuid(); }
  unsigned version() const { return std::to_integer<unsigned>(octets_[6]) >> 4; }
  std::string to_string() const;

  friend auto operator<=>(const Uuid&, const Uuid&) = default;
  template <class H>
  friend H AbslHashValue(H state, const Uuid& uuid) {
    return H::combine(std::move(state), as_text(uuid.octets_));
  }

 private:
  Octets octets_{};
};

// The next sixteen bytes; nil if the decoder has failed.
Uuid decode_uuid(Decoder& in);

}  // namespace helenus::base

template <>
struct std::hash<helenus::base::Uuid> {
  std::size_t operator()(const helenus::base::Uuid& uuid) const {
    return std::hash<std::string_view>{}(helenus::base::as_text(uuid.bytes()));
  }
};

template <>
struct fmt::formatter<helenus::base::Uuid> : fmt::formatter<std::string> {
  auto format(const helenus::base::Uuid& uuid, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(uuid.to_string(), ctx);
  }
};
