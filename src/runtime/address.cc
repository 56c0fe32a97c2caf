#include "runtime/address.h"

#include <algorithm>
#include <charconv>

#include <arpa/inet.h>

namespace helenus::runtime {

namespace {

// No address is longer; a text that is longer comes back cut in the error.
constexpr std::size_t kTextSizeMax = INET6_ADDRSTRLEN + sizeof "[]:65535";

base::Error bad_address(std::string_view text, std::string_view why) {
  return base::Error(base::Errc::invalid_argument, "'{}{}' is not an address: {}",
                     text.substr(0, kTextSizeMax), text.size() > kTextSizeMax ? "..." : "", why);
}

}  // namespace

Address Address::v4(std::array<std::uint8_t, 4> ip, std::uint16_t port) {
  Address address;
  std::ranges::copy(ip, address.ip_.begin());
  address.port_ = port;
  return address;
}

Address Address::v6(std::array<std::uint8_t, 16> ip, std::uint16_t port) {
  Address address;
  address.family_ = Family::v6;
  address.ip_ = ip;
  address.port_ = port;
  return address;
}

base::Result<Address> Address::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "expected IP:PORT");
  const std::string_view port_text = text.substr(colon + 1);
  Address address;
  const char* port_end = port_text.data() + port_text.size();
  const auto [end, failure] = std::from_chars(port_text.data(), port_end, address.port_);
  if (failure != std::errc{} || end != port_end) {
    return bad_address(text, "the port is a number from 0 to 65535");
  }
  std::string_view ip = text.substr(0, colon);
  const bool bracketed = ip.size() >= 2 && ip.front() == '[' && ip.back() == ']';
  if (bracketed) {
    address.family_ = Family::v6;
    ip = ip.substr(1, ip.size() - 2);
  }
  const int family = bracketed ? AF_INET6 : AF_INET;
  // inet_pton would take what stands before a zero byte for all of it.
  const bool whole = !ip.contains('\0');
  if (!whole || inet_pton(family, std::string(ip).c_str(), address.ip_.data()) != 1) {
    return bad_address(text, "expected an IPv4 address, or an IPv6 address in brackets");
  }
  return address;
}

Address Address::with_port(std::uint16_t port) const {
  Address address = *this;
  address.port_ = port;
  return address;
}

std::string Address::ip_text() const {
  char text[INET6_ADDRSTRLEN];
  const int family = family_ == Family::v4 ? AF_INET : AF_INET6;
  inet_ntop(family, ip_.data(), text, sizeof text);
  return text;
}

std::string Address::to_string() const {
  if (family_ == Family::v4) return fmt::format("{}:{}", ip_text(), port_);
  return fmt::format("[{}]:{}", ip_text(), port_);
}

}  // namespace helenus::runtime
