// Address: an IP address and a port.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace helenus::runtime {

class Address {
 public:
  enum class Family : std::uint8_t { v4, v6 };

  Address() = default;
  static Address v4(std::array<std::uint8_t, 4> ip, std::uint16_t port);
  static Address v6(std::array<std::uint8_t, 16> ip, std::uint16_t port);
  // "127.0.0.1:9042" or "[::1]:9042". No names: looking up names is not an address's business.
  static base::Result<Address> parse(std::string_view text);

  Family family() const { return family_; }
  // Network order; four bytes for v4, sixteen for v6.
  std::string_view ip_bytes() const {
    return {reinterpret_cast<const char*>(ip_.data()), family_ == Family::v4 ? 4U : 16U};
  }
  std::uint16_t port() const { return port_; }
  Address with_port(std::uint16_t port) const;

  std::string ip_text() const;
  std::string to_string() const;

  friend auto operator<=>(const Address&, const Address&) = default;

 private:
  Family family_ = Family::v4;
  std::array<std::uint8_t, 16> ip_{};
  std::uint16_t port_ = 0;
};

}  // namespace helenus::runtime

template <>
struct fmt::formatter<helenus::runtime::Address> : fmt::formatter<std::string> {
  auto format(const helenus::runtime::Address& address, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(address.to_string(), ctx);
  }
};
