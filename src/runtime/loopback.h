// is_loopback: whether only this machine can be behind an address.
#pragma once

#include <algorithm>
#include <string_view>

#include "runtime/address.h"

namespace helenus::runtime {

inline bool is_loopback(const Address& address) {
  const std::string_view ip = address.ip_bytes();
  if (address.family() == Address::Family::v4) return ip.front() == 127;
  return std::ranges::all_of(ip.substr(0, 15), [](char octet) { return octet == 0; }) &&
         ip.back() == 1;
}

}  // namespace helenus::runtime
