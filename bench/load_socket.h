// Sockets of the load generator: blocking, to servers on this machine.
#pragma once

#include <cerrno>
#include <cstdint>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/result.h"
#include "runtime/native/descriptor.h"
#include "runtime/native/system_error.h"

namespace helenus::bench {

inline base::Result<runtime::native::Descriptor> connect_to_loopback(std::uint16_t port) {
  runtime::native::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!socket.valid() || ::connect(socket.number(), generic, sizeof address) != 0) {
    return runtime::native::system_error(errno, "connect to the server");
  }
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace helenus::bench
