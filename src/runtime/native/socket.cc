#include "runtime/native/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress to_system(const Address& address) {
  SocketAddress result;
  const auto ip = address.ip_bytes();
  if (address.family() == Address::Family::v4) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port());
    std::memcpy(&v4.sin_addr, ip.data(), ip.size());
    std::memcpy(&result.storage, &v4, sizeof v4);
    result.size = sizeof v4;
  } else {
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port());
    std::memcpy(&v6.sin6_addr, ip.data(), ip.size());
    std::memcpy(&result.storage, &v6, sizeof v6);
    result.size = sizeof v6;
  }
  return result;
}

Address from_system(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address.storage, sizeof v4);
    std::array<std::uint8_t, 4> ip;
    std::memcpy(ip.data(), &v4.sin_addr, ip.size());
    return Address::v4(ip, ntohs(v4.sin_port));
  }
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address.storage, sizeof v6);
    std::array<std::uint8_t, 16> ip;
    std::memcpy(ip.data(), &v6.sin6_addr, ip.size());
    return Address::v6(ip, ntohs(v6.sin6_port));
  }
  return {};
}

}  // namespace

base::Result<Descriptor> make_socket(const Address& for_address) {
  const int family = for_address.family() == Address::Family::v4 ? AF_INET : AF_INET6;
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return system_error(errno, fmt::format("socket for {}", for_address));
  const int on = 1;
  // A v6 socket that also took v4 would clash with the v4 one beside it.
  if (family == AF_INET6) ::setsockopt(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return socket;
}

void set_up_connection(const Descriptor& socket) {
  constexpr int kProbes = 6;
  constexpr int kSecondsBetween = kVanishedAfterSeconds / 2 / kProbes;
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket.number(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kVanishedAfterSeconds / 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kSecondsBetween);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

void set_lost_after(const Descriptor& socket, Duration lost_after) {
  constexpr int kProbes = 4;
  const auto set = [&](int option, int value) {
    ::setsockopt(socket.number(), IPPROTO_TCP, option, &value, sizeof value);
  };
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(lost_after).count();
  const int between = std::max(1, static_cast<int>(seconds) / kProbes);
  set(TCP_KEEPIDLE, between);
  set(TCP_KEEPINTVL, between);
  set(TCP_KEEPCNT, kProbes);
  // With it the connection ends at a probe, or at data sent again, that finds it so long silent.
  set(TCP_USER_TIMEOUT, static_cast<int>(lost_after / std::chrono::milliseconds(1)));
}

base::Result<void> bind_socket(const Descriptor& socket, const Address& address,
                               std::string_view doing) {
  SocketAddress system = to_system(address);
  if (::bind(socket.number(), system.generic(), system.size) != 0) {
    return system_error(errno, fmt::format("{} {}", doing, address));
  }
  return {};
}

int begin_connect(const Descriptor& socket, const Address& address) {
  SocketAddress system = to_system(address);
  // An interrupted connect goes on by itself.
  if (::connect(socket.number(), system.generic(), system.size) == 0) return 0;
  return errno == EINTR ? EINPROGRESS : errno;
}

int outcome_of_connect(const Descriptor& socket) {
  int error_number = 0;
  socklen_t size = sizeof error_number;
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) return errno;
  return error_number;
}

Address local_address_of(const Descriptor& socket) {
  SocketAddress address;
  ::getsockname(socket.number(), address.generic(), &address.size);
  return from_system(address);
}

Accepted accept_connection(const Descriptor& listener) {
  SocketAddress peer;
  Descriptor socket(
      ::accept4(listener.number(), peer.generic(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.valid()) return {};
  set_up_connection(socket);
  return {std::move(socket), from_system(peer)};
}

}  // namespace helenus::runtime::native
