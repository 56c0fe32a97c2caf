#include "runtime/native/native_transport.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "runtime/native/native_stream.h"
#include "runtime/native/socket.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

using base::Errc;
using base::Error;
using base::Result;

namespace {

// Before the address is bound. Lets a restarted server have its port back while old connections
// fade away.
void set_option(const Descriptor& socket, int level, int option) {
  const int on = 1;
  ::setsockopt(socket.number(), level, option, &on, sizeof on);
}

// Errors of a connection that broke before it was accepted: accept(2) passes them on, and says to
// take the next. EINTR is among them for convenience.
bool concerns_one_connection(int error_number) {
  switch (error_number) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:
      return true;
    default:
      return false;
  }
}

class NativeListener final : public Listener, private Pollable {
 public:
  NativeListener(Runtime& runtime, Loop& loop, Descriptor socket,
                 std::optional<SharedAddresses::Share> share, std::optional<Duration> lost_after)
      : Listener(runtime),
        loop_(loop),
        socket_(std::move(socket)),
        address_(local_address_of(socket_)),
        share_(std::move(share)),
        lost_after_(lost_after) {}
  ~NativeListener() override {
    ASSERT(accept_ == nullptr, "listener at {} destroyed while accepting", address_);
    close();
  }

  Result<void> watch() { return loop_.watch(socket_.number(), EPOLLIN | EPOLLET, *this); }

  Address address() const override { return address_; }

  void close() override {
    if (!socket_.valid()) return;
    socket_.reset();
    share_.reset();
    turn_.unlink();
    if (accept_ != nullptr) end(Error(Errc::closed));
  }

 private:
  // Goes on with an accept that had to give way.
  struct Turn final : Job {
    explicit Turn(NativeListener& listener_) : listener(listener_) {}
    void run() override { listener.try_accept(); }
    NativeListener& listener;
  };

  void start_accept(Accept& accept) override {
    ASSERT(accept_ == nullptr, "one accept at a time");
    if (!socket_.valid()) {
      accept.complete(Error(Errc::closed));
      return;
    }
    accept_ = &accept;
    if (!waiting_) return;
    if (loop_.may_complete_now()) {
      try_accept();
    } else {
      loop_.post(turn_);
    }
  }
  void cancel_accept(Accept&) override {
    turn_.unlink();
    end(Error(Errc::cancelled));
  }
  void on_ready(std::uint32_t) override {
    waiting_ = true;
    if (accept_ != nullptr && !turn_.linked()) try_accept();
  }

  void try_accept() {
    Accepted accepted = accept_connection(socket_);
    if (accepted.socket.valid()) {
      if (lost_after_) set_lost_after(accepted.socket, *lost_after_);
      end(NativeStream::make(runtime_, loop_, std::move(accepted.socket), accepted.peer));
      return;
    }
    const int error_number = errno;
    if (error_number == EAGAIN) {
      waiting_ = false;
    } else if (concerns_one_connection(error_number)) {
      loop_.post(turn_);
    } else {
      end(system_error(error_number, fmt::format("accept on {}", address_)));
    }
  }
  void end(Result<std::unique_ptr<Stream>> result) {
    std::exchange(accept_, nullptr)->complete(std::move(result));
  }

  Loop& loop_;
  Descriptor socket_;
  const Address address_;
  std::optional<SharedAddresses::Share> share_;
  const std::optional<Duration> lost_after_;
  // Connections may be waiting. Cleared only when the kernel said that none is.
  bool waiting_ = true;
  Accept* accept_ = nullptr;
  Turn turn_{*this};
};

// A connection being made.
class Connect final : public Operation<Descriptor>, private Pollable {
 public:
  Connect(Runtime& runtime, Loop& loop, const Address& to, const std::optional<Address>& from,
          Until until)
      : Operation(runtime, std::move(until)), loop_(loop), to_(to), from_(from) {}

 private:
  void start() override {
    if (auto begun = begin(); !begun) complete(std::move(begun).error());
  }
  void cancel() override {
    socket_.reset();
    complete(Error(Errc::cancelled));
  }
  void on_ready(std::uint32_t) override {
    // Decided, but the coroutine has not had its turn yet.
    if (!pending()) return;
    decide(outcome_of_connect(socket_));
  }

  Result<void> begin() {
    TRY(socket_, make_socket(to_));
    set_up_connection(socket_);
    if (from_.has_value()) {
      // The port is chosen when connecting: the same one can serve different destinations.
      set_option(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
      TRY_VOID(bind_socket(socket_, *from_, "connect from"));
    }
    const int error_number = begin_connect(socket_, to_);
    if (error_number == EINPROGRESS)
      return loop_.watch(socket_.number(), EPOLLOUT | EPOLLET, *this);
    decide(error_number);
    return {};
  }

  void decide(int error_number) {
    // Without a listener, a port that the kernel picks for us can be the very one we call, and TCP
    // connects it to itself.
    if (error_number == 0 && local_address_of(socket_) == to_) error_number = ECONNREFUSED;
    if (error_number == 0) {
      complete(std::move(socket_));
      return;
    }
    socket_.reset();
    // Here it is ports that have run out, not an address that is wrong.
    const bool out_of_ports = error_number == EADDRNOTAVAIL;
    const std::string doing = fmt::format("connect to {}", to_);
    if (out_of_ports) {
      complete(Error(Errc::overloaded, "{}: {}", doing, system_text(error_number)));
    } else {
      complete(system_error(error_number, doing));
    }
  }

  Loop& loop_;
  const Address to_;
  const std::optional<Address> from_;
  Descriptor socket_;
};

}  // namespace

Result<SharedAddresses::Share> SharedAddresses::join(const Address& address) {
  const MutexLock lock(mutex_);
  if (!listeners_.contains(address)) {
    TRY(const auto probe, make_socket(address));
    set_option(probe, SOL_SOCKET, SO_REUSEADDR);
    TRY_VOID(bind_socket(probe, address, "listen on"));
  }
  ++listeners_[address];
  return Share(*this, address);
}

SharedAddresses::Share SharedAddresses::found(const Address& address) {
  const MutexLock lock(mutex_);
  ++listeners_[address];
  return {*this, address};
}

void SharedAddresses::leave(const Address& address) {
  const MutexLock lock(mutex_);
  const auto found = listeners_.find(address);
  ASSERT(found != listeners_.end());
  if (--found->second == 0) listeners_.erase(found);
}

Result<std::unique_ptr<Listener>> NativeTransport::listen(const Address& address,
                                                          ListenOptions options) {
  TRY(Descriptor socket, make_socket(address));
  set_option(socket, SOL_SOCKET, SO_REUSEADDR);
  std::optional<SharedAddresses::Share> share;
  if (options.shared_between_cores) {
    set_option(socket, SOL_SOCKET, SO_REUSEPORT);
    if (address.port() != 0) {
      TRY(auto joined, shared_.join(address));
      share.emplace(std::move(joined));
    }
  }
  TRY_VOID(bind_socket(socket, address, "listen on"));
  if (options.shared_between_cores && !share)
    share.emplace(shared_.found(local_address_of(socket)));
  if (::listen(socket.number(), options.backlog) != 0) {
    return system_error(errno, fmt::format("listen on {}", address));
  }
  auto listener = std::make_unique<NativeListener>(runtime_, loop_, std::move(socket),
                                                   std::move(share), options.lost_after);
  TRY_VOID(listener->watch());
  return listener;
}

Task<Result<std::unique_ptr<Stream>>> NativeTransport::connect(Address address, Until until,
                                                               std::optional<Address> from) {
  CO_TRY(Descriptor socket, co_await Connect(runtime_, loop_, address, from, std::move(until)));
  co_return NativeStream::make(runtime_, loop_, std::move(socket), address);
}

}  // namespace helenus::runtime::native
