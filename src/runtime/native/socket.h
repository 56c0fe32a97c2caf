// Plain functions over sockets: addresses in and out, and making sockets the way the transport
// wants them (non-blocking, closed on exec, no delay,
// kept alive).
#pragma once

#include <string_view>

#include "base/result.h"
#include "runtime/address.h"
#include "runtime/native/descriptor.h"
#include "runtime/time.h"

namespace helenus::runtime::native {

base::Result<Descriptor> make_socket(const Address& for_address);
// How every connection is: small messages leave at once, and a peer that vanished without a word
// (its machine lost power, a router forgot it) is noticed after kVanishedAfterSeconds, also when
// nobody has anything to say.
inline constexpr int kVanishedAfterSeconds = 120;
void set_up_connection(const Descriptor& socket);
// Noticed after so long instead, or about a quarter longer; also when it does not take what was
// sent.
void set_lost_after(const Descriptor& socket, Duration lost_after);

// `doing` begins the error's text: "listen on".
base::Result<void> bind_socket(const Descriptor& socket, const Address& address,
                               std::string_view doing);
// 0 when connected, EINPROGRESS when under way, another error number otherwise.
int begin_connect(const Descriptor& socket, const Address& address);
// What became of a connect under way: 0, or an error number.
int outcome_of_connect(const Descriptor& socket);

Address local_address_of(const Descriptor& socket);

// Accepts one connection, ready for use. On failure the descriptor is not valid and errno tells.
struct Accepted {
  Descriptor socket;
  Address peer;
};
Accepted accept_connection(const Descriptor& listener);

}  // namespace helenus::runtime::native
